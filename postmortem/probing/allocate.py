"""Ordering memory chunk by chunk from a child process, and stopping short of the limit, or only at the child's death."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from postmortem.errors import UsageError
from postmortem.probing.holder import DONE, READY, Kind, serve
from postmortem.units import GIB, KIB, MIB

__all__ = ["Allocated", "Step", "Stopped", "allocate"]

Stopped = Literal["short_of_limit", "killed", "refused"]
_SMALLEST = MIB
_LAST = 256 * KIB  # what a kill can cut off: within 0.05 % of 512 MiB
_MOST_ANSWER = 512


@dataclasses.dataclass(frozen=True)
class Step:
    """How to go on. Sizes in bytes."""

    headroom: Callable[[], int]
    """What is left, read again before each chunk."""
    guard: int
    """What is left alone."""
    first_chunk: int = GIB
    to_the_kill: bool = False
    """Then on in small chunks until the kernel kills the child."""
    procs: Path | None = None
    """The cgroup.procs that the child enters."""


@dataclasses.dataclass(frozen=True)
class Allocated:
    """What the child got. Sizes in bytes."""

    size: int
    stopped: Stopped
    reason: str | None
    """Why the system refused, in its own words."""


def allocate(kind: Kind, step: Step, *, ready: Callable[[], None], noted: Callable[[int], None]) -> Allocated:
    """Allocate; `ready` runs when the child holds nothing yet, `noted` with what it holds whenever the step is a small one.

    Raises UsageError where this kind cannot be had here.
    """
    child = _Child(kind, step.procs)
    try:
        child.begin()
        ready()
        size, reason = _bulk(child, step)
        noted(size)
        while step.to_the_kill and not child.gone and reason is None:
            reason = child.take(_LAST)
            if reason is None and not child.gone:
                size += _LAST
                noted(size)
    finally:
        child.end()
    if child.gone:
        return Allocated(size, "killed", None)
    return Allocated(size, "refused" if reason else "short_of_limit", reason)


def _bulk(child: "_Child", step: Step) -> tuple[int, str | None]:
    """Chunks of a quarter of the last one's size whenever the next would not fit or is refused."""
    size, chunk, reason = 0, step.first_chunk, None
    while chunk >= _SMALLEST and not child.gone:
        # Page tables come on top: 1/512 of what is mapped.
        if step.headroom() < step.guard + chunk + chunk // 512:
            chunk //= 4
            reason = None
            continue
        reason = child.take(chunk)
        if reason is not None:
            chunk //= 4
        elif not child.gone:
            size += chunk
    return size, reason


class _Child:
    """The process that holds the memory, and the pipes to it."""

    def __init__(self, kind: Kind, procs: Path | None) -> None:
        self._kind = kind
        self.gone = False
        """It died, by the kernel's hand: it never ends by itself while its orders are open."""
        orders_out, self._orders = os.pipe()
        self._answers, answers_in = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._orders)
            os.close(self._answers)
            serve(kind, procs, orders_out, answers_in)
        os.close(orders_out)
        os.close(answers_in)

    def begin(self) -> None:
        """Wait until it is ready. Raises UsageError with its reason where it is not."""
        answer = os.read(self._answers, _MOST_ANSWER)
        if answer != READY:
            why = answer.decode(errors="replace") or "the child process died before it began"
            mend = "; on native Linux pinned memory is charged as shared memory: use --kind shared"
            msg = f"--kind {self._kind}: {why}{mend if self._kind == 'pinned' else ''}"
            raise UsageError(msg)

    def take(self, size: int) -> str | None:
        """Order `size` bytes: None where they were taken (or the child died of it), else why not."""
        try:
            os.write(self._orders, size.to_bytes(8, "little"))
        except BrokenPipeError:
            self.gone = True
            return None
        answer = os.read(self._answers, _MOST_ANSWER)
        self.gone = not answer
        return None if answer in {DONE, b""} else answer.decode(errors="replace")

    def end(self) -> None:
        """Close its orders, at which it ends, and wait for it: its memory is given back then."""
        os.close(self._orders)
        os.close(self._answers)
        os.waitpid(self._pid, 0)
