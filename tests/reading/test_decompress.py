"""Compressed inputs: sound, cut anywhere, damaged anywhere, and made to exhaust memory."""

import bz2
import contextlib
import gzip
import lzma
import random
import subprocess
import sys
import zlib

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from postmortem.background import ahead
from postmortem.decompress import compression_of, decompressed

LINES = [b"%d %d\n" % (number, random.Random(number).getrandbits(64)) for number in range(8_000)]
TEXT = b"".join(LINES) + b"the same line again and again\n" * 30_000 + b"".join(LINES[:3_000])
HALF = len(TEXT) // 3
SKIPPABLE = b"\x50\x2a\x4d\x18\x05\x00\x00\x00hello"
STORED = {
    "gz": gzip.compress(TEXT),
    "gz of members": gzip.compress(TEXT[:HALF]) + gzip.compress(b"") + gzip.compress(TEXT[HALF:]),
    "zst": zstandard.compress(TEXT),
    "zst of frames": SKIPPABLE + zstandard.compress(TEXT[:HALF]) + SKIPPABLE + zstandard.compress(TEXT[HALF:]),
    "zst with checksum": zstandard.ZstdCompressor(write_checksum=True).compress(TEXT),
    "xz": lzma.compress(TEXT),
    "bz2": bz2.compress(TEXT[:HALF]) + bz2.compress(TEXT[HALF:]),
}


def plain(stored, piece=1 << 16):
    """Text and warnings."""
    warnings: list[str] = []
    kind = compression_of(stored[:64])
    assert kind is not None

    def pieces():
        return (stored[start : start + piece] for start in range(0, len(stored), piece))

    return b"".join(decompressed(pieces(), kind, warnings.append, pieces)), warnings


def reference(stored):
    """What the format's own library gives up to the end or the first error, fed byte by byte, member by member."""
    made: list[bytes] = []
    while stored:
        kind = compression_of(stored)
        if kind is None:
            break
        decoder = {
            "gz": lambda: zlib.decompressobj(wbits=31),
            "zst": lambda: zstandard.ZstdDecompressor().decompressobj(),
            "xz": lzma.LZMADecompressor,
            "bz2": bz2.BZ2Decompressor,
        }[kind]()
        at = 0
        with contextlib.suppress(zlib.error, zstandard.ZstdError, lzma.LZMAError, OSError):
            while at < len(stored) and not decoder.eof:
                made.append(decoder.decompress(stored[at : at + 1]))
                at += 1
        if not decoder.eof:
            break
        stored = stored[at:]
    return b"".join(made)


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("piece", [7, 4096, 1 << 20])
def test_all_text_is_given_without_a_warning_whatever_the_pieces(kind, piece):
    assert plain(STORED[kind], piece) == (TEXT, [])


@pytest.mark.parametrize("kind", STORED)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_of_a_file_cut_anywhere_everything_comes_that_the_reference_decoder_gives(kind, data):
    stored = STORED[kind][: data.draw(st.integers(20, len(STORED[kind]) - 1))]
    got, warnings = plain(stored)
    assert TEXT.startswith(got)
    assert got == reference(stored)
    assert len(warnings) <= 1


@pytest.mark.parametrize("kind", STORED)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_of_a_file_damaged_anywhere_everything_comes_up_to_where_the_reference_decoder_stops(kind, data):
    stored = bytearray(STORED[kind])
    stored[data.draw(st.integers(20, len(stored) - 1))] ^= data.draw(st.integers(1, 255))
    got, warnings = plain(bytes(stored))
    assert got == reference(bytes(stored))
    assert len(warnings) <= 1


@pytest.mark.parametrize("kind", STORED)
@settings(max_examples=10, deadline=None)
@given(junk=st.binary(min_size=1, max_size=200))
@example(b"\0" * 512)
@example(b"not compressed")
def test_what_stands_behind_the_last_member_does_no_harm(kind, junk):
    got, warnings = plain(STORED[kind] + junk)
    assert got == TEXT
    assert bool(warnings) is bool(junk.strip(b"\0")) or kind.startswith("zst")


BOMBS = {
    "gz": "gzip.compress(bytes(1 << 20)) * 1000",
    # One block of 128 KiB of the same byte, again and again (RFC 8878, 3.1.1.2).
    "zst": "b'\\x28\\xb5\\x2f\\xfd\\x00\\x58' + (b'\\x02\\x00\\x10\\x00') * 24_000 + b'\\x03\\x00\\x10\\x00'",
    "zst with pauses": "(zstandard.compress(os.urandom(3000)) * 8 + zstandard.compress(bytes(1 << 28))) * 12",
    "bz2": "bz2.compress(bytes(1 << 24)) * 64",
    "xz": "lzma.compress(bytes(1 << 24)) * 64",
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_of_a_gigabyte_or_more_stays_in_bounded_memory(kind):
    code = f"""
import bz2, gzip, lzma, os, resource, zstandard
from postmortem.background import ahead
from postmortem.decompress import compression_of, decompressed
stored = {BOMBS[kind]}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pieces = ahead(decompressed(iter([stored]), compression_of(stored), print))
length = sum(len(piece) for piece in pieces)
print(length >> 20, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    made, grown = map(int, done.stdout.split())
    assert made >= 1_000
    assert grown < 320


def test_pieces_come_from_a_thread_in_their_order_and_their_error_is_raised_here():
    def pieces():
        yield from (b"x" * size for size in (0, 5, 3 << 20, 1))
        raise OSError("gone")

    got: list[bytes] = []
    with pytest.raises(OSError, match="gone"):  # noqa: PT012 (it is raised on the way)
        for piece in ahead(pieces()):
            got.append(piece)  # noqa: PERF402 (what came before the error is wanted)
    assert max(map(len, got)) <= 2 << 20
    assert sum(map(len, got)) >= 3 << 20
