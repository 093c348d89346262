"""A table that left memory in pieces gives the same analysis as one that was held whole."""

import itertools
import os
from pathlib import Path

import polars as pl
import pytest
from analysis.making import MODEL, at, table
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import postmortem
from postmortem import spill
from postmortem.analysis import ledger, lives, pool
from postmortem.analysis.thinning import Thinning
from postmortem.schema import TABLES
from postmortem.spill import Gathering, LongTable, Spill
from postmortem.units import GIB

DEMO = Path(__file__).parents[2] / "fixtures" / "incident-342"
SAMPLES = os.environ.get("POSTMORTEM_SAMPLES")
RUNS = sorted(Path(SAMPLES, "simulated").iterdir()) if SAMPLES else []


def pieces(frame: pl.DataFrame, cuts: list[int]) -> list[pl.DataFrame]:
    edges = [0, *sorted(min(cut, frame.height) for cut in cuts), frame.height]
    return [frame.slice(low, high - low) for low, high in itertools.pairwise(edges)]


CUTS = st.lists(st.integers(0, 60), max_size=4)
OPS = ("synth_start", "pinned_attempt", "synth_unpinned", "synth_end", "gpu_start", "gpu_end", "enqueue", "start")
WORK = st.lists(
    st.tuples(
        st.sampled_from(OPS),
        st.sampled_from([None, "j1", "j2", "j3"]),
        st.sampled_from([None, 0, 1]),
        st.integers(0, 40),
        st.sampled_from([None, "porep"]),
    ),
    max_size=60,
)


@given(WORK, CUTS)
@settings(deadline=None)
def test_lives_do_not_depend_on_where_the_table_is_cut(found: list[tuple], cuts: list[int]):
    rows = [
        {"op": op, "job": job, "partition": partition, "time": seconds, "circuit": circuit, "proof_kind": None}
        for op, job, partition, seconds, circuit in found
    ]
    frame = table("work", rows).select(lives.COLUMNS)
    assert_frame_equal(lives.lives(pieces(frame, cuts), MODEL), lives.lives([frame], MODEL))


POOL = st.lists(st.tuples(st.sampled_from(("alloc", "checkout", "checkin", "free")), st.integers(1, 3)), max_size=60)


@given(POOL, CUTS)
@settings(deadline=None)
def test_the_pool_does_not_depend_on_where_the_table_is_cut(found: list[tuple], cuts: list[int]):
    rows = [{"op": op, "size": size * GIB, "time": number} for number, (op, size) in enumerate(found)]
    frame = table("pool", rows)
    whole, cut = pool.replay([frame]), pool.replay(pieces(frame, cuts))
    assert_frame_equal(cut.steps, whole.steps)
    assert (cut.idle, cut.in_use, cut.peak, cut.last) == (whole.idle, whole.in_use, whole.peak, whole.last)


def test_a_thinned_pool_keeps_its_end_its_extremes_and_what_samples_are_compared_with():
    many = 60_000
    in_use = [1 + number % 7 + (50 if number == 12_345 else 0) for number in range(many)]
    steps = pl.DataFrame({"total": [99] * many, "in_use": in_use}).with_columns(
        time=pl.datetime_range(at(0), at(many - 1), "1s", eager=True, time_zone="UTC").dt.cast_time_unit("us")
    )
    moments = pl.Series([at(0.5), at(777.2), at(40_001)], dtype=pl.Datetime("us", "UTC"))
    kept = Thinning(many, moments, most=6_000).of(steps)
    assert kept.height < 17_000
    assert kept["in_use"].max() == 1 + 12_345 % 7 + 50
    assert kept["in_use"].min() == 1
    assert_frame_equal(kept.tail(10_000), steps.tail(10_000))
    assert set(kept["time"]) >= {at(0), at(777), at(40_001), at(many - 1)}


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 300)), max_size=40), CUTS)
@settings(deadline=None)
def test_the_ledger_does_not_depend_on_where_the_table_is_cut(found: list[tuple], cuts: list[int]):
    rows = [{"op": "acquire", "time": seconds, "used": used * GIB, "used_ulp": GIB} for seconds, used in found]
    frame = table("budget", rows).select(ledger.COLUMNS)
    nobody = lives.lives([table("work", []).select(lives.COLUMNS)], MODEL)
    whole, cut = (ledger.replay(frames, nobody, [], [], MODEL, 331 * GIB) for frames in ([frame], pieces(frame, cuts)))
    moments = [at(second) for second in range(-1, 102)]
    assert [cut.at(moment) for moment in moments] == [whole.at(moment) for moment in moments]
    assert cut.corrections == whole.corrections


KEYED = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30), st.none() | st.integers(0, 50)), max_size=40)


@given(KEYED, st.integers(1, 9), st.integers(1, 7))
@settings(deadline=None)
def test_rows_come_back_in_order_whatever_came_late(found: list[tuple], piece: int, each: int):
    rows = [
        {"source": source, "line": line, "time": None if time is None else at(time)} for source, line, time in found
    ]
    frames = [pl.DataFrame(rows[n : n + each], schema_overrides=TABLES["pool"]) for n in range(0, len(rows), each)]
    whole = pl.concat([pl.DataFrame(schema=TABLES["pool"]).select("time", "source", "line"), *frames], how="diagonal")
    was, spill._PIECE_ROWS = spill._PIECE_ROWS, piece
    try:
        gathering = Gathering("pool", Spill())
        for frame in frames:
            gathering.add([whole.clear().pipe(lambda none, frame=frame: pl.concat([none, frame], how="diagonal"))])
            gathering.settle()
        gathered = gathering.table()
    finally:
        spill._PIECE_ROWS = was
    expected = whole.sort("source", "line", maintain_order=True)
    if not isinstance(gathered, LongTable):
        assert gathered.height == expected.height
        return
    keys = pl.concat(list(gathered.frames(["source", "line"])))
    assert_frame_equal(keys, expected.select("source", "line"))
    inside = gathered.between(at(10), at(20), undated=False)
    times = [time for frame in inside.frames(["line", "time"]) for time in frame["time"]]
    assert sorted(times) == sorted(at(t) for _, _, t in found if t is not None and 10 <= t < 20)
    assert sum(frame.height for frame in gathered.between(at(10), None, undated=True).frames(["line"])) == sum(
        t is None or t >= 10 for _, _, t in found
    )


def test_a_disk_that_takes_nothing_leaves_the_rows_in_memory_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr(spill, "_PIECE_ROWS", 2)
    monkeypatch.setattr(spill.tempfile, "tempdir", str(tmp_path / "gone"))
    log = tmp_path / "run.log"
    line = "{:%Y-%m-%dT%H:%M:%S.%fZ}  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3.5\n"
    log.write_text("".join(line.format(at(n)) for n in range(9)))
    found = postmortem.analyze(log)
    assert found.result.pool is not None
    assert found.result.pool.buffers_alive == 9
    assert any("TMPDIR" in warning for warning in found.result.warnings)


@pytest.mark.parametrize("run", [DEMO, *RUNS], ids=lambda run: run.name)
def test_pieces_of_seven_rows_change_no_figure_of_a_run(run: Path, monkeypatch: pytest.MonkeyPatch):
    whole = postmortem.analyze(run)
    monkeypatch.setattr(spill, "_PIECE_ROWS", 7)
    cut = postmortem.analyze(run)
    assert cut.to_dict() == whole.to_dict()
    assert_frame_equal(cut.timeline, whole.timeline)
