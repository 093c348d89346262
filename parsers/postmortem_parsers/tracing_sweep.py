"""The fast way through logs in tracing's full format, plain or coloured: most lines are settled in a few passes.

    2026-03-13T14:02:11.123456Z  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3.88

A line is settled when it begins exactly like this (UTC, microseconds, no warning or error) and either no event of the
profile can be in it or it has the shape of other lines of its event. All other lines go the way of `records`, which
gives the same rows for every line. Colour codes are never taken off on the way: the same plan is followed with other
constants between the values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import polars as pl

from postmortem_parsers.fixed_shape import EventReader
from postmortem_parsers.full_format import COLOURED, PLAIN, Dress
from postmortem_parsers.interface import Swept
from postmortem_parsers.profiles import Profile
from postmortem_parsers.timestamps import fixed_utc
from postmortem_parsers.tracing_pretty import PrettyFormat
from postmortem_parsers.tracing_text import TextFormat

__all__ = ["Sweeper"]

_PRETTY = rf"^{PrettyFormat.head}"
_CODES = ["\x1b", "^[", "←["]  # what a terminal's code begins with, as it is or after copy and paste


class Sweeper:
    """One profile's events, for one stream. May be used in several threads at once."""

    def __init__(self, profile: Profile, source: int) -> None:
        self._profile, self._source = profile, source

    # Made when a line asks for it: many streams hold no record at all, and to build one takes 20 ms.
    @functools.cached_property
    def _plain(self) -> _DressSweeper:
        return _DressSweeper(PLAIN, self._profile, self._source)

    @functools.cached_property
    def _coloured(self) -> _DressSweeper:
        return _DressSweeper(COLOURED, self._profile, self._source)

    def sweep(self, lines: pl.DataFrame, clean: Callable[[pl.Series], pl.Series] | None) -> Swept | None:
        """Settle what can be settled of `lines`; None where records over several lines need their neighbours."""
        sure = lines["text"].str.contains(PLAIN.head)
        frames: list[tuple[str, pl.DataFrame]] = []
        left: list[pl.DataFrame] = []
        if clean is not None:
            coloured = lines["text"].str.contains(COLOURED.head)
            if coloured.any():
                frames, unread = self._coloured.read(_only(lines, coloured))
                left = [_cleaned(unread, clean)]
            plain = _cleaned_where_needed(_only(lines, sure), clean)
            sure = sure | coloured
        else:
            plain = _only(lines, sure)
        others = lines.filter(~sure)
        if clean is not None:
            others = _cleaned(others, clean)
        if others["text"].str.contains(_PRETTY).any():
            return None
        if plain.height:
            found, unread = self._plain.read(plain)
            frames, left = [*frames, *found], [*left, unread]
        rest = pl.concat([others, *left])
        return Swept(frames, sure, rest.sort("line") if rest.height > others.height else rest)


class _DressSweeper:
    """Lines that surely are records in one dress."""

    def __init__(self, dress: Dress, profile: Profile, source: int) -> None:
        self._dress = dress
        self._readers: dict[str, EventReader] = {}
        # Where one message begins like another, the longer one is meant.
        patterns = {pattern: event for event in reversed(profile.event) for pattern in TextFormat().patterns(event)}
        for pattern in sorted(patterns, key=len, reverse=True):
            reader = EventReader(patterns[pattern], pattern, dress, profile, source)
            self._readers.setdefault(dress.screen(pattern), reader)
        self._screen = sorted(self._readers, key=len, reverse=True)
        self._longest = max((len(pattern.encode()) for pattern in self._screen), default=0)

    def read(self, lines: pl.DataFrame) -> tuple[list[tuple[str, pl.DataFrame]], pl.DataFrame]:
        """Rows of the lines that hold an event, and the lines (`line`, `text`) that need the careful way."""
        frames: list[tuple[str, pl.DataFrame]] = []
        if not self._screen:
            return [], lines.clear().select("line", "text")
        hits = self._hits(lines)
        unclear = hits["time"].is_null() | hits["event"].is_null()
        left = [hits.filter(unclear)]
        if left[0].height:
            hits = hits.filter(~unclear)
        for (event,), kind in hits.partition_by("event", as_dict=True).items():
            found, done = self._readers[str(event)].read(kind)
            frames += found
            if not done.all():
                left.append(kind.filter(~done))
        return frames, pl.concat(left).select("line", "text")

    def _hits(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Lines that may hold an event, with its place (in bytes), the `event` that it would be, and their `time`."""
        place = lines["text"].str.find_many(self._screen, leftmost=True).list.first().cast(pl.Int64).alias("place")
        hits = lines.with_columns(place)
        hits = hits.filter(place.is_not_null()) if place.null_count() else hits
        found = pl.col("text").cast(pl.Binary).bin.slice(pl.col("place"), self._longest).cast(pl.String, strict=False)
        event = found.str.extract_many(self._screen, leftmost=True).list.first().alias("event")
        return hits.with_columns_seq(event).with_columns(fixed_utc(hits["text"], self._dress.clock))


def _only(lines: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
    return lines if mask.all() else lines.filter(mask)


def _cleaned(lines: pl.DataFrame, clean: Callable[[pl.Series], pl.Series]) -> pl.DataFrame:
    return lines.with_columns(clean(lines["text"])) if lines.height else lines


def _cleaned_where_needed(lines: pl.DataFrame, clean: Callable[[pl.Series], pl.Series]) -> pl.DataFrame:
    """Codes are taken off the lines that have any: looking for them is ten times as fast."""
    coded = lines["text"].str.contains_any(_CODES)
    if not coded.any():
        return lines
    return pl.concat([lines.filter(~coded), _cleaned(lines.filter(coded), clean)]).sort("line")
