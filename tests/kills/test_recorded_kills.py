"""Recorded kills whose program wrote down what it had: exact ending, and its figures within 3 %.

Two stand in fixtures/real-kills; POSTMORTEM_SAMPLES names a folder with more (`real-kills/*/truth.json` in it).
"""

import json
import os
import shutil
from pathlib import Path

import pytest

import postmortem

OURS = Path(__file__).parents[2] / "fixtures" / "real-kills"
MORE = Path(os.environ.get("POSTMORTEM_SAMPLES", "-")) / "real-kills"
RUNS = sorted([*OURS.glob("*/truth.json"), *MORE.glob("*/truth.json")])
BESIDE = "shared memory beside pool and tables"


@pytest.fixture(scope="module", params=RUNS, ids=lambda path: f"{path.parents[1].parent.name}/{path.parent.name}")
def case(request, tmp_path_factory):
    """(what is true, what was found) of a run, analysed without its truth."""
    folder = tmp_path_factory.mktemp("run") / request.param.parent.name
    shutil.copytree(request.param.parent, folder, ignore=shutil.ignore_patterns("truth.json"))
    return json.loads(request.param.read_text()), postmortem.analyze(folder)


def test_the_ending_is_exact(case):
    truth, found = case
    assert found.ending.how == ("cgroup_limit" if truth["kernel_report"] else "finished")
    assert found.ending.certainty == "proven"
    assert found.ending.exit_code == (137 if truth["returncode"] == -9 else truth["returncode"])
    assert found.arithmetic.limit.best == truth["limit"]


def test_each_figure_is_what_the_program_had_allocated(case):
    truth, found = case
    state = truth["state_at_end"]
    parts = {part.part: part for part in found.arithmetic.parts}
    assert parts["resident:srs:porep-32g"].actual.best == pytest.approx(state["srs"], rel=0.03)
    assert parts["resident:pce:porep-32g"].actual.best == pytest.approx(state["pce"], rel=0.03)
    assert found.result.pool.total.best == pytest.approx(state["pool"], rel=0.03)
    beside = parts["overhead"].split.get(BESIDE)
    # A buffer that was being filled at the kill is in the kernel's figures and in nobody's log yet.
    assert (beside.best if beside else 0) == pytest.approx(state["extra"], rel=0.03, abs=0.03 * truth["limit"])
    assert found.arithmetic.reserved.low <= state["reserved"] <= found.arithmetic.reserved.high


def test_the_cause_is_the_memory_that_nobody_had_provided_for(case):
    truth, found = case
    expected = {"untracked_pinned": "untracked_pinned", "tmpfs": "overhead"}
    assert found.verdict.cause == expected.get(truth["scenario"], "not_memory")
