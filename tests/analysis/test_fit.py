"""The heap fit on made worlds whose partitions take known shares of their need, under drift, noise and what frees keep back."""

import dataclasses

import numpy as np
import pytest

from postmortem.analysis.fit import FitInput, Partitions, fit
from postmortem.units import GIB

NEED = 12.7 * GIB
AT_START = 0.09  # of the need, there from the first moment
UNPINNED = 1.0
PINNED_START, PINNED_AGE, UNPINNED_START, UNPINNED_AGE = range(4)


@dataclasses.dataclass(frozen=True)
class World:
    """W(t) less tables and pool, second by second, written without the fit's own code."""

    data: FitInput
    pinned: float
    unpinned: float


def world(seed, *, pinned, ramp, drift=0.0, noise=0.03, kept=0.0, first_unpinned=4, step=0):
    """`pinned`: share of the need that a pinned partition has on the heap when grown; `ramp`: of its synthesis time.

    `drift` in MiB a second, `noise` in GiB a sample, `kept`: share of a partition's heap that its end gives not back.
    """
    rng = np.random.default_rng(seed)
    count = 24
    start = np.cumsum(rng.uniform(8, 25, count))
    synthesised = start + rng.uniform(30, 45, count)
    returned = synthesised + rng.uniform(5, 60, count)
    end = returned + rng.uniform(1, 5, count)
    is_pinned = np.arange(count) >= first_unpinned
    times = np.arange(0.0, end.max())
    memory = 3 * GIB + drift * (1 << 20) * times + np.cumsum(rng.normal(0, 0.01 * GIB, len(times)))
    for n in range(count):
        full = pinned if is_pinned[n] else UNPINNED
        age = (times - start[n]) / (ramp * (synthesised[n] - start[n]))
        share = AT_START + (full - AT_START) * np.minimum(np.maximum(age, 0), 1)
        memory += np.where((times >= start[n]) & (times < returned[n]), NEED * share, 0)
        memory += np.where(times >= returned[n], kept * NEED * full, 0)
    memory += rng.normal(0, noise * GIB, len(times))
    if step:
        memory = np.round(memory / step) * step
    needs = np.full(count, NEED)
    data = FitInput(
        times=times,
        rest=memory,
        saturated=np.zeros(len(times), dtype=bool),
        stamp_s=0.0,
        pool_changes=np.array([]),
        load_windows=(),
        step=step,
        partitions=Partitions(start, synthesised, returned, end, is_pinned, needs),
    )
    return World(data, pinned, UNPINNED)


def grown(found, start, age):
    """(share of the need when grown, 95 % half-width), as the report states it."""
    return found.shares[start] + found.shares[age], 1.96 * np.hypot(found.errors[start], found.errors[age])


WORLDS = [
    {"seed": seed, "pinned": pinned, "ramp": ramp, **more}
    for seed, (pinned, ramp, more) in enumerate(
        [
            (AT_START, 0.5, {}),
            (0.5, 0.5, {"drift": 5}),
            (1.0, 0.8, {}),
            (1.0, 0.5, {"drift": 10, "kept": 0.1}),
            (AT_START, 0.8, {"noise": 0.1}),
            (0.3, 1.0, {"kept": 0.3}),
            (0.7, 0.4, {"step": GIB // 10}),
            (1.0, 0.7, {"step": GIB // 10, "drift": 5}),
        ]
    )
]


@pytest.mark.parametrize("made", WORLDS, ids=str)
def test_known_heap_shares_lie_inside_the_stated_error_and_the_error_is_small(made):
    made_world = world(**made)
    found = fit(made_world.data)
    assert found is not None
    assert found.identified.all()
    for true, terms in (
        (made_world.pinned, (PINNED_START, PINNED_AGE)),
        (made_world.unpinned, (UNPINNED_START, UNPINNED_AGE)),
    ):
        share, half_width = grown(found, *terms)
        assert abs(share - true) <= half_width
        assert half_width < 0.15


@pytest.mark.parametrize("ramp", [0.3, 0.5, 0.8, 1.0])
def test_how_long_a_heap_grows_is_found(ramp):
    found = fit(world(1, pinned=1.0, ramp=ramp).data)
    assert found is not None
    assert found.ramp.of_synthesis
    assert found.ramp.value == pytest.approx(ramp)


def test_samples_at_the_limit_are_not_used():
    made = world(2, pinned=1.0, ramp=0.5)
    limit = np.quantile(made.data.rest, 0.7)
    at_it = made.data.rest >= limit
    squeezed = dataclasses.replace(made.data, rest=np.minimum(made.data.rest, limit), saturated=at_it)
    found = fit(squeezed)
    assert found is not None
    share, half_width = grown(found, PINNED_START, PINNED_AGE)
    assert abs(share - made.pinned) <= half_width
    assert found.bounds == at_it.sum()


def test_what_moves_memory_while_a_table_loads_is_left_out():
    made = world(3, pinned=0.5, ramp=0.5)
    times = made.data.times
    load = np.clip((times - 100) / 40, 0, 1) * 88 * GIB - np.clip((times - 150) / 10, 0, 1) * 88 * GIB
    found = fit(dataclasses.replace(made.data, rest=made.data.rest + load, load_windows=((98.0, 162.0),)))
    assert found is not None
    share, half_width = grown(found, PINNED_START, PINNED_AGE)
    assert abs(share - made.pinned) <= half_width


def test_a_kind_of_partition_that_never_lived_is_not_said_to_be_measured():
    found = fit(world(4, pinned=0.5, ramp=0.5, first_unpinned=0).data)
    assert found is not None
    assert found.identified.tolist() == [True, True, False, False]


def test_too_few_samples_give_no_fit():
    made = world(5, pinned=0.5, ramp=0.5).data
    few = {name: getattr(made, name)[:4] for name in ("times", "rest", "saturated")}
    assert fit(dataclasses.replace(made, **few)) is None
    nobody = Partitions(*(np.array([], dtype=kind) for kind in (float, float, float, float, bool, float)))
    assert fit(dataclasses.replace(made, partitions=nobody)) is None
