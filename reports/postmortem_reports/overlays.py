"""What is drawn over the curves of a timeline: phases and attempts, kills, loads, gaps in the evidence."""

import datetime as dt
from dataclasses import dataclass

import polars as pl

from postmortem.result import Result
from postmortem_reports.format import utc
from postmortem_reports.words import HOWS

__all__ = ["Band", "Mark", "Overlays", "overlays"]

MOST_BANDS = 60
"""Bands of one kind that a figure shows; more cannot be told apart."""


@dataclass(frozen=True)
class Band:
    """A span of time with a label."""

    start: dt.datetime
    end: dt.datetime
    label: str


@dataclass(frozen=True)
class Mark:
    """A moment with a label."""

    time: dt.datetime
    label: str


@dataclass(frozen=True)
class Overlays:
    """All that a timeline figure shows beside its curves."""

    start: dt.datetime
    end: dt.datetime
    phases: tuple[Band, ...]
    attempts: tuple[Band, ...]
    loads: tuple[Band, ...]
    gaps: tuple[Band, ...]
    kills: tuple[Mark, ...]


def overlays(result: Result, timeline: pl.DataFrame) -> Overlays | None:
    """The overlays of a timeline in order of time; None when it has no rows."""
    if timeline.height == 0:
        return None
    kills = _kills(result)
    start = utc(timeline["time"][0])
    last = utc(timeline["time"][-1])
    # A kill long after the last row would squeeze the curves; it is then marked at the edge.
    span = last - start
    end = max([last, *(kill.time for kill in kills if kill.time - last < max(span * 0.25, dt.timedelta(seconds=10)))])
    if end == start:
        end = start + dt.timedelta(seconds=1)
    phases = [_band(phase.start, phase.end, phase.name, end) for phase in result.phases]
    attempts = [_band(one.start, one.end, f"attempt {one.number}", end) for one in result.attempts]
    return Overlays(
        start=start,
        end=end,
        phases=_kept(phases),
        attempts=_kept(attempts) if len(attempts) > 1 else (),
        loads=_kept(_loads(timeline)),
        gaps=_kept(_gaps(timeline, end)),
        kills=tuple(kills[:MOST_BANDS]),
    )


def _kept(bands: list[Band] | list[Band | None]) -> tuple[Band, ...]:
    return tuple(band for band in bands if band is not None)[:MOST_BANDS]


def _band(start: dt.datetime | None, end: dt.datetime | None, label: str, last: dt.datetime) -> Band | None:
    if start is None:
        return None
    return Band(utc(start), max(utc(start), last if end is None else utc(end)), label)


def _kills(result: Result) -> list[Mark]:
    ending = result.ending
    marks: list[Mark] = []
    if ending.time is not None and ending.how not in {"finished", "running"}:
        marks.append(Mark(utc(ending.time), HOWS[ending.how].removesuffix("by the cgroup memory limit").strip()))
    known = [mark.time for mark in marks]
    for kill in result.kills:
        if kill.time is None or not kill.relevant:
            continue
        if all(abs((utc(kill.time) - time).total_seconds()) > 1 for time in known):
            marks.append(Mark(utc(kill.time), f"kill: {kill.victim or 'unknown process'}"))
    return marks


def _loads(timeline: pl.DataFrame) -> list[Band]:
    """Spans in which a table was loading: the transient part is not zero."""
    runs = (
        timeline.select("time", load=pl.col("transient").fill_null(0) > 0)
        .with_columns(run=pl.col("load").rle_id(), until=pl.col("time").shift(-1).fill_null(pl.col("time")))
        .filter("load")
        .group_by("run", maintain_order=True)
        .agg(pl.col("time").first(), pl.col("until").last())
    )
    return [Band(start, end, "load") for _, start, end in runs.rows()]


def _gaps(timeline: pl.DataFrame, end: dt.datetime) -> list[Band]:
    """Spans without any row, far longer than the usual distance between rows."""
    span = (end - timeline["time"][0]).total_seconds()
    usual = timeline["time"].diff().drop_nulls().dt.total_milliseconds().median()
    least = max(15.0, 0.02 * span, 12 * float(usual or 0) / 1000)  # type: ignore[arg-type] - polars types a median widely
    with_next = timeline.select("time", until=pl.col("time").shift(-1).fill_null(end))
    found = with_next.filter((pl.col("until") - pl.col("time")).dt.total_milliseconds() > 1000 * least)
    return [Band(start, until, "no evidence") for start, until in found.rows()]
