"""`guard` with real deaths: what is retried, with what budget, and what comes through."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kills import lab

GUARD = [sys.executable, "-m", "postmortem", "guard", "--budget"]
HERE = Path(__file__).parent
NEEDS_BUDGET = ("--set-env", "BUDGET={budget}")
SILENT = """
import mmap, os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
kept = []
for number in range(int(sys.argv[2]) >> 22):
    kept.append(mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    kept[-1][::4096] = b"1" * 1024
    time.sleep(0.01)
"""


@pytest.fixture
def group():
    try:
        with lab.alone(), lab.group(200 * lab.MIB) as made:
            yield made
    except lab.NoLabError as reason:
        pytest.skip(str(reason))


def _guard(tmp_path: Path, budget: str, *rest: str) -> subprocess.CompletedProcess[bytes]:
    command = [*GUARD, budget, "-o", str(tmp_path / "attempts"), *rest]
    return subprocess.run(command, check=False, capture_output=True, timeout=120)


def _told(tmp_path: Path) -> dict:
    return json.loads((tmp_path / "attempts" / "guard.postmortem.json").read_bytes())


def _budgets(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    return re.findall(r"^ +\d +([\d.,]+ [KMG]iB)", done.stderr.decode(), re.MULTILINE)


def _mill(group: lab.Group) -> list[str]:
    return ["--", sys.executable, "-S", str(HERE / "mill.py"), str(group.path / "cgroup.procs")]


@pytest.mark.cgroup
def test_the_post_mortem_finds_in_two_attempts_what_the_ladder_needs_three_for(tmp_path, group):
    options = ("--profile", str(HERE / "mill.toml"), "--set", "--budget={budget}")
    (tmp_path / "by post-mortem").mkdir()
    done = _guard(tmp_path / "by post-mortem", "180MiB", *options, *_mill(group))
    assert done.returncode == 0, done.stderr.decode()
    told = _told(tmp_path / "by post-mortem")
    assert [one["ended"] for one in told["attempts"]] == ["memory", "finished"]
    assert 135 * lab.MIB <= told["budget"] <= 160 * lab.MIB  # at most a quarter lower; above, the mill dies

    (tmp_path / "by ladder").mkdir()
    done = _guard(tmp_path / "by ladder", "180MiB", "--step", "10%", *options, *_mill(group))
    assert done.returncode == 0, done.stderr.decode()
    ladder = _told(tmp_path / "by ladder")
    assert [one["ended"] for one in ladder["attempts"]] == ["memory", "memory", "finished"]
    assert ladder["budget"] < told["budget"]


@pytest.mark.cgroup
def test_the_last_report_has_budget_peak_and_throughput_of_each_attempt_also_of_the_survivor(tmp_path, group):
    options = ("--profile", str(HERE / "mill.toml"), "--set", "--budget={budget}")
    done = _guard(tmp_path, "180MiB", *options, *_mill(group))
    first, last = _told(tmp_path)["attempts"]
    assert (first["jobs_done"], first["exit_code"]) == (0, 137)
    said = (tmp_path / "attempts" / "attempt-2" / "run.log").read_text()
    assert last["jobs_done"] == len(re.findall(r"job \d+ ground", said)) > 0
    assert last["jobs_per_hour"] == pytest.approx(last["jobs_done"] * 3600 / last["seconds"])
    assert first["limit"] == 200 * lab.MIB
    assert 0.9 * first["limit"] <= first["peak"] <= first["limit"]
    # What the mill held, and its interpreter.
    held = last["budget"] // (4 * lab.MIB) * 4 * lab.MIB + 40 * lab.MIB
    assert held - 4 * lab.MIB <= last["peak"] <= held + 16 * lab.MIB
    page = (tmp_path / "attempts" / "guard.postmortem.html").read_text()
    for one in (first, last):
        assert f'<a href="{one["page"]}">' in page
        assert (tmp_path / "attempts" / one["page"]).is_file()
    assert f"{last['budget']:,} bytes" in page
    assert f"Budget for the configuration: {last['budget']} bytes" in done.stderr.decode()


@pytest.mark.cgroup
def test_used_up_retries_give_the_last_deaths_code_and_put_the_file_back(tmp_path, group):
    config = tmp_path / "mill.ini"
    config.write_text("[memory]\nbudget = 300MiB ; by hand\n")
    options = ("--set", "--budget={budget}", "--set-file", f"{config}:memory.budget={{budget_mib}}MiB")
    done = _guard(tmp_path, "300MiB", *options, "--step", "2%", "--retries", "1", *_mill(group))
    assert done.returncode == 137
    assert _budgets(done) == ["300 MiB", "294 MiB"]
    assert b"Each of 2 budgets died of memory" in done.stderr
    assert config.read_text() == "[memory]\nbudget = 300MiB ; by hand\n"


@pytest.mark.cgroup
def test_a_daemon_that_logs_nothing_is_known_to_have_died_of_memory_and_tried_with_a_tenth_less(tmp_path, group):
    daemon = [sys.executable, "-S", "-c", SILENT, str(group.path / "cgroup.procs"), "{budget}"]
    done = _guard(tmp_path, "200MiB", "--", *daemon)
    assert done.returncode == 0, done.stderr.decode()
    assert _budgets(done) == ["200 MiB", "180 MiB"]


@pytest.mark.cgroup
def test_a_neighbours_death_of_memory_is_not_the_commands(tmp_path, group):
    # The kernel kills a neighbour in the command's cgroup; the command is killed by somebody's SIGKILL a second later.
    enter = f"echo $$ > {group.path}/cgroup.procs"
    greedy = f"sleep 1; {enter}; exec {sys.executable} -S -c \"kept = [b'x' * (8 << 20) for _ in range(100)]\""
    neighbour = subprocess.Popen(["sh", "-c", greedy])
    done = _guard(tmp_path, "1GiB", *NEEDS_BUDGET, "--", "sh", "-c", f"{enter}; sleep 2.5; kill -9 $$")
    assert neighbour.wait(timeout=30) == -9
    assert done.returncode == 137
    log = tmp_path / "attempts" / "attempt-1" / "dmesg.txt"
    if "oom" not in (log.read_text() if log.exists() else ""):
        pytest.skip("the kernel's log, which names whom it killed, may not be read here")
    assert len(_budgets(done)) == 1, done.stderr.decode()


@pytest.mark.parametrize(
    ("script", "code", "ended"),
    [
        ("exit 0", 0, "finished"),
        ("exit 1", 1, "exit code"),
        ("kill -15 $$", 143, "signal"),
        ("kill -11 $$", 139, "signal"),
        ("kill -9 $$", 137, "signal"),
        ("echo 'memory allocation of 99999 bytes failed' >&2; exit 101", 101, "exit code"),
        ("echo \"thread 'main' panicked at 'out of memory', a.rs:1\" >&2; kill -6 $$", 134, "signal"),
    ],
    ids=["0", "1", "143", "139", "137 without evidence of memory", "a panic", "an abort"],
)
def test_what_is_no_memory_death_is_not_retried_and_its_code_comes_out(tmp_path, script, code, ended):
    done = _guard(tmp_path, "1GiB", *NEEDS_BUDGET, "--", "sh", "-c", script)
    assert done.returncode == code
    assert [(one["ended"], one["exit_code"]) for one in _told(tmp_path)["attempts"]] == [(ended, code)]


def test_the_page_shows_what_the_command_holds_and_keeps_its_secrets(tmp_path):
    hostile = "echo '<script>alert(1)</script>'"
    done = _guard(tmp_path, "1GiB", *NEEDS_BUDGET, "--", "sh", "-c", hostile, "--token", "hunter2hunter2")
    assert done.returncode == 0
    for name in ("guard.postmortem.html", "guard.postmortem.json"):
        assert "hunter2" not in (tmp_path / "attempts" / name).read_text()
    page = (tmp_path / "attempts" / "guard.postmortem.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "script-src ;" in page  # the page's policy allows none


def test_only_the_commands_own_output_is_on_stdout(tmp_path):
    done = _guard(tmp_path, "2GiB", "--set-env", "BUDGET={budget_gib}", "--", "sh", "-c", "echo $BUDGET")
    assert done.stdout == b"2\n"


def test_the_probes_result_is_the_first_budget_and_stays_as_evidence(tmp_path):
    with_limit = 'ulimit -v 1500000; exec "$@"'  # so that the probe does not take the machine's whole memory
    command = [*GUARD, "probe", "-o", str(tmp_path / "attempts"), "--", "echo", "{budget}"]
    done = subprocess.run(["sh", "-c", with_limit, "sh", *command], check=False, capture_output=True, timeout=120)
    if b"nothing is left beyond the reserve" in done.stderr:
        pytest.skip("5 % of this machine's memory is more than the probe may take here")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "attempts" / "attempt-1" / "probe.json").read_bytes())
    assert int(done.stdout) == found["budget"] == min(found["headroom"], found["usable"]) - found["reserve"]
