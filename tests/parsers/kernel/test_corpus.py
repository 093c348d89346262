"""Every report of `fixtures/kernel/` becomes exactly its expected rows, every field compared."""

import datetime as dt
import json
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).parents[3] / "fixtures" / "kernel"
NAMES = sorted(path.stem for path in FOLDER.glob("*.log"))
UNCOMPARED = {"kills": {"source"}, "tasks": {"source", "time", "line"}, "ends": {"source"}, "marks": {"source"}}


def plain(value: object) -> object:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, dt.datetime) else value


def rows(tables, table: str) -> list[dict[str, object]]:
    frame = tables.get(table)
    if frame is None:
        return []
    if table == "tasks":
        frame = frame.sort("report", maintain_order=True)
    return [
        {key: plain(value) for key, value in row.items() if key not in UNCOMPARED[table]}
        for row in frame.iter_rows(named=True)
    ]


def test_the_corpus_holds_at_least_forty_reports():
    assert len(NAMES) >= 40


@pytest.mark.parametrize("name", NAMES)
def test_report_becomes_its_expected_rows(name, read_file):
    expected = json.loads((FOLDER / f"{name}.expected.json").read_text())
    tables, context = read_file(FOLDER / f"{name}.log")
    for table in ("kills", "tasks", "ends", "marks"):
        assert rows(tables, table) == expected[table], table
    assert [{"line": skipped.line, "reason": skipped.reason} for skipped in context.skipped] == expected["skipped"]
