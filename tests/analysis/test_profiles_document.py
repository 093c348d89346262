"""docs/profiles.md as a newcomer follows it: its files are written down, analysed, and give the figures that it claims."""

import re
from pathlib import Path

import pytest

import postmortem
from postmortem_parsers.profiles import load
from postmortem_parsers.values import UNITS

MIB = 1 << 20
TEXT = (Path(__file__).parents[2] / "docs" / "profiles.md").read_text()


def block(name: str, language: str) -> str:
    """The first fenced block behind the first mention of a file's name."""
    return re.search(rf"`{re.escape(name)}`:\n\n```{language}\n(.*?)```", TEXT, re.DOTALL)[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("mill")
    for name, language in (("run.log", "text"), ("dmesg.txt", "text"), ("mill.toml", "toml")):
        (made / name).write_text(block(name, language))
    return made


@pytest.fixture(scope="module")
def found(folder):
    return postmortem.analyze([folder / "run.log", folder / "dmesg.txt"], profile=folder / "mill.toml")


def claimed() -> dict[str, int]:
    """The table of figures, in bytes."""
    return {name: int(size) * MIB for name, size in re.findall(r"^\| ([a-z_ ]+) \| (\d+) MiB \|$", TEXT, re.MULTILINE)}


def test_the_document_claims_nine_figures():
    assert len(claimed()) == 9


def test_the_analysis_gives_the_figures_that_the_document_claims(found):
    table = found.arithmetic
    parts = {part.part: part.actual.best for part in table.parts}
    assert {
        "limit": table.limit.best,
        "budget": table.budget.best,
        "margin": table.margin.best,
        "reserved": table.reserved.best,
        "slack": table.slack.best,
        "pool total": found.result.pool.total.best,
        "pinned_uncovered": parts["pinned_uncovered"],
        "overhead": parts["overhead"],
        "excess sum": table.excess_sum.best,
    } == claimed()


def test_the_cause_is_the_one_that_the_document_names(found):
    assert found.ending.how == "cgroup_limit"
    assert f"names the cause, `{found.verdict.cause}`" in TEXT


def test_without_the_profile_the_shared_memory_is_nobodys(folder):
    bare = postmortem.analyze([folder / "run.log", folder / "dmesg.txt"])
    parts = {part.part: part.actual.best for part in bare.arithmetic.parts}
    assert bare.ending.how == "cgroup_limit"
    assert parts["shared_memory"] == 1536 * MIB
    assert bare.verdict.confidence < 0.7


def test_the_profile_has_about_a_dozen_lines_and_its_samples_are_in_the_log(folder):
    profile = load(str(folder / "mill.toml"))
    log = (folder / "run.log").read_text().splitlines()
    assert block("mill.toml", "toml").count("\n") <= 14
    assert all(sample in log for line in profile.line for sample in line.sample)


def test_the_document_names_every_unit():
    named = re.search(r"^Units: (.*?)\n\n", TEXT, re.MULTILINE | re.DOTALL)[1]
    assert set(re.findall(r"`([a-z_]+)`", named)) == set(UNITS)
