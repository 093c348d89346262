"""What stood in memory at one moment, each quantity with its interval: the inputs of the arithmetic.

Definitions: arithmetic.md, sections 1 and 2. Nothing here is drawn or ranked; see draws.py.
"""

import dataclasses
import datetime as dt

import numpy as np
import numpy.typing as npt

from postmortem.analysis.fit import HeapFit, Ramp
from postmortem.result import Basis, Quantity

__all__ = ["Account", "Heap", "Live", "TableShare", "default_heap"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Page cache makes way as heap grows, so that the samples show less growth than there was: most beside the first,
# unpinned partitions, when the cache of the loaded files is still there. By fit.TERMS.
_HIDDEN: Floats = np.array([1.07, 1.07, 1.2, 1.2])


@dataclasses.dataclass(frozen=True)
class Live:
    """Partitions alive at the moment, as arrays. Bytes and seconds."""

    age_s: Floats
    synthesis_s: Floats
    """Own synthesis time where it ended, else the run's typical one."""
    pinned: Bools
    released: Bools
    """prove_start returned: a, b, c and their share of the reservation are given back."""
    need: Floats
    rest: Floats
    """Heap needed beside a, b, c."""
    reservation: Floats
    held: Floats
    """Pinned bytes that each holds."""
    paced: Bools
    """Whether the pace of its circuit's synthesis is known from this run."""

    @property
    def count(self) -> int:
        """How many are alive."""
        return len(self.age_s)

    def grown(self, ramp: Ramp) -> Floats:
        """How far each one's heap has grown, 0…1."""
        growth_s = np.maximum(ramp.value * self.synthesis_s if ramp.of_synthesis else ramp.value, 0.5)
        return np.clip(np.minimum(self.age_s, self.synthesis_s) / growth_s, 0.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Heap:
    """How much heap live partitions take, as shares of their need: start + age x grown."""

    ramps: tuple[tuple[Ramp, Floats], ...]
    """The best first; each with its four shares (fit.TERMS)."""
    errors: Floats
    measured_pinned: bool
    measured_unpinned: bool
    squeezed: bool
    """No cache counters: growth may have been hidden by page cache that shrank meanwhile."""
    basis: Basis

    @property
    def best(self) -> Floats:
        """The best estimate's four shares, with what cache is taken to have hidden."""
        return self.ramps[0][1] * (_HIDDEN if self.squeezed else 1.0)


@dataclasses.dataclass(frozen=True)
class TableShare:
    """One resident table at the moment."""

    name: str
    provision: Quantity
    actual: Quantity


@dataclasses.dataclass(frozen=True)
class Account:
    """All inputs of the arithmetic at one moment."""

    at: dt.datetime | None
    killed: bool
    limit: Quantity | None
    budget: Quantity | None
    reserved: Quantity | None
    permanent: int
    charged: Quantity | None
    reclaimable: Quantity | None
    unreclaimable: Quantity | None
    tables: list[TableShare]
    pool_total: Quantity
    pool_in_use: int
    live: Live
    heap: Heap
    transient: Quantity
    extraction: Quantity
    """Heap of PCE extractions in flight."""
    extraction_reserved: int
    """What the ledger holds for them."""
    neighbour: Quantity | None
    anon: int | None
    """Anonymous memory at the moment, where measured: heap and tables on the heap cannot pass it."""
    heap_by_anon: Quantity | None
    """Heap of live partitions as anonymous memory has grown since no partition was alive."""
    shmem: int | None
    pagetables: int | None
    kernel: int | None
    shmem_unmapped: int | None
    """Shared memory that no process maps: files in tmpfs, /dev/shm."""
    heap_tables: int
    """Tables on the heap (PCE), bytes."""
    pinned_tables: int


def default_heap(live: Live) -> Heap:
    """Without a fit: unpinned partitions take what they need; pinned ones something between the rest and all of it."""
    if live.count and not live.reservation.any() and not live.rest.any():
        # Circuits that the profile does not know: nothing can be said of their heap.
        nothing = np.zeros(4)
        ramps = ((Ramp(1.0, of_synthesis=True), nothing),)
        return Heap(ramps, nothing, measured_pinned=True, measured_unpinned=True, squeezed=False, basis="assumed")
    rest = _rest_share(live)
    # Middle of [rest, 1] in the sense of arithmetic.md: b in [1.1, 13.6] is an assumption, and said to be one.
    shares = np.array([0.0, (rest + 1.0) / 2, rest, 1.0 - rest])
    ramps = tuple((Ramp(share, of_synthesis=True), shares) for share in (0.8, 0.5, 1.0))
    errors = np.array([0.0, np.inf, 0.0, 0.1])
    return Heap(ramps, errors, measured_pinned=False, measured_unpinned=False, squeezed=False, basis="assumed")


def _rest_share(live: Live) -> float:
    """Heap beside a, b and c, as a share of the need."""
    return float(np.median(live.rest / np.maximum(live.need, 1.0))) if live.count else 0.1


def fitted_heap(found: HeapFit, live: Live, *, squeezed: bool) -> Heap:
    """Shares from the fit where the data could tell them, else the default ones."""
    fallback = default_heap(live)
    usual = fallback.ramps[0][1]
    pinned, unpinned = bool(found.identified[1]), bool(found.identified[3])
    keep = np.array([pinned, pinned, unpinned, unpinned])
    # Starts fall into the loads that the fit leaves out: what stands beside a, b, c is there from the start.
    least = np.array([0.0, 0.0, _rest_share(live), 0.0])
    ramps = tuple(
        (ramp, np.maximum(np.where(keep, shares, usual), least))
        for ramp, shares in ((found.ramp, found.shares), *found.alternatives)
    )
    errors = np.where(keep & np.isfinite(found.errors), found.errors, fallback.errors)
    return Heap(ramps, errors, pinned, unpinned, squeezed, "derived" if pinned or unpinned else "assumed")
