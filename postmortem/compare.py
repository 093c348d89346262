"""Two runs side by side: what differs, and which differences exceed what is known of the figures."""

from __future__ import annotations

import datetime as dt
import statistics
from collections.abc import Iterator
from typing import Literal

import msgspec
import polars as pl

from postmortem.quantity import Quantity
from postmortem.result import PartitionLife, Result

__all__ = ["Comparison", "Difference", "Side", "compare"]

_MEMORY_DEATHS = ("cgroup_limit", "cgroup_limit_probable", "host_oom", "userland_oom")

Section = Literal["ending", "configuration", "arithmetic", "peaks", "per partition", "throughput", "survival"]
Unit = Literal["bytes", "per hour", "s", "count", "text", "bytes per unit"]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two, with its timeline where it was analysed here (not read from a result file)."""

    name: str
    result: Result
    timeline: pl.DataFrame | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of both runs. `a` and `b` are (low, best, high) in `unit`, or a text."""

    section: Section
    what: str
    unit: Unit
    a: tuple[float, float, float] | str | None
    b: tuple[float, float, float] | str | None
    change: float | None
    """Of the best values."""
    beyond: bool | None
    """Whether the intervals do not touch (texts: differ); None where one of the two is not known."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of both, and the answer in a sentence."""

    schema: str = "postmortem-comparison/1"
    postmortem_version: str
    a: str
    b: str
    answer: str
    differences: list[Difference]

    @property
    def same(self) -> bool:
        """Whether nothing differs beyond its interval, and nothing is known of one only."""
        return not any(one.beyond or (one.a is None) != (one.b is None) for one in self.differences)


def compare(a: Result, b: Result) -> Comparison:
    """What differs from `a` to `b`."""
    differences = [_difference(*one) for one in _figures(a, b)]
    return Comparison(
        postmortem_version=b.postmortem_version,
        a=a.name,
        b=b.name,
        answer=_answer(a, b, differences),
        differences=differences,
    )


_Figure = tuple[Section, str, Unit, object, object]


def _figures(a: Result, b: Result) -> Iterator[_Figure]:
    yield "ending", "How it ended", "text", a.ending.how, b.ending.how
    yield "ending", "Cause", "text", a.verdict.cause, b.verdict.cause
    yield "ending", "Exit code", "text", _text(a.ending.exit_code), _text(b.ending.exit_code)
    yield "configuration", "Daemon's profile", "text", a.profile, b.profile
    for name in ("limit", "budget", "margin"):
        yield "configuration", name.capitalize(), "bytes", getattr(a.arithmetic, name), getattr(b.arithmetic, name)
    for name in ("reserved", "slack", "charged", "unreclaimable"):
        yield "arithmetic", name.capitalize(), "bytes", getattr(a.arithmetic, name), getattr(b.arithmetic, name)
    parts_a, parts_b = ({part.part: part for part in r.arithmetic.parts} for r in (a, b))
    for part in dict.fromkeys([*parts_a, *parts_b]):
        one, other = parts_a.get(part), parts_b.get(part)
        yield "arithmetic", f"part {part}", "bytes", one and one.actual, other and other.actual
    yield "peaks", "Pinned pool", "bytes", a.pool and a.pool.peak, b.pool and b.pool.peak
    phases_a, phases_b = _phase_peaks(a), _phase_peaks(b)
    for phase in dict.fromkeys([*phases_a, *phases_b]):
        yield "peaks", phase, "bytes", phases_a.get(phase), phases_b.get(phase)
    yield from _per_partition(a, b)
    yield from _throughput(a, b)
    yield "survival", "Safe budget", "bytes", a.survival.safe_budget, b.survival.safe_budget
    yield "survival", "Margin needed", "bytes", a.survival.margin_needed, b.survival.margin_needed


def _phase_peaks(result: Result) -> dict[str, Quantity]:
    """The highest of each phase's peaks, over all attempts."""
    peaks: dict[str, Quantity] = {}
    for phase in result.phases:
        if phase.peak is not None and (phase.name not in peaks or phase.peak.best > peaks[phase.name].best):
            peaks[phase.name] = phase.peak
    return peaks


def _per_partition(a: Result, b: Result) -> Iterator[_Figure]:
    terms_a, terms_b = (
        {term.name: term for term in (r.arithmetic.fit.terms if r.arithmetic.fit else [])} for r in (a, b)
    )
    for name in dict.fromkeys([*terms_a, *terms_b]):
        both = terms_a.get(name), terms_b.get(name)
        values = [(t.best - t.half_width, t.best, t.best + t.half_width) if t else None for t in both]
        unit = next(t.unit for t in both if t)
        yield "per partition", f"fit: {name} ({unit})", "bytes per unit", values[0], values[1]


def _throughput(a: Result, b: Result) -> Iterator[_Figure]:
    yield "throughput", "Jobs done", "count", _exact(_jobs(a)), _exact(_jobs(b))
    yield "throughput", "Jobs per hour", "per hour", _exact(_rate(a)), _exact(_rate(b))
    yield "throughput", "Partitions at once, highest", "count", _exact(_at_once(a)), _exact(_at_once(b))
    for what, start, end in (("Synthesis", "synth_start", "synth_end"), ("GPU", "gpu_start", "gpu_end")):
        yield (
            "throughput",
            f"{what} of a partition",
            "s",
            _spread(a.partitions, start, end),
            _spread(b.partitions, start, end),
        )


def _jobs(result: Result) -> int:
    return sum(attempt.jobs_done for attempt in result.attempts)


def _rate(result: Result) -> float | None:
    seconds = sum((one.end - one.start).total_seconds() for one in result.attempts if one.start and one.end)
    return _jobs(result) / seconds * 3600 if seconds > 0 else None


def _at_once(result: Result) -> int | None:
    """The most partitions between the start of their synthesis and the end of their GPU time."""
    steps: list[tuple[dt.datetime, int]] = []
    for life in result.partitions:
        if life.synth_start is not None:
            steps.append((life.synth_start, 1))
            if life.gpu_end is not None:
                steps.append((life.gpu_end, -1))
    alive = most = 0
    for _, step in sorted(steps):
        alive += step
        most = max(most, alive)
    return most if steps else None


def _spread(lives: list[PartitionLife], start: str, end: str) -> tuple[float, float, float] | None:
    """Quartiles and median in seconds: as much as two runs of the same work differ by chance."""
    spans = sorted(
        (getattr(life, end) - getattr(life, start)).total_seconds()
        for life in lives
        if getattr(life, start) and getattr(life, end)
    )
    if not spans:
        return None
    return spans[len(spans) // 4], statistics.median(spans), spans[3 * len(spans) // 4]


def _exact(value: float | None) -> tuple[float, float, float] | None:
    return None if value is None else (value, value, value)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _difference(section: Section, what: str, unit: Unit, a: object, b: object) -> Difference:
    one, other = _value(a), _value(b)
    change = other[1] - one[1] if isinstance(one, tuple) and isinstance(other, tuple) else None
    return Difference(section=section, what=what, unit=unit, a=one, b=other, change=change, beyond=_beyond(one, other))


def _value(value: object) -> tuple[float, float, float] | str | None:
    if isinstance(value, Quantity):
        return value.low, value.best, value.high
    return value  # type: ignore[return-value]  # the figures' own tuples, texts and None


def _beyond(a: tuple[float, float, float] | str | None, b: tuple[float, float, float] | str | None) -> bool | None:
    if a is None or b is None:
        return None if a is not b else False
    if isinstance(a, tuple) and isinstance(b, tuple):
        return a[0] > b[2] or b[0] > a[2]
    return a != b


def _answer(a: Result, b: Result, differences: list[Difference]) -> str:
    """Did the fix work?"""
    died_a, died_b = a.ending.how in _MEMORY_DEATHS, b.ending.how in _MEMORY_DEATHS
    beyond = sum(bool(one.beyond) for one in differences)
    figures = (
        f"{beyond} figure{'' if beyond == 1 else 's'} differ{'s' if beyond == 1 else ''} by more than the intervals"
    )
    if not beyond and a.ending.how == b.ending.how:
        return "No difference: every figure known of both agrees within its interval"
    if died_a and not died_b:
        alive = "did not die of memory" if b.ending.how != "finished" else "finished"
        return f"The first run died of memory, the second {alive}; {figures}"
    if died_b and not died_a:
        return f"The second run died of memory, the first did not; {figures}"
    if died_a:
        same = "of the same cause" if a.verdict.cause == b.verdict.cause else "of another cause"
        return f"Both runs died of memory, the second {same}; {figures}"
    return f"Neither run died of memory; {figures}"
