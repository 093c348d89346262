"""The parts and their excesses under everything that is uncertain: deterministic draws from the account's intervals.

Sums of dependent quantities cannot be had from their intervals alone (what heap takes more, overhead has less), so
the whole table is computed once a draw, and intervals, shares and the chance of each cause to be the largest are read
off the draws. The generator's seed is fixed: the same input gives the same figures.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from postmortem.analysis.account import Account
from postmortem.result import Quantity
from postmortem.units import GIB

__all__ = ["Draws", "draw"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_N = 4000
_SEED = 342


@dataclasses.dataclass(frozen=True)
class Draws:
    """One array a quantity; index 0 is the best estimate itself. Bytes."""

    heap: Floats
    covered: Floats
    uncovered: Floats
    working_actual: Floats
    working_provision: Floats
    tables: Floats
    transient: Floats
    transient_provision: Floats
    neighbour: Floats
    overhead: Floats
    margin: Floats
    slack: Floats
    weight: Floats
    """How far each draw agrees with measured bounds, and with what overheads usually are."""
    bounds_only: bool
    """Nothing inside the bounds is likelier than anything else: intervals are whole."""

    def interval(self, values: Floats) -> tuple[int, int, int]:
        """(low, best, high): the central 95 % of the draws, and the first draw, which is the best estimate."""
        tails = (0.0, 1.0) if self.bounds_only else (0.025, 0.975)
        low, high = (float(v) for v in np.quantile(values, tails, weights=self.weight, method="inverted_cdf"))
        best = float(values[0])
        return round(min(low, best)), round(best), round(max(high, best))

    def share_of(self, hits: Bools) -> float:
        """Weighted share of the draws for which something holds."""
        return float(self.weight[hits].sum() / self.weight.sum())


def draw(account: Account) -> Draws | None:
    """All parts under all uncertainty; None without a limit or anything known to be charged."""
    if account.limit is None or account.budget is None or account.unreclaimable is None:
        return None
    rng = np.random.default_rng(_SEED)
    given = _given(rng, account, account.limit, account.budget, account.unreclaimable)
    heap, extraction = _bounded(rng, account, _heap(rng, account), _sample(rng, account.extraction))
    draws = _settle(account, given, heap, extraction)
    middle = _middle(account, draws)
    if middle:
        # The best estimate is the first draw: all else in it is the best known, so that its table adds up by hand.
        heap[0], extraction[0] = heap[middle], extraction[middle]
        draws = _settle(account, given, heap, extraction)
    return draws


@dataclasses.dataclass(frozen=True)
class _Given:
    """What is drawn whatever the heap is."""

    limit: Floats
    budget: Floats
    unreclaimable: Floats
    provision: Floats
    tables: Floats
    pool: Floats
    load: Floats
    neighbour: Floats


def _given(
    rng: np.random.Generator, account: Account, limit: Quantity, budget: Quantity, unreclaimable: Quantity
) -> _Given:
    limits = _sample(rng, limit)
    charged = _sample(rng, unreclaimable)
    return _Given(
        limit=limits,
        budget=_sample(rng, budget),
        # Where memory stood at the limit the two are one quantity, not two.
        unreclaimable=limits + charged - limit.best if account.killed else charged,
        provision=np.maximum(_sample(rng, account.reserved) - account.permanent, 0)
        if account.reserved
        else np.zeros(_N),
        tables=sum((_sample(rng, t.actual) for t in account.tables), np.zeros(_N)),
        pool=_sample(rng, account.pool_total),
        load=_sample(rng, account.transient),
        neighbour=_sample(rng, account.neighbour) if account.neighbour else np.zeros(_N),
    )


def _settle(account: Account, given: _Given, heap_each: Floats, extraction: Floats) -> Draws:
    """The table, once a draw."""
    heap = heap_each.sum(axis=1)
    extraction_provision = np.minimum(given.provision, float(account.extraction_reserved))
    provision = given.provision - extraction_provision
    covered = np.minimum(_covered(account, heap_each, heap, provision), given.pool)
    transient = given.load + extraction
    overhead = given.unreclaimable - given.tables - given.pool - heap - transient - given.neighbour
    return Draws(
        heap=heap,
        covered=covered,
        uncovered=given.pool - covered,
        working_actual=heap + covered,
        working_provision=provision,
        tables=given.tables,
        transient=transient,
        transient_provision=extraction_provision,
        neighbour=given.neighbour,
        overhead=overhead,
        margin=given.limit - given.budget,
        slack=given.budget - account.permanent - given.provision,
        weight=_weights(account, overhead),
        bounds_only=_bounds_only(account),
    )


def _bounds_only(account: Account) -> bool:
    """Whether only bounds of the use are known (samples without cache counters, and no kill)."""
    return account.unreclaimable is not None and account.unreclaimable.basis == "assumed"


def _sample(rng: np.random.Generator, quantity: Quantity | None) -> Floats:
    """Triangular between low, best and high; the first draw is the best estimate."""
    if quantity is None or quantity.high <= quantity.low:
        return np.full(_N, float(quantity.best if quantity else 0))
    values = rng.triangular(quantity.low, min(max(quantity.best, quantity.low), quantity.high), quantity.high, _N)
    values[0] = quantity.best
    return values


def _heap(rng: np.random.Generator, account: Account) -> Floats:
    """(draws x live partitions) bytes of heap."""
    live, heap = account.live, account.heap
    out = np.zeros((_N, live.count))
    if not live.count:
        return out
    grown = np.stack([live.grown(ramp) for ramp, _ in heap.ramps])
    shares = np.stack([values for _, values in heap.ramps])
    # The best ramp is taken half of the time, its rivals share the other half.
    choice = np.where(rng.random(_N) < 0.5, 0, rng.integers(0, len(heap.ramps), _N))
    choice[0] = 0
    drawn = shares[choice]
    spread = np.where(np.isfinite(heap.errors), heap.errors, 0.0)
    drawn = drawn + rng.normal(size=(_N, 4)) * spread
    if not heap.measured_pinned:
        rest = float(np.median(live.rest / np.maximum(live.need, 1.0)))
        drawn[:, 1] = rng.uniform(min(rest, 1.0), 1.0, _N)
    drawn[0] = heap.best
    drawn = np.clip(drawn, 0.0, 1.2)
    first = np.where(live.pinned, 0, 2)
    per = drawn[:, first] + drawn[:, first + 1] * grown[choice]
    # The ramp is a shape that no partition follows exactly.
    shape = np.where(live.paced, rng.uniform(0.85, 1.15, (_N, 1)), rng.uniform(0.7, 1.7, (_N, 1)))
    shape[0] = np.where(live.paced, 1.0, 1.1)
    per = np.minimum(per * shape * _squeeze(rng, live.pinned, squeezed=heap.squeezed), 1.05)
    # After prove_start returns only the rest is left.
    after = live.rest / np.maximum(live.need, 1.0)
    per = np.where(live.released, np.minimum(per, after), per)
    return per * live.need


def _squeeze(rng: np.random.Generator, pinned: Bools, *, squeezed: bool) -> Floats:
    """Without cache counters growth is partly hidden by cache that made way, most of all that of the first partitions."""
    if not squeezed:
        return np.ones((_N, len(pinned)))
    first, later = rng.uniform(1.0, 1.3, (_N, 1)), rng.uniform(1.0, 1.15, (_N, 1))
    first[0] = later[0] = 1.0  # the best estimate has it already
    return np.where(pinned, later, first)


def _bounded(rng: np.random.Generator, account: Account, heap: Floats, extraction: Floats) -> tuple[Floats, Floats]:
    """Heap and extractions are anonymous memory: no more than was measured of it, less the tables on the heap."""
    total = np.maximum(heap.sum(axis=1, keepdims=True), 1.0)
    if account.heap_by_anon is not None:
        grown = _sample(rng, account.heap_by_anon)[:, None]
        if not account.extraction.high:
            return heap * (grown / total), extraction
        heap, extraction = _scaled(heap, extraction, grown[:, 0])
        left = np.maximum(grown[:, 0] - heap.sum(axis=1), 0.0)
        return heap, np.minimum(left, account.extraction.high)
    if account.anon is None:
        return heap, extraction
    most = max(0.0, account.anon - 0.98 * account.heap_tables)
    wanted = total
    if not (account.heap.measured_pinned or account.heap.measured_unpinned):
        # Nothing was measured of single partitions: anything up to all anonymous memory may be theirs.
        ceiling = min(most, 1.05 * float(account.live.need.sum()))
        more = rng.random((_N, 1)) * np.maximum(ceiling - total, 0)
        wanted = np.where(rng.random((_N, 1)) < 0.5, total + more, total)
    return _scaled(heap * wanted / total, extraction, np.full(_N, most))


def _scaled(heap: Floats, extraction: Floats, most: Floats) -> tuple[Floats, Floats]:
    """Both scaled down together where their sum passes what was measured."""
    factor = np.minimum(1.0, most / np.maximum(heap.sum(axis=1) + extraction, 1.0))
    return heap * factor[:, None], extraction * factor


def _covered(account: Account, heap_each: Floats, heap: Floats, provision: Floats) -> Floats:
    """Pinned bytes that live reservations cover: what each reservation has left beside its partition's heap."""
    live = account.live
    if not live.count:
        # No partition is known, so neither is what each holds: the reservations as a whole are the bound.
        return np.minimum(account.pool_in_use, np.maximum(provision - heap, 0.0))
    each = np.minimum(live.held, np.maximum(live.reservation - heap_each, 0.0))
    return each.sum(axis=1)


def _middle(account: Account, draws: Draws) -> int:
    """The draw to take as the best: the first where the heap was measured, else the one of the weighted median heap."""
    if _measured(account) and draws.weight[0] > 0:
        return 0
    middle = np.quantile(draws.heap, 0.5, weights=draws.weight, method="inverted_cdf")
    return int(np.argmin(np.where(draws.weight > 0, np.abs(draws.heap - middle), np.inf)))


def _measured(account: Account) -> bool:
    """Whether the heap of the kinds of partitions that are alive was measured."""
    live, heap = account.live, account.heap
    if account.heap_by_anon is not None:
        return True
    need_pinned = bool((live.pinned & ~live.released).any()) and not heap.measured_pinned
    need_unpinned = bool((~live.pinned & ~live.released).any()) and not heap.measured_unpinned
    return not (need_pinned or need_unpinned)


def _weights(account: Account, overhead: Floats) -> Floats:
    """Draws that contradict a measurement count nothing; if nearly all would, none is dropped.

    Where the heap was not measured, overheads beyond a few percent of the limit count less the larger they are:
    they happen, but seldom.
    """
    weight = np.ones(_N)
    floor = max(0.25 * GIB, float(account.kernel or account.pagetables or 0))
    if account.killed:
        weight *= overhead >= floor
    if weight.sum() < 50:
        weight = np.ones(_N)
    if not _measured(account) and account.limit is not None:
        usual = 0.05 * account.limit.best
        weight = weight / (1.0 + (np.maximum(overhead, 0) / usual) ** 2)
    return weight
