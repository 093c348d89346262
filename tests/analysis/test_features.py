"""What live partitions need at each moment equals a sum over all of them, one by one, whatever their number."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from postmortem.analysis import fit

NEVER = 1e18
SECONDS = st.floats(0, 200, allow_nan=False, width=32)
PARTITION = st.tuples(
    SECONDS,
    st.none() | SECONDS,
    st.none() | SECONDS,
    st.none() | SECONDS,
    st.booleans(),
    st.floats(1e6, 1e10),
)
RAMPS = st.sampled_from([fit.Ramp(0.5, of_synthesis=True), fit.Ramp(20.0, of_synthesis=False)])


def arrays(found: list[tuple]) -> fit.Partitions:
    start = [row[0] for row in found]
    later = [[NEVER if row[k] is None else row[0] + row[k] for row in found] for k in (1, 2, 3)]
    return fit.Partitions(
        *(np.array(column, dtype=float) for column in (start, *later)),
        np.array([row[4] for row in found], dtype=bool),
        np.array([row[5] for row in found], dtype=float),
    )


def by_hand(found: list[tuple], moment: float, ramp: fit.Ramp) -> list[float]:
    terms = [0.0] * 4
    lengths = sorted(row[1] for row in found if row[1] is not None)
    half = len(lengths) // 2
    usual = 40.0 if not lengths else (lengths[half] + lengths[~half]) / 2
    for start, synthesis, returned, ended, pinned, need in found:
        gone = min(start + value for value in (returned, ended, NEVER) if value is not None)
        if not start <= moment < gone:
            continue
        takes = usual if synthesis is None else synthesis
        grows = max(ramp.value * takes if ramp.of_synthesis else ramp.value, 0.5)
        age = moment - start if synthesis is None else min(moment - start, synthesis)
        terms[0 if pinned else 2] += need
        terms[1 if pinned else 3] += need * min(age / grows, 1.0)
    return terms


@given(st.lists(PARTITION, min_size=1, max_size=12), st.lists(SECONDS, max_size=12), RAMPS, st.integers(1, 9))
def test_features_are_the_sum_over_live_partitions(found: list[tuple], moments: list[float], ramp: fit.Ramp, most: int):
    moments = [*moments, *(row[0] for row in found)]
    was, fit._MOST_PAIRS = fit._MOST_PAIRS, most
    try:
        computed = fit.features(arrays(found), np.array(moments), ramp)
    finally:
        fit._MOST_PAIRS = was
    expected = np.array([by_hand(found, moment, ramp) for moment in moments])
    np.testing.assert_allclose(computed, expected, rtol=1e-5, atol=1e3)
