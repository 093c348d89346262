"""The budget's own view: how much was reserved at every moment.

Events come from the partitions' lives and the tables' loads, with the profile's amounts; where the log states the
ledger (DEBUG lines, check-points, snapshots) the replay is pulled to it, and keeps that distance until the next statement:
a dispatcher that acquires ahead of its workers stays ahead by about as much.
"""

import bisect
import dataclasses
import datetime as dt
import itertools

import polars as pl

from postmortem.analysis.resident import Extraction, ResidentTable
from postmortem.model import MemoryModel
from postmortem.result import Basis
from postmortem.units import GIB

__all__ = ["Ledger", "Stated", "replay"]

_BESIDE = dt.timedelta(milliseconds=30)


@dataclasses.dataclass(frozen=True)
class Stated:
    """What a line says of the ledger: used lies in [low, high]."""

    time: dt.datetime
    low: int
    high: int
    source: int
    line: int


@dataclasses.dataclass
class Ledger:
    """Reserved bytes over time, as steps."""

    times: list[dt.datetime]
    reserved: list[int]
    permanent: list[int]
    stated: list[Stated]
    corrections: int
    """How often the log's word differed from the model by more than its rounding."""
    largest_correction: int
    total: int | None
    """The budget; what is reserved never passes it."""

    def at(self, moment: dt.datetime) -> tuple[int, int]:
        """(reserved, of it permanent) at a moment."""
        index = bisect.bisect_right(self.times, moment) - 1
        if index < 0:
            return 0, 0
        return self.reserved[index], min(self.permanent[index], self.reserved[index])

    def last_stated(self, moment: dt.datetime) -> Stated | None:
        """The last statement of the log at or before a moment."""
        before = [s for s in self.stated if s.time <= moment]
        return before[-1] if before else None

    def basis_at(self, moment: dt.datetime) -> Basis:
        """`derived` when the log stated the ledger within the last minute, else `modelled`."""
        last = self.last_stated(moment)
        fresh = last is not None and moment - last.time <= dt.timedelta(seconds=60)
        return "derived" if fresh else "modelled"


def statements(budget: pl.DataFrame) -> list[Stated]:
    """Every line that states how much of the budget is used."""
    rows = budget.filter(
        pl.col("time").is_not_null() & (pl.col("used").is_not_null() | pl.col("available").is_not_null())
    ).sort("time", "line")
    found: list[Stated] = []
    total = _total(budget)
    for time, used, used_ulp, available, available_ulp, source, line in rows.select(
        "time", "used", "used_ulp", "available", "available_ulp", "source", "line"
    ).iter_rows():
        if used is not None:
            found.append(Stated(time, used, used + max(0, (used_ulp or 0) - 1), source, line))
        elif total is not None:
            # available rounds down, and so does the stated total: both widen what `used` can be.
            found.append(Stated(time, total - available - (available_ulp or 0), total - available + GIB, source, line))
    return found


def _total(budget: pl.DataFrame) -> int | None:
    totals = budget["total"].drop_nulls()
    return int(totals[0]) if len(totals) else None


def replay(
    budget: pl.DataFrame,
    lives: pl.DataFrame,
    found: list[ResidentTable],
    extracted: list[Extraction],
    model: MemoryModel,
    total: int | None,
) -> Ledger:
    """Replay one attempt's ledger."""
    events = sorted(_events(lives, found, extracted, model), key=lambda event: (event[0], not event[2]))
    stated = statements(budget)
    ledger = Ledger([], [], [], stated, 0, 0, total if total is not None else _total(budget))
    times = [time for time, _, _ in events]
    sums = [0, *itertools.accumulate(delta for _, delta, _ in events)]
    applied = permanent = correction = 0
    for word in [*stated, None]:
        until = bisect.bisect_right(times, word.time) if word else len(events)
        for time, delta, lasting in events[applied:until]:
            applied += 1
            permanent += delta if lasting else 0
            _step(ledger, time, sums[applied] + correction, permanent)
        if word is not None:
            moved = _disagreement(word, times, sums, correction)
            correction += moved
            ledger.corrections += abs(moved) > GIB
            ledger.largest_correction = max(ledger.largest_correction, abs(moved))
            _step(ledger, word.time, sums[applied] + correction, permanent)
    return ledger


def _disagreement(word: Stated, times: list[dt.datetime], sums: list[int], correction: int) -> int:
    """How far the log's word lies from the replay (0 = inside its rounding).

    Lines of the same moment come from several threads: the word may be from before or after any event next to it.
    """
    first = bisect.bisect_left(times, word.time - _BESIDE)
    last = bisect.bisect_right(times, word.time + _BESIDE)
    moves = [_distance(sums[i] + correction, word) for i in range(first, last + 1)]
    return min(moves, key=abs)


def _distance(value: int, word: Stated) -> int:
    """By how much a value has to move to lie inside the statement."""
    if value < word.low:
        return word.low - value
    return word.high - value if value > word.high else 0


def _step(ledger: Ledger, time: dt.datetime, reserved: int, permanent: int) -> None:
    reserved = max(0, reserved if ledger.total is None else min(reserved, ledger.total + (1 << 30)))
    if ledger.times and ledger.times[-1] == time:
        ledger.reserved[-1], ledger.permanent[-1] = reserved, permanent
        return
    ledger.times.append(time)
    ledger.reserved.append(reserved)
    ledger.permanent.append(permanent)


def _events(
    lives: pl.DataFrame, found: list[ResidentTable], extracted: list[Extraction], model: MemoryModel
) -> list[tuple[dt.datetime, int, bool]]:
    """(time, bytes, permanent) of every reservation and release that the rules imply."""
    events: list[tuple[dt.datetime, int, bool]] = []
    for start, returned, end, full, abc in lives.select(
        "synth_start", "prove_returned", "gpu_end", "full", "abc"
    ).iter_rows():
        events.append((start, full, False))
        if returned is not None:
            events.append((returned, -abc, False))
        if end is not None:
            events.append((max(end, returned or end), -(full - abc if returned is not None else full), False))
    for table in found:
        events.append((table.start, table.best, True))
        if table.gone is not None:
            events.append((table.gone, -table.best, True))
    for extraction in extracted:
        events.append((extraction.start, model.pce_extraction, False))
        if extraction.end is not None:
            events.append((extraction.end, -model.pce_extraction, False))
    return events
