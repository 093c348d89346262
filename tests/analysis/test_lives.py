"""Partitions' lives from the lines about them: every stage is known, the log is cut or sparse in known places."""

import polars as pl
from analysis.making import MODEL, at, table
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.analysis.lives import lives
from postmortem.units import GIB

STAGES = ("synth_start", "synth_end", "gpu_queue", "gpu_start", "prove_start_returned", "gpu_end")
COLUMNS = ("synth_start", "synth_end", "gpu_queue", "gpu_start", "prove_returned", "gpu_end")


def line(op, seconds, job="j1", partition=None, **more):
    return {"op": op, "time": seconds, "job": job, "partition": partition, **more}


def lives_of(*rows):
    return lives([table("work", sorted(rows, key=lambda row: row["time"]))], MODEL)


gaps = st.lists(st.integers(1, 40), min_size=6, max_size=6)
made = st.dictionaries(st.tuples(st.sampled_from(["j1", "j2", "j3"]), st.integers(0, 9)), gaps, min_size=1, max_size=12)


@given(made, st.integers(1, 240))
@settings(deadline=None, max_examples=60)
def test_every_stage_that_the_log_reached_has_its_time_and_no_other_has_one(partitions, end):
    rows, true = [], {}
    for (job, partition), steps in partitions.items():
        moments = [sum(steps[: n + 1]) for n in range(6)]
        rows += [line(op, s, job, partition) for op, s in zip(STAGES, moments, strict=True) if s <= end]
        if moments[0] <= end:
            true[job, partition] = [at(s) if s <= end else None for s in moments]
    found = lives_of(*rows)
    mine = {(row[0], row[1]): list(row[2:]) for row in found.select("job", "partition", *COLUMNS).iter_rows()}
    assert mine == true
    assert found["synth_start"].is_sorted()


def test_a_stage_that_was_reached_implies_the_ones_before_it():
    found = lives_of(
        line("synth_start", 1, partition=0), line("gpu_start", 30, partition=0), line("gpu_end", 40, partition=0)
    )
    row = found.row(0, named=True)
    assert (row["synth_end"], row["gpu_start"], row["prove_returned"], row["gpu_end"]) == (
        at(30),
        at(30),
        at(40),
        at(40),
    )


def test_a_partition_that_is_only_reported_done_ended_then():
    found = lives_of(line("synth_start", 1, partition=3), line("done", 50, partition=3))
    assert found["gpu_end"].to_list() == [at(50)]


def test_a_stage_that_two_lines_report_has_the_time_of_the_first():
    found = lives_of(
        line("synth_start", 1, partition=0), line("synth_end", 9, partition=0), line("synth_end", 9.5, partition=0)
    )
    assert found["synth_end"].to_list() == [at(9)]


def test_a_partition_whose_start_is_not_in_the_log_has_no_life():
    assert lives_of(line("synth_end", 5, partition=0), line("synth_start", 6, job="j2", partition=0)).height == 1
    assert lives_of(line("gpu_end", 5, partition=0)).is_empty()
    assert lives([table("work", [])], MODEL).is_empty()


def test_a_whole_proof_is_one_life_although_later_lines_number_its_partition():
    found = lives_of(
        line("synth_start", 1),
        line("synth_end", 30, partition=0),
        line("gpu_start", 31, partition=0),
        line("gpu_end", 60),
    )
    assert found.height == 1
    assert found.select("partition", "synth_end", "gpu_end").row(0) == (None, at(30), at(60))


def test_lines_without_a_job_belong_to_the_synthesis_that_began_last_before_them():
    found = lives_of(
        line("synth_start", 1, partition=0),
        line("pinned_attempt", 1.1, job=None),
        line("synth_pinned", 1.2, job=None),
        line("synth_start", 2, partition=1),
        line("pinned_attempt", 2.1, job=None),
        line("synth_unpinned", 2.2, job=None),
        line("synth_start", 3, partition=2),
    )
    assert found["pinned"].to_list() == [True, False, None]


def test_a_loose_line_of_a_whole_proof_is_not_given_to_the_partition_before_it():
    found = lives_of(
        line("synth_start", 1, job="j1", partition=7),
        line("synth_start", 2, job="j2"),
        line("synth_unpinned", 2.1, job=None),
    )
    assert dict(found.select("job", "pinned").iter_rows()) == {"j1": None, "j2": False}


def test_the_last_word_about_pinned_buffers_counts():
    found = lives_of(
        line("synth_start", 1, partition=0),
        line("pinned_attempt", 2, partition=0),
        line("synth_unpinned", 3, partition=0),
    )
    assert found["pinned"].to_list() == [False]


def test_the_circuit_is_the_one_that_a_line_names_else_that_of_the_jobs_proof_kind():
    found = lives_of(
        line("enqueue", 0, job="j1", proof_kind="porep-c2"),
        line("synth_start", 1, job="j1", partition=0),
        line("enqueue", 0, job="j2", proof_kind="porep-c2"),
        line("synth_start", 2, job="j2", partition=0, circuit="unheard-of"),
        line("synth_start", 3, job="j3", partition=0),
    )
    assert found["circuit"].to_list() == ["porep", "unheard-of", None]
    assert found["full"].to_list() == [14 * GIB, 0, 0]
    assert found["abc"].to_list() == [13 * GIB, 0, 0]
    assert found["queued"].to_list() == [at(0), at(0), None]


def test_lines_without_a_time_or_a_job_are_no_life():
    rows = table("work", [line("synth_start", None, partition=0), line("synth_start", 5, job=None, partition=1)])
    assert lives([rows], MODEL).is_empty()


def test_lives_keep_the_source_and_line_of_their_start():
    rows = table("work", [line("enqueue", 0), line("synth_start", 1, partition=0), line("synth_end", 2, partition=0)])
    assert lives([rows], MODEL).select("source", "line").row(0) == (0, 2)
    assert isinstance(lives([rows], MODEL), pl.DataFrame)
