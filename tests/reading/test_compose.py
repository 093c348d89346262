"""Logs as `docker compose logs` prints them: the service's name before each line."""

from pathlib import Path

import postmortem

LOG = Path(__file__).parents[2] / "fixtures" / "incident-342"


def test_a_compose_prefix_changes_nothing_of_the_answer(tmp_path):
    for file in ("run.log", "mem.txt"):
        text = (LOG / file).read_text(encoding="utf-8")
        prefix = "cuzk-1  | " if file == "run.log" else ""
        (tmp_path / file).write_text("".join(f"{prefix}{line}\n" for line in text.splitlines()), encoding="utf-8")
    wrapped, plain = postmortem.analyze(tmp_path), postmortem.analyze(LOG)
    assert wrapped.verdict.cause == plain.verdict.cause == "untracked_pinned"
    assert wrapped.result.pool == plain.result.pool
    assert wrapped.arithmetic.parts == plain.arithmetic.parts


def test_a_table_with_bars_keeps_its_first_column(tmp_path):
    rows = "".join(f"name{n} | {n}\n" for n in range(30))
    (tmp_path / "table.txt").write_text(rows + "02:16:12 40.2 GiB / 342 GiB\n", encoding="utf-8")
    result = postmortem.analyze(tmp_path).result
    assert result.sources[0].unmatched_examples[0].startswith("name0 | 0")
