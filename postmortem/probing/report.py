"""A probe's result: what the limits promise, what could be allocated, what the kernel charged beside it, and the budget to use."""

import dataclasses
from typing import Any

from postmortem.probing import theory as theories
from postmortem.probing.allocate import Kind, allocate
from postmortem.probing.theory import Theory
from postmortem.recording import cgroups
from postmortem.recording.cgroups import Cgroup
from postmortem.units import GIB, MIB, format_gib

__all__ = ["Measured", "Probe", "probe"]

_GUARD_SHARE = 1 / 128  # of the limit: what is left free while probing
_LEAST_GUARD = 2 * MIB
_KERNEL_PARTS = ("kernel_stack", "pagetables", "percpu", "slab_reclaimable", "slab_unreclaimable", "vmalloc")


@dataclasses.dataclass(frozen=True)
class Measured:
    """One kind of memory, measured. Sizes in bytes."""

    kind: Kind
    allocatable: int
    overhead: int
    """Charged beyond what was allocated: page tables and other kernel memory."""
    kernel: int | None
    """Of the overhead, what the cgroup's own counters call kernel memory; None where it has no such counter."""
    killed: bool

    @property
    def kernel_per_gib(self) -> int | None:
        """Kernel memory for each GiB allocated."""
        return None if self.kernel is None or not self.allocatable else self.kernel * GIB // self.allocatable


@dataclasses.dataclass(frozen=True)
class Probe:
    """Theory and, unless it was a dry run, measurements."""

    theory: Theory
    measured: list[Measured]

    @property
    def budget(self) -> int:
        """The smaller of theory and measurement, less the reserve, in bytes."""
        least = min([self.theory.headroom, *(one.allocatable for one in self.measured)])
        return max(0, least - self.theory.reserve)

    def to_dict(self) -> dict[str, Any]:
        """For scripts: sizes in bytes."""
        return {
            "schema": "postmortem-probe/1",
            **dataclasses.asdict(self.theory),
            "headroom": self.theory.headroom,
            "reserve": self.theory.reserve,
            "measured": [{**dataclasses.asdict(one), "kernel_per_gib": one.kernel_per_gib} for one in self.measured],
            "budget": self.budget,
        }

    def evidence(self) -> str:
        """One line that `analyze` reads, in the words of the probe that operators use."""
        usable = f" usable={min(one.allocatable for one in self.measured)}B" if self.measured else ""
        overhead = f" overhead={max(one.overhead for one in self.measured)}B" if self.measured else ""
        return f"memprobe: limit={self.theory.limit}B used={self.theory.used}B{usable}{overhead} budget={self.budget}B"

    def text(self) -> str:
        """For people."""
        where = self.theory.limited_by
        lines = [
            f"limit        {format_gib(self.theory.limit):>12}   {where}",
            f"used before  {format_gib(self.theory.used):>12}   of it reclaimable {format_gib(self.theory.reclaimable)}",
            f"headroom     {format_gib(self.theory.headroom):>12}   in theory",
        ]
        for one in self.measured:
            beside = f"overhead {format_gib(one.overhead)}"
            if one.kernel_per_gib is not None:
                beside += f", kernel memory {format_gib(one.kernel_per_gib)} per GiB"
            lines.append(f"allocatable  {format_gib(one.allocatable):>12}   {one.kind}, {beside}")
        lines.append(
            f"budget       {format_gib(self.budget):>12}   recommended; keeps {format_gib(self.theory.reserve)} in reserve"
        )
        return "\n".join(lines) + "\n"


def probe(kinds: list[Kind], *, dry_run: bool = False) -> Probe:
    """Read the limits of our own cgroup and, unless `dry_run`, allocate each kind up to them."""
    group = cgroups.of_process()
    theory = theories.read(group)
    measured = [] if dry_run else [_measure(kind, group, theory) for kind in kinds]
    return Probe(theory, measured)


def _measure(kind: Kind, group: Cgroup | None, theory: Theory) -> Measured:
    guard = max(_LEAST_GUARD, int(theory.limit * _GUARD_SHARE))
    limiting = group.limiting() if group else None
    before, after = _charges(limiting), (0, None)

    def at_end() -> None:
        nonlocal after
        after = _charges(limiting)

    first = min(GIB, max(MIB, theory.limit // 64))
    got = allocate(kind, lambda: theories.read(group).headroom, guard=guard, first_chunk=first, at_end=at_end)
    kernel = None if before[1] is None or after[1] is None else max(0, after[1] - before[1])
    overhead = max(0, after[0] - before[0] - got.size) if limiting and theory.limited_by != "host" else kernel or 0
    return Measured(kind, got.size, overhead, kernel, got.killed)


def _charges(group: Cgroup | None) -> tuple[int, int | None]:
    """What is charged and not reclaimable, and of it kernel memory."""
    if group is None:
        return 0, None
    found = group.counters()
    unreclaimable = found.get("memory.current", 0) - group.reclaimable()
    if "kernel" in found:
        return unreclaimable, found["kernel"]
    parts = [found[name] for name in _KERNEL_PARTS if name in found]  # before 5.18 there is no sum
    return unreclaimable, sum(parts) if parts else None
