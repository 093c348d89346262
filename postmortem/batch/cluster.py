"""Workers past one machine: dask.distributed through its `concurrent.futures` executor (extra `[cluster]`)."""

from __future__ import annotations

import concurrent.futures
import importlib
import os
import re
from typing import Any

from postmortem.errors import InputError, UsageError

__all__ = ["Cluster"]

_RETRIES = 3
"""How often a run is tried again whose worker died; dask then gives it up as the one that kills workers."""
_CONNECT_S = 20


class Cluster:
    """A dask scheduler by its address (`tcp://host:8786`), or `local:N` for N worker processes of this machine."""

    retries_itself = True

    def __init__(self, address: str) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError as error:
            msg = f"--cluster {address}: needs dask.distributed: pip install 'oom-postmortem[cluster]'"
            raise UsageError(msg) from error
        local = re.fullmatch(r"local:(\d+)", address)
        if not local and not re.match(r"[a-z]+://", address):
            msg = f"--cluster {address}: write it like tcp://scheduler:8786 or local:4"
            raise UsageError(msg)
        if local:  # read by the workers when they import polars
            os.environ["POLARS_MAX_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // max(1, int(local[1]))))
        try:
            self._cluster: Any = (
                distributed.LocalCluster(
                    n_workers=int(local[1]), threads_per_worker=1, processes=True, dashboard_address=None
                )
                if local
                else None
            )
            self._client: Any = distributed.Client(self._cluster or address, timeout=_CONNECT_S)
            self.workers = max(
                1, sum(worker["nthreads"] for worker in self._client.scheduler_info(-1)["workers"].values())
            )
        except OSError as error:
            msg = f"--cluster {address}: no scheduler answers there ({error})"
            raise InputError(msg) from error

    def start(self, workers: int | None = None) -> concurrent.futures.Executor:
        """The executor of the cluster; the scheduler replaces dead workers and repeats their tasks."""
        del workers
        return self._client.get_executor(retries=_RETRIES, pure=False)

    def close(self) -> None:
        """Leave the cluster; a local one ends."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
