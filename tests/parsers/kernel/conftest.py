"""Reads a file with the parsers under test, as the pipeline does: claims by priority, then parse."""

import pathlib
import re

import polars as pl
import pytest

from postmortem_parsers.exits import ExitsParser
from postmortem_parsers.host import HostParser
from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.kernel import KernelParser

COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def lines_of(text: str) -> pl.DataFrame:
    lines = COLOURS.sub("", text).replace("\r", "").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    return pl.DataFrame({"line": range(1, len(lines) + 1), "text": lines}, schema={"line": pl.Int64, "text": pl.String})


def _read_text(text: str, name: str = "run.log", parsers=None) -> tuple[Tables, Context]:
    left = lines_of(text)
    head = Head(left["text"].to_list()[:400], name)
    context, tables = Context(0, name, None), Tables()
    for parser in parsers or (KernelParser(), HostParser(), ExitsParser()):
        if parser.sniff(head) == 0:
            continue
        claimed = parser.claim(left, context)
        tables.update(parser.parse(left.filter(claimed), context))
        left = left.filter(~claimed)
    return tables, context


@pytest.fixture
def read_text():
    return _read_text


@pytest.fixture
def read_file():
    def read(path: pathlib.Path) -> tuple[Tables, Context]:
        return _read_text(path.read_bytes().decode("utf-8", "replace"), path.name)

    return read
