"""What the recorder itself uses: its memory, its share of a core, and whether the recorded cgroup pays for it."""

import resource
import time

from postmortem.recording import cgroups
from postmortem.recording.cgroups import Cgroup

__all__ = ["Cost", "inside", "own_rss"]


def own_rss() -> int:
    """The recorder's largest resident size, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Cost:
    """Counts from its making on: the interpreter's start is no part of it."""

    def __init__(self) -> None:
        self._began, self._cpu = time.monotonic(), _cpu_s()

    def core_share(self) -> float:
        """Share of one core, 0…1."""
        return (_cpu_s() - self._cpu) / max(0.001, time.monotonic() - self._began)


def inside(group: Cgroup | None) -> bool:
    """Whether our own memory is charged to this cgroup."""
    own = cgroups.of_process()
    return group is not None and own is not None and group.path in (own.path, *own.path.parents)
