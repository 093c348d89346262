"""The fast way through logs in tracing's full format, plain or coloured: most lines are settled in a few passes.

    2026-03-13T14:02:11.123456Z  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3.88

A line is settled when it begins exactly like this (UTC, microseconds, no warning or error) and either no event of the
profile can be in it or it has the shape of other lines of its event. All other lines go the way of `records`, which
gives the same rows for every line.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from postmortem_parsers.fixed_shape import EventReader
from postmortem_parsers.interface import Swept
from postmortem_parsers.profiles import Profile
from postmortem_parsers.tracing_pretty import PrettyFormat
from postmortem_parsers.tracing_text import TextFormat

__all__ = ["Sweeper"]

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z"
_PLAIN = rf"^{_DATE} (?:TRACE|DEBUG| INFO) "
_COLOURED = rf"^\x1b\[2m{_DATE}\x1b\[0m \x1b\[3[0-9]m(?:TRACE|DEBUG| INFO)\x1b\[0m "
_PRETTY = rf"^{PrettyFormat.head}"
_TARGET_END = 3


class Sweeper:
    """One profile's events, for one stream. May be used in several threads at once."""

    def __init__(self, profile: Profile, source: int) -> None:
        dress = TextFormat()
        self._readers: dict[str, EventReader] = {}
        # Where one message begins like another, the longer one is meant.
        patterns = {pattern: event for event in reversed(profile.event) for pattern in dress.patterns(event)}
        for pattern in sorted(patterns, key=len, reverse=True):
            reader = EventReader(patterns[pattern], pattern, profile, source)
            self._readers.setdefault(_end_of_target(pattern), reader)
        self._screen = list(self._readers)
        self._coloured_screen = list(dict.fromkeys(_message(pattern) for pattern in patterns))

    def sweep(self, lines: pl.DataFrame, clean: Callable[[pl.Series], pl.Series] | None) -> Swept | None:
        """Settle what can be settled of `lines`; None where records over several lines need their neighbours."""
        text = lines["text"]
        sure = text.str.contains(_PLAIN if clean is None else f"{_PLAIN}|{_COLOURED}")
        others = lines.filter(~sure)
        if clean is not None:
            others = others.with_columns(clean(others["text"]))
        if others["text"].str.contains(_PRETTY).any():
            return None
        frames, left = self._read(self._hits(lines, sure, clean))
        return Swept(frames, sure, pl.concat([others, left]).sort("line"))

    def _hits(
        self, lines: pl.DataFrame, sure: pl.Series, clean: Callable[[pl.Series], pl.Series] | None
    ) -> pl.DataFrame:
        """Lines that may hold an event, with the `event` that it would be."""
        text = lines["text"]
        if clean is not None:
            # Colours stand within target and fields, never within a message.
            lines = lines.filter(text.str.contains_any(self._coloured_screen) & sure)
            lines = lines.with_columns(clean(lines["text"]))
            text, sure = lines["text"], pl.repeat(True, lines.height, dtype=pl.Boolean, eager=True)
        event = text.str.extract_many(self._screen, leftmost=True).list.first().alias("event")
        return lines.with_columns(event).filter(event.is_not_null() & sure)

    def _read(self, hits: pl.DataFrame) -> tuple[list[tuple[str, pl.DataFrame]], pl.DataFrame]:
        """Rows of the hits, and the lines that need the careful way."""
        frames: list[tuple[str, pl.DataFrame]] = []
        timed = hits.with_columns(_time(hits["text"]))
        left = [timed.filter(timed["time"].is_null())]
        if left[0].height:
            timed = timed.filter(timed["time"].is_not_null())
        for (event,), kind in timed.partition_by("event", as_dict=True).items():
            found, done = self._readers[str(event)].read(kind)
            frames += found
            if not done.all():
                left.append(kind.filter(~done))
        return frames, pl.concat(left).select("line", "text")


def _end_of_target(pattern: str) -> str:
    target, colon, message = pattern.partition(": ")
    return f"{target[-_TARGET_END:]}{colon}{message}" if colon else pattern


def _message(pattern: str) -> str:
    _, colon, message = pattern.partition(": ")
    return message if colon else pattern.strip(" =")


def _time(text: pl.Series) -> pl.Series:
    """Times of lines that begin in the fixed shape; null where the date is none."""
    minute = text.str.slice(0, 16).str.to_datetime("%Y-%m-%dT%H:%M", time_unit="us", strict=False, cache=True)
    seconds = text.str.slice(17, 9).cast(pl.Float64, strict=False)
    micros = (seconds * 1e6).round().cast(pl.Int64)
    return (minute.cast(pl.Int64) + micros).cast(pl.Datetime("us")).dt.replace_time_zone("UTC").alias("time")
