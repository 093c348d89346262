"""`probe` in a real cgroup of 512 MiB: what it finds, what the kernel counted meanwhile, and that it hurts nobody."""

import json
import subprocess
import sys
import time
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
BYSTANDER = "import time; kept = bytearray(b'x' * (60 << 20)); print('ready', flush=True); time.sleep(60)"
NO_CAGE = """
import sys
from postmortem.probing import cage
cage._make = lambda parent, limit: cage.Cage(None, "forbidden here")
from postmortem.cli.app import run
sys.exit(run(["probe", "--json", "--to-the-kill"]))
"""


@pytest.fixture
def group():
    try:
        with lab.alone(), lab.group(LIMIT) as made:
            yield made
    except lab.NoLabError as reason:
        pytest.skip(str(reason))


def _entering(group: lab.Group, command: list[str]) -> list[str]:
    return ["sh", "-c", 'echo 0 > "$0"; exec "$@"', str(group.path / "cgroup.procs"), *command]


def _inside(group: lab.Group, command: list[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(_entering(group, command), check=False, capture_output=True, timeout=60)


def _measured(group: lab.Group, *options: str) -> dict:
    done = _inside(group, [*PROBE, *options])
    assert done.returncode == 0, done.stderr
    (measured,) = json.loads(done.stdout)["measured"]
    return measured


def _oom_kills(group: lab.Group) -> int:
    text = (group.path / ("memory.oom_control" if group.version == 1 else "memory.events")).read_text()
    return int(text.split("oom_kill ")[1].split()[0])


def _held(group: lab.Group) -> int:
    """Anonymous and shared memory that is charged now: what a process or a segment that stayed would hold."""
    stat = dict(line.split() for line in (group.path / "memory.stat").read_text().splitlines())
    return int(stat["rss" if group.version == 1 else "anon"]) + int(stat["shmem"])


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
@pytest.mark.parametrize("kind", ["anon", "shared"])
def test_stopping_short_gives_up_less_than_two_per_cent_against_going_to_the_kill(group, kind):
    short, killed = _measured(group, "--kind", kind), _measured(group, "--kind", kind, "--to-the-kill")
    assert (short["stopped"], killed["stopped"]) == ("short_of_limit", "killed")
    assert 0.98 * killed["allocatable"] <= short["allocatable"] <= killed["allocatable"] + 2 * lab.MIB


@pytest.mark.cgroup
@pytest.mark.parametrize("options", [(), ("--to-the-kill",)], ids=["short of the limit", "to the kill"])
def test_it_kills_no_bystander_and_leaves_nothing_behind(group, options):
    bystander = subprocess.Popen(_entering(group, [sys.executable, "-S", "-c", BYSTANDER]), stdout=subprocess.PIPE)
    try:
        assert bystander.stdout is not None
        assert bystander.stdout.readline() == b"ready\n"
        held = _held(group)
        measured = _measured(group, "--kind", "shared", *options)
        assert measured["allocatable"] < LIMIT - (60 << 20)
        assert bystander.poll() is None
        assert (group.path / "cgroup.procs").read_text().split() == [str(bystander.pid)]
        assert [one for one in group.path.iterdir() if one.is_dir()] == []
        assert _held(group) == pytest.approx(held, abs=lab.MIB)
    finally:
        bystander.kill()
        bystander.communicate()


@pytest.mark.cgroup
def test_to_the_kill_says_what_it_does_and_dies_in_a_cgroup_of_its_own(group):
    done = _inside(group, [*PROBE, "--to-the-kill"])
    (measured,) = json.loads(done.stdout)["measured"]
    assert b"in a cgroup of its own" in done.stderr
    if group.version == 2:
        pytest.skip("version 2 makes no child cgroup beside processes")
    assert Path(measured["killed_in"]).parent == group.path
    assert _oom_kills(group) == 0


@pytest.mark.cgroup
def test_without_a_cgroup_of_its_own_the_child_is_the_first_victim(group):
    bystander = subprocess.Popen(_entering(group, [sys.executable, "-S", "-c", BYSTANDER]), stdout=subprocess.PIPE)
    try:
        assert bystander.stdout is not None
        assert bystander.stdout.readline() == b"ready\n"
        done = _inside(group, [sys.executable, "-c", NO_CAGE])
        assert done.returncode == 0, done.stderr
        (measured,) = json.loads(done.stdout)["measured"]
        assert (measured["stopped"], measured["killed_in"]) == ("killed", str(group.path))
        assert b"forbidden here" in done.stderr
        assert b"oom_score_adj 1000" in done.stderr
        assert _oom_kills(group) == 1
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.communicate()


@pytest.mark.cgroup
@pytest.mark.parametrize(("kind", "counter"), [("anon", ("rss", "anon")), ("shared", ("shmem", "shmem"))])
def test_its_classes_and_its_overhead_are_those_that_the_kernel_counted(group, kind, counter):
    running = subprocess.Popen(_entering(group, [*PROBE, "--kind", kind]), stdout=subprocess.PIPE)
    name, largest, used = counter[group.version - 1], 0, 0
    usage = group.path / ("memory.usage_in_bytes" if group.version == 1 else "memory.current")
    while running.poll() is None:
        stat = dict(line.split() for line in (group.path / "memory.stat").read_text().splitlines())
        largest, used = max(largest, int(stat[name])), max(used, int(usage.read_text()))
        time.sleep(0.002)
    found = json.loads(running.communicate()[0])
    (measured,) = found["measured"]
    charged = measured["charged_anon" if kind == "anon" else "charged_shared"]
    other = measured["charged_shared" if kind == "anon" else "charged_anon"]
    tenth = 0.01 * LIMIT
    assert charged == pytest.approx(measured["allocatable"], abs=tenth)
    assert other <= tenth
    # The probe's interpreter has some anonymous memory of its own.
    assert largest == pytest.approx(measured["allocatable"], abs=2 * tenth + found["used"] * (kind == "anon"))
    assert used == pytest.approx(found["used"] + measured["allocatable"] + measured["overhead"], abs=tenth)


@pytest.mark.cgroup
def test_a_dry_run_finds_the_limit_and_allocates_nothing(group):
    found = json.loads(_inside(group, [*PROBE, "--dry-run"]).stdout)
    assert (found["limit"], found["limited_by"], found["measured"]) == (LIMIT, str(group.path), [])
    assert found["budget"] == found["headroom"] - found["reserve"]


@pytest.mark.cgroup
def test_the_overhead_is_small_and_holds_the_kernels_memory(group):
    measured = _measured(group, "--kind", "shared")
    assert measured["allocatable"] // 512 <= measured["overhead"] <= 0.03 * LIMIT
    if measured["kernel"] is not None:
        # One page table entry of 8 bytes for each 4 KiB, and whatever else the kernel needs.
        assert measured["allocatable"] // 512 <= measured["kernel"] <= measured["overhead"] + lab.MIB
        assert 2 * lab.MIB <= measured["kernel_per_gib"] <= 16 * lab.MIB


@pytest.mark.cgroup
def test_the_line_is_evidence_that_analyze_reads(group, tmp_path):
    file = tmp_path / "probe.log"
    _inside(group, [*PROBE, "--evidence", str(file)])
    found = postmortem.analyze(file, budget=LIMIT // 2)
    assert [(one.unmatched, one.skipped) for one in found.result.sources] == [(0, 0)]


@pytest.mark.cgroup
def test_the_object_is_evidence_of_the_limit(group, tmp_path):
    (tmp_path / "probe.json").write_bytes(_inside(group, [*PROBE, "--dry-run"]).stdout)
    found = postmortem.analyze(tmp_path)
    assert [(one.parsers, one.unmatched, one.skipped) for one in found.result.sources] == [(["probe"], 0, 0)]
    assert found.arithmetic.limit is not None
    assert found.arithmetic.limit.best == LIMIT
