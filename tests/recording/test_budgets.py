"""Budgets that a command is started with."""

import pytest

from postmortem.recording.budgets import stated

GIB = 1 << 30
MIB = 1 << 20


@pytest.mark.parametrize(
    ("command", "size"),
    [
        (["d", "--budget", "331GiB"], 331 * GIB),
        (["d", "--budget=331GiB"], 331 * GIB),
        (["d", "--total-budget-gib", "331"], 331 * GIB),
        (["d", "--memory-limit=2048M"], 2 * GIB),
        (["d", "--max-memory", "1073741824"], GIB),
    ],
)
def test_an_option_of_the_command_states_it(command, size):
    assert [one.size for one in stated(command, {})] == [size]
    assert stated(command, {})[0].where == "command"


@pytest.mark.parametrize(
    "command",
    [
        ["d", "--budget", "auto"],
        ["d", "--budget", "12"],  # of what? nobody says
        ["d", "--budget-margin", "5GiB"],
        ["d", "--budget"],
        ["d"],
        [],
    ],
)
def test_what_is_no_size_of_a_budget_is_left_alone(command):
    assert stated(command, {}) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cuzk.toml", '[memory]\ntotal_budget = "331GiB"\nsafety_margin = "5GiB"\napi_key = "hunter2"\n'),
        ("cuzk.yaml", "memory:\n  total_budget: 331GiB\n  token: hunter2\n"),
        ("cuzk.json", '{\n  "total_budget": "331 GiB",\n  "password": "hunter2"\n}\n'),
        ("cuzk.ini", "budget_mb = 338944\n"),
    ],
)
def test_a_configuration_file_states_it_and_nothing_else_of_it_is_kept(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    found = stated(["d", "--config", name], {}, tmp_path)
    assert [(one.size, one.where) for one in found] == [(331 * GIB, name)]


def test_what_overrides_comes_last(tmp_path):
    (tmp_path / "c.toml").write_text('budget = "3GiB"\n')
    found = stated(["d", "-c", str(tmp_path / "c.toml"), "--budget=1GiB"], {"CUZK_BUDGET": "2GiB"})
    assert [one.size // GIB for one in found] == [3, 2, 1]


def test_a_configuration_file_that_is_not_there_or_binary_states_nothing(tmp_path):
    (tmp_path / "b.toml").write_bytes(bytes(range(256)) * 100)
    assert stated(["d", "nowhere.toml", str(tmp_path / "b.toml"), str(tmp_path)], {}) == []
