"""Leak, staircase or flat: made bases whose growth with completed work is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.analysis.growth import growth
from postmortem.units import GIB

WORK = 200
NOISE = 0.15 * GIB


def base(shape, seed=0, work=WORK, spikes=0.0):
    """(base, completed work) at each sample, three samples a completed unit: `shape` of the work, with noise.

    `spikes`: GiB of heap that the model missed now and then; it only ever lies on top.
    """
    rng = np.random.default_rng(seed)
    done = np.repeat(np.arange(work), 3).astype(float)
    missed = rng.exponential(spikes * GIB, len(done)) if spikes else 0.0
    return 4 * GIB + shape(done) * GIB + np.abs(rng.normal(0, NOISE, len(done))) + missed, done


def judged(shape, **made):
    level, done = base(shape, **made)
    return growth(level, done, (float(done[-1]), float(level[-1])))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rate", [0.05, 0.3, 1.4])
def test_a_leak_grows_steadily_and_its_rate_lies_in_the_interval(rate, seed):
    found = judged(lambda done: rate * done, seed=seed)
    assert found.steady
    assert found.low <= rate * GIB <= found.high
    assert found.total == pytest.approx(rate * GIB * (WORK - 1), rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_a_leak_under_spikes_of_unmodelled_heap_is_still_a_leak(seed):
    assert judged(lambda done: 0.5 * done, seed=seed, spikes=3.0).steady


@pytest.mark.parametrize("plateau_from", [20, 60, 100, 130])
@pytest.mark.parametrize("seed", range(3))
def test_a_base_that_rises_to_a_plateau_is_no_leak(plateau_from, seed):
    assert not judged(lambda done: 0.5 * np.minimum(done, plateau_from), seed=seed).steady


def test_a_staircase_that_has_stopped_is_no_leak():
    assert not judged(lambda done: 20 * np.minimum(done // 30, 3)).steady


@pytest.mark.parametrize("seed", range(6))
def test_a_flat_base_is_no_leak(seed):
    assert not judged(lambda done: 0 * done, seed=seed).steady


def test_a_falling_base_is_no_leak_and_has_grown_by_nothing():
    found = judged(lambda done: -0.01 * done)
    assert not found.steady
    assert found.total == 0


def test_what_the_samples_missed_shows_in_the_last_figure():
    # Page cache made way while the base grew: the samples are flat, the kill is not.
    level, done = base(lambda done: 0 * done)
    found = growth(level, done, (float(done[-1]), 60.0 * GIB))
    assert found.least == pytest.approx(56 * GIB, rel=0.02)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_handful_of_samples_says_nothing(count):
    level, done = base(lambda done: done)
    assert growth(level[:count], done[:count], (200.0, 0.0)) is None


def test_hardly_any_completed_work_says_nothing():
    level, done = base(lambda done: done, work=4)
    assert growth(level, done, (4.0, 0.0)) is None


@given(st.lists(st.tuples(st.integers(0, 2**44), st.integers(0, 60)), max_size=60))
@settings(deadline=None)
def test_any_base_gives_an_answer_with_an_ordered_interval(points):
    level = np.array([float(size) for size, _ in points])
    done = np.sort(np.array([float(work) for _, work in points]))
    found = growth(level, done, (float(done[-1]) if len(done) else 0.0, float(level[-1]) if len(level) else 0.0))
    if found is not None:
        assert found.low <= found.slope <= found.high
        assert found.total >= 0
        assert found.least >= 0
