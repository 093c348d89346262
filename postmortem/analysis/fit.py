"""How much heap a live partition really takes: measured from memory samples, not assumed.

What is known exactly (tables, pool) is taken out of W(t). The rest is heap of live partitions plus a base that drifts
(page cache, allocator fragmentation, growth). The drift is removed by fitting the *changes* between neighbouring samples,
and only over intervals in which nothing was freed: what a free gives back depends on the allocator, what an
allocation takes does not. A partition's heap grows while it synthesises, so its age is a term of its own: a share
`ramp` of its synthesis time (or a fixed time) until it is full; the ramp is chosen by the fit.
Samples at the limit say only W <= L (cache is being squeezed) and are left out.

Terms are shares of what the profile says a partition needs, so that circuits of different size share them.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["TERMS", "FitInput", "HeapFit", "Ramp", "features", "fit", "heap_of_each", "overlaps"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

TERMS = ("pinned_start", "pinned_age", "unpinned_start", "unpinned_age")
_NEVER = 1e18
_MIN_INTERVALS = 5
_MAX_SHARE = 1.5  # no partition takes more than half again of what it is known to need
_MAX_SAMPLES = 4000
_MOST_PAIRS = 1 << 20


@dataclasses.dataclass(frozen=True)
class Ramp:
    """How long a partition's heap grows: a share of its synthesis time, or seconds."""

    value: float
    of_synthesis: bool


_RAMPS = (
    *(Ramp(share, of_synthesis=True) for share in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    *(Ramp(seconds, of_synthesis=False) for seconds in (2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 120.0)),
)


@dataclasses.dataclass(frozen=True)
class Partitions:
    """Arrays over partitions; times in epoch seconds, `_NEVER` where not (yet) reached."""

    start: Floats
    synth_end: Floats
    returned: Floats
    end: Floats
    pinned: Bools
    need: Floats
    """Bytes that the profile says one needs in all (a, b, c and the rest)."""

    @property
    def typical_synthesis(self) -> float:
        """Median synthesis time, seconds; 40 where none ended (only the ramp's scale depends on it)."""
        done = self.synth_end < _NEVER
        return float(np.median((self.synth_end - self.start)[done])) if done.any() else 40.0


@dataclasses.dataclass(frozen=True)
class FitInput:
    """Samples less what is known exactly, and when they may be used."""

    times: Floats
    rest: Floats
    """W - tables - pool, bytes."""
    saturated: Bools
    stamp_s: float
    pool_changes: Floats
    """Times at which the pool grew or shrank."""
    load_windows: tuple[tuple[float, float], ...]
    step: int
    partitions: Partitions


@dataclasses.dataclass(frozen=True)
class HeapFit:
    """Shares of the need by term, with standard errors, and the ramp they belong to."""

    shares: Floats
    errors: Floats
    identified: Bools
    """Which terms the data could tell."""
    ramp: Ramp
    intervals: int
    bounds: int
    spread: float
    """Robust spread of one interval's residual, bytes."""
    alternatives: tuple[tuple[Ramp, Floats], ...]
    """Other ramps that fit nearly as well, with their shares: the model's own uncertainty."""


def features(partitions: Partitions, times: Floats, ramp: Ramp) -> Floats:
    """(times x terms): bytes of need of live partitions, and the same weighted by how far each has grown.

    A partition counts from the start of its synthesis until prove_start returns and its a, b and c are given back.
    `times` may have any order.
    """
    columns = np.zeros((len(TERMS), len(times)))
    for part, at in overlaps(partitions.start, np.minimum(partitions.returned, partitions.end), times):
        need, first = partitions.need[part], np.where(partitions.pinned[part], 0, 2)
        grown = _grown(partitions, ramp, part, times[at])
        for term in range(0, len(TERMS), 2):
            here = first == term
            columns[term] += np.bincount(at[here], need[here], len(times))
            columns[term + 1] += np.bincount(at[here], grown[here] * need[here], len(times))
    return columns.T


def heap_of_each(partitions: Partitions, part: Ints, times: Floats, ramp: Ramp, shares: Floats) -> Floats:
    """Bytes of heap of the partitions `part` (indices), each at its own one of `times`, while it is alive."""
    first = np.where(partitions.pinned[part], 0, 2)
    return partitions.need[part] * (shares[first] + shares[first + 1] * _grown(partitions, ramp, part, times))


def _grown(partitions: Partitions, ramp: Ramp, part: Ints, times: Floats) -> Floats:
    """How much of its heap (0…1) each partition of `part` has at its moment."""
    start, ended = partitions.start[part], partitions.synth_end[part]
    synthesis = np.where(ended < _NEVER, ended - start, partitions.typical_synthesis)
    growth_s = np.maximum(ramp.value * synthesis if ramp.of_synthesis else ramp.value, 0.5)
    return np.clip((np.minimum(times, ended) - start) / growth_s, 0.0, 1.0)


def overlaps(start: Floats, end: Floats, times: Floats) -> Iterator[tuple[Ints, Ints]]:
    """All pairs (interval, moment) with start <= moment < end, as two arrays of indices, some millions at once.

    Takes as long as there are pairs: a few for each moment, however many intervals there are.
    """
    order = np.argsort(times, kind="stable")
    first, last = (np.searchsorted(times[order], edge, side="left") for edge in (start, end))
    hit = np.flatnonzero(last > first)
    counts = np.zeros(len(hit) + 1, dtype=np.int64)
    np.cumsum(last[hit] - first[hit], out=counts[1:])
    begin = 0
    while begin < len(hit):
        stop = max(begin + 1, int(np.searchsorted(counts, counts[begin] + _MOST_PAIRS, side="right")) - 1)
        lengths = np.diff(counts[begin : stop + 1])
        within = np.arange(counts[stop] - counts[begin]) - np.repeat(counts[begin:stop] - counts[begin], lengths)
        yield np.repeat(hit[begin:stop], lengths), order[np.repeat(first[hit[begin:stop]], lengths) + within]
        begin = stop


def fit(data: FitInput) -> HeapFit | None:
    """The best ramp and its shares; None where too few usable intervals exist."""
    usable = _usable(data)
    if usable.sum() < _MIN_INTERVALS or not len(data.partitions.start):
        return None
    change = np.diff(data.rest)
    solved = [_solve(data, ramp, change, usable) for ramp in _RAMPS]
    best = min(solved, key=lambda s: s.cost)
    if not best.identified.any():
        return None
    near = tuple((s.ramp, s.shares) for s in solved if s is not best and s.cost <= 1.15 * best.cost + 1.0)
    return HeapFit(
        shares=best.shares,
        errors=best.errors,
        identified=best.identified,
        ramp=best.ramp,
        intervals=int(usable.sum()),
        bounds=int(data.saturated.sum()),
        spread=best.spread,
        alternatives=near,
    )


def _usable(data: FitInput) -> Bools:
    """Intervals between neighbouring samples in which only allocations happened, and none at an edge."""
    times, blur = data.times, 0.3 + data.stamp_s / 2
    gaps = np.diff(times)
    usable = ~(data.saturated[1:] | data.saturated[:-1]) & (gaps > 0) & (gaps <= 5 * np.median(gaps))
    freed = np.concatenate([data.partitions.returned, data.partitions.end])
    usable &= ~_inside(freed[freed < _NEVER], times[:-1] - blur, times[1:] + blur)
    for edges in (times[:-1], times[1:]):
        usable &= ~_inside(data.pool_changes, edges - blur, edges + blur)
    for low, high in data.load_windows:
        usable &= (times[1:] < low) | (times[:-1] > high)
    if len(data.partitions.start):
        usable &= times[1:] > data.partitions.start.min() - 5
    return usable


def _inside(moments: Floats, low: Floats, high: Floats) -> Bools:
    """Whether any moment lies in [low, high], elementwise."""
    ordered = np.sort(moments)
    return np.searchsorted(ordered, high, side="right") > np.searchsorted(ordered, low, side="left")


@dataclasses.dataclass(frozen=True)
class _Solved:
    ramp: Ramp
    shares: Floats
    errors: Floats
    identified: Bools
    spread: float
    cost: float


def _solve(data: FitInput, ramp: Ramp, change: Floats, usable: Bools) -> _Solved:
    """Bounded least squares with Huber's weights: a handful of jumps must not carry the answer."""
    from scipy.optimize import lsq_linear  # noqa: PLC0415 (a run without samples has no use for it)

    terms = np.diff(features(data.partitions, data.times, ramp), axis=0)[usable]
    goal = change[usable]
    gib = float(1 << 30)
    terms, goal = terms / gib, goal / gib
    floor = max(data.step / gib, 0.02)
    identified = np.abs(terms).sum(axis=0) > 0.5
    weights = np.ones(len(goal))
    shares = np.zeros(len(TERMS))
    spread = floor
    if identified.any():
        for _ in range(20):
            answer = lsq_linear(terms[:, identified] * weights[:, None], goal * weights, bounds=(0.0, _MAX_SHARE))
            shares[identified] = answer.x
            residual = goal - terms @ shares
            spread = max(1.4826 * float(np.median(np.abs(residual))), floor)
            weights = np.sqrt(np.minimum(1.0, 1.5 * spread / np.maximum(np.abs(residual), 1e-9)))
    residual = goal - terms @ shares
    cost = float(np.sum(np.minimum(np.abs(residual), 10 * floor + 1.0)))
    return _Solved(ramp, shares, _errors(terms, weights, identified, spread), identified, spread * gib, cost)


def _errors(terms: Floats, weights: Floats, identified: Bools, spread: float) -> Floats:
    """Standard errors; doubled, since neighbouring changes of a drifting base are not independent."""
    errors = np.full(len(TERMS), np.inf)
    if identified.any():
        scaled = terms[:, identified] * weights[:, None]
        covariance = np.linalg.pinv(scaled.T @ scaled) * spread**2
        errors[identified] = 2 * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return errors


def thin(times: Floats, most: int = _MAX_SAMPLES) -> npt.NDArray[np.int64]:
    """Indices of at most `most` samples: the newest, since the end is what is asked about."""
    return np.arange(max(0, len(times) - most), len(times))
