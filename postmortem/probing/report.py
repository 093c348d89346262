"""A probe's result: what the limits promise, what could be allocated, what the kernel charged beside it, and the budget to use."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from postmortem.probing import theory as theories
from postmortem.probing.holder import Kind
from postmortem.probing.measure import Measured, measure
from postmortem.probing.theory import Theory
from postmortem.recording import cgroups
from postmortem.recording.say import say as say_on_stderr
from postmortem.units import format_fine

__all__ = ["Probe", "probe"]


@dataclasses.dataclass(frozen=True)
class Probe:
    """Theory and, unless it was a dry run, measurements."""

    time: dt.datetime
    theory: Theory
    measured: list[Measured]

    @property
    def usable(self) -> int | None:
        """The smallest amount that could be allocated, in bytes."""
        return min((one.allocatable for one in self.measured), default=None)

    @property
    def budget(self) -> int:
        """The smaller of theory and measurement, less the reserve, in bytes."""
        least = self.theory.headroom if self.usable is None else min(self.theory.headroom, self.usable)
        return max(0, least - self.theory.reserve)

    def to_dict(self) -> dict[str, Any]:
        """For scripts, and for `analyze`: sizes in bytes, the time in UTC."""
        return {
            "schema": "postmortem-probe/1",
            "time": f"{self.time:%Y-%m-%dT%H:%M:%SZ}",
            "limit": self.theory.limit,
            "limited_by": self.theory.limited_by,
            "used": self.theory.used,
            "reclaimable": self.theory.reclaimable,
            "headroom": self.theory.headroom,
            "headroom_of": self.theory.binding.where,
            "limits": [{**dataclasses.asdict(one), "headroom": one.headroom} for one in self.theory.bounds],
            "reserve": self.theory.reserve,
            "measured": [
                {**dataclasses.asdict(one), "killed": one.killed, "kernel_per_gib": one.kernel_per_gib}
                for one in self.measured
            ],
            "usable": self.usable,
            "budget": self.budget,
        }

    def evidence(self) -> str:
        """One line that `analyze` reads, in the words of the probe that operators use."""
        usable = f" usable={self.usable}B" if self.measured else ""
        overhead = f" overhead={max(one.overhead for one in self.measured)}B" if self.measured else ""
        return (
            f"{self.time:%Y-%m-%dT%H:%M:%SZ} memprobe: limit={self.theory.limit}B used={self.theory.used}B"
            f"{usable}{overhead} budget={self.budget}B"
        )

    def text(self) -> str:
        """For people, at 80 columns where the cgroups' paths allow it."""
        return "".join(f"{name:<13}{size:>12}   {words}\n" for name, size, words in self._rows())

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        least, binding = self.theory.least, self.theory.binding
        throttles = " (memory.high: slows down, does not kill)" if least.throttles else ""
        yield "limit", format_fine(least.limit), f"{least.where}{throttles}"
        yield "used before", format_fine(least.used), f"of it reclaimable {format_fine(least.reclaimable)}"
        others = "" if binding == least else f"; {binding.where} has least left of {format_fine(binding.limit)}"
        yield "headroom", format_fine(self.theory.headroom), f"in theory{others}"
        for one in self.measured:
            yield from _measured_rows(one)
        yield "budget", format_fine(self.budget), f"recommended; keeps {format_fine(self.theory.reserve)} in reserve"


def _measured_rows(one: Measured) -> Iterator[tuple[str, str, str]]:
    how = {
        "short_of_limit": "stopped short of the limit",
        "killed": f"killed in {one.killed_in}",
        "refused": f"then refused: {one.reason}",
    }
    yield "allocatable", format_fine(one.allocatable), f"{one.kind}; {how[one.stopped]}"
    yield (
        "  overhead",
        format_fine(one.overhead),
        f"charged beside it; {format_fine(one.process)} of it before the start",
    )
    if one.kernel is not None and one.kernel_per_gib is not None:
        yield "  kernel", format_fine(one.kernel), f"{format_fine(one.kernel_per_gib)} per GiB allocated"
    if one.charged_anon is not None and one.charged_shared is not None:
        shared = f"{format_fine(one.charged_shared)} as shared memory"
        yield "  charged", format_fine(one.charged_anon), f"as anonymous memory, {shared}"


def probe(
    kinds: Sequence[Kind],
    *,
    dry_run: bool = False,
    to_the_kill: bool = False,
    say: Callable[[str], None] = say_on_stderr,
) -> Probe:
    """Read the limits of our own cgroup and, unless `dry_run`, allocate each kind up to them, or `to_the_kill`.

    Raises UsageError where a kind cannot be had here, or where a kill could hit others.
    """
    group = cgroups.of_process()
    theory = theories.read(group)
    measured = [] if dry_run else [measure(kind, group, theory, to_the_kill=to_the_kill, say=say) for kind in kinds]
    return Probe(dt.datetime.now(dt.UTC), theory, measured)
