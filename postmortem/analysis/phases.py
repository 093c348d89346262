"""Phases as spans: start and end lines paired, a client's unnamed batch folded onto the phase that it runs in."""

import dataclasses
import datetime as dt

import polars as pl

__all__ = ["PhaseSpan", "pair"]

_UNNAMED = "batch"  # what the profile calls a client's batch that has no name of its own
_BESIDE = 5  # lines between a wrapper's phase line and the batch that it starts


@dataclasses.dataclass
class PhaseSpan:
    """One phase; end None = it was cut."""

    name: str
    start: dt.datetime | None
    end: dt.datetime | None
    count: int | None
    completed: int | None
    at: tuple[int, int]


def pair(rows: pl.DataFrame) -> list[PhaseSpan]:
    """The phases of a run in order. An end closes the newest open phase of its name, a batch's end the newest at all."""
    found: list[PhaseSpan] = []
    columns = ("op", "name", "time", "count", "completed", "source", "line")
    ordered = rows.sort("source", "line").select(columns)
    for op, name, time, count, completed, source, line in ordered.iter_rows():
        if op == "start":
            last = found[-1] if found else None
            beside = last is not None and last.at[0] == source and line - last.at[1] <= _BESIDE and last.end is None
            if name == _UNNAMED and last is not None and beside:
                last.count = last.count or count
                continue
            found.append(PhaseSpan(name or "phase", time, None, count, None, (source, line)))
            continue
        target = _open(found, name, source)
        if target is not None:
            target.end = time or target.end or target.start
            target.completed = completed if completed is not None else target.completed
    named = [p for p in found if p.name != _UNNAMED]
    # A batch in another file (the client's own output) repeats the wrapper's phase.
    return [p for p in found if p.name != _UNNAMED or not any(_overlap(p, q) for q in named)]


def _open(found: list[PhaseSpan], name: str | None, source: int) -> PhaseSpan | None:
    """The phase that an end line closes."""
    open_ones = [p for p in reversed(found) if p.end is None]
    if name is None or name == _UNNAMED:
        here = [p for p in open_ones if p.at[0] == source]
        return (here or open_ones or [None])[0]
    return next((p for p in open_ones if p.name == name or p.name.startswith(name)), None)


def _overlap(a: PhaseSpan, b: PhaseSpan) -> bool:
    """Whether two phases run at the same time; undated ones are taken to."""
    if a.start is None or b.start is None:
        return True
    far = dt.datetime.max.replace(tzinfo=dt.UTC)
    return a.start < (b.end or far) and b.start < (a.end or far)
