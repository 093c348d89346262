"""A memory cgroup of either version behind one interface: where a process lives, what limits it, what it uses.

Version-specific file names are in `cgroup_v1` and `cgroup_v2`. Nothing here writes.
"""

import dataclasses
import functools
from pathlib import Path
from typing import Protocol

from postmortem.recording import cgroup_v1, cgroup_v2
from postmortem.recording.files import number, pairs, text

__all__ = ["NO_LIMIT", "Cgroup", "at", "of_process"]

_HOST_PRESSURE = Path("/proc/pressure/memory")
NO_LIMIT = 1 << 60  # bytes; v1 writes about 2^63 in whole pages where there is none


class Version(Protocol):
    """What the two modules have: file names, and the metric that each name in a file stands for."""

    FILES: dict[str, str]
    STAT: dict[str, str]
    EVENTS_FILE: str
    EVENTS: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Cgroup:
    """One memory cgroup. All sizes in bytes."""

    path: Path
    root: Path
    """The mount point of its hierarchy."""
    version: int

    @property
    def _names(self) -> Version:
        return cgroup_v1 if self.version == 1 else cgroup_v2  # pyright: ignore[reportReturnType] (modules as values)

    def current(self) -> int | None:
        """What is charged now; None where the cgroup is gone."""
        return number(self.path / self._names.FILES["memory.current"])

    def limit(self) -> int | None:
        """This cgroup's own hard limit; None where it has none."""
        found = number(self.path / self._names.FILES["memory.max"])
        return found if found is not None and found < NO_LIMIT else None

    def hierarchical_limit(self) -> int | None:
        """The smallest limit of all ancestors, those beyond a container's view too; None where v1 does not tell it."""
        found = pairs(self.path / "memory.stat").get("hierarchical_memory_limit") if self.version == 1 else None
        return found if found is not None and found < NO_LIMIT else None

    def binding_limit(self) -> int | None:
        """What really bounds this cgroup, as far as can be seen from it; None where nothing does."""
        found = [limit for limit in (self.limit(), self.hierarchical_limit()) if limit is not None]
        return min(found) if found else None

    def counters(self) -> dict[str, int]:
        """All counters that exist here, by their column in memory.csv."""
        names = self._names
        found = {column: number(self.path / file) for column, file in names.FILES.items()}
        for file, wanted in (("memory.stat", names.STAT), (names.EVENTS_FILE, names.EVENTS)):
            values = pairs(self.path / file)
            found |= {column: values.get(name) for column, name in wanted.items()}
            if (inherited := values.get("hierarchical_memory_limit")) is not None:
                found["memory.max"] = min(inherited, found["memory.max"] or inherited)
        return {column: value for column, value in found.items() if value is not None}

    def pressure(self) -> dict[str, str]:
        """Shares of time (percent, over 10 s) in which some or all tasks waited for memory."""
        found: dict[str, str] = {}
        if self.version == 1:  # there it is the machine's alone
            return found
        for line in text(self.path / "memory.pressure").splitlines():
            kind, _, rest = line.partition(" avg10=")
            if kind in {"some", "full"} and rest:
                found[f"psi_{kind}_avg10"] = rest.split(" ", 1)[0]
        return found

    def stalled_us(self) -> int | None:
        """Time in which some task waited for memory, in µs since the cgroup's (v1: the machine's) start."""
        some, _, _ = text(self.path / "memory.pressure" if self.version == 2 else _HOST_PRESSURE).partition("\n")
        _, found, total = some.rpartition("total=")
        return int(total) if found and total.isdecimal() else None

    def reclaimable(self) -> int:
        """Page cache that the kernel gives back before it kills, in bytes; mapped and dirty files are taken not to be.

        `file_mapped` counts mapped shared memory too, in both versions; that is on none of the lists.
        """
        found = self.counters()
        mapped = max(0, found.get("file_mapped", 0) - found.get("shmem", 0))
        held = mapped + found.get("file_dirty", 0) + found.get("file_writeback", 0)
        return max(0, found.get("inactive_file", 0) + found.get("active_file", 0) - held)

    def lineage(self) -> list["Cgroup"]:
        """This cgroup and its ancestors as far as they can be seen, innermost first."""
        line: list[Cgroup] = [self]
        while line[-1].path != self.root and self.root in line[-1].path.parents:
            line.append(dataclasses.replace(self, path=line[-1].path.parent))
        return line

    def limiting(self) -> "Cgroup":
        """The one of the lineage with the smallest limit; this one where there is none.

        Where a version 1 cgroup tells of a smaller limit beyond what can be seen, the outermost one stands for it.
        """
        lineage = self.lineage()
        limited = [(limit, n, group) for n, group in enumerate(lineage) if (limit := group.limit()) is not None]
        least = min(limited)[0] if limited else NO_LIMIT
        if (self.hierarchical_limit() or NO_LIMIT) < least:
            return lineage[-1]
        return min(limited)[2] if limited else self

    def pids(self) -> list[int]:
        """Processes in this cgroup and below it."""
        return sorted({int(pid) for file in self.path.rglob("cgroup.procs") for pid in text(file).split()})


def at(path: Path) -> Cgroup | None:
    """The cgroup at a path; None where there are no memory counters."""
    for version, names in ((2, cgroup_v2), (1, cgroup_v1)):
        if (path / names.FILES["memory.current"]).exists():
            root = path
            while any((root.parent / name).exists() for name in ("cgroup.procs", "memory.stat")):
                root = root.parent
            return Cgroup(path, root, version)
    return None


def of_process(pid: int | str = "self", *, proc: Path = Path("/proc")) -> Cgroup | None:
    """The memory cgroup of a process; None where it cannot be found."""
    mounted = _mounted(proc)
    for line in text(proc / str(pid) / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        version = 2 if not controllers else 1
        if version == 1 and "memory" not in controllers.split(","):
            continue
        for root, point in mounted.get(version, []):
            found = _existing(root, point, path, version)
            if found is not None:
                return found
    return None


@functools.cache
def _mounted(proc: Path) -> dict[int, list[tuple[str, Path]]]:
    """Root within the hierarchy and mount point of each memory hierarchy, by version. Read once: it hardly ever changes."""
    mountinfo = text(proc / "self" / "mountinfo")
    found: dict[int, list[tuple[str, Path]]] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            found.setdefault(2, []).append((fields[3], Path(fields[4])))
        elif kind[0] == "cgroup" and "memory" in kind[2].split(","):
            found.setdefault(1, []).append((fields[3], Path(fields[4])))
    return found


def _existing(root: str, point: Path, path: str, version: int) -> Cgroup | None:
    """The directory of a path, whether the process sees the whole hierarchy or only its container's part."""
    name = cgroup_v2.FILES["memory.current"] if version == 2 else cgroup_v1.FILES["memory.current"]
    inside = path.removeprefix(root) if root != "/" else path
    for candidate in (point / inside.lstrip("/"), point):
        if (candidate / name).exists():
            return Cgroup(candidate, point, version)
    return None
