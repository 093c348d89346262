"""The budget's own view: how much was reserved at every moment.

Events come from the partitions' lives and the tables' loads, with the profile's amounts; where the log states the
ledger (DEBUG lines, check-points, snapshots) the replay is pulled to it, and keeps that distance until the next statement:
a dispatcher that acquires ahead of its workers stays ahead by about as much.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem.analysis.resident import Extraction, ResidentTable
from postmortem.analysis.stretches import in_stretches
from postmortem.model import MemoryModel
from postmortem.result import Basis
from postmortem.schema import empty
from postmortem.units import GIB

__all__ = ["COLUMNS", "Ledger", "Stated", "Statements", "replay"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

COLUMNS = ("time", "source", "line", "used", "used_ulp", "available", "available_ulp", "total")
"""What `replay` needs of the `budget` table."""
_BESIDE = 30_000  # microseconds
_NEVER = 1 << 62
_SHORTEST, _LONGEST = 32, 1 << 14
_WIDEST = 16  # changes beside a statement that are looked at all at once
_FRESH = dt.timedelta(seconds=60)


@dataclasses.dataclass(frozen=True)
class Stated:
    """What a line says of the ledger: used lies in [low, high]."""

    time: dt.datetime
    low: int
    high: int
    source: int
    line: int


@dataclasses.dataclass(frozen=True)
class Statements:
    """All of a log's, in order of time (microseconds since 1970)."""

    times: Ints
    low: Ints
    high: Ints
    source: Ints
    line: Ints

    def __len__(self) -> int:
        return len(self.times)

    def last(self, moment: dt.datetime) -> Stated | None:
        """The last one at or before a moment."""
        at = int(np.searchsorted(self.times, _micros(moment), side="right")) - 1
        if at < 0:
            return None
        values = (int(v[at]) for v in (self.low, self.high, self.source, self.line))
        return Stated(_EPOCH + dt.timedelta(microseconds=int(self.times[at])), *values)


@dataclasses.dataclass(frozen=True)
class Ledger:
    """Reserved bytes over time: what the rules imply, and by how much the log's statements move it."""

    times: Ints
    """Of the events that the rules imply, microseconds since 1970."""
    sums: Ints
    """Reserved before the first of them, and after each."""
    permanent_times: Ints
    permanent: Ints
    """The same of what stays reserved: the resident tables."""
    stated: Statements
    moved: Ints
    """What all statements before the first, and up to each, have added."""
    most: int | None
    """Reserved bytes never pass the budget (which rounds down)."""
    corrections: int
    """How often the log's word differed from the model by more than its rounding."""
    largest_correction: int

    def at(self, moment: dt.datetime) -> tuple[int, int]:
        """(reserved, of it permanent) at a moment."""
        now = np.array([_micros(moment)])
        reserved = int(self._reserved(now)[0])
        return reserved, min(int(self.permanent[np.searchsorted(self.permanent_times, now, side="right")][0]), reserved)

    def reserved_at(self, times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Reserved bytes at many moments (epoch seconds)."""
        return self._reserved(np.round(times * 1e6).astype(np.int64)).astype(np.float64)

    def _reserved(self, micros: Ints) -> Ints:
        implied = self.sums[np.searchsorted(self.times, micros, side="right")]
        return np.clip(implied + self.moved[np.searchsorted(self.stated.times, micros, side="right")], 0, self.most)

    def last_stated(self, moment: dt.datetime) -> Stated | None:
        """The last statement of the log at or before a moment."""
        return self.stated.last(moment)

    def basis_at(self, moment: dt.datetime) -> Basis:
        """`derived` when the log stated the ledger within the last minute, else `modelled`."""
        last = self.last_stated(moment)
        return "derived" if last is not None and moment - last.time <= _FRESH else "modelled"


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _micros(moment: dt.datetime) -> int:
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)


def _statements(frames: Iterable[pl.DataFrame]) -> tuple[Statements, int | None]:
    """Every line that states how much of the budget is used, and the first total that one states."""
    total: int | None = None
    pieces: list[pl.DataFrame] = []
    for rows in frames:
        totals = rows["total"].drop_nulls()
        total = int(totals[0]) if total is None and len(totals) else total
        pieces.append(_used(rows.filter(pl.col("time").is_not_null()), total))
    stated = pl.concat(pieces) if pieces else _used(empty("budget"), None)
    if not stated["time"].is_sorted():
        stated = stated.sort("time", "line", "source")
    return Statements(*(column.to_numpy() for column in stated.get_columns())), total


def _used(rows: pl.DataFrame, total: int | None) -> pl.DataFrame:
    ulp = pl.col("used_ulp").fill_null(0)
    # `available` rounds down, and so does the stated total: both widen what `used` can be.
    free_low = pl.lit(total, dtype=pl.Int64) - pl.col("available")
    return (
        rows.sort("time", "line", "source")
        .select(
            pl.col("time").dt.timestamp("us"),
            low=pl.coalesce("used", free_low - pl.col("available_ulp").fill_null(0)),
            high=pl.coalesce(pl.col("used") + pl.max_horizontal(ulp - 1, 0), free_low + GIB),
            source=pl.col("source").cast(pl.Int64),
            line="line",
        )
        .filter(pl.col("low").is_not_null())
    )


def replay(
    frames: Iterable[pl.DataFrame],
    lives: pl.DataFrame,
    found: list[ResidentTable],
    extracted: list[Extraction],
    model: MemoryModel,
    total: int | None,
) -> Ledger:
    """Replay one attempt's ledger; what is reserved never passes the budget `total`.

    `frames`: the columns `COLUMNS` of the `budget` table, whole or in several frames.
    """
    times, deltas, lasting = _events(lives, found, extracted, model)
    stated, said = _statements(frames)
    total = total if total is not None else said
    sums = _running(deltas)
    moved = _Corrections(stated, times, sums).find()
    return Ledger(
        times=times,
        sums=sums,
        permanent_times=times[lasting],
        permanent=_running(deltas[lasting]),
        stated=stated,
        moved=_running(moved),
        most=None if total is None else max(0, total + GIB),
        corrections=int((np.abs(moved) > GIB).sum()),
        largest_correction=int(np.abs(moved).max(initial=0)),
    )


def _running(changes: Ints) -> Ints:
    """0, and the sum after each change."""
    sums = np.zeros(len(changes) + 1, dtype=np.int64)
    np.cumsum(changes, out=sums[1:])
    return sums


class _Corrections:
    """By how much each statement moves the replay (0 where the replay lies inside its rounding).

    Lines of the same moment come from several threads: a statement may be from before or after any event beside it.
    Where nothing has to move, many statements are looked at at once.
    """

    def __init__(self, stated: Statements, times: Ints, sums: Ints) -> None:
        self._low, self._high, self._sums = stated.low, stated.high, sums
        self._first = np.searchsorted(times, stated.times - _BESIDE, side="left")
        self._last = np.searchsorted(times, stated.times + _BESIDE, side="right")
        self._correction = 0
        self.moved = np.zeros(len(stated), dtype=np.int64)

    def find(self) -> Ints:
        """One figure a statement."""
        in_stretches(len(self.moved), self._agreeing, self._one_by_one, shortest=_SHORTEST, longest=_LONGEST)
        return self.moved

    def _agreeing(self, start: int, stop: int) -> int:
        """How many statements fit a sum beside them, the correction added, before the first that does not."""
        first, last = self._first[start:stop], self._last[start:stop]
        low, high = self._low[start:stop] - self._correction, self._high[start:stop] - self._correction
        agree = np.zeros(stop - start, dtype=bool)
        for step in range(min(_WIDEST, int((last - first).max(initial=0)) + 1)):
            value = self._sums[np.minimum(first + step, last)]
            agree |= (low <= value) & (value <= high)
        return len(agree) if agree.all() else int(agree.argmin())

    def _one_by_one(self, start: int, stop: int) -> None:
        span = slice(start, stop)
        columns = (v[span].tolist() for v in (self._low, self._high, self._first, self._last))
        for at, (low, high, first, last) in enumerate(zip(*columns, strict=True), start):
            sums = self._sums[first : last + 1].tolist()
            move = min((_distance(value + self._correction, low, high) for value in sums), key=abs)
            self.moved[at] = move
            self._correction += move


def _distance(value: int, low: int, high: int) -> int:
    """By how much a value has to move to lie between `low` and `high`."""
    if value < low:
        return low - value
    return high - value if value > high else 0


def _events(
    lives: pl.DataFrame, found: list[ResidentTable], extracted: list[Extraction], model: MemoryModel
) -> tuple[Ints, Ints, Bools]:
    """(microseconds, bytes, permanent) of every reservation and release that the rules imply, in order of time."""
    start, returned, end = (
        lives[name].dt.timestamp("us").fill_null(_NEVER).to_numpy()
        for name in ("synth_start", "prove_returned", "gpu_end")
    )
    full, abc = (lives[name].to_numpy() for name in ("full", "abc"))
    back = returned < _NEVER
    # A partition's release is whole where the log does not show that a, b and c went before.
    release = np.where(back, full - abc, full)
    gone = np.where(back, np.maximum(end, returned), end)
    own = np.stack([start, returned, np.where(end < _NEVER, gone, _NEVER)], axis=1).ravel()
    moves = np.stack([full, -abc, -release], axis=1).ravel()
    others: list[tuple[int, int, bool]] = []
    for table in found:
        others.append((_micros(table.start), table.best, True))
        if table.gone is not None:
            others.append((_micros(table.gone), -table.best, True))
    for extraction in extracted:
        others.append((_micros(extraction.start), model.pce_extraction, False))
        if extraction.end is not None:
            others.append((_micros(extraction.end), -model.pce_extraction, False))
    rest = np.array([[time, delta] for time, delta, _ in others], dtype=np.int64).reshape(-1, 2)
    times = np.concatenate([own, rest[:, 0]])
    deltas = np.concatenate([moves, rest[:, 1]])
    lasting = np.concatenate([np.zeros(len(own), dtype=bool), np.array([o[2] for o in others], dtype=bool)])
    order = np.lexsort((~lasting, times))
    order = order[times[order] < _NEVER]
    return times[order], deltas[order], lasting[order]
