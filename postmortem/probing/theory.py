"""What the limits promise: the smallest limit on the way to the root, what is used of it, and what the host has left. Reads only."""

import dataclasses
from pathlib import Path

from postmortem.recording.cgroups import Cgroup
from postmortem.recording.files import pairs

__all__ = ["RESERVE_SHARE", "Theory", "read"]

RESERVE_SHARE = 0.05
"""Of the limit, kept out of the recommended budget. Assumed: 10 GiB of 342 (3 %) were measured to be too little."""


@dataclasses.dataclass(frozen=True)
class Theory:
    """Sizes in bytes."""

    limit: int
    """The cgroup's effective limit, or the host's memory where that is smaller or nothing is limited."""
    limited_by: str
    """Path of the cgroup that has the limit, or `host`."""
    used: int
    """Charged against that limit now."""
    reclaimable: int
    """Page cache in it that the kernel gives back first."""
    host_available: int

    @property
    def headroom(self) -> int:
        """What could still be allocated if nothing else were charged with it."""
        return max(0, min(self.limit - self.used + self.reclaimable, self.host_available))

    @property
    def reserve(self) -> int:
        """What the recommended budget leaves free."""
        return int(self.limit * RESERVE_SHARE)

    @property
    def budget(self) -> int:
        """The budget that the limits alone would allow."""
        return max(0, self.headroom - self.reserve)


def read(group: Cgroup | None, *, proc: Path = Path("/proc")) -> Theory:
    """The theory for a process in `group`; without a cgroup the host's memory is the limit."""
    memory = pairs(proc / "meminfo")
    total, available = memory.get("MemTotal", 0) << 10, memory.get("MemAvailable", 0) << 10
    limiting = group.limiting() if group else None
    limit = limiting.limit() if limiting else None
    if limiting is None or limit is None or limit >= total:
        return Theory(total, "host", total - available, 0, available)
    return Theory(limit, str(limiting.path), limiting.current() or 0, limiting.reclaimable(), available)
