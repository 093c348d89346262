"""A byte stream as chunks of whole lines, of bounded size.

Chunks stay under 32 MiB: larger buffers fault fresh pages every time and read slower.
"""

from __future__ import annotations

import codecs
import dataclasses
import functools
import re
from collections.abc import Callable, Generator, Iterator

import numpy as np

__all__ = ["CHUNK_BYTES", "LONGEST_LINE", "Chunk", "as_utf8", "chunks", "exact"]

CHUNK_BYTES = 24 << 20
LONGEST_LINE = 1 << 20

# tracing's pretty format: a record's head is indented by two blanks, its further lines by four.
_RECORD_HEAD = re.compile(rb"\n  (?:\x1b\[[0-9;]*m)?[0-9]{4}-[0-9]{2}-[0-9]{2}T")
_PRETTY_LOOK_BACK = 1 << 16
_NEWLINE = 10
_BLOCK = 1 << 18
_SKIP_BYTES = 4 << 20
_MOST_LINES = 1 << 20  # a table of lines takes many times the bytes of very short ones


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Whole lines; `cut` when the stream ended within the last one."""

    data: bytes
    first_line: int
    cut: bool = False
    place: int | None = None
    """Where it begins in the file, in bytes, when it stands there as it is here."""

    @functools.cached_property
    def lines(self) -> int:
        """How many lines, the cut one included."""
        return _newlines(self.data) + self.cut


def _newlines(data: bytes) -> int:
    # Five times as fast as bytes.count, as long as a block and its mask stay in the second-level cache.
    codes = np.frombuffer(data, dtype=np.uint8)
    blocks = range(0, len(codes), _BLOCK)
    return sum(int(np.count_nonzero(codes[start : start + _BLOCK] == _NEWLINE)) for start in blocks)


def as_utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same text in UTF-8, when it begins with a UTF-16 byte order mark; a UTF-8 mark is dropped."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= 4:
            break
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        yield decoder.decode(head).encode("utf-8", "replace")
        for piece in pieces:
            yield decoder.decode(piece).encode("utf-8", "replace")
        yield decoder.decode(b"", final=True).encode("utf-8", "replace")
        return
    yield head.removeprefix(codecs.BOM_UTF8)
    yield from pieces


def chunks(
    pieces: Iterator[bytes], warn: Callable[[str], None], *, size: int = CHUNK_BYTES, longest: int = LONGEST_LINE
) -> Iterator[Chunk]:
    """Newline-aligned chunks of about `size` bytes. Of a line that fills a whole chunk, `longest` bytes are kept."""
    line = 1
    for data, cut in _aligned(pieces, warn, size, min(longest, size)):
        chunk = Chunk(data, line, cut)
        yield from _of_few_lines(chunk)
        line += chunk.lines


def exact(
    read: Callable[[int, int], bytes],
    warn: Callable[[str], None],
    seen: Callable[[bytes], None],
    *,
    start: int = 0,
    size: int = CHUNK_BYTES,
    longest: int = LONGEST_LINE,
) -> Iterator[Chunk]:
    """The same chunks of what can be read anywhere, `read(place, length)`: each is read once, at its exact length.

    `seen` is given every byte once, in order.
    """
    place, line = start, 1
    look_back = min(size, _PRETTY_LOOK_BACK)
    while True:
        window = read(place + size - look_back, look_back)
        # Without a newline in the window, or near the end, the chunk itself is searched.
        end = _cut_at(window, look_back) if len(window) == look_back else 0
        length = size - look_back + end if end else size
        data = read(place, length)
        if len(data) < length:
            seen(data)
            if data:
                yield from _of_few_lines(Chunk(data, line, not data.endswith(b"\n"), place))
            return
        if not end and (end := _cut_at(data, size)):
            data = data[:end]
        if not end:
            chunk, length = _overlong_at(read, place, data, line, warn, seen, min(longest, size))
        else:
            seen(data)
            chunk, length = Chunk(data, line, place=place), len(data)
        yield from _of_few_lines(chunk)
        line, place = line + chunk.lines, place + length


def _overlong_at(
    read: Callable[[int, int], bytes],
    place: int,
    data: bytes,
    line: int,
    warn: Callable[[str], None],
    seen: Callable[[bytes], None],
    longest: int,
) -> tuple[Chunk, int]:
    """The line's beginning as a chunk, and how long the whole line is."""
    warn(_too_long(data, longest))
    kept, length, end = data[:longest], 0, 0
    while data and not end:
        end = data.find(b"\n") + 1
        here = data[:end] if end else data
        seen(here)
        length += len(here)
        data = b"" if end else read(place + length, _SKIP_BYTES)
    return Chunk(kept + b"\n" if end else kept, line, not end, place), length


def _of_few_lines(chunk: Chunk) -> Iterator[Chunk]:
    """A chunk of very short lines as several of at most about a million lines each."""
    if chunk.lines <= _MOST_LINES:
        yield chunk
        return
    data, line, start = chunk.data, chunk.first_line, 0
    while start < len(data):
        # No more bytes than lines that are allowed: the part ends with the last newline among them.
        end = data.rfind(b"\n", start, start + _MOST_LINES) + 1 or data.find(b"\n", start) + 1 or len(data)
        place = None if chunk.place is None else chunk.place + start
        part = Chunk(data[start:end], line, chunk.cut and end == len(data), place)
        yield part
        line, start = line + part.lines, end


def _too_long(data: bytes, longest: int) -> str:
    return f"a line longer than {len(data) >> 20} MiB: its first {longest >> 10} KiB were kept"


def _aligned(
    pieces: Iterator[bytes], warn: Callable[[str], None], size: int, longest: int
) -> Iterator[tuple[bytes, bool]]:
    held: list[bytes] = []
    length = 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        while length >= size:
            inside = len(held[-1]) - (length - size)
            if inside >= _PRETTY_LOOK_BACK and (end := _cut_at(held[-1], inside)):
                # The usual case, without a second copy of the chunk.
                yield b"".join([*held[:-1], held[-1][:end]]), False
                held = [held[-1][end:]]
                length = len(held[0])
                continue
            data = b"".join(held)
            end = _cut_at(data, size)
            if end:
                yield data[:end], False
                rest = data[end:]
            else:
                rest = yield from _overlong(data, pieces, warn, longest)
            held, length = [rest], len(rest)
    data = b"".join(held)
    if data:
        yield data, not data.endswith(b"\n")


def _cut_at(data: bytes, size: int) -> int:
    """Where to end a chunk: before the last record head near its end, else behind its last newline; 0 = nowhere."""
    end = data.rfind(b"\n", 0, size) + 1
    back = max(0, end - _PRETTY_LOOK_BACK)
    heads = [match.start() + 1 for match in _RECORD_HEAD.finditer(data, back, end)]
    return heads[-1] if heads else end


def _overlong(
    data: bytes, pieces: Iterator[bytes], warn: Callable[[str], None], longest: int
) -> Generator[tuple[bytes, bool], None, bytes]:
    """Give the line's beginning, skip to its end; returns what stands behind it."""
    warn(_too_long(data, longest))
    kept, rest = data[:longest], data
    while (end := rest.find(b"\n")) < 0:
        following = next(pieces, None)
        if following is None:
            yield kept, True
            return b""
        rest = following
    yield kept + b"\n", False
    return rest[end + 1 :]
