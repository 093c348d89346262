"""When to sample, and what: counters every second, and every few milliseconds as the limit comes nearer.

Between samples only the cgroup's one number of use is read, which costs microseconds; a full sample follows as soon
as it has moved. So the last second before a kill is dense although calm hours cost little.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from postmortem.recording import processes
from postmortem.recording.cgroups import Cgroup
from postmortem.recording.files import pairs
from postmortem.recording.writer import Table

__all__ = ["Pace", "Sampler"]

_PEEK_S = 0.1
_FAST_S = 0.02
_MOVED = 0.005  # of the limit: a step that deserves a sample of its own
_NEAR_S = 3.0  # time to the limit at the present slope, below which every peek is fast
_PROCESS_EVERY_S = 1.0
_HOST_COLUMNS = {"host_total": "MemTotal", "host_free": "MemFree", "host_available": "MemAvailable"}


class Pace:
    """Decides from the use alone when the next full sample is due. Times in seconds, sizes in bytes."""

    def __init__(self, interval_s: float) -> None:
        self._interval = interval_s
        self._sampled_at = float("-inf")
        self._sampled_use = 0
        self._last: tuple[float, int] | None = None
        self.wait_s = min(_PEEK_S, interval_s)

    def due(self, now: float, use: int | None, limit: int | None) -> bool:
        """Whether to take a full sample now; sets `wait_s` until the next look."""
        slope = 0.0
        if use is not None and self._last is not None and now > self._last[0]:
            slope = (use - self._last[1]) / (now - self._last[0])
        if use is not None:
            self._last = (now, use)
        near = limit is not None and use is not None and slope > 0 and (limit - use) / slope < _NEAR_S
        self.wait_s = _FAST_S if near else min(_PEEK_S, self._interval)
        moved = limit is not None and use is not None and abs(use - self._sampled_use) >= _MOVED * limit
        if not (near or moved or now - self._sampled_at >= self._interval):
            return False
        self._sampled_at, self._sampled_use = now, use or 0
        return True


class Sampler:
    """Writes memory.csv (the cgroup whose limit counts), processes.csv and host.csv into a run directory."""

    def __init__(
        self,
        folder: Path,
        find: Callable[[], Cgroup | None],
        pids: Callable[[], list[int]],
        interval_s: float = 1.0,
        proc: Path = Path("/proc"),
    ) -> None:
        self._find, self._pids, self._proc = find, pids, proc
        self._pace = Pace(interval_s)
        self._folder = folder
        self._memory: Table | None = None
        self._processes = Table(folder / "processes.csv", ("time", "pid", "name", *processes.COLUMNS))
        self._host = Table(folder / "host.csv", ("time", *_HOST_COLUMNS))
        self._own: Cgroup | None = None
        self._group: Cgroup | None = None
        self._cache = 0
        """Inactive file pages at the last full sample, in bytes."""
        self._slow_at = float("-inf")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    @property
    def group(self) -> Cgroup | None:
        """The cgroup that is sampled."""
        return self._group

    def start(self) -> None:
        """Sample until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """One last sample, which sees what the death left in the counters, and close the files."""
        self._stop.set()
        self._thread.join()
        self._full(time.time(), look_again=False)
        for table in (self._memory, self._processes, self._host):
            if table is not None:
                table.close()

    def _run(self) -> None:
        self._full(time.time(), look_again=True)
        while not self._stop.wait(self._pace.wait_s):
            moved = self._follow()
            use = self._group.current() if self._group else None
            use = None if use is None else max(0, use - self._cache)  # a limit full of page cache is no danger
            limit = self._group.limit() if self._group else None
            if self._pace.due(time.monotonic(), use, limit) or moved:
                self._full(time.time(), look_again=True)

    def _follow(self) -> bool:
        """Whether the process was moved to another cgroup: runtimes and wrappers do that after its start."""
        found = self._find()
        if found is None or found == self._own:
            return False
        self._own, self._group = found, found.limiting()
        return True

    def _full(self, now: float, *, look_again: bool) -> None:
        slow = now - self._slow_at >= _PROCESS_EVERY_S
        if look_again and slow and (found := self._find()):
            self._own, self._group = found, found.limiting()  # limits are changed while processes run
        if self._group is not None:
            self._sample_group(self._group, now)
        if slow or not look_again:
            self._slow_at = now
            self._sample_processes(now)
            self._sample_host(now)

    def _sample_group(self, group: Cgroup, now: float) -> None:
        row: dict[str, str | int] = {**group.counters(), **group.pressure()}
        if not row:
            return
        self._cache = int(row.get("inactive_file", 0))
        if self._memory is None:
            self._memory = Table(self._folder / "memory.csv", ("time", *row, "cgroup"))
        self._memory.add({"time": f"{now:.3f}", "cgroup": _cell(group), **row})

    def _sample_processes(self, now: float) -> None:
        for pid in self._pids():
            found = processes.memory(pid)
            if found:
                self._processes.add({"time": f"{now:.3f}", "pid": pid, "name": processes.name(pid), **found})

    def _sample_host(self, now: float) -> None:
        found = pairs(self._proc / "meminfo")
        row = {column: found[name] << 10 for column, name in _HOST_COLUMNS.items() if name in found}
        self._host.add({"time": f"{now:.3f}", **row})


def _cell(group: Cgroup) -> str:
    path = "/" + str(group.path.relative_to(group.root)) if group.path != group.root else "/"
    return path.replace(",", "_").replace('"', "_")
