"""Exact replay of the pinned pool: which buffers are alive, in use, idle, by size, after each line.

Every figure that the log states (`free_remaining`, `total_gib`, `total_buffers`) is checked against the replay; where
they differ, both are reported and the replay takes the log's word.
"""

import collections
import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem.analysis.nominal import MOST_SIZES, OPS, UNSTATED, Columns, Counts, Steps, columns, replay_nominal
from postmortem.analysis.stretches import in_stretches
from postmortem.analysis.thinning import Thinning
from postmortem.schema import empty
from postmortem.units import format_gib

__all__ = ["PoolReplay", "replay"]

_MAX_WARNINGS = 5
# Beyond any machine's memory: such figures come from broken lines, and sums of them would pass 64 bits.
_LARGEST = 1 << 44
_MOST_BUFFERS = 1 << 18
# Float GiB with full digits: anything beyond a page is a real difference.
_ROUNDING = 4096
_LONGEST_STRETCH = 1 << 16


@dataclasses.dataclass
class PoolReplay:
    """The pool after each of its lines, and at the end. Sizes in bytes."""

    steps: pl.DataFrame
    """time, source, line, total, in_use, alive, used_buffers, free; thinned where the log has very many."""
    idle: collections.Counter[int]
    in_use: collections.Counter[int]
    ever: int = 0
    peak: int = 0
    """Largest size that the pool had, bytes."""
    failed: int = 0
    warnings: list[str] = dataclasses.field(default_factory=list[str])
    disagreements: int = 0
    last: tuple[int, int] | None = None
    """(source, line) of the last pool line."""
    last_free: tuple[int, int, int] | None = None
    """(source, line, value) of the last stated free_remaining."""
    sized: bool = False
    """The log has stated the pool's size: from then on only allocations and frees change it."""

    @property
    def total(self) -> int:
        """Bytes that the pool owns."""
        return _bytes(self.idle) + _bytes(self.in_use)

    @property
    def in_use_bytes(self) -> int:
        """Bytes checked out."""
        return _bytes(self.in_use)

    @property
    def alive(self) -> int:
        """Buffers that the pool owns."""
        return self.idle.total() + self.in_use.total()


def _bytes(buffers: collections.Counter[int]) -> int:
    return sum(size * count for size, count in buffers.items())


def replay(frames: Iterable[pl.DataFrame], thinning: Thinning | None = None) -> PoolReplay:
    """Replay one attempt's `pool` table, whole or in several frames.

    Rows are in order of source and line; times are only carried along. `thinning` says which steps are kept.
    """
    state = PoolReplay(steps=pl.DataFrame(), idle=collections.Counter(), in_use=collections.Counter())
    kept: list[pl.DataFrame] = []
    for rows in frames:
        steps = _replay_on(state, rows)
        kept.append(thinning.of(steps) if thinning else steps)
    state.steps = pl.concat(kept) if kept else _replay_on(state, empty("pool"))
    return state


def _replay_on(state: PoolReplay, rows: pl.DataFrame) -> pl.DataFrame:
    """Move the state on over some rows; its steps."""
    state.failed += int((rows["op"] == "checkout_failed").sum())
    moving = rows.filter(~pl.col("op").is_in(["alloc_failed", "checkout_failed"]) & pl.col("size").is_not_null())
    lines, steps = columns(moving), Steps.of(moving.height)
    left_out = _Replayer(state, lines, steps, moving["line"].to_numpy()).run()
    frame = moving.select(
        "time",
        "source",
        "line",
        total=pl.Series(steps.total),
        in_use=pl.Series(steps.in_use),
        alive=pl.Series(steps.idle_buffers + steps.used_buffers),
        used_buffers=pl.Series(steps.used_buffers),
        free=pl.Series(steps.idle_buffers),
    )
    if left_out:
        kept = ~pl.int_range(moving.height, eager=True).is_in(left_out)
        frame, moving = frame.filter(kept), moving.filter(kept)
    if moving.height:
        state.last = moving.select("source", "line").row(-1)
        state.peak = max(state.peak, *frame.select(pl.col("total").max()).row(0))
    stated = moving.filter(pl.col("free_remaining").is_not_null()).select("source", "line", "free_remaining").tail(1)
    if stated.height:
        state.last_free = stated.row(0)
    return frame


class _Replayer:
    """Goes through the lines: at once while they are nominal, one by one for a while where one is not."""

    def __init__(self, state: PoolReplay, lines: Columns, steps: Steps, numbers: npt.NDArray[np.int64]) -> None:
        self._state, self._lines, self._steps, self._numbers = state, lines, steps, numbers
        self._counts: Counts | None = None
        """What `state` holds, by size code; None while the state itself is at hand."""
        self._left_out: list[int] = []

    def run(self) -> list[int]:
        """Replay all; the indices of lines that say nothing possible and have no step."""
        count, sizes = len(self._numbers), len(self._lines.sizes)
        if sizes > MOST_SIZES:
            self._one_by_one(0, count)
        else:
            # Moving between counts by size and counts by code takes as long as there are sizes.
            in_stretches(count, self._at_once, self._one_by_one, shortest=max(32, sizes), longest=_LONGEST_STRETCH)
        self._put_back()
        return self._left_out

    def _at_once(self, start: int, stop: int) -> int:
        part = self._lines.part(start, stop)
        counts = self._counts = self._counts or self._taken_out()
        good = replay_nominal(part, counts, self._steps, start, largest=_LARGEST, rounding=_ROUNDING)
        totals = part.total[:good]
        self._state.sized = self._state.sized or bool(((totals > 0) & (totals <= _LARGEST)).any())
        return good

    def _one_by_one(self, start: int, stop: int) -> None:
        self._put_back()
        self._left_out += [i for i in range(start, stop) if not self._one(i)]

    def _taken_out(self) -> Counts:
        state, sizes = self._state, self._lines.sizes
        idle, other_idle = _by_code(state.idle, sizes)
        used, other_used = _by_code(state.in_use, sizes)
        return Counts(idle, used, state.ever, _counted(other_idle), _counted(other_used))

    def _put_back(self) -> None:
        counts, self._counts = self._counts, None
        if counts is None:
            return
        state, sizes = self._state, self._lines.sizes
        state.idle = _by_size(counts.idle, sizes) + _by_code(state.idle, sizes)[1]
        state.in_use = _by_size(counts.used, sizes) + _by_code(state.in_use, sizes)[1]
        state.ever = counts.ever

    def _one(self, i: int) -> bool:
        """Replay one line, whatever it means; whether it has a step."""
        state, lines, steps = self._state, self._lines, self._steps
        size, where = int(lines.size[i]), f"line {self._numbers[i]}"
        if not 0 < size <= _LARGEST:
            _warn(state, f"{where}: a buffer of {size} bytes cannot be: the line is left out")
            return False
        op = OPS[lines.op[i]] if lines.op[i] < len(OPS) else ""
        free, total, ever = (None if v[i] == UNSTATED else int(v[i]) for v in (lines.free, lines.total, lines.ever))
        _apply(state, op, size)
        _check(state, op, size, free, total, ever, where)
        steps.total[i], steps.in_use[i] = state.total, state.in_use_bytes
        steps.idle_buffers[i], steps.used_buffers[i] = state.idle.total(), state.in_use.total()
        return True


def _by_code(
    buffers: collections.Counter[int], sizes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], collections.Counter[int]]:
    """Counts by size as an array, and the buffers of sizes that are not in `sizes`: corrections make such."""
    counts, others = np.zeros(len(sizes), dtype=np.int64), collections.Counter[int]()
    for size, count in buffers.items():
        at = int(np.searchsorted(sizes, size))
        if at < len(sizes) and sizes[at] == size:
            counts[at] = count
        else:
            others[size] = count
    return counts, others


def _counted(buffers: collections.Counter[int]) -> tuple[int, int]:
    return buffers.total(), _bytes(buffers)


def _by_size(counts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> collections.Counter[int]:
    return collections.Counter({int(sizes[i]): int(counts[i]) for i in np.flatnonzero(counts)})


def _apply(state: PoolReplay, op: str, size: int) -> None:
    """One operation. What the log cannot have meant is taken as the nearest thing that it can."""
    match op:
        case "alloc":
            state.in_use[size] += 1
            state.ever += 1
        case "checkout":
            # The smallest idle buffer that is large enough (the daemon's rule); a log that begins in the middle
            # hands out buffers that the replay has not seen, one with a lost line those that it holds for in use.
            taken = min((s for s in state.idle if s >= size), default=None)
            if taken is not None:
                state.in_use.update(_remove(state.idle, taken, 1))
            elif not (state.sized and state.in_use[size]):
                state.in_use[size] += 1
        case "checkin":
            if state.in_use[size] or not (state.sized and state.idle[size]):
                _take(state.in_use, size)
                state.idle[size] += 1
        case "free":
            _take(state.idle if state.idle[size] or not state.sized else state.in_use, size)
        case _:
            pass


def _take(buffers: collections.Counter[int], size: int) -> None:
    """Remove one buffer of this size, if there is one."""
    if buffers[size] > 0:
        buffers[size] -= 1
    if buffers[size] <= 0:
        del buffers[size]


def _remove(buffers: collections.Counter[int], size: int, count: int) -> collections.Counter[int]:
    """Remove up to `count` buffers, of this size first, then the smallest; what was removed, by size."""
    gone: collections.Counter[int] = collections.Counter()
    for candidate in (size, *sorted(buffers.keys() - {size})):
        here = min(buffers[candidate], count - gone.total())
        if here > 0:
            gone[candidate] = here
            buffers[candidate] -= here
        if buffers[candidate] <= 0:
            del buffers[candidate]
    return gone


def _check(
    state: PoolReplay, op: str, size: int, free: int | None, total: int | None, ever: int | None, where: str
) -> None:
    """Compare with what the line states, and take its word where it can be true."""
    if free is not None and free != state.idle.total():
        _warn(state, f"{where}: the log states free_remaining={free}, the replay has {state.idle.total()} idle buffers")
        if 0 <= free <= _MOST_BUFFERS:
            _set_idle(state, size, free)
    if total is not None and abs(total - state.total) > _ROUNDING:
        _warn(state, f"{where}: the log states a pool of {format_gib(total)}, the replay has {format_gib(state.total)}")
        if 0 < total <= _LARGEST:
            _set_total(state, size, total)
    state.sized = state.sized or (total is not None and 0 < total <= _LARGEST)
    if ever is not None and ever != state.ever and op == "alloc":
        if state.ever != 1:
            _warn(state, f"{where}: the log states total_buffers={ever}, the replay has seen {state.ever} allocated")
        state.ever = ever


def _set_idle(state: PoolReplay, size: int, free: int) -> None:
    """Make `free` buffers idle: of those in use where the pool's size is known, else by adding or dropping some."""
    more = free - state.idle.total()
    if more > 0:
        found = _remove(state.in_use, size, more) if state.sized else collections.Counter[int]()
        found[size] += more - found.total()
        state.idle.update(found)
    elif more < 0:
        gone = _remove(state.idle, size, -more)
        if state.sized:
            state.in_use.update(gone)


def _set_total(state: PoolReplay, size: int, total: int) -> None:
    """Add or drop buffers until the pool is as large as stated: of the size at hand as far as that explains it."""
    missing = total - state.total
    if missing > 0:
        count = round(missing / size)
        if abs(missing - count * size) > _ROUNDING:
            # Buffers of other sizes, allocated before the log began: as one, so that the total is right.
            count = missing // size
            state.in_use[missing - count * size] += 1
        state.in_use[size] += count
    else:
        _drop(state, size, -missing)
    state.in_use, state.idle = +state.in_use, +state.idle


def _drop(state: PoolReplay, size: int, excess: int) -> None:
    """Drop buffers of `excess` bytes in all: of the size at hand first, and those in use before idle ones."""
    # The buffer that the line is about stays.
    for candidate in (size, *sorted((state.in_use.keys() | state.idle.keys()) - {size}, reverse=True)):
        for buffers, kept in ((state.in_use, int(candidate == size)), (state.idle, 0)):
            count = max(0, min(buffers[candidate] - kept, (excess + _ROUNDING) // candidate))
            buffers[candidate] -= count
            excess -= count * candidate


def _warn(state: PoolReplay, text: str) -> None:
    state.disagreements += 1
    if len(state.warnings) < _MAX_WARNINGS:
        state.warnings.append(text)
