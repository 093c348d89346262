"""ISO 8601 times that carry their zone, as tracing-subscriber and most structured loggers write them.

    2026-03-13T14:02:11.123456Z    2026-03-13T14:02:11+02:00

Not read here: times without a zone (a wrapper's `[2026-02-22 00:21:35]`, syslog's `Mar 13 14:02:11`).
"""

from __future__ import annotations

import polars as pl

__all__ = ["STAMP", "TIME_TYPE", "has_utc_time", "parse_utc", "utc_time"]

TIME_TYPE = pl.Datetime("us", "UTC")

STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_AT_THE_BEGINNING = r'^(?: {0,2}|\{"(?:timestamp|time|ts)":\s?"|time="?|ts="?)(' + STAMP + ")"


def has_utc_time(text: pl.Series) -> pl.Series:
    """Which lines begin with such a time (in any of tracing's formats, or logfmt's)."""
    return text.str.contains(_AT_THE_BEGINNING)


def utc_time(text: pl.Series) -> pl.Series:
    """The time at each line's beginning; null where there is none or it is no real date."""
    return parse_utc(text.str.extract(_AT_THE_BEGINNING))


def parse_utc(stamp: pl.Series) -> pl.Series:
    """Times of stamps such as `2026-03-13T14:02:11.123456Z`; null where one is no real date."""
    zulu = stamp.str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", strict=False)
    times = zulu.dt.replace_time_zone("UTC")
    if times.null_count() > stamp.null_count():
        offset = stamp.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", strict=False)
        times = times.zip_with(times.is_not_null(), offset.dt.convert_time_zone("UTC"))
    return times.cast(TIME_TYPE).alias("time")
