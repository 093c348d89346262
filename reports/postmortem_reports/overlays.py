"""What is drawn over the curves of a timeline: phases and attempts, kills, loads, gaps in the evidence."""

import datetime as dt
from dataclasses import dataclass
from operator import itemgetter

import polars as pl

from postmortem.result import Result
from postmortem_reports.format import utc
from postmortem_reports.labels import SEVERITY
from postmortem_reports.words import HOWS

__all__ = ["Band", "Mark", "Overlays", "overlays"]

_Span = tuple[dt.datetime, dt.datetime]

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
    shown = (start, max(end, start + dt.timedelta(milliseconds=1)))
    phases = _lane([(phase.start, phase.end, phase.name) for phase in result.phases], shown)
    attempts = _lane([(one.start, one.end, f"attempt {one.number}") for one in result.attempts], shown)
    return Overlays(
        start=shown[0],
        end=shown[1],
        phases=phases,
        attempts=attempts if len(attempts) > 1 else (),
        loads=tuple(_loads(timeline)[:MOST_BANDS]),
        gaps=tuple(_gaps(timeline, end)[:MOST_BANDS]),
        kills=tuple([*kills, *_earlier_kills(result, attempts)][:MOST_BANDS]),
    )


def _lane(spans: list[tuple[dt.datetime | None, dt.datetime | None, str]], shown: _Span) -> tuple[Band, ...]:
    """Bands of one lane in order of time, within what is shown.

    One without an end lasts until the next begins: two phases, or two attempts, are never under way at once.
    """
    dated = sorted(((utc(start), end, label) for start, end, label in spans if start is not None), key=itemgetter(0))
    limits = [start for start, _, _ in dated[1:]] + [shown[1]]
    bands = (
        Band(max(start, shown[0]), min(utc(end) if end else shown[1], limit, shown[1]), label)
        for (start, end, label), limit in zip(dated, limits, strict=False)
    )
    return tuple(band for band in bands if band.start <= band.end)[:MOST_BANDS]


def _earlier_kills(result: Result, attempts: tuple[Band, ...]) -> list[Mark]:
    """Ends of earlier attempts by memory; the attempts' table says how each ended."""
    killed = {
        f"attempt {one.number}" for one in result.attempts if SEVERITY[one.ending] == "death" and not one.analysed
    }
    return [Mark(band.end, "") for band in attempts if band.label in killed]


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
