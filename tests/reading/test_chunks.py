"""Chunks of whole lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postmortem.chunks import Chunk, chunks
from postmortem.lines import lines_of
from postmortem.sources import find


def pieces(data, size):
    return (data[start : start + size] for start in range(0, len(data), size))


@given(lines=st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=40),
       size=st.integers(40, 200), piece=st.integers(1, 90), ended=st.booleans())  # fmt: skip
def test_chunks_are_the_stream_cut_behind_newlines(lines, size, piece, ended):
    data = b"\n".join(lines) + b"\n" * ended
    found = list(chunks(pieces(data, piece), print, size=size))
    assert b"".join(chunk.data for chunk in found) == data
    assert all(chunk.data.endswith(b"\n") for chunk in found[:-1])
    first = 1
    for chunk in found:
        assert chunk.first_line == first
        first += chunk.lines
    assert not found or found[-1].cut is not data.endswith(b"\n")


def test_a_line_longer_than_a_chunk_is_kept_in_part_and_said():
    warnings = []
    data = b"one\n" + b"x" * 1000 + b"\ntwo\n"
    found = list(chunks(pieces(data, 64), warnings.append, size=128, longest=100))
    lines = b"".join(chunk.data for chunk in found).split(b"\n")
    assert lines == [b"one", b"x" * 100, b"two", b""]
    assert len(warnings) == 1


def test_a_chunk_ends_before_the_head_of_a_pretty_record():
    record = b"  2026-03-19T02:16:07.5Z  INFO a: b\n    at src/main.rs:1\n    in a::b with c: 1\n\n"
    found = list(chunks(pieces(record * 20, 50), print, size=300))
    assert len(found) > 3
    assert all(chunk.data.startswith(b"  2026") for chunk in found)


def test_lines_lose_colours_carriage_returns_and_nuls_and_keep_their_numbers():
    data = b"\x1b[2ma\x1b[0m\r\n\0\0b\n\xff^[[1mc\xe2\x86\x90[0m\x1b]0;title\x07\n\nlast"
    frame = lines_of(Chunk(data, 7, cut=True))
    assert frame.rows() == [(7, "a"), (8, "b"), (9, "\N{REPLACEMENT CHARACTER}c"), (10, ""), (11, "last")]


@given(data=st.binary(max_size=200))
def test_no_line_is_lost_whatever_the_bytes(data):
    for chunk in chunks(iter([data]), print):
        assert lines_of(chunk).height == chunk.lines


@pytest.mark.parametrize("beginning", [b"x^", b"x\x9c", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"])
def test_text_that_begins_like_compressed_data_stays_text(beginning):
    assert lines_of(Chunk(beginning + b" = 1\nb\n", 1))["text"][1] == "b"


def test_a_chunk_of_very_short_lines_is_given_in_parts_of_a_million_lines(tmp_path):
    data = b"\n" * 2_500_000 + b"a\n" * 10 + b"the end"
    (tmp_path / "run.log").write_bytes(data)
    plain = list(find([str(tmp_path / "run.log")])[0].chunks())
    for found in (plain, list(chunks(iter([data]), print))):
        assert b"".join(chunk.data for chunk in found) == data
        assert max(chunk.lines for chunk in found) <= 1 << 20
        firsts = [chunk.first_line for chunk in found]
        assert firsts == [1 + data[: sum(len(c.data) for c in found[:n])].count(b"\n") for n in range(len(found))]
        assert [chunk.cut for chunk in found] == [False] * (len(found) - 1) + [True]
