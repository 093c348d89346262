"""The account of every line, the anchors in time, and excerpts."""

import datetime as dt
import io

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.reading import read
from postmortem.schema import TABLES
from postmortem.sources import Stream
from postmortem_parsers.interface import Skipped, Tables
from postmortem_parsers.plain_lines import PlainLinesParser
from postmortem_parsers.profiles import load
from postmortem_parsers.status import StatusParser
from postmortem_parsers.timeline_csv import TimelineParser
from postmortem_parsers.tracing import TracingParser

OURS = [TracingParser, TimelineParser, StatusParser, PlainLinesParser]
CUZK = load("cuzk")
CHECKIN = "2026-03-19T02:16:{:02d}.5Z  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3.5\n"


def streams(*texts):
    return [
        Stream(f"{n}.log", io.BytesIO(text.encode() if isinstance(text, str) else text)) for n, text in enumerate(texts)
    ]


class Broken:
    """A third party's parser that claims everything and then fails."""

    name, reads, example, priority, whole = "broken", "", "", 1, False

    def sniff(self, _head):
        return 1.0

    def claim(self, lines, _context):
        return pl.Series([True] * lines.height)

    def parse(self, _lines, _context):
        raise RuntimeError("no")


class Words:
    """Claims lines that begin with `w`, skips those that end with `!`; reads all at the end."""

    name, reads, example, priority, whole = "words", "", "", 90, True

    def sniff(self, head):
        return 0.5 if head.lines else 0.0

    def claim(self, lines, _context):
        return lines["text"].str.starts_with("w")

    def parse(self, lines, context):
        bad = lines.filter(lines["text"].str.ends_with("!"))
        context.skipped.extend(Skipped(line, "loud", text) for line, text in bad.iter_rows())
        tables = Tables()
        tables.add("marks", lines.select("line", source=pl.lit(context.source), what=pl.lit("word")))
        return tables


LINES = [
    CHECKIN.format(7).strip(), "TIMELINE,5,GPU_END,j,partition=1", "TIMELINE,x", "=== Batch Summary ===", "noise", "",
    "words", "words!", '{"uptime_secs":1', "  2026-03-19T02:16:07Z ERROR a::b: c", "    at a.rs:1", "\x1b[2mpasted\x1b[0m\r",
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(st.sampled_from(LINES) | st.text(max_size=40), max_size=60), ended=st.booleans())
def test_parsed_and_skipped_and_unmatched_lines_are_the_lines_read(lines, ended):
    text = "\n".join(lines) + "\n" * ended
    if not text:
        return
    (info,) = read(streams(text), [*OURS, Words], CUZK).sources
    if info.binary:
        assert info.lines == 0
        return
    claimed = sum(info.parsers.values())
    parsed = claimed - info.skipped
    assert parsed >= 0
    assert parsed + info.skipped + info.unmatched == info.lines == text.count("\n") + (not text.endswith("\n"))


def test_all_tables_exist_and_have_their_columns():
    reading = read(streams("nothing\n"), OURS, CUZK)
    assert {name: frame.schema for name, frame in reading.tables.items()} == dict(TABLES)


def test_rows_say_their_source_and_line():
    reading = read(streams("noise\n" + CHECKIN.format(7), CHECKIN.format(8)), OURS, CUZK)
    assert reading.tables["pool"].select("source", "line").rows() == [(0, 2), (1, 1)]


def test_unmatched_kinds_are_shown_once_each():
    (info,) = read(streams("".join(f"job {n} of {n}\n" for n in range(50)) + "\nother\n"), OURS, CUZK).sources
    assert info.unmatched_examples == ["job 0 of 0", "other"]
    assert info.unmatched == 52


def test_a_parser_that_fails_is_a_warning_and_its_lines_are_unmatched():
    (info,) = read(streams("a\nb\n"), [*OURS, Broken], CUZK).sources
    assert info.unmatched == 2
    assert info.warnings == ["parser broken failed (RuntimeError: no); its lines count as unmatched"]


def test_a_parser_of_whole_streams_gets_all_its_lines_once(monkeypatch):
    calls = []
    monkeypatch.setattr(Words, "parse", lambda _self, lines, _context: (calls.append(lines.height), Tables())[1])
    stream = streams("words\n" * 10 + "noise\n" * 10 + "words\n" * 5)
    whole = stream[0].chunks
    monkeypatch.setattr(stream[0], "chunks", lambda: whole(size=64))
    read(stream, [Words], CUZK)
    assert calls == [15]


def test_small_chunks_give_the_same_tables_as_one(monkeypatch):
    text = "".join(CHECKIN.format(n % 60) + f"TIMELINE,{n},GPU_END,j,partition=1\n" for n in range(200))
    once = read(streams(text), OURS, CUZK)
    (stream,) = streams(text)
    whole = stream.chunks
    monkeypatch.setattr(stream, "chunks", lambda: whole(size=500))
    many = read([stream], OURS, CUZK)
    assert all(once.tables[name].equals(many.tables[name]) for name in TABLES)


def test_rows_without_a_time_have_timed_neighbours_and_the_rest_is_thinned():
    text = "".join(CHECKIN.format(n // 60) for n in range(1000)) + "=== Batch Summary ===\n" + CHECKIN.format(59) * 500
    reading = read(streams(text), OURS, CUZK)
    anchors = dict(reading.lines_time.select("line", "time").iter_rows())
    assert anchors[1000] == dt.datetime(2026, 3, 19, 2, 16, 16, 500000, tzinfo=dt.UTC)
    assert anchors[1002].second == 59
    assert {1, 1501} <= set(anchors)
    assert len(anchors) <= 1501 // 50 + 5


def test_excerpts_are_read_again_with_their_neighbours():
    reading = read(streams("a\nb\n\x1b[1mc\x1b[0m\nd\n", "x\n"), OURS, CUZK)
    assert reading.text(0, 3, around=1) == [(2, "b"), (3, "c"), (4, "d")]
    found = reading.excerpts([(0, 1), (1, 1), (0, 99)], around=1)
    assert found == {(0, 1): [(1, "a"), (2, "b")], (1, 1): [(1, "x")]}


def test_binary_data_among_the_inputs_is_a_warning_with_its_hash():
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50
    (info,) = read(streams(png), OURS, CUZK).sources
    assert (info.lines, info.binary, info.bytes, len(info.sha256)) == (0, True, len(png), 64)
    assert info.warnings == ["looks like binary data, not a log: not read"]


@pytest.mark.parametrize(
    "junk", [b"\xff\xfe\x00", b"\0" * 100, b"\n" * 10, b"\r\r\r", b"{" * 5000 + b"\n", b"\xff" * 50]
)
def test_junk_does_not_raise(junk):
    read(streams(junk, junk + b"\n"), OURS, CUZK)
