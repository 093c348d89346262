"""`probe` in a real cgroup of 512 MiB: what it finds, and that it hurts nobody."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from kills import lab

import postmortem

LIMIT = 512 * lab.MIB
PROBE = [sys.executable, "-m", "postmortem", "probe", "--json"]
SACRIFICE = """
import mmap, os
kept = []
while True:
    kept.append(mmap.mmap(-1, 1 << 20, flags=FLAGS))
    for offset in range(0, 1 << 20, 4096):
        kept[-1][offset] = 1
    os.write(1, b".")
"""
FLAGS = {"anon": 0x22, "shared": 0x21}  # MAP_ANONYMOUS with MAP_PRIVATE and MAP_SHARED


@pytest.fixture
def group():
    try:
        with lab.alone(), lab.group(LIMIT) as made:
            yield made
    except lab.NoLabError as reason:
        pytest.skip(str(reason))


def _inside(group: lab.Group, command: list[str]) -> subprocess.CompletedProcess[bytes]:
    enter = ["sh", "-c", 'echo 0 > "$0"; exec "$@"', str(group.path / "cgroup.procs"), *command]
    return subprocess.run(enter, check=False, capture_output=True, timeout=60)


def _oom_kills(group: lab.Group) -> int:
    text = (group.path / ("memory.oom_control" if group.version == 1 else "memory.events")).read_text()
    return int(text.split("oom_kill ")[1].split()[0])


@pytest.mark.cgroup
@pytest.mark.parametrize("kind", ["anon", "shared"])
def test_it_allocates_nearly_what_a_sacrificial_process_could_and_kills_nobody(group, kind):
    done = _inside(group, [*PROBE, "--kind", kind])
    assert done.returncode == 0
    (measured,) = json.loads(done.stdout)["measured"]
    assert (_oom_kills(group), measured["killed"]) == (0, False)
    assert (group.path / "cgroup.procs").read_text() == ""
    sacrificed = _inside(group, [sys.executable, "-S", "-c", SACRIFICE.replace("FLAGS", str(FLAGS[kind]))])
    assert sacrificed.returncode == -9
    # The probe's own interpreter, and it alone, is larger than the victim's.
    interpreter = json.loads(done.stdout)["used"]
    assert measured["allocatable"] >= 0.98 * (len(sacrificed.stdout) * lab.MIB - interpreter)


@pytest.mark.cgroup
def test_a_dry_run_finds_the_limit_and_allocates_nothing(group):
    found = json.loads(_inside(group, [*PROBE, "--dry-run"]).stdout)
    assert (found["limit"], found["limited_by"], found["measured"]) == (LIMIT, str(group.path), [])
    assert found["budget"] == found["headroom"] - found["reserve"]


@pytest.mark.cgroup
def test_the_overhead_is_small_and_holds_the_kernels_memory(group):
    (measured,) = json.loads(_inside(group, [*PROBE, "--kind", "shared"]).stdout)["measured"]
    assert measured["allocatable"] // 512 <= measured["overhead"] <= 0.03 * LIMIT
    assert measured["kernel"] is None or measured["kernel"] <= measured["overhead"] + lab.MIB


@pytest.mark.cgroup
def test_the_result_is_evidence_that_analyze_reads(group, tmp_path):
    file = tmp_path / "probe.log"
    _inside(group, [*PROBE, "--evidence", str(file)])
    found = postmortem.analyze(file, budget=LIMIT // 2)
    assert [(one.unmatched, one.skipped) for one in found.result.sources] == [(0, 0)]


def test_pinned_memory_is_refused_with_the_reason():
    done = subprocess.run([*PROBE, "--kind", "pinned"], check=False, capture_output=True, timeout=60)
    assert done.returncode == 2
    assert b"--kind shared" in done.stderr
    assert b"Traceback" not in done.stderr


def test_an_evidence_file_that_cannot_be_written_is_said(tmp_path):
    target = Path(tmp_path / "no" / "probe.log")
    done = subprocess.run(
        [*PROBE, "--dry-run", "--evidence", str(target)], check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 2
