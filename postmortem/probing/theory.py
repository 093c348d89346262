"""What the limits promise: every limit on the way to the root, what is used of each, and what the host has left. Reads only."""

import dataclasses
from pathlib import Path

from postmortem.recording.cgroups import NO_LIMIT, Cgroup
from postmortem.recording.files import pairs

__all__ = ["HOST", "RESERVE_SHARE", "Bound", "Theory", "read"]

RESERVE_SHARE = 0.05
"""Of the limit, kept out of the recommended budget. Assumed: 10 GiB of 342 (3 %) were measured to be too little."""
HOST = "host"


@dataclasses.dataclass(frozen=True)
class Bound:
    """One limit that counts here. Sizes in bytes."""

    where: str
    """Path of the cgroup, or `host`."""
    limit: int
    used: int
    """Charged against it now."""
    reclaimable: int
    """Page cache in that, which the kernel gives back first."""
    throttles: bool = False
    """The limit is version 2's memory.high: beyond it tasks are slowed down, not killed."""

    @property
    def headroom(self) -> int:
        """What this limit would still let through."""
        return max(0, self.limit - self.used + self.reclaimable)


@dataclasses.dataclass(frozen=True)
class Theory:
    """All limits: of the cgroup, of its ancestors as far as they can be seen, and of the host."""

    bounds: list[Bound]

    @property
    def least(self) -> Bound:
        """The smallest limit: what a daemon that reads limits would find."""
        return min(self.bounds, key=lambda bound: bound.limit)

    @property
    def binding(self) -> Bound:
        """The limit that is met first. An ancestor's, where neighbours use much of it."""
        return min(self.bounds, key=lambda bound: bound.headroom)

    @property
    def limit(self) -> int:
        """The smallest limit, in bytes."""
        return self.least.limit

    @property
    def limited_by(self) -> str:
        """Whose limit that is: a cgroup's path, or `host`."""
        return self.least.where

    @property
    def used(self) -> int:
        """Charged against the smallest limit now, in bytes."""
        return self.least.used

    @property
    def reclaimable(self) -> int:
        """Page cache in that, in bytes."""
        return self.least.reclaimable

    @property
    def headroom(self) -> int:
        """What could still be allocated if nothing else were charged with it, in bytes."""
        return self.binding.headroom

    @property
    def reserve(self) -> int:
        """What the recommended budget leaves free, in bytes."""
        return int(self.limit * RESERVE_SHARE)

    @property
    def budget(self) -> int:
        """The budget that the limits alone would allow, in bytes."""
        return max(0, self.headroom - self.reserve)


def read(group: Cgroup | None, *, proc: Path = Path("/proc")) -> Theory:
    """The theory for a process in `group`; without a cgroup the host's memory is the only limit."""
    memory = pairs(proc / "meminfo")
    total, available = memory.get("MemTotal", 0) << 10, memory.get("MemAvailable", 0) << 10
    bounds = [Bound(HOST, total, total - available, 0)]
    lineage = group.lineage() if group else []
    for one in lineage:
        # Version 1 tells of limits beyond what a container sees: the outermost cgroup stands for them.
        limit = one.binding_limit() if one is lineage[-1] else one.limit()
        high = one.counters().get("memory.high", NO_LIMIT)
        least = min(high, NO_LIMIT if limit is None else limit)
        if least < NO_LIMIT:
            bounds.append(
                Bound(str(one.path), least, one.current() or 0, one.reclaimable(), throttles=high < (limit or NO_LIMIT))
            )
    return Theory(bounds)
