"""Recorded runs: the number of rows is the number of times that their texts stand in the files.

Runs are taken from `fixtures/`, and from the folder that POSTMORTEM_SAMPLES names, where it is set.
"""

import bz2
import gzip
import lzma
import os
import pathlib
import re

import polars as pl
import pytest
import zstandard

from postmortem.reading import read
from postmortem.sources import find
from postmortem_parsers.plain_lines import PlainLinesParser
from postmortem_parsers.profiles import load
from postmortem_parsers.status import StatusParser
from postmortem_parsers.timeline_csv import TimelineParser
from postmortem_parsers.tracing import TracingParser

OURS = [TracingParser, TimelineParser, StatusParser, PlainLinesParser]
FOLDERS = [pathlib.Path(__file__).parents[2] / "fixtures", os.environ.get("POSTMORTEM_SAMPLES")]
NAMES = re.compile(r"(run|daemon)\.log(\.gz)?$")
LOGS = sorted(
    file for folder in FOLDERS if folder for file in pathlib.Path(folder).rglob("*") if NAMES.search(file.name)
)
TEXTS = {
    ("pool", "checkout"): rb"pinned pool: checkout \(reuse\)",
    ("pool", "alloc"): rb"pinned pool: allocated new buffer",
    ("pool", "checkin"): rb"pinned pool: checkin",
    ("pool", "free"): rb"pinned pool: freed buffer \(evictor\)",
    ("pool", "alloc_failed"): rb"pinned pool: cudaHostAlloc failed",
    ("budget", "acquire"): rb"budget acquired",
    ("budget", "release"): rb"partial reservation release",
    ("budget", "init"): rb"memory budget initialized",
    ("resident", "load_start"): rb"loading SRS from disk",
    ("work", "engine_start"): rb"starting cuzk engine",
    ("work", "prove_start_returned"): rb"GPU_TIMING prove_start returned",
    ("work", "gpu_pickup"): rb"(?m)^TIMELINE,[0-9]+,GPU_PICKUP",
    ("ends", "stopped"): rb"cuzk-daemon stopped",
}


def stored_text(file):
    data = file.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def tables_of(file):
    return read(find([file]), OURS, load("cuzk")).tables


@pytest.mark.skipif(not LOGS, reason="no recorded runs here")
@pytest.mark.parametrize("file", LOGS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_operation_in_the_file_is_a_row(file):
    text, tables = stored_text(file), tables_of(file)
    for (table, op), expression in TEXTS.items():
        column = "what" if table == "ends" else "op"
        assert tables[table].filter(pl.col(column) == op).height == len(re.findall(expression, text)), op


@pytest.mark.skipif(not LOGS, reason="no recorded runs here")
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress, lzma.compress, bz2.compress])
def test_a_compressed_run_gives_the_same_tables(pack, tmp_path):
    text = stored_text(LOGS[0])
    for name, data in (("plain", text), ("packed", pack(text))):
        (tmp_path / name).write_bytes(data)
    plain, packed = tables_of(tmp_path / "plain"), tables_of(tmp_path / "packed")
    assert all(plain[name].equals(packed[name]) for name in plain)
