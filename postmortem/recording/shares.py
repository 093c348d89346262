"""Proportional shares of memory (PSS) by kind from smaps_rollup, at a low rate: what of shared pages is whose.

The kernel walks a process's page tables for it, which for hundreds of GiB takes a second: so this has a thread of its
own, and the pause is two hundred times what the last round took.
"""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from postmortem.recording import processes
from postmortem.recording.aside import Aside
from postmortem.recording.writer import Table

__all__ = ["Shares"]

_FIRST_S = 1.0
_EVERY_S = 10.0
_PAUSE_TIMES = 200
_PATIENCE_S = 1.0


class Shares(Aside):
    """Writes shares.csv until left; no file where nothing can be read."""

    def __init__(self, folder: Path, pids: Callable[[], list[int]], *, every_s: float = _EVERY_S) -> None:
        self._pids, self._every = pids, every_s
        self._table = Table(folder / "shares.csv", ("time", "pid", "name", *processes.SHARE_COLUMNS))
        super().__init__("shares", _PATIENCE_S)

    def _run(self) -> None:
        pause = min(_FIRST_S, self._every)
        while not self._stop.wait(pause):
            began = time.monotonic()
            self._sample(time.time())
            pause = max(self._every, _PAUSE_TIMES * (time.monotonic() - began))

    def _sample(self, now: float) -> None:
        for pid in self._pids():
            found = processes.shares(pid)
            if found and not self._stop.is_set():
                with contextlib.suppress(OSError):
                    self._table.add({"time": f"{now:.3f}", "pid": pid, "name": processes.name(pid), **found})
