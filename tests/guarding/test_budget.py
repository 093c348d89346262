"""How the next budget is found, and how the command is told it: wrong use is said before anything runs."""

import os
import subprocess
import sys

import pytest

from postmortem.errors import UsageError
from postmortem.guarding.budget import BudgetPlace, fill
from postmortem.guarding.ladder import died_of_memory, next_budget, safe_budget

GIB = 1 << 30
GUARD = [sys.executable, "-m", "postmortem", "guard"]


def test_the_next_budget_is_the_safe_one_within_its_bounds():
    assert next_budget(100 * GIB, 90 * GIB, step=None, max_step=0.25) == 90 * GIB
    assert next_budget(100 * GIB, 99 * GIB, step=None, max_step=0.25) == 98 * GIB
    assert next_budget(100 * GIB, 10 * GIB, step=None, max_step=0.25) == 75 * GIB
    assert next_budget(100 * GIB, None, step=None, max_step=0.25) == 90 * GIB
    assert next_budget(100 * GIB, 50 * GIB, step=0.1, max_step=0.25) == 90 * GIB


def test_without_a_safe_budget_the_arithmetic_at_the_death_gives_one():
    arithmetic = {"limit": {"best": 200}, "unreclaimable": {"best": 200}, "reserved": {"best": 136}}
    assert safe_budget({"survival": {"safe_budget": None}, "arithmetic": arithmetic}) == 200 - 64 - 4


def test_the_lower_bound_of_a_safe_budget_is_the_safe_one():
    assert safe_budget({"survival": {"safe_budget": {"low": 290, "best": 310, "high": 320}}}) == 290


def test_a_memory_death_is_a_sigkill_whose_reason_the_evidence_gives():
    limit, unexplained = {"ending": {"how": "cgroup_limit"}}, {"ending": {"how": "sigkill_unexplained"}}
    assert died_of_memory(-9, 0, limit)
    assert died_of_memory(137, 0, limit)  # a shell says it of its child
    assert not died_of_memory(-9, 1, unexplained)  # the kernel's kill was another's
    assert not died_of_memory(1, 1, limit)
    assert not died_of_memory(-11, 1, limit)


def test_kills_that_name_others_alone_are_not_the_commands():
    killed = {"ending": {"how": "cgroup_limit"}, "kills": [{"pid": 7, "relevant": True}]}
    assert not died_of_memory(-9, 1, killed, {41, 42})
    assert died_of_memory(-9, 1, killed, {7, 42})
    assert died_of_memory(-9, 1, killed, None)  # a container's numbers are not the kernel's
    assert died_of_memory(137, 1, killed, {41, 42})  # the child that a shell speaks of may never have been seen
    assert died_of_memory(-9, 1, {**killed, "kills": [{"pid": None}]}, {41})


def test_where_there_is_no_analysis_the_kernels_count_decides():
    assert died_of_memory(-9, 1, None)
    assert not died_of_memory(-9, 0, None)


def test_the_budget_can_be_written_in_bytes_and_whole_mib_and_gib():
    text = "{budget} {budget_mib}MiB {budget_gib}G {other}"
    assert fill(text, 331 * GIB) == f"{331 * GIB} {331 << 10}MiB 331G {{other}}"


def test_the_coarsest_unit_in_use_is_the_finest_step():
    assert BudgetPlace(["--b={budget}"]).unit([]) == 1
    assert BudgetPlace(["--b={budget}"], {"B": "{budget_gib}"}).unit([]) == GIB
    assert BudgetPlace().unit(["daemon", "--budget={budget_mib}M"]) == 1 << 20


def test_whole_gib_step_down_by_whole_gib(tmp_path):
    done = subprocess.run(
        [*GUARD, "--budget", "1500MiB", "-o", str(tmp_path / "out"), "--", "echo", "{budget_gib}", "{budget}"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert done.stdout == b"1 1073741824\n"


def test_a_budget_that_reaches_nobody_is_wrong_use():
    with pytest.raises(UsageError, match="--set"):
        BudgetPlace(variables={"BUDGET": "331GiB"}).unit(["daemon"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--budget", "1GiB", "--", "true"), "reach nobody"),
        (("--budget", "much", "--", "echo", "{budget}"), "--budget: not a size"),
        (("--budget", "1MiB", "--", "echo", "{budget_gib}"), "use {budget} or {budget_mib}"),
        (("--budget", "1GiB", "--step", "ten", "--", "echo", "{budget}"), "write it like 10%"),
        (("--budget", "1GiB", "--max-step", "1%", "--", "echo", "{budget}"), "at least 2%"),
        (("--budget", "1GiB", "--interval", "0", "--", "echo", "{budget}"), "between 0.02 and 3600"),
        (("--budget", "1GiB", "--set-env", "{budget}", "--", "true"), "is not NAME=TEXT"),
        (("--budget", "1GiB", "--set-file", "x.toml", "--", "true"), "is not FILE:KEY"),
        (("--budget", "1GiB", "--set-file", "x.toml:budget", "--", "true"), "x.toml: No such file"),
        (("--budget", "1GiB", "--profile", "./none.toml", "--", "echo", "{budget}"), "no such file"),
        (("--budget", "1GiB", "--", "./no-such-daemon", "{budget}"), "cannot run ./no-such-daemon"),
        (("--", "true"), "budget"),
    ],
)
def test_wrong_use_is_one_line_that_says_how_to_mend_it(tmp_path, options, words):
    done = subprocess.run([*GUARD, *options], check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_help_fits_eighty_columns():
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run([*GUARD, "--help"], check=True, capture_output=True, text=True, env=environment)
    assert max(map(len, done.stdout.splitlines())) <= 80
