"""Every shape of samples is read by one parser, to the rows that its fixture states."""

import importlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from parsers.samples.reading import Read, bytes_of, lines_of, read_file

from postmortem_parsers.interface import Head, Parser

FIXTURES = Path(__file__).parents[3] / "fixtures" / "samples"
SHAPES = sorted(path.name.removesuffix(".expected.json") for path in FIXTURES.glob("*.expected.json"))
HOMES = [
    *("delimited:DelimitedParser", "dumps:CgroupDumpParser", "loops:LoopParser", "processes:ProcessesParser"),
    *("inline:InlineParser", "screens:ScreensParser", "json_lines:JsonLinesParser", "sar:SarParser"),
    *("prometheus_text:PrometheusTextParser", "prometheus_json:PrometheusJsonParser", "atop:AtopParser"),
]


def parser_of(home):
    module, name = home.split(":")
    return getattr(importlib.import_module(f"postmortem_parsers.samples.{module}"), name)


def expected_of(shape):
    return json.loads((FIXTURES / f"{shape}.expected.json").read_text())


def moment(text):
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


def ordered(rows):
    return sorted(rows, key=lambda row: (row["line"], row.get("metric") or row["what"], str(row["time"])))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_becomes_the_rows_that_its_fixture_states(shape):
    expected = expected_of(shape)
    cut = not bytes_of(FIXTURES / shape).endswith(b"\n")
    read = Read(parser_of(expected["parser"])(), read_file(FIXTURES / shape), name=shape, cut=cut)
    found = read.samples.drop("source").to_dicts()
    assert ordered(found) == ordered([row | {"time": moment(row["time"])} for row in expected["samples"]])
    marks = read.marks.select("line", "time", "what", "value", "value_ulp").to_dicts()
    assert ordered(marks) == ordered([row | {"time": moment(row["time"])} for row in expected["marks"]])
    assert len(read.context.skipped) == expected["skipped"]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_line_of_a_shape_is_left_unmatched(shape):
    read = Read(parser_of(expected_of(shape)["parser"])(), read_file(FIXTURES / shape), name=shape)
    assert read.unmatched <= 0  # blank lines of a dump are claimed as well


@pytest.mark.parametrize("shape", SHAPES)
def test_chunks_of_any_size_give_the_same_rows(shape):
    parser = parser_of(expected_of(shape)["parser"])
    lines = read_file(FIXTURES / shape)
    whole, parts = Read(parser(), lines, name=shape), Read(parser(), lines, name=shape, chunk=2)
    assert ordered(parts.samples.to_dicts()) == ordered(whole.samples.to_dicts())


@pytest.mark.parametrize("shape", SHAPES)
def test_exactly_one_parser_takes_a_shape(shape):
    expected = expected_of(shape)["parser"]
    head = Head(read_file(FIXTURES / shape)["text"].to_list(), shape)
    sure = {home: parser_of(home)().sniff(head) for home in HOMES}
    takers = sorted(home for home, share in sure.items() if share >= 0.5)
    first = min(takers, key=lambda home: (parser_of(home).priority, -sure[home]))
    assert first == expected
    rivals = [h for h in takers if h not in (expected, "inline:InlineParser")]
    assert rivals == []


@pytest.mark.parametrize("home", HOMES)
def test_every_parser_keeps_the_protocol_and_reads_its_own_example(home):
    parser = parser_of(home)
    assert isinstance(parser(), Parser)
    lines = lines_of(parser.example)
    read = Read(parser(), lines, name="x")
    if home not in ("delimited:DelimitedParser", "dumps:CgroupDumpParser", "sar:SarParser"):
        assert read.samples.height >= 1
