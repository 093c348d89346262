"""The cgroup's counters in memory.csv: read often, written once a second, and as they were just before every change.

A sample that is read between two written ones is held, not written. When the use then jumps or the process dies, the
held one goes first: so the last sample before a kill is a tenth of a second old however suddenly it came, although calm
hours fill no disk.
"""

from pathlib import Path

from postmortem.recording import cgroup_v1, cgroup_v2
from postmortem.recording.cgroups import NO_LIMIT, Cgroup
from postmortem.recording.writer import Table

__all__ = ["Charge", "cell"]

_HOLDS_S = 0.95  # just under the default interval: what is written once a second has been read for it
_Row = dict[str, str | int]


class Charge:
    """memory.csv. Times in seconds of the epoch, sizes in bytes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._table: Table | None = None
        self._before: _Row | None = None
        self._held: _Row | None = None
        self._read_at = float("-inf")
        self._written: set[str | int] = set()
        """Times of those of the two that are in the file."""
        self.use: int | None = None
        """At the last reading, without inactive file pages: a limit full of page cache is no danger."""
        self.limit: int | None = None
        """What bounds the cgroup, at the last reading."""

    def look(self, group: Cgroup, now: float) -> None:
        """Read and hold, if the use has changed by a byte or a second has passed; else what is held still holds."""
        held = self._held
        same = held is not None and held["cgroup"] == cell(group) and group.current() == held["memory.current"]
        if held is None or not same or now - self._read_at >= _HOLDS_S:
            self.read(group, now)
        else:
            self._before, self._held = held, {**held, "time": f"{now:.3f}"}

    def read(self, group: Cgroup, now: float) -> None:
        """Read and hold. A cgroup that has gone, or the root that counts nothing, leaves what was held before."""
        self._read_at = now
        row: _Row = {**group.counters(), **group.pressure()}
        if "memory.current" not in row:
            self.use = None
            return
        self.use = max(0, int(row["memory.current"]) - int(row.get("inactive_file", 0)))
        limit = int(row.get("memory.max", NO_LIMIT))
        self.limit = limit if limit < NO_LIMIT else None
        self._before, self._held = self._held, {"time": f"{now:.3f}", "cgroup": cell(group), **row}
        if self._table is None:
            self._table = Table(self._file, ("time", *_columns(group), "cgroup"))

    def write(self, *, with_before: bool = False) -> None:
        """Write the last reading, and `with_before` the one before it, each once."""
        for row in (self._before if with_before else None, self._held):
            if row is not None and self._table is not None and row["time"] not in self._written:
                self._table.add(row)
        self._written = {row["time"] for row in (self._before, self._held) if row is not None}

    def close(self) -> None:
        """Close the file."""
        if self._table is not None:
            self._table.close()


def cell(group: Cgroup) -> str:
    """The cgroup's path in its hierarchy, without what would break a CSV cell."""
    path = "/" + str(group.path.relative_to(group.root)) if group.path != group.root else "/"
    return path.replace(",", "_").replace('"', "_")


def _columns(group: Cgroup) -> list[str]:
    """All that this version can count: the first cgroup may lack what the next one has."""
    names = cgroup_v1 if group.version == 1 else cgroup_v2
    return list(dict.fromkeys([*names.FILES, *names.STAT, *names.EVENTS, "psi_some_avg10", "psi_full_avg10"]))
