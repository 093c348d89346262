"""When samples are due."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from postmortem.recording.pace import Pace

GIB = 1 << 30


def test_a_use_that_does_not_move_is_sampled_at_the_interval():
    pace = Pace(1.0)
    due = [tenth for tenth in range(31) if pace.due(tenth / 10, GIB, 100 * GIB)]
    assert due == [0, 10, 20, 30]


def test_a_step_of_half_a_percent_of_the_limit_is_sampled_at_once():
    pace = Pace(1.0)
    pace.due(0.0, GIB, 100 * GIB)
    assert pace.due(0.1, GIB + GIB // 2, 100 * GIB)


def test_near_the_limit_every_look_is_a_sample_and_looks_come_fast():
    pace = Pace(1.0)
    pace.due(0.0, 90 * GIB, 100 * GIB)
    assert pace.due(0.1, 91 * GIB, 100 * GIB)  # at 10 GiB/s there is less than a second left
    assert pace.wait_s <= 0.02


def test_without_a_limit_the_interval_alone_counts():
    pace = Pace(0.5)
    assert [tenth for tenth in range(11) if pace.due(tenth / 10, tenth * GIB, None)] == [0, 5, 10]


def test_samples_are_denser_while_tasks_wait_for_memory():
    pace = Pace(1.0)
    # A twentieth of the time is lost to waiting, while the use stands still: reclaim at the limit.
    due = [n for n in range(17) if pace.due(n / 8, GIB, 100 * GIB, stalled_us=n * 6_250)]
    assert due == [0, 2, 4, 6, 8, 10, 12, 14, 16]  # every quarter of a second, and no longer every whole one


def test_waiting_for_memory_in_the_past_is_no_pressure_now():
    pace = Pace(1.0)
    due = [n for n in range(21) if pace.due(n / 10, GIB, 100 * GIB, stalled_us=60_000_000)]
    assert due == [0, 10, 20]


@given(st.lists(st.integers(0, 100 * GIB), min_size=2, max_size=60))
def test_no_use_stays_unsampled_longer_than_the_interval(uses):
    pace = Pace(1.0)
    sampled = [n / 10 for n, use in enumerate(uses) if pace.due(n / 10, use, 100 * GIB)]
    assert all(after - before <= 1.0 + 1e-9 for before, after in itertools.pairwise(sampled))
