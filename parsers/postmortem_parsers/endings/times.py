"""Times in front of a wrapper's or a runtime's words: `[2026-02-12 17:23:40] …`, RFC 3339, kubectl's RFC 1123."""

import polars as pl

from postmortem_parsers.kernel_log.stamps import iso_stamp, yearless_stamp

__all__ = ["stamped_text"]

_ISO = r"^\s*\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\s?(?:Z|UTC|[+-]\d\d:?\d\d)?)\]?"
_RFC1123 = r"^\s*\[?\p{L}{3}, (\d{2}) (\p{L}{3}) (\d{4}) (\d\d:\d\d:\d\d) ([+-]\d{4})"
_WRAPPER = r"^\s*\[\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\]]{0,12}\]\s*"


def stamped_text(lines: pl.DataFrame) -> pl.DataFrame:
    """`lines` (line, text) with the time that they begin with; a bracketed one is taken off the message.

    Columns: line, message, time, local_time, no_year, uptime_s, hostname.
    """
    text = pl.col("text")
    # RFC 1123 names month and year in another order, so it is written anew for the reader of stamps.
    parts = [text.str.extract(_RFC1123, group) for group in range(1, 6)]
    yearful = pl.concat_str([parts[1], pl.lit(" "), parts[0], pl.lit(" "), parts[3], pl.lit(" "), parts[2]])
    local = yearless_stamp(yearful).struct.field("time")
    offset = parts[4]
    seconds = (
        offset.str.slice(1, 2).cast(pl.Int64, strict=False) * 3600
        + offset.str.slice(3, 2).cast(pl.Int64, strict=False) * 60
    )
    rfc1123 = local - pl.duration(seconds=pl.when(offset.str.starts_with("-")).then(-seconds).otherwise(seconds))
    iso = iso_stamp(text.str.extract(_ISO, 1)).struct
    return lines.select(
        "line",
        text.str.replace(_WRAPPER, "").str.strip_chars_end().alias("message"),
        pl.coalesce(rfc1123, iso.field("time")).alias("time"),
        (iso.field("time").is_not_null() & iso.field("local_time")).fill_null(value=False).alias("local_time"),
        pl.lit(value=False).alias("no_year"),
        pl.lit(None, pl.Float64).alias("uptime_s"),
        pl.lit(None, pl.String).alias("hostname"),
    )
