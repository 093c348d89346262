"""Logs as docker keeps and prints them: the service's name before each line, or each line inside JSON."""

import json
from pathlib import Path

import pytest

import postmortem

LOG = Path(__file__).parents[2] / "fixtures" / "incident-342"


def _compose(line: str) -> str:
    return f"cuzk-1  | {line}"


def _json_file(line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-03-19T02:16:07.5Z"}, separators=(",", ":"))


@pytest.mark.parametrize("dress", [_compose, _json_file])
def test_dockers_dress_changes_nothing_of_the_answer(tmp_path, dress):
    text = (LOG / "run.log").read_text(encoding="utf-8")
    (tmp_path / "run.log").write_text("".join(f"{dress(line)}\n" for line in text.splitlines()), encoding="utf-8")
    (tmp_path / "mem.txt").write_bytes((LOG / "mem.txt").read_bytes())
    wrapped, plain = postmortem.analyze(tmp_path), postmortem.analyze(LOG)
    assert wrapped.verdict.cause == plain.verdict.cause == "untracked_pinned"
    assert wrapped.result.pool == plain.result.pool
    assert wrapped.arithmetic.parts == plain.arithmetic.parts


def test_a_table_with_bars_keeps_its_first_column(tmp_path):
    rows = "".join(f"name{n} | {n}\n" for n in range(30))
    (tmp_path / "table.txt").write_text(rows + "02:16:12 40.2 GiB / 342 GiB\n", encoding="utf-8")
    result = postmortem.analyze(tmp_path).result
    assert result.sources[0].unmatched_examples[0].startswith("name0 | 0")
