"""Kills that we cause: what the analysis says of each, against what the program itself had allocated."""

import sys
from pathlib import Path

import pytest

import postmortem

sys.path.insert(0, str(Path(__file__).parent))  # for lab
import lab

MIB = 1 << 20
CLOSE = 0.03

pytestmark = pytest.mark.cgroup


@pytest.fixture(scope="module", autouse=True)
def _possible():
    try:
        lab.parent()
    except lab.NoLabError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    return lambda scenario, **options: lab.run(folder, scenario, **options)


def part(found, name):
    return next((p for p in found.arithmetic.parts if p.part == name), None)


def split(found, name):
    return next((p.split[name].best for p in found.arithmetic.parts if name in p.split), 0)


def assert_killed_by_its_limit(found, made):
    assert made.returncode == -9
    assert (found.ending.how, found.ending.certainty) == ("cgroup_limit", "proven")
    assert found.ending.exit_code == 137
    assert found.arithmetic.limit.best == made.limit


def close_to(size, limit):
    """Within 3 % of the limit: 3 % of a part that is nearly nothing would be less than a page."""
    return pytest.approx(size, abs=CLOSE * limit)


def test_a_pool_of_shared_memory_that_the_budget_does_not_count_is_the_cause(run):
    made = run("untracked_shared_memory", limit_mib=256)
    found = postmortem.analyze(made.folder)
    assert_killed_by_its_limit(found, made)
    assert found.verdict.cause == "untracked_pinned"
    assert found.verdict.confidence >= 0.7
    assert found.arithmetic.budget.best == 200 * MIB
    assert part(found, "pinned_uncovered").actual.best == close_to(made.truth["shmem"], made.limit)
    assert part(found, "working_set").actual.best == close_to(made.truth["anon"], made.limit)


def test_page_tables_are_told_from_memory(run):
    made = run("page_tables", limit_mib=128)
    found = postmortem.analyze(made.folder)
    assert_killed_by_its_limit(found, made)
    assert found.verdict.cause == "overhead"
    kernel = part(found, "kernel")
    assert kernel.actual.best == close_to(made.truth["pagetables"], made.limit)
    if made.kernel_log:
        assert split(found, "page tables") == close_to(made.truth["pagetables"], made.limit)
    assert part(found, "anonymous").actual.best < CLOSE * made.limit


def test_memory_that_each_job_loses_is_a_leak(run, tmp_path):
    profile = tmp_path / "mill.toml"
    profile.write_text(lab.MILL)
    made = run("leak", limit_mib=256)
    found = postmortem.analyze(made.folder, profile=profile)
    assert_killed_by_its_limit(found, made)
    assert found.verdict.cause == "leak"
    assert part(found, "anonymous").actual.best == close_to(made.truth["anon"], made.limit)


def test_without_its_log_a_leak_is_not_called_anything_else(run):
    made = run("leak", limit_mib=160)
    (made.folder / "run.log").unlink()
    found = postmortem.analyze(made.folder)
    assert_killed_by_its_limit(found, made)
    assert found.verdict.cause in ("leak", "inconclusive")
    assert part(found, "anonymous").actual.best == close_to(made.truth["anon"], made.limit)


def test_files_in_a_tmpfs_are_kept_apart_from_a_pinned_pool(run):
    file = Path("/dev/shm") / "postmortem-test-tmpfs"
    if not file.parent.is_dir():
        pytest.skip("no /dev/shm")
    try:
        made = run("tmpfs", limit_mib=256, path=str(file))
    finally:
        file.unlink(missing_ok=True)
    found = postmortem.analyze(made.folder)
    assert_killed_by_its_limit(found, made)
    assert found.verdict.cause == "overhead"
    assert split(found, "files in tmpfs, mapped by no process") == close_to(made.truth["tmpfs"], made.limit)
    assert part(found, "anonymous").actual.best == close_to(made.truth["anon"], made.limit)


def test_a_neighbour_in_the_same_cgroup_is_the_cause(run):
    made = run("beside_a_neighbour", limit_mib=256, beside="neighbour")
    if not made.kernel_log:
        pytest.skip("the kernel's log cannot be read, and only its task table tells processes apart")
    found = postmortem.analyze(made.folder)
    assert_killed_by_its_limit(found, made)
    assert found.verdict.cause == "neighbour"
    assert part(found, "neighbour").actual.best == close_to(made.truth["neighbour"], made.limit)
    assert part(found, "anonymous").actual.best == close_to(made.truth["anon"], made.limit)


def test_page_cache_at_the_limit_is_not_blamed(run, tmp_path):
    file = tmp_path / "large"
    with file.open("wb") as sparse:
        sparse.truncate(700 * MIB)
    made = run("page_cache", limit_mib=256, path=str(file))
    assert made.returncode == 0
    found = postmortem.analyze(made.folder)
    assert found.ending.how in ("finished", "running", "unknown")
    assert found.verdict.cause == "not_memory"
    assert part(found, "page_cache").actual.best > 100 * MIB
    assert part(found, "page_cache").excess.best == 0
    assert part(found, "anonymous").actual.best == close_to(made.truth["anon"], made.limit)
