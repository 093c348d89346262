"""`guard` with real deaths: what is retried, with what budget, and what comes through."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from kills import lab

from postmortem.errors import UsageError
from postmortem.guarding.budget import BudgetPlace, fill
from postmortem.guarding.ladder import died_of_memory, next_budget, safe_budget

GIB = 1 << 30
GUARD = [sys.executable, "-m", "postmortem", "guard", "--budget"]

# A daemon that uses its budget and 60 MiB of shared memory that it does not count.
DAEMON = """
import datetime, mmap, os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
budget = int(sys.argv[2].split("=")[1])
def say(text):
    print(datetime.datetime.now(datetime.timezone.utc).strftime("time=%Y-%m-%dT%H:%M:%S.%fZ level=info"), text, flush=True)
say(f"msg=mem.init budget_mb={budget >> 20} total_ram_mb=24105")
kept = []
def take(kind, size):
    kept.append(mmap.mmap(-1, size, flags=kind | mmap.MAP_ANONYMOUS))
    for at in range(0, size, 4096):
        kept[-1][at] = 1
for number in range(15):
    take(mmap.MAP_SHARED, 4 << 20)
    time.sleep(0.02)
for number in range(budget >> 22):
    take(mmap.MAP_PRIVATE, 4 << 20)
    say(f"msg=job.admitted job={number} budget_used_mb={4 * (number + 1)}")
    time.sleep(0.02)
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
    return subprocess.run(command, check=False, capture_output=True, timeout=90)


def _budgets(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    return re.findall(r"^ +\d +([\d.,]+ [MG]iB)", done.stderr.decode(), re.MULTILINE)


@pytest.mark.cgroup
def test_a_death_by_the_limit_is_retried_with_less_until_it_survives(tmp_path, group):
    daemon = [sys.executable, "-S", "-c", DAEMON, str(group.path / "cgroup.procs")]
    done = _guard(tmp_path, "188MiB", "--set", "--budget={budget}", "--max-step", "40%", "--", *daemon)
    assert done.returncode == 0, done.stderr.decode()
    assert len(_budgets(done)) <= 2  # a ladder of 10 % needs four
    assert b"budget for the configuration" in done.stderr


@pytest.mark.cgroup
def test_used_up_retries_give_the_last_deaths_code(tmp_path, group):
    daemon = [sys.executable, "-S", "-c", DAEMON, str(group.path / "cgroup.procs")]
    options = ("--set", "--budget={budget}", "--step", "2%", "--retries", "1")
    done = _guard(tmp_path, "300MiB", *options, "--", *daemon)
    assert done.returncode == 137
    assert len(_budgets(done)) == 2
    assert b"every budget died of memory" in done.stderr


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 1", 1), ("kill -15 $$", 143), ("kill -11 $$", 139)])
def test_what_is_no_memory_death_is_not_retried_and_its_code_comes_out(tmp_path, script, code):
    done = _guard(tmp_path, "1GiB", "--set-env", "BUDGET={budget}", "--", "sh", "-c", script)
    assert done.returncode == code
    assert len(_budgets(done)) == 1


def test_a_sigkill_without_evidence_of_memory_is_not_retried(tmp_path):
    done = _guard(tmp_path, "1GiB", "--set-env", "BUDGET={budget}", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137
    assert len(_budgets(done)) == 1


def test_a_panic_is_not_retried_even_when_it_speaks_of_memory(tmp_path):
    script = "echo 'memory allocation of 99999 bytes failed' >&2; exit 101"
    done = _guard(tmp_path, "1GiB", "--set-env", "BUDGET={budget}", "--", "sh", "-c", script)
    assert done.returncode == 101
    assert len(_budgets(done)) == 1


def test_only_the_commands_own_output_is_on_stdout(tmp_path):
    done = _guard(tmp_path, "2GiB", "--set-env", "BUDGET={budget_gib}", "--", "sh", "-c", "echo $BUDGET")
    assert done.stdout == b"2\n"


def test_a_budget_that_reaches_nobody_is_wrong_use(tmp_path):
    done = _guard(tmp_path, "1GiB", "--", "true")
    assert done.returncode == 2
    assert b"--set" in done.stderr


def test_the_next_budget_is_the_safe_one_within_its_bounds():
    assert next_budget(100 * GIB, 90 * GIB, step=None, max_step=0.25) == 90 * GIB
    assert next_budget(100 * GIB, 99 * GIB, step=None, max_step=0.25) == 98 * GIB
    assert next_budget(100 * GIB, 10 * GIB, step=None, max_step=0.25) == 75 * GIB
    assert next_budget(100 * GIB, None, step=None, max_step=0.25) == 90 * GIB
    assert next_budget(100 * GIB, 50 * GIB, step=0.1, max_step=0.25) == 90 * GIB


def test_without_a_safe_budget_the_arithmetic_at_the_death_gives_one():
    arithmetic = {"limit": {"best": 200}, "unreclaimable": {"best": 200}, "reserved": {"best": 136}}
    assert safe_budget({"survival": {"safe_budget": None}, "arithmetic": arithmetic}) == 200 - 64 - 4


def test_a_kill_counted_by_the_kernel_is_a_memory_death_only_when_the_command_was_killed():
    assert died_of_memory(-9, 1, None)
    assert not died_of_memory(-9, 0, None)
    assert not died_of_memory(1, 1, {"ending": {"how": "cgroup_limit"}})


def test_the_budget_can_be_written_in_bytes_and_whole_gib():
    assert (
        fill("{budget} {budget_mib}MiB {budget_gib}G {other}", 331 * GIB)
        == f"{331 * GIB} {331 << 10}MiB 331G {{other}}"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '[memory]\ntotal_budget = "331GiB"  # see 12\nx = 1\n',
            '[memory]\ntotal_budget = "298GiB"  # see 12\nx = 1\n',
        ),
        ("memory:\n  total_budget: 331GiB\n", "memory:\n  total_budget: 298GiB\n"),
        ('{\n  "total_budget": "331GiB",\n  "x": 1\n}\n', '{\n  "total_budget": "298GiB",\n  "x": 1\n}\n'),
    ],
)
def test_a_line_in_a_toml_yaml_or_json_file_is_replaced_and_all_else_stays(tmp_path, before, after):
    file = tmp_path / "config"
    file.write_text(before)
    BudgetPlace(file=file, file_key="total_budget", file_template="{budget_gib}GiB").write_file(298 * GIB)
    assert file.read_text() == after


def test_a_key_that_is_not_in_the_file_is_said_and_the_file_left_alone(tmp_path):
    file = tmp_path / "config"
    file.write_text("a = 1\n")
    with pytest.raises(UsageError, match="0 lines set 'total_budget'"):
        BudgetPlace(file=file, file_key="total_budget").write_file(GIB)
    assert file.read_text() == "a = 1\n"
