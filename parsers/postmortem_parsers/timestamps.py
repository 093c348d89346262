"""ISO 8601 times that carry their zone, as tracing-subscriber and most structured loggers write them.

    2026-03-13T14:02:11.123456Z    2026-03-13T14:02:11+02:00

Not read here: times without a zone (a wrapper's `[2026-02-22 00:21:35]`, syslog's `Mar 13 14:02:11`).
"""

from __future__ import annotations

import polars as pl

__all__ = ["FIXED_STAMP", "STAMP", "TIME_TYPE", "fixed_utc", "has_utc_time", "parse_utc", "utc_time"]

TIME_TYPE = pl.Datetime("us", "UTC")

STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})"
FIXED_STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z"
_AT_THE_BEGINNING = r'^(?: {0,2}|\{"(?:timestamp|time|ts)":\s?"|time="?|ts="?)(' + STAMP + ")"


def has_utc_time(text: pl.Series) -> pl.Series:
    """Which lines begin with such a time (in any of tracing's formats, or logfmt's)."""
    return text.str.contains(_AT_THE_BEGINNING)


def utc_time(text: pl.Series) -> pl.Series:
    """The time at each line's beginning; null where there is none or it is no real date."""
    if text.str.contains(f"^{FIXED_STAMP}").all():
        return fixed_utc(text)
    return parse_utc(text.str.extract(_AT_THE_BEGINNING))


def fixed_utc(text: pl.Series, start: int = 0) -> pl.Series:
    """The time that begins `start` characters into each line, in just the form `2026-03-13T14:02:11.123456Z`.

    Null where the date is none. Three times as fast as `parse_utc`: lines of a log share their minutes.
    """
    minute = text.str.slice(start, 16).str.to_datetime("%Y-%m-%dT%H:%M", time_unit="us", strict=False, cache=True)
    seconds = text.str.slice(start + 17, 9).cast(pl.Float64, strict=False)
    micros = (seconds * 1e6).round().cast(pl.Int64)
    return (minute.cast(pl.Int64) + micros).cast(pl.Datetime("us")).dt.replace_time_zone("UTC").alias("time")


def parse_utc(stamp: pl.Series) -> pl.Series:
    """Times of stamps such as `2026-03-13T14:02:11.123456Z`; null where one is no real date."""
    zulu = stamp.str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", strict=False)
    times = zulu.dt.replace_time_zone("UTC")
    if times.null_count() > stamp.null_count():
        offset = stamp.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", strict=False)
        times = times.zip_with(times.is_not_null(), offset.dt.convert_time_zone("UTC"))
    return times.cast(TIME_TYPE).alias("time")
