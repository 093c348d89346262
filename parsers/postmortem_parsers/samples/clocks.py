"""Time stamps in columns of text, as `date`, the shell, people and tools print them, to UTC.

Reads epoch seconds (with decimals), ms, µs, ns; ISO 8601 and its relatives with blank or slashes; `date`'s output
in the C and en_US locales and as RFC 2822; bare clock times. A stamp without a zone, or with a zone's name other
than UTC's (EST is two zones, and machines set it wrongly), is stored as if it were UTC with `local_time` true.
A clock without a day is stored on 2000-01-01 with `clock_only` true. Not read: other languages, weeks, `%s` in 9 digits.
"""

from __future__ import annotations

import polars as pl

__all__ = ["CLOCK", "DATED", "EPOCH", "STAMP", "with_times"]

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_ZONE = r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?|[A-Z]{3,5})"
CLOCK = r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?: ?[AP]M)?"
_ISO = rf"[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}[T ]{CLOCK}(?: ?{_ZONE})?"
_UNIX = rf"{_DAY} {_MONTH} +[0-9]{{1,2}} {CLOCK}(?: {_ZONE})? [0-9]{{4}}"
_MAIL = rf"{_DAY} [0-9]{{1,2}} {_MONTH} [0-9]{{4}} {CLOCK}(?: {_ZONE})?"
EPOCH = r"(?:[0-9]{10}(?:\.[0-9]{1,9})?|[0-9]{13}(?:\.[0-9]{1,6})?|[0-9]{16}|[0-9]{19})"
DATED = rf"(?:{_ISO}|{_UNIX}|{_MAIL})"
STAMP = rf"(?:{DATED}|{EPOCH}|{CLOCK})"
"""Any stamp, for embedding in patterns: no groups, no anchors."""

# The years 2001 (ten digits begin) to 2100: what else has ten digits is not a time.
_FIRST, _LAST = 1_000_000_000, 4_102_444_800
_TIME_PARTS = r"([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]{1,9}))?(?: ?([AP]M))?"
_END = rf"(?: ?({_ZONE}))?$"
_PATTERNS = {
    "iso": rf"^([0-9]{{4}})[-/]([0-9]{{2}})[-/]([0-9]{{2}})[T ]{_TIME_PARTS}{_END}",
    "unix": rf"^{_DAY} ({_MONTH}) +([0-9]{{1,2}}) {_TIME_PARTS}(?: ({_ZONE}))? ([0-9]{{4}})$",
    "mail": rf"^{_DAY} ([0-9]{{1,2}}) ({_MONTH}) ([0-9]{{4}}) {_TIME_PARTS}{_END}",
    "clock": rf"^{_TIME_PARTS}$",
}
_FIELDS = {
    "iso": ["year", "month", "day", "hour", "minute", "second", "fraction", "half", "zone"],
    "unix": ["month", "day", "hour", "minute", "second", "fraction", "half", "zone", "year"],
    "mail": ["day", "month", "year", "hour", "minute", "second", "fraction", "half", "zone"],
    "clock": ["hour", "minute", "second", "fraction", "half"],
}
_MONTHS = {name: n for n, name in enumerate(_MONTH[3:-1].split("|"), start=1)}
_UTC = pl.Datetime("us", "UTC")


def with_times(frame: pl.DataFrame, text: str) -> pl.DataFrame:
    """`frame` with `time`, `local_time` and `clock_only`; all null where `text` is no stamp."""
    stamps = pl.DataFrame({"text": frame[text].str.strip_chars()})
    found = [_epochs(stamps)]
    found += [
        _written(stamps, form) for form, pattern in _PATTERNS.items() if stamps["text"].str.contains(pattern).any()
    ]
    times = pl.DataFrame(
        {name: _first([part[name] for part in found]) for name in ("time", "local_time", "clock_only")}
    )
    return frame.drop("time", "local_time", "clock_only", strict=False).hstack(times)


def _first(columns: list[pl.Series]) -> pl.Series:
    return pl.select(pl.coalesce(*columns)).to_series()


def _epochs(stamps: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("text")
    whole = text.str.extract(rf"^({EPOCH})$", 1)
    digits = whole.str.find(r"\.", literal=False).fill_null(whole.str.len_chars())
    scale = digits.replace_strict({10: 1e6, 13: 1e3, 16: 1.0, 19: 1e-3}, default=None, return_dtype=pl.Float64)
    micros = (whole.cast(pl.Float64, strict=False) * scale).round().cast(pl.Int64, strict=False)
    inside = micros.is_between(_FIRST * 1_000_000, _LAST * 1_000_000)
    return stamps.select(
        time=pl.when(inside).then(micros).cast(_UTC),
        local_time=pl.when(inside).then(pl.lit(value=False)),
        clock_only=pl.when(inside).then(pl.lit(value=False)),
    )


def _written(stamps: pl.DataFrame, form: str) -> pl.DataFrame:
    groups = stamps.select(
        pl.col("text").str.extract(_PATTERNS[form], n).alias(name) for n, name in enumerate(_FIELDS[form], start=1)
    )
    if form == "clock":
        groups = groups.with_columns(
            year=pl.lit("2000"), month=pl.lit("1"), day=pl.lit("1"), zone=pl.lit(None, pl.String)
        )
    numbers = groups.with_columns(
        month=pl.col("month").replace_strict(_MONTHS, default=pl.col("month").cast(pl.Int64, strict=False))
        if form in ("unix", "mail")
        else pl.col("month").cast(pl.Int64),
        hour=_hour(),
        micros=pl.col("fraction").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64).fill_null(0),
        offset=_offset_minutes(),
    )
    text = pl.format(
        "{}-{}-{} {}:{}:{}", *(pl.col(c).cast(pl.String) for c in ("year", "month", "day", "hour", "minute", "second"))
    )
    moment = text.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us").dt.replace_time_zone("UTC")
    time = moment + pl.duration(microseconds=pl.col("micros")) - pl.duration(minutes=pl.col("offset").fill_null(0))
    return numbers.select(time=time, offset=pl.col("offset")).select(
        time="time",
        local_time=pl.when(pl.col("time").is_not_null()).then(pl.col("offset").is_null()),
        clock_only=pl.when(pl.col("time").is_not_null()).then(pl.lit(form == "clock")),
    )


def _hour() -> pl.Expr:
    """The hour of 24, where the clock may be one of 12."""
    hour = pl.col("hour").cast(pl.Int64)
    return (
        pl.when(pl.col("half") == "PM")
        .then(hour % 12 + 12)
        .when(pl.col("half") == "AM")
        .then(hour % 12)
        .otherwise(hour)
    )


def _offset_minutes() -> pl.Expr:
    """Minutes east of UTC; null where the zone is not known."""
    zone = pl.col("zone")
    sign = pl.when(zone.str.starts_with("-")).then(-1).otherwise(1)
    hours = zone.str.extract(r"^[+-]([0-9]{2})", 1).cast(pl.Int64)
    minutes = zone.str.extract(r"^[+-][0-9]{2}:?([0-9]{2})$", 1).cast(pl.Int64).fill_null(0)
    return pl.when(zone.is_in(["Z", "UTC", "GMT"])).then(pl.lit(0, pl.Int64)).otherwise(sign * (hours * 60 + minutes))
