"""Attempts: a capture cut at each start of the daemon. Phases: start/end pairs on the axis."""

import dataclasses
import datetime as dt

import polars as pl

from postmortem.run import Run
from postmortem.spill import between

__all__ = ["LEAD", "Span", "cut", "spans"]

LEAD = dt.timedelta(seconds=2)
"""A wrapper's lines come just before the daemon's first one."""
_OF_ALL = {"marks", "tasks"}  # of the run as a whole: neither is cut


@dataclasses.dataclass(frozen=True)
class Span:
    """One attempt: from a daemon's start to the next one's (or the end of all evidence)."""

    number: int
    start: dt.datetime | None
    end: dt.datetime | None
    """The next attempt's start; None for the last."""


def spans(run: Run) -> list[Span]:
    """The attempts of a run; always at least one."""
    starts = _starts(run.pick("work", pl.col("op") == "start", ["time", "op"]))
    if not starts:
        starts = _starts(run.pick("budget", pl.col("op") == "init", ["time", "op"]))
    if not starts:
        return [Span(1, None, None)]
    ends = [*starts[1:], None]
    return [Span(n, start, end) for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1)]


def _starts(rows: pl.DataFrame) -> list[dt.datetime]:
    """Start times a second or more apart: two sources may state the same start."""
    kept: list[dt.datetime] = []
    for time in rows["time"].drop_nulls().sort():
        if not kept or time - kept[-1] > dt.timedelta(seconds=1):
            kept.append(time)
    return kept


def cut(run: Run, span: Span) -> Run:
    """The run's rows inside one attempt. Undated rows stay with the last attempt."""
    if span.start is None:
        return run
    # The first attempt also owns what came before the daemon's first line: probes, stated limits, samples.
    low = None if span.number == 1 else span.start - LEAD
    high = None if span.end is None else span.end - LEAD
    kept = run.tables.keys() - _OF_ALL
    return run.with_tables({name: between(run.tables[name], low, high, undated=span.end is None) for name in kept})
