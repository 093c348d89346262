"""Times as log heads print them, as polars expressions: ISO 8601, syslog's yearless stamp, dmesg -T's, epochs.

Every function gives a struct of `time` (UTC, or the local clock read as if it were UTC), `local_time`
(the stamp names no zone) and `no_year`. What is no date gives a null time.
"""

import polars as pl

__all__ = ["PLACEHOLDER_YEAR", "ctime_stamp", "epoch_stamp", "iso_stamp", "yearless_stamp"]

PLACEHOLDER_YEAR = 2000
"""Stands for the year that the stamp does not name; a leap year, so that Feb 29 is a date."""

# util-linux's dmesg and some shippers print the names of the user's language.
_MONTH_NAMES = (
    "jan janv gen ene januar januari janvier sty янв",
    "feb févr fév fevr fev februar lut фев",
    "mar mär mrz maa mrt mars märz mär. мар",
    "apr avr abr kwi апр",
    "may mai mag mei maj май мая",
    "jun juin giu juni cze июн",
    "jul juil lug juli lip июл",
    "aug août aout ago sie авг",
    "sep sept set wrz сен",
    "oct okt ott out paź окт",
    "nov lis ноя",
    "dec déc dez dic gru дек",
)
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}

_ISO = r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?\s?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?"
_YEARLESS = r"(?P<month>\p{L}+)\.?\s*(?P<day>\d{1,2})\s+(?P<clock>\d\d:\d\d(?::\d\d)?)(?:\.(?P<fraction>\d{1,9}))?(?:\s+(?P<year>\d{4}))?"


def _micros(fraction: pl.Expr) -> pl.Expr:
    return fraction.fill_null("").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64, strict=False).fill_null(0)


def _offset_s(zone: pl.Expr) -> pl.Expr:
    digits = zone.str.replace(":", "")
    seconds = (
        digits.str.slice(1, 2).cast(pl.Int64, strict=False) * 3600
        + digits.str.slice(3, 2).cast(pl.Int64, strict=False) * 60
    )
    return pl.when(zone.str.starts_with("-")).then(-seconds).otherwise(seconds).fill_null(0)


def _stamp(time: pl.Expr, local: pl.Expr, no_year: pl.Expr) -> pl.Expr:
    utc = time.dt.replace_time_zone("UTC").cast(pl.Datetime("us", "UTC"))
    return pl.struct(utc.alias("time"), local.alias("local_time"), no_year.alias("no_year"))


def iso_stamp(text: pl.Expr) -> pl.Expr:
    """`2026-03-03T14:02:11.123456+01:00` and its relatives: blank for T, comma, no zone, nanoseconds."""
    parts = text.str.extract_groups(_ISO).struct
    whole = (parts.field("day") + "T" + parts.field("clock")).str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False)
    time = whole.dt.cast_time_unit("us") + pl.duration(
        microseconds=_micros(parts.field("fraction")), seconds=-_offset_s(parts.field("zone"))
    )
    return _stamp(time, parts.field("zone").is_null(), pl.lit(False))


def yearless_stamp(text: pl.Expr) -> pl.Expr:
    """`Mar  3 14:02:11` of syslog, `Mar  3 14:02` of dmesg -H; a year at its end is taken where it is given."""
    parts = text.str.extract_groups(_YEARLESS).struct
    month = parts.field("month").str.to_lowercase()
    number = pl.coalesce(
        month.replace_strict(_MONTHS, default=None, return_dtype=pl.Int64),
        month.str.slice(0, 3).replace_strict(_MONTHS, default=None, return_dtype=pl.Int64),
    )
    year = parts.field("year").fill_null(str(PLACEHOLDER_YEAR))
    date = pl.concat_str([year, number.cast(pl.String).str.zfill(2), parts.field("day").str.zfill(2)], separator="-")
    clock = (parts.field("clock") + ":00").str.slice(0, 8)
    whole = (date + "T" + clock).str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False)
    time = whole.dt.cast_time_unit("us") + pl.duration(microseconds=_micros(parts.field("fraction")))
    return _stamp(time, pl.lit(True), parts.field("year").is_null())


def ctime_stamp(text: pl.Expr) -> pl.Expr:
    """`Tue Mar  3 14:02:11 2026` of dmesg -T, whose clock is local and whose names follow the locale."""
    return yearless_stamp(text.str.replace(r"^\s*\p{L}+\.?\s+", ""))


def epoch_stamp(seconds: pl.Expr) -> pl.Expr:
    """Seconds since 1970 as text, with or without a fraction (journalctl -o short-unix)."""
    micros = (seconds.cast(pl.Float64, strict=False) * 1e6).round().cast(pl.Int64, strict=False)
    time = pl.from_epoch(micros, time_unit="us")
    return _stamp(time, pl.lit(False), pl.lit(False))
