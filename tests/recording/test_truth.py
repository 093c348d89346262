"""Record, kill, analyse: what comes out against what the program itself knew of its memory.

The programs are those of tests/kills/victim.py. They enter a real cgroup, take memory of one kind until the kernel kills
them, and write down how much they had. Bounds: 3 % of the limit, as a part that is nearly nothing has no per cent.
"""

import collections
import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kills import lab

import postmortem

pytestmark = pytest.mark.cgroup
MIB = lab.MIB
CLOSE = 0.03


@pytest.fixture
def recorded(tmp_path):
    """Runs a scenario of victim.py under `record` in a cgroup; gives the run directory and what the program had."""

    def run(scenario: str, *, limit_mib: int, beside: str | None = None, silent: bool = False):
        try:
            with lab.alone(), lab.group(limit_mib * MIB) as group:
                helper = _start_beside(group.path, beside, tmp_path / "beside") if beside else None
                _record(tmp_path, group.path, scenario, silent=silent)
                if helper:
                    helper.kill()
                    helper.wait(timeout=10)
        except lab.NoLabError as reason:
            pytest.skip(str(reason))
        return tmp_path / "run", _said(tmp_path / "truth") | (_said(tmp_path / "beside") if beside else {})

    return run


def _victim(group: Path, scenario: str, truth: Path) -> str:
    return f"exec {sys.executable} -S {lab.VICTIM} {group}/cgroup.procs 9 {scenario} 9> {truth}"


def _record(folder: Path, group: Path, scenario: str, *, silent: bool) -> None:
    shell = _victim(group, scenario, folder / "truth") + (" > /dev/null" if silent else "")
    command = [sys.executable, "-m", "postmortem", "record", "--no-report", "-o", str(folder / "run"), "--"]
    done = subprocess.run([*command, "sh", "-c", shell], check=False, capture_output=True, timeout=90)
    assert done.returncode == 137, done.stderr


def _start_beside(group: Path, scenario: str, truth: Path) -> subprocess.Popen[bytes]:
    helper = subprocess.Popen(["sh", "-c", _victim(group, scenario, truth)])
    for _ in range(400):
        if truth.exists() and "ready" in truth.read_text():
            return helper
        time.sleep(0.02)
    helper.kill()
    return pytest.fail("the neighbour did not get ready")


def _said(file: Path) -> dict[str, int]:
    found: collections.Counter[str] = collections.Counter()
    for line in file.read_text().splitlines():
        kind, _, size = line.partition(" ")
        with contextlib.suppress(ValueError):  # the kill can cut the last line
            found[kind] += int(size)
    return dict(found)


def _part(found: postmortem.Postmortem, name: str) -> int:
    return next((part.actual.best for part in found.arithmetic.parts if part.part == name), 0)


def _close(size: int, limit_mib: int):
    return pytest.approx(size, abs=CLOSE * limit_mib * MIB)


def _killed_by(found: postmortem.Postmortem, limit_mib: int) -> None:
    assert (found.ending.how, found.ending.certainty) == ("cgroup_limit", "proven")
    assert (found.ending.exit_code, found.ending.signal) == (137, 9)
    assert found.arithmetic.limit is not None
    assert found.arithmetic.limit.best == limit_mib * MIB


def _last_sample_s(run: Path) -> float:
    """Seconds between the last sample with the program alive and the death, which is the end that `record` wrote."""
    header, *rows = [line.split(",") for line in (run / "memory.csv").read_text().splitlines()]
    kills, times = header.index("oom_kill"), header.index("time")
    alive = [float(row[times]) for row in rows if row[kills] == "0"]
    killed = [float(row[times]) for row in rows if row[kills] != "0"]
    return killed[0] - alive[-1]


def test_shared_memory_that_no_budget_counts(recorded):
    run, truth = recorded("untracked_shared_memory", limit_mib=256)
    found = postmortem.analyze(run)
    _killed_by(found, 256)
    assert found.verdict.cause == "untracked_pinned"
    assert _part(found, "pinned_uncovered") == _close(truth["shmem"], 256)
    assert _part(found, "working_set") == _close(truth["anon"], 256)
    assert _last_sample_s(run) <= 0.2


def test_shared_memory_of_a_program_that_logs_nothing(recorded):
    run, truth = recorded("untracked_shared_memory", limit_mib=256, silent=True)
    found = postmortem.analyze(run)
    _killed_by(found, 256)
    assert found.verdict.cause == "untracked_pinned"
    assert found.verdict.confidence <= 0.5  # any shared mapping looks the same
    assert _part(found, "shared_memory") == _close(truth["shmem"], 256)
    assert _part(found, "anonymous") == _close(truth["anon"], 256)


def test_page_tables(recorded):
    run, truth = recorded("page_tables", limit_mib=128, silent=True)
    found = postmortem.analyze(run)
    _killed_by(found, 128)
    assert found.verdict.cause == "overhead"
    assert _part(found, "kernel") == _close(truth["pagetables"], 128)
    assert _part(found, "anonymous") < CLOSE * 128 * MIB
    assert _last_sample_s(run) <= 0.2


def test_memory_that_each_job_loses(recorded, tmp_path):
    profile = tmp_path / "mill.toml"
    profile.write_text(lab.MILL)
    run, truth = recorded("leak", limit_mib=256)
    found = postmortem.analyze(run, profile=profile)
    _killed_by(found, 256)
    assert found.verdict.cause == "leak"
    assert _part(found, "anonymous") == _close(truth["anon"], 256)
    assert _last_sample_s(run) <= 0.2


def test_growth_without_a_log_is_measured_but_not_called_anything_that_it_is_not(recorded):
    run, truth = recorded("leak", limit_mib=160, silent=True)
    found = postmortem.analyze(run)
    _killed_by(found, 160)
    assert found.verdict.cause in ("leak", "inconclusive")  # a working set that grows looks the same
    assert _part(found, "anonymous") == _close(truth["anon"], 160)


def test_a_neighbour_in_the_same_cgroup(recorded):
    run, truth = recorded("beside_a_neighbour", limit_mib=256, beside="neighbour", silent=True)
    if not (run / "dmesg.txt").exists():
        pytest.skip("the kernel's log cannot be read, and only its task table tells processes apart")
    found = postmortem.analyze(run)
    _killed_by(found, 256)
    assert found.verdict.cause == "neighbour"
    assert _part(found, "neighbour") == _close(truth["neighbour"], 256)
    assert _part(found, "anonymous") == _close(truth["anon"], 256)
