"""Stretches of pool lines that mean just what they say, replayed at once instead of line by line.

A line is nominal when the buffer that it moves is there and nothing that it states differs from the replay. Almost all
lines of a healthy log are; `pool.replay` knows what the others can mean.
"""

import dataclasses

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["MOST_SIZES", "OPS", "UNSTATED", "Columns", "Counts", "Steps", "columns", "replay_nominal"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

UNSTATED = -(1 << 63)
MOST_SIZES = 1 << 16
"""Sizes that a stretch can tell apart: their codes are sorted as 16-bit integers, which takes linear time."""
OPS = ("alloc", "checkout", "checkin", "free")
_ALLOC, _CHECKOUT, _CHECKIN, _FREE = range(len(OPS))
_OTHER = len(OPS)
# What an operation adds to the idle buffers and to those in use.
_TO_IDLE = np.array([0, -1, 1, -1, 0], dtype=np.int64)
_TO_USED = np.array([1, 1, -1, 0, 0], dtype=np.int64)


@dataclasses.dataclass(frozen=True)
class Columns:
    """Lines of the pool as arrays; what a line does not state is `UNSTATED`."""

    op: Ints
    """Index into `OPS`; one past its end for any other operation."""
    size: Ints
    code: npt.NDArray[np.uint16]
    """Index of the size among `sizes`."""
    sizes: Ints
    """All sizes, ascending."""
    free: Ints
    total: Ints
    ever: Ints

    def part(self, start: int, stop: int) -> "Columns":
        """Some of the lines."""
        at = slice(start, stop)
        return Columns(
            self.op[at], self.size[at], self.code[at], self.sizes, self.free[at], self.total[at], self.ever[at]
        )


@dataclasses.dataclass
class Counts:
    """Buffers by size code, and how many were ever allocated."""

    idle: Ints
    used: Ints
    ever: int
    other_idle: tuple[int, int] = (0, 0)
    """Idle buffers of sizes that no line names, and their bytes: nominal lines leave them alone."""
    other_used: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class Steps:
    """The pool after each line: bytes, and counts of buffers."""

    total: Ints
    in_use: Ints
    idle_buffers: Ints
    used_buffers: Ints

    @classmethod
    def of(cls, lines: int) -> "Steps":
        """Room for so many lines."""
        return cls(*(np.zeros(lines, dtype=np.int64) for _ in dataclasses.fields(cls)))


def columns(rows: pl.DataFrame) -> Columns:
    """The `pool` table as arrays; every row has a size. Sizes beyond `MOST_SIZES` share the last code."""
    op = rows["op"].replace_strict({name: n for n, name in enumerate(OPS)}, default=_OTHER, return_dtype=pl.Int64)
    size, free, total, ever = (
        rows[name].fill_null(UNSTATED).to_numpy() for name in ("size", "free_remaining", "total", "buffers")
    )
    sizes = rows["size"].unique().sort().to_numpy()
    code = np.minimum(np.searchsorted(sizes, size), MOST_SIZES - 1).astype(np.uint16)
    return Columns(op.to_numpy(), size, code, sizes, free, total, ever)


def replay_nominal(lines: Columns, counts: Counts, steps: Steps, start: int, *, largest: int, rounding: int) -> int:
    """Replay `lines` up to the first that is not nominal; how many that were.

    `counts` is moved on, and `steps` filled from its row `start` on. `largest`: bytes that a buffer can have;
    `rounding`: bytes by which a stated total may differ.
    """
    to_idle, to_used = _TO_IDLE[lines.op], _TO_USED[lines.op]
    moved = lines.size * (to_idle + to_used)
    (other_idle, other_idle_bytes), (other_used, other_used_bytes) = counts.other_idle, counts.other_used
    in_use = other_used_bytes + int(lines.sizes @ counts.used)
    total = in_use + other_idle_bytes + int(lines.sizes @ counts.idle) + np.cumsum(moved)
    idle = other_idle + int(counts.idle.sum()) + np.cumsum(to_idle)
    ever = counts.ever + np.cumsum(lines.op == _ALLOC)
    odd = (lines.size <= 0) | (lines.size > largest)
    odd |= (lines.free != UNSTATED) & (lines.free != idle)
    odd |= (lines.total != UNSTATED) & (np.abs(lines.total - total) > rounding)
    odd |= (lines.ever != UNSTATED) & (lines.op == _ALLOC) & (lines.ever != ever)
    odd |= _without_buffer(lines, counts, to_idle, to_used)
    good = int(odd.argmax()) if odd.any() else len(odd)
    at = slice(start, start + good)
    steps.total[at] = total[:good]
    steps.in_use[at] = in_use + np.cumsum(lines.size[:good] * to_used[:good])
    steps.idle_buffers[at] = idle[:good]
    steps.used_buffers[at] = other_used + int(counts.used.sum()) + np.cumsum(to_used[:good])
    if good:
        sizes = len(lines.sizes)
        counts.idle += _by_code(lines.code[:good], to_idle[:good], sizes)
        counts.used += _by_code(lines.code[:good], to_used[:good], sizes)
        counts.ever = int(ever[good - 1])
    return good


def _by_code(code: npt.NDArray[np.uint16], moves: Ints, sizes: int) -> Ints:
    # Sums of ±1 are exact in the doubles that bincount adds up.
    return np.bincount(code, weights=moves, minlength=sizes).astype(np.int64)


def _without_buffer(lines: Columns, counts: Counts, to_idle: Ints, to_used: Ints) -> Bools:
    """Lines that take a buffer of a size of which none is there before them."""
    order = np.argsort(lines.code, kind="stable")
    code = lines.code[order]
    idle = _running(code, to_idle[order], counts.idle)
    used = _running(code, to_used[order], counts.used)
    op = lines.op[order]
    lacks = (((op == _CHECKOUT) | (op == _FREE)) & (idle < 0)) | ((op == _CHECKIN) & (used < 0))
    found = np.zeros(len(order), dtype=bool)
    found[order] = lacks
    return found


def _running(code: npt.NDArray[np.uint16], moves: Ints, before: Ints) -> Ints:
    """Count after each line, by size; lines are in order of their size code."""
    sums = np.cumsum(moves)
    first = np.flatnonzero(np.diff(code, prepend=code[:1]) != 0)
    starts = np.concatenate([[0], first])
    lengths = np.diff(np.append(starts, len(code)))
    return sums - np.repeat(sums[starts] - moves[starts], lengths) + before[code]
