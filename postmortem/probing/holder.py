"""The child that takes memory: one kind, as much as it is told, every page touched, until its orders end.

It is forked from the probe, marks itself as the kernel's first victim and, if it is given one, enters a cgroup of its
own. It leaves nothing behind: anonymous mappings and pinned buffers end with the process.
"""

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NoReturn

from postmortem.probing import cuda

__all__ = ["DONE", "READY", "Kind", "serve"]

Kind = Literal["anon", "shared", "pinned"]
READY = b"ready"
DONE = b"done"
_MAP_POPULATE = 0x8000  # Linux on x86-64 and arm64; not in the mmap module before Python 3.13
_FLAGS = {"anon": mmap.MAP_PRIVATE, "shared": mmap.MAP_SHARED}
_FIRST_VICTIM = "1000"


def serve(kind: Kind, procs: Path | None, orders: int, answers: int) -> NoReturn:
    """Answer READY or why not, then DONE or why not to each size (8 bytes) that is ordered.

    `procs`: the cgroup.procs to enter. Never returns: a forked copy has the parent's exit handlers and buffers.
    """
    try:
        Path("/proc/self/oom_score_adj").write_text(_FIRST_VICTIM)
        if procs is not None:
            procs.write_text("0")
        take = cuda.pinned_allocator() if kind == "pinned" else _mapper(_FLAGS[kind])
        os.write(answers, READY)
        while order := os.read(orders, 8):
            os.write(answers, take(int.from_bytes(order, "little")).encode()[:512] or DONE)
    except (OSError, cuda.CudaError) as error:
        os.write(answers, str(error).encode()[:512])
    finally:
        os._exit(0)


def _mapper(flags: int) -> Callable[[int], str]:
    kept: list[mmap.mmap] = []

    def take(size: int) -> str:
        """Take `size` bytes for good: populated by the kernel, and then each page written by us. Why not, or nothing."""
        try:
            mapping = mmap.mmap(-1, size, flags=flags | mmap.MAP_ANONYMOUS | _MAP_POPULATE)
        except OSError as error:
            return f"mmap: {error.strerror}"
        mapping[:: mmap.PAGESIZE] = b"\1" * len(range(0, size, mmap.PAGESIZE))
        kept.append(mapping)
        return ""

    return take
