"""The bundled runs, and those in the folder that POSTMORTEM_SAMPLES names, held against what is true of them."""

import os
from pathlib import Path

import pytest
from behaviour.runs import BUNDLED, INCIDENT, analysed, answer
from behaviour.truth import misses, of_any, of_fixture

SAMPLES = os.environ.get("POSTMORTEM_SAMPLES")
RUNS = sorted(file.parent for file in Path(SAMPLES).rglob("truth.json")) if SAMPLES else []
MOST_MISSED_CAUSES = 4 / 22


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_run_is_analysed_as_its_truth_says(name):
    folder = BUNDLED[name]
    assert misses(analysed(folder).result, of_fixture(answer(folder))) == []


def test_every_bundled_run_states_what_is_expected_of_it():
    fields = {"about", "ending", "cause", "pool", "limit", "budget", "parts", "past_the_limit", "narrow"}
    for folder in BUNDLED.values():
        stated = answer(folder)
        assert set(stated) == fields
        assert set(stated["narrow"]) <= set(stated["parts"])


@pytest.mark.skipif(not RUNS, reason="POSTMORTEM_SAMPLES names no folder of runs with truth.json")
@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_a_run_elsewhere_is_analysed_as_its_truth_says_or_its_cause_is_doubted(folder):
    assert misses(analysed(folder).result, of_any(answer(folder)), doubtful_causes=True) == []


@pytest.mark.skipif(not RUNS, reason="POSTMORTEM_SAMPLES names no folder of runs with truth.json")
def test_most_causes_elsewhere_are_named():
    missed = [f.name for f in RUNS if analysed(f).verdict.cause not in of_any(answer(f)).causes]
    assert len(missed) <= MOST_MISSED_CAUSES * len(RUNS), missed


def test_the_incident_is_told_as_it_was():
    result = analysed(INCIDENT).result
    assert (result.ending.how, result.ending.certainty) == ("cgroup_limit_probable", "probable")
    assert [cause.cause for cause in result.verdict.causes[:2]] == ["untracked_pinned", "overhead"]
    assert all(cause.share.best > 0.2 for cause in result.verdict.causes[:2])
    gib = 1 << 30
    assert round(result.pool.total.best / gib) == 93
    assert (result.pool.buffers_alive, result.pool.free_remaining) == (24, 0)
    assert result.arithmetic.margin.best == 11 * gib
    sizes = {part.part: part.actual.best // gib for part in result.arithmetic.parts if part.part.startswith("resident")}
    assert sizes == {"resident:srs:porep-32g": 44, "resident:pce:porep-32g": 26}
    first, second = result.phases
    assert (first.ended, first.jobs_done, first.peak.best // gib) == ("complete", 5, 342)
    assert (second.ended, second.jobs_done) == ("cut", 0)
    assert "Phase 2" in result.verdict.summary
    assert {"kernel log", "the daemon's exit status"} <= {missing.what for missing in result.missing}
