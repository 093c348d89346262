"""A compressed byte stream as a file that only reads forwards, bounded in size and ratio."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, cast

from postmortem.archives.limits import Limits, RefusedError
from postmortem.decompress import compression_of, decompressed

__all__ = ["Forward", "Peeked", "plain"]

_READ_BYTES = 1 << 20


class Forward(io.RawIOBase):
    """A file over an iterator of byte pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = memoryview(b"")
        self.warnings: list[str] = []

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, into: memoryview, /) -> int:  # type: ignore[override]  # what BufferedReader gives it
        """Fill `into` with what comes next; 0 at the end."""
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._held = memoryview(piece)
        taken = min(len(into), len(self._held))
        into[:taken] = self._held[:taken]
        self._held = self._held[taken:]
        return taken


class Peeked:
    """A file that only reads forwards, and its first bytes."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.head = _read_fully(file, size)
        self.file = cast(BinaryIO, io.BufferedReader(Forward(_joined(self.head, file)), _READ_BYTES))


def plain(file: BinaryIO, limits: Limits) -> tuple[BinaryIO, Forward | None]:
    """`file` decompressed where its first bytes say so, and then the stream whose warnings tell of damage."""
    peeked = Peeked(file, 6)
    kind = compression_of(peeked.head)
    if kind is None:
        return peeked.file, None
    stream = Forward(iter(()))
    stream._pieces = _bounded(peeked.file, kind, limits, stream.warnings)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] (it needs its own list of warnings)
    return cast(BinaryIO, io.BufferedReader(stream, _READ_BYTES)), stream


def _bounded(file: BinaryIO, kind: str, limits: Limits, warnings: list[str]) -> Iterator[bytes]:
    taken, given = 0, 0

    def counted() -> Iterator[bytes]:
        nonlocal taken
        while piece := file.read(_READ_BYTES // 16):
            taken += len(piece)
            yield piece

    for piece in decompressed(counted(), kind, warnings.append):
        given += len(piece)
        if given > limits.ratio_from_bytes and given > limits.ratio * taken:
            msg = f"expands more than {limits.ratio:.0f}-fold: refused as a decompression bomb"
            raise RefusedError(msg)
        yield piece


def _joined(head: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield head
    while piece := file.read(_READ_BYTES):
        yield piece


def _read_fully(file: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := file.read(size - len(data))):
        data += piece
    return data
