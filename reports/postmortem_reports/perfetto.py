"""The run as Chrome JSON trace events, which the Perfetto UI opens: counters for memory, spans for work.

Times are microseconds since 1970 (UTC). Sizes are GiB, so that the tracks' axes are readable. Each partition has a
lane of its own while it lives, with its synthesis, its wait and its GPU time as spans inside.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import polars as pl

from postmortem.result import PartitionLife, Result
from postmortem.schema import TIMELINE
from postmortem.units import GIB
from postmortem_reports import words
from postmortem_reports.safe import visible
from postmortem_reports.series import in_order, thin

__all__ = ["MARK", "render"]

MARK = '"generator":"postmortem'
"""What every trace of ours holds."""

_MOST_MOMENTS = 20_000
_RUN, _MEMORY, _PARTITIONS = 1, 2, 3  # Perfetto groups tracks by "process"
_COUNTS = {"buffers_alive", "free_remaining", "live_partitions", "jobs_done"}
_LONGEST_NAME = 120

Event = dict[str, Any]


def render(result: Result, timeline: pl.DataFrame | None) -> bytes:
    """The trace as UTF-8 JSON. The same result gives the same bytes."""
    known = in_order(timeline) if timeline is not None else pl.DataFrame(schema=TIMELINE)
    end = _end(result, known)
    trace = {
        "otherData": {
            "generator": f"postmortem {result.postmortem_version}",
            "run": visible(result.name, _LONGEST_NAME),
            "verdict": visible(result.verdict.summary, 1_000),
            "unit": "GiB",
        },
        "displayTimeUnit": "ms",
        "traceEvents": [
            *_names(),
            *_phases(result, end),
            *_attempts(result, end),
            *_ending(result),
            *_partitions(result, end),
            *_counters(thin(known, _MOST_MOMENTS)),
        ],
    }
    return msgspec.json.encode(trace) + b"\n"


def _names() -> Iterator[Event]:
    for number, name in ((_RUN, "run"), (_MEMORY, "memory"), (_PARTITIONS, "partitions")):
        yield {"ph": "M", "pid": number, "tid": 0, "name": "process_name", "args": {"name": name}}
        yield {"ph": "M", "pid": number, "tid": 0, "name": "process_sort_index", "args": {"sort_index": number}}
    for number, name in ((1, "attempts"), (2, "phases"), (3, "ending")):
        yield {"ph": "M", "pid": _RUN, "tid": number, "name": "thread_name", "args": {"name": name}}


def _micros(time: dt.datetime) -> int:
    return (time - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def _end(result: Result, timeline: pl.DataFrame) -> dt.datetime | None:
    """The last moment that anything speaks of; spans without an end stop there."""
    lives = [time for life in result.partitions for time in _times(life).values()]
    spans = [time for span in (*result.phases, *result.attempts) for time in (span.start, span.end) if time]
    last = timeline["time"].max()
    known = [*lives, *spans, *([result.ending.time] if result.ending.time else [])]
    return max([*known, *([last] if isinstance(last, dt.datetime) else [])], default=None)


def _span(
    pid: int, tid: int, name: str, start: dt.datetime | None, end: dt.datetime | None, **args: object
) -> Iterator[Event]:
    if start is None or end is None:
        return
    yield {
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "name": visible(name, _LONGEST_NAME),
        "ts": _micros(start),
        "dur": max(0, _micros(end) - _micros(start)),
        "args": {key: visible(str(value), _LONGEST_NAME) for key, value in args.items() if value is not None},
    }


def _attempts(result: Result, end: dt.datetime | None) -> Iterator[Event]:
    for attempt in result.attempts:
        facts = {"ending": words.HOWS[attempt.ending], "budget": words.figure(attempt.budget)}
        facts |= {"peak": words.figure(attempt.peak), "jobs done": str(attempt.jobs_done)}
        yield from _span(_RUN, 1, f"attempt {attempt.number}", attempt.start, attempt.end or end, **facts)


def _phases(result: Result, end: dt.datetime | None) -> Iterator[Event]:
    for phase in result.phases:
        facts = {"ended": phase.ended, "peak": words.figure(phase.peak), "jobs done": str(phase.jobs_done)}
        yield from _span(_RUN, 2, phase.name, phase.start, phase.end or end, **facts)


def _ending(result: Result) -> Iterator[Event]:
    if result.ending.time is not None:
        name, time = words.HOWS[result.ending.how], _micros(result.ending.time)
        yield {"ph": "i", "s": "g", "pid": _RUN, "tid": 3, "name": name, "ts": time, "args": {}}


def _times(life: PartitionLife) -> dict[str, dt.datetime]:
    steps = ("queued", "synth_start", "synth_end", "gpu_start", "prove_returned", "gpu_end")
    return {step: time for step in steps if (time := getattr(life, step)) is not None}


def _partitions(result: Result, end: dt.datetime | None) -> Iterator[Event]:
    """Lives on the first lane that is free at their start, so that spans on a lane never overlap."""
    lives = [(life, times) for life in result.partitions if (times := _times(life))]
    free_from: list[dt.datetime] = []
    for life, times in sorted(lives, key=lambda item: min(item[1].values())):
        start = min(times.values())
        stop = end if life.alive_at_end and end else max(times.values())
        lane = next((number for number, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[lane : lane + 1] = [stop]
        yield from _life(life, times, lane + 1, start, stop)
    for lane in range(len(free_from)):
        yield {
            "ph": "M",
            "pid": _PARTITIONS,
            "tid": lane + 1,
            "name": "thread_name",
            "args": {"name": f"lane {lane + 1}"},
        }


def _life(
    life: PartitionLife, times: dict[str, dt.datetime], lane: int, start: dt.datetime, stop: dt.datetime
) -> Iterator[Event]:
    number = "" if life.partition is None else f" {life.partition}"
    pinned = None if life.pinned is None else "yes" if life.pinned else "no"
    alive = "yes" if life.alive_at_end else "no"
    facts = {"circuit": life.circuit, "attempt": life.attempt, "pinned": pinned, "alive at the end": alive}
    yield from _span(_PARTITIONS, lane, f"{life.job}{number}", start, stop, **facts)
    synth, synthesised = times.get("synth_start"), times.get("synth_end")
    gpu, done = times.get("gpu_start"), times.get("gpu_end")
    steps = (
        ("queued", times.get("queued"), synth),
        ("synthesis", synth, synthesised or gpu or stop),
        ("waits for the GPU", synthesised, gpu or stop),
        ("GPU", gpu, done or stop),
    )
    for name, first, last in steps:
        if first is not None and last is not None and start <= first < last:
            yield from _span(_PARTITIONS, lane, name, first, last)
            start = last  # clocks that disagree must not make spans overlap: Perfetto drops those


def _counters(timeline: pl.DataFrame) -> Iterator[Event]:
    """One counter a column, an event only where its value changes."""
    for name in timeline.columns:
        if name in {"time", "attempt"}:
            continue
        changes = timeline.select("time", pl.col(name).alias("value")).drop_nulls()
        changes = changes.filter(pl.col("value").ne_missing(pl.col("value").shift()))
        counted = name in _COUNTS
        value = pl.col("value") if counted else (pl.col("value") / GIB).round(3)
        rows = changes.select(pl.col("time").dt.timestamp("us"), value).rows()
        label = name.replace("_", " ") + ("" if counted else " [GiB]")
        yield from _counter(label, rows)


def _counter(label: str, rows: Iterable[tuple[int, float]]) -> Iterator[Event]:
    for time, value in rows:
        yield {"ph": "C", "pid": _MEMORY, "tid": 0, "name": label, "ts": time, "args": {"value": value}}
