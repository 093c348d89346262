"""What is sampled, in a thread of its own: the cgroup at the pace of `pace`, processes and host once a second."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from postmortem.recording import host, processes
from postmortem.recording.cgroups import Cgroup
from postmortem.recording.charge import Charge, cell
from postmortem.recording.pace import Pace
from postmortem.recording.writer import Table

__all__ = ["Sampler"]

_PROCESS_EVERY_S = 1.0
_FOLLOW_EVERY_S = 0.15  # every second look in calm
_NO_LIMIT = 9223372036854771712  # as version 1 writes it; readers of samples know it


class Sampler:
    """Writes memory.csv (the cgroup whose limit counts), limits.csv, processes.csv and host.csv into a run directory."""

    def __init__(
        self,
        folder: Path,
        find: Callable[[], Cgroup | None],
        pids: Callable[[], list[int]],
        interval_s: float = 1.0,
        each_second: Callable[[], None] = lambda: None,
    ) -> None:
        self._find, self._pids, self._each_second = find, pids, each_second
        self._pace = Pace(interval_s)
        self._charge = Charge(folder / "memory.csv")
        self._processes = Table(folder / "processes.csv", ("time", "pid", "name", *processes.COLUMNS))
        self._host = Table(folder / "host.csv", ("time", *host.COLUMNS))
        self._limits = Table(folder / "limits.csv", ("time", "memory.max", "cgroup"))
        self._known_limits: dict[Path, int] = {}
        self._own: Cgroup | None = None
        self._group: Cgroup | None = None
        self._slow_at = self._followed_at = float("-inf")
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
        """The last sample of the living, then one that sees what the death left in the counters; close the files."""
        self._stop.set()
        self._thread.join()
        self._charge.write(with_before=True)
        with contextlib.suppress(OSError):
            if self._group is not None:
                self._charge.read(self._group, time.time())
                self._charge.write()
            self._sample_slow(time.time())
        for table in (self._charge, self._processes, self._host, self._limits):
            table.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            self._look()
        while not self._stop.wait(self._pace.wait_s):
            with contextlib.suppress(OSError):  # a disk that cannot take a new file costs a sample, not the next ones
                self._look()

    def _look(self) -> None:
        now, moved = time.time(), self._follow()
        if self._group is not None:
            self._charge.look(self._group, now)
        stalled = self._group.stalled_us() if self._group else None
        due = self._pace.due(time.monotonic(), self._charge.use, self._charge.limit, stalled_us=stalled)
        if due or moved:
            self._charge.write(with_before=not self._pace.calm)
        if now - self._slow_at >= _PROCESS_EVERY_S:
            self._sample_slow(now)

    def _follow(self) -> bool:
        """Whether the process was moved to another cgroup, as runtimes and wrappers do after its start."""
        now = time.monotonic()
        if now - self._followed_at < _FOLLOW_EVERY_S:
            return False
        self._followed_at = now
        found = self._find()
        if found is None or found == self._own:
            return False
        self._own, self._group = found, found.limiting()
        self._sample_limits(found, time.time())
        return True

    def _sample_slow(self, now: float) -> None:
        self._slow_at = now
        if self._own is not None and not self._stop.is_set():
            self._group = self._own.limiting()  # limits are changed while processes run
            self._sample_limits(self._own, now)
        for pid in self._pids():
            found = processes.memory(pid)
            if found:
                self._processes.add({"time": f"{now:.3f}", "pid": pid, "name": processes.name(pid), **found})
        self._host.add({"time": f"{now:.3f}", **host.sample()})
        self._each_second()

    def _sample_limits(self, group: Cgroup, now: float) -> None:
        """A row for each limit on the way to the root, at the start and whenever one is changed."""
        for one in group.lineage():
            limit = one.limit() or _NO_LIMIT
            if self._known_limits.get(one.path) != limit:
                self._known_limits[one.path] = limit
                self._limits.add({"time": f"{now:.3f}", "memory.max": limit, "cgroup": cell(one)})
