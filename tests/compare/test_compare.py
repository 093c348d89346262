"""Two runs compared: equal ones do not differ, and what differs does so beyond the intervals."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from batch.small import run

import postmortem
from postmortem.compare import Side, compare
from postmortem.errors import InputError, NotFoundError
from postmortem.sides import load
from postmortem_reports import comparison as reports


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    folder = tmp_path_factory.mktemp("runs")
    return load(str(run(folder / "dead", dies=True))), load(str(run(folder / "alive")))


def test_a_run_and_its_compressed_copy_do_not_differ(tmp_path: Path):
    original = run(tmp_path / "dead", dies=True)
    (tmp_path / "copy").mkdir()
    for file in original.iterdir():
        (tmp_path / "copy" / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    made = compare(load(str(original)).result, load(str(tmp_path / "copy")).result)
    assert made.same
    assert made.answer.startswith("No difference")


STARTS = "2026-03-19T{:02d}:00:00Z  INFO cuzk_daemon: cuzk-daemon starting\n"
BUDGET = "2026-03-19T{:02d}:00:01Z  INFO cuzk_core::engine: memory budget initialized total_budget_gib={}\n"


def test_the_attempts_of_one_run_are_compared_by_their_numbers(tmp_path: Path):
    log = tmp_path / "ladder.log"
    log.write_text("".join(STARTS.format(at) + BUDGET.format(at, gib) for at, gib in ((2, 331), (3, 300), (4, 270))))
    first, third = load(f"{log}#1"), load(f"{log}#3")
    assert (first.name, third.name) == ("ladder.log, attempt 1", "ladder.log, attempt 3")
    budgets = {one.what: (one.a, one.b, one.beyond) for one in compare(first.result, third.result).differences}
    (_, was, _), (_, now, _), beyond = budgets["Budget"]
    assert (was, now, beyond) == (331 << 30, 270 << 30, True)
    assert compare(load(f"{log}#2").result, load(f"{log}#2").result).same
    with pytest.raises(InputError, match="has 3 attempts"):
        load(f"{log}#4")


def test_a_file_whose_name_looks_like_an_attempt_is_itself(tmp_path: Path):
    log = tmp_path / "run.log#2"
    log.write_text(STARTS.format(2))
    assert load(str(log)).result.attempts[0].number == 1


def test_a_run_and_its_result_file_do_not_differ(sides, tmp_path: Path):
    (tmp_path / "r.json").write_text(postmortem.Postmortem(sides[0].result, sides[0].timeline).to_json())
    assert compare(sides[0].result, load(str(tmp_path / "r.json")).result).same


def test_a_death_against_a_survival_says_that_the_fix_worked(sides):
    made = compare(sides[0].result, sides[1].result)
    assert made.answer.startswith("The first run died of memory, the second did not")
    assert {one.what: one.beyond for one in made.differences}["How it ended"] is True
    assert {one.what: one.beyond for one in made.differences}["Limit"] is False


def test_the_other_way_round_the_changes_have_the_other_sign(sides):
    there, back = compare(sides[0].result, sides[1].result), compare(sides[1].result, sides[0].result)
    changes = {one.what: one.change for one in back.differences}
    assert all(one.change is None or one.change == -(changes[one.what] or 0) for one in there.differences)


def test_markdown_and_page_say_the_answer(sides):
    made = compare(sides[0].result, sides[1].result)
    assert made.answer in reports.markdown(made)
    page = reports.html(made, *sides)
    assert made.answer in page
    assert page.count("Aligned at the") == 2
    assert "<script" not in page


def test_a_path_that_is_not_there_and_a_damaged_result_are_errors_with_advice(tmp_path: Path):
    with pytest.raises(NotFoundError, match="check the path"):
        load(str(tmp_path / "none"))
    (tmp_path / "r.json").write_text('{"schema": "postmortem/1", "x": ')
    with pytest.raises(InputError, match="damaged result"):
        load(str(tmp_path / "r.json"))


def test_the_command_prints_a_table(tmp_path: Path):
    paths = [str(run(tmp_path / "a", dies=True)), str(run(tmp_path / "b"))]
    shown = subprocess.run(
        [sys.executable, "-m", "postmortem", "compare", *paths], capture_output=True, text=True, check=True
    )
    assert "The first run died of memory" in shown.stdout
