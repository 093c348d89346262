"""The library as a notebook uses it: the names that the README shows, on the bundled incident."""

import datetime as dt

import polars as pl
import pytest
from behaviour.runs import BUNDLED, INCIDENT

import postmortem
from postmortem.schema import TIMELINE
from postmortem.units import GIB


@pytest.fixture(scope="module")
def r():
    return postmortem.analyze([INCIDENT / "run.log", INCIDENT / "mem.txt"])


def test_the_verdict_is_at_hand(r):
    assert r.verdict.cause == "untracked_pinned"
    assert 0 < r.verdict.confidence <= 1
    assert r.verdict.summary.startswith("cuzk-daemon was probably killed")
    assert r.ending.how == "cgroup_limit_probable"


def test_the_arithmetic_has_its_parts(r):
    names = [part.part for part in r.arithmetic.parts]
    assert {"resident:srs:porep-32g", "resident:pce:porep-32g", "pinned_uncovered", "overhead"} <= set(names)
    assert r.arithmetic.limit.best == 342 * GIB
    assert all(isinstance(part.actual, postmortem.Quantity) for part in r.arithmetic.parts)


def test_the_timeline_is_a_polars_table_in_order_of_time(r):
    assert r.timeline.schema == TIMELINE
    assert r.timeline["time"].is_sorted()
    assert r.timeline["buffers_alive"][-1] == 24
    assert r.timeline.filter(pl.col("free_remaining") == 0).height > 0


def test_reports_are_made_from_it(r):
    page = r.to_html()
    assert page.startswith("<!doctype html>")
    assert r.verdict.summary[:40] in page
    assert r.to_markdown().startswith("## ")
    assert r.to_dict()["verdict"]["cause"] == "untracked_pinned"


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(r):
    shown = r._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "&lt;!doctype html&gt;" in shown
    assert "<!doctype html>" not in shown


def test_its_repr_is_one_line_that_says_what_happened(r):
    assert "untracked_pinned" in repr(r)
    assert "\n" not in repr(r)


def test_one_path_may_be_given_without_a_list():
    path = BUNDLED["misdetected-limit"] / "run.log"
    assert postmortem.analyze(str(path)).to_json() == postmortem.analyze([path]).to_json()


def test_limit_and_budget_of_the_caller_stand_above_all_evidence():
    found = postmortem.analyze(INCIDENT / "run.log", limit=400 * GIB, budget=350 * GIB)
    assert (found.arithmetic.limit.best, found.arithmetic.budget.best) == (400 * GIB, 350 * GIB)
    assert found.arithmetic.limit.lines == ("--limit",)


def test_evidence_outside_of_the_window_is_left_out():
    log = BUNDLED["misdetected-limit"] / "run.log"
    noon = dt.datetime(2026, 3, 19, 2, 16, 56, tzinfo=dt.UTC)
    whole, early, late = (postmortem.analyze(log, **window) for window in ({}, {"until": noon}, {"since": noon}))
    assert early.timeline["time"].max() <= noon < whole.timeline["time"].max()
    assert late.timeline["time"].min() >= noon > whole.timeline["time"].min()


def test_a_window_is_of_true_times_also_for_samples_whose_clock_names_no_day():
    noon = dt.datetime(2026, 3, 19, 2, 20, tzinfo=dt.UTC)
    found = postmortem.analyze([INCIDENT / "run.log", INCIDENT / "mem.txt"], since=noon)
    charged = found.timeline.drop_nulls("charged")["time"]
    assert noon <= charged.min() < noon + dt.timedelta(seconds=10)


@pytest.mark.parametrize(
    ("paths", "error"),
    [
        ([], postmortem.UsageError),
        (["no-such.log"], postmortem.NotFoundError),
        ([__file__.replace("test_library", "runs")], postmortem.NoEvidenceError),
    ],
)
def test_errors_are_of_the_documented_kinds(paths, error):
    with pytest.raises(error):
        postmortem.analyze(paths)
    assert issubclass(error, postmortem.PostmortemError)


def test_a_zone_that_is_none_is_wrong_use():
    with pytest.raises(postmortem.UsageError):
        postmortem.analyze(INCIDENT / "mem.txt", tz="CET")
