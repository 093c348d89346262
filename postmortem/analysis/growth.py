"""Leak or not: does what no ledger explains grow with completed work, steadily to the end?

A robust slope (Theil-Sen) of the base over completed partitions, its interval, and a test against staircases: allocator
fragmentation rises to a plateau and stops, a leak's last third grows like the whole.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

__all__ = ["Growth", "growth"]

Floats = npt.NDArray[np.float64]

_MIN_WORK = 6
_TELLING_WORK = 24  # allocators reach their plateau within a few jobs; before that, growth is no leak yet
_MAX_POINTS = 400
_STEADY = 0.75  # a leak's last third grows like the whole; noise and a little cache are allowed for


@dataclasses.dataclass(frozen=True)
class Growth:
    """Growth of the base. Bytes, per completed unit of work."""

    slope: float
    low: float
    high: float
    """95 % interval of the slope."""
    done: float
    """Completed units at the end."""
    last_third: float
    """Slope in the last third of the work, as a share of the whole's."""
    steady: bool
    """Grows to the end, clearly above zero."""
    least: float
    """What has grown at least, bytes: page cache can hide growth in the samples, never at the kill."""

    @property
    def total(self) -> float:
        """What has grown until the end."""
        return max(0.0, self.slope * self.done)


def growth(base: Floats, done: Floats, final: tuple[float, float]) -> Growth | None:
    """From the base (bytes) at samples below the limit, and completed work at each; `final` = work and base at the kill.

    None when too little work was completed to tell.
    """
    final_done, final_base = final
    if len(base) < 8 or final_done < _MIN_WORK or np.ptp(done) < _MIN_WORK:
        return None
    work, level = _lower_envelope(done, base)
    if len(work) < 5:
        return None
    slope, low, high = _slope(work, level)
    # A staircase ends flat: compare the last third of the work with the whole.
    cut = work[0] + (work[-1] - work[0]) * 2 / 3
    tail = work >= cut
    last = _slope(work[tail], level[tail])[0] if tail.sum() >= 3 and np.ptp(work[tail]) > 0 else 0.0
    share = last / slope if slope > 0 else 0.0
    steady = low > 0 and share >= _STEADY and final_done >= _TELLING_WORK
    early = base[done <= final_done / 4]
    least = max(0.0, final_base - float(early.min())) if len(early) and final_done >= _TELLING_WORK else 0.0
    return Growth(slope, low, high, final_done, share, steady=steady, least=least)


def _slope(work: Floats, level: Floats) -> tuple[float, float, float]:
    """Theil-Sen slope with its 95 % interval."""
    from scipy.stats import theilslopes  # noqa: PLC0415 (half a second to load, and few runs have what it needs)

    slope, _, low, high = np.asarray(theilslopes(level, work), dtype=float).tolist()
    return slope, low, high


def _lower_envelope(done: Floats, base: Floats) -> tuple[Floats, Floats]:
    """The lowest base at each count of completed work: heap that the model missed only ever lies on top."""
    counts = np.unique(done)
    if len(counts) > _MAX_POINTS:
        counts = counts[np.linspace(0, len(counts) - 1, _MAX_POINTS).astype(int)]
    low = np.array([base[done == count].min() for count in counts])
    return counts, low
