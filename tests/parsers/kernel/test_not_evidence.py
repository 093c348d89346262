"""Texts that speak of deaths and show none: no kill, no ending."""

import pathlib

import pytest

FOLDER = pathlib.Path(__file__).parents[3] / "fixtures" / "not-evidence"


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_text_without_evidence_accuses_nobody(path, read_file):
    tables, _ = read_file(path)
    assert tables.get("kills") is None
    assert tables.get("ends") is None, tables.get("ends")
