"""A worker's guard: ends its process when a run takes too long or too much memory, and leaves the reason behind.

Polars' calls cannot be interrupted from Python, so the process goes; the pool starts another one.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

__all__ = ["EXIT", "resident_bytes", "watched"]

EXIT = 77
_EVERY_S = 0.1
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Resident memory of this process without its file pages, in bytes (0 where /proc is missing)."""
    try:
        _, resident, shared = Path("/proc/self/statm").read_text(encoding="ascii").split()[:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE


@contextlib.contextmanager
def watched(leave: Callable[[str], None], timeout_s: float | None, memory_bytes: int | None) -> Generator[None]:
    """Within it, the process ends when a bound is passed or its parent is gone; `leave` is given the reason before."""
    over = threading.Event()
    parent = os.getppid()

    def watch() -> None:
        begun = time.monotonic()
        while not over.wait(_EVERY_S):
            if timeout_s is not None and time.monotonic() - begun > timeout_s:
                _leave(leave, f"timed_out\ttook longer than {timeout_s:g} s")
            if memory_bytes is not None and (used := resident_bytes()) > memory_bytes:
                _leave(
                    leave,
                    f"out_of_memory\ttook {used >> 20} MiB, more than the {memory_bytes >> 20} MiB that a run may take",
                )
            if os.getppid() != parent:
                os._exit(EXIT)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _leave(leave: Callable[[str], None], reason: str) -> None:
    try:
        leave(reason)
    finally:  # whatever the place of the note does: this process has passed its bounds
        os._exit(EXIT)
