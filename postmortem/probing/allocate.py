"""Allocating for real in a child process, chunk by chunk with every page touched, and stopping short of the limit.

The child marks itself as the kernel's first victim, so that a misjudged step hits nobody else. It leaves nothing
behind: its memory is anonymous mappings that end with it.
"""

import dataclasses
import mmap
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from postmortem.units import GIB, MIB

__all__ = ["Allocated", "allocate"]

Kind = Literal["anon", "shared"]
_MAP_POPULATE = 0x8000  # Linux on x86-64 and arm64; not in the mmap module before Python 3.10
_FLAGS = {"anon": mmap.MAP_PRIVATE, "shared": mmap.MAP_SHARED}
_SMALLEST = MIB
_DONE = b"\1"
_FIRST_VICTIM = "1000"


@dataclasses.dataclass(frozen=True)
class Allocated:
    """What the child got. Sizes in bytes."""

    kind: Kind
    size: int
    killed: bool
    """The child was killed before it was told to stop."""


def allocate(
    kind: Kind, headroom: Callable[[], int], *, guard: int, first_chunk: int = GIB, at_end: Callable[[], None]
) -> Allocated:
    """Allocate until less than `guard` bytes of `headroom()` would be left; `at_end` runs while all is still held."""
    orders_out, orders_in = os.pipe()
    answers_out, answers_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(orders_in)
        os.close(answers_out)
        _child(kind, orders_out, answers_in)
    os.close(orders_out)
    os.close(answers_in)
    try:
        size, killed = _steps(headroom, guard, first_chunk, orders_in, answers_out)
        at_end()
    finally:
        os.close(orders_in)  # the child ends at the end of its orders
        os.close(answers_out)
        _, status = os.waitpid(pid, 0)
    return Allocated(kind, size, killed or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL))


def _steps(headroom: Callable[[], int], guard: int, chunk: int, orders: int, answers: int) -> tuple[int, bool]:
    size = 0
    while chunk >= _SMALLEST:
        # Page tables come on top: 1/512 of what is mapped.
        if headroom() < guard + chunk + chunk // 512:
            chunk //= 4
            continue
        try:
            os.write(orders, chunk.to_bytes(8, "little"))
        except BrokenPipeError:
            return size, True
        answer = os.read(answers, 1)
        if not answer:
            return size, True
        if answer != _DONE:  # the system refused the mapping
            chunk //= 4
            continue
        size += chunk
    return size, False


def _child(kind: Kind, orders: int, answers: int) -> None:
    kept: list[mmap.mmap] = []
    try:
        Path("/proc/self/oom_score_adj").write_text(_FIRST_VICTIM)
        while order := os.read(orders, 8):
            size = int.from_bytes(order, "little")
            try:
                kept.append(_touched(kind, size))
            except OSError:
                os.write(answers, b"\0")
            else:
                os.write(answers, _DONE)
    finally:
        os._exit(0)  # a forked copy of the parent: its exit handlers and buffers are not ours


def _touched(kind: Kind, size: int) -> mmap.mmap:
    """A mapping of which each page was written: populated by the kernel, and then once a page by us."""
    mapping = mmap.mmap(-1, size, flags=_FLAGS[kind] | mmap.MAP_ANONYMOUS | _MAP_POPULATE)
    for offset in range(0, size, mmap.PAGESIZE):
        mapping[offset] = 1
    return mapping
