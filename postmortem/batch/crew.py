"""Who does the work: processes of this machine behind `concurrent.futures.Executor`, started anew when one dies."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import signal
from typing import Protocol

__all__ = ["Crew", "Processes"]


class Crew(Protocol):
    """An executor that can be started again after a worker's death."""

    workers: int
    retries_itself: bool
    """Whether a task of a dead worker is tried again without our doing."""

    def start(self, workers: int | None = None) -> concurrent.futures.Executor:
        """A fresh executor, with fewer workers where that is said."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...


class Processes:
    """Worker processes on this machine; polars' threads are shared out among them."""

    retries_itself = False

    def __init__(self, workers: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0))
        self.workers = workers or cores
        self._threads = max(1, cores // self.workers)
        self._executor: concurrent.futures.ProcessPoolExecutor | None = None

    def start(self, workers: int | None = None) -> concurrent.futures.Executor:
        """A fresh pool. Spawned, because polars' threads do not survive a fork."""
        self.close()
        os.environ["POLARS_MAX_THREADS"] = str(self._threads)  # read when a worker imports polars
        self._executor = concurrent.futures.ProcessPoolExecutor(
            workers or self.workers, mp_context=multiprocessing.get_context("spawn"), initializer=_ignore_interrupts
        )
        return self._executor

    def close(self) -> None:
        """End all workers, those in the middle of a run too."""
        if self._executor is None:
            return
        processes = list((getattr(self._executor, "_processes", None) or {}).values())
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:  # an idle worker ends by itself; one within a run would go on
            process.terminate()
        self._executor = None


def _ignore_interrupts() -> None:
    """Ctrl-C goes to the whole group of processes; the client alone answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
