"""A run's members in memory: compressed, readable from the start as often as the analysis wants."""

from __future__ import annotations

import io
from typing import BinaryIO, cast

import zstandard

from postmortem.archives.limits import DAMAGE, Limits, RefusedError

__all__ = ["Held", "hold"]

_READ_BYTES = 4 << 20


class Held(io.RawIOBase):
    """A member's bytes as a file that can go back to its start."""

    def __init__(self, name: str, packed: bytes) -> None:
        self.name = name
        self.damage: str | None = None
        """Where its archive is damaged within it: it then holds what came before."""
        self._packed = packed
        self._reader = self._begin()

    def _begin(self) -> zstandard.ZstdDecompressionReader:
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(self._packed))

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can go back to its start."""
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go back to the start, the one place that it can go to."""
        if offset or whence:
            msg = "only the start can be sought"
            raise io.UnsupportedOperation(msg)
        self._reader = self._begin()
        return 0

    def readinto(self, into: bytearray, /) -> int:  # type: ignore[override]
        """Fill `into` with what comes next; 0 at the end."""
        return self._reader.readinto(into)


def hold(name: str, file: BinaryIO, limits: Limits, held: int = 0) -> tuple[BinaryIO, int]:
    """The rest of `file` held under `name`, and how many bytes of memory that and what was `held` before take."""
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    pieces: list[bytes] = []
    damage = None
    while piece := _read(file):
        if isinstance(piece, str):
            damage = piece
            break
        pieces.append(packer.compress(piece))
        held += len(pieces[-1])
        if held > limits.held_bytes:
            msg = f"the run's members take more than {limits.held_bytes >> 20} MiB even compressed: unpack the archive"
            raise RefusedError(msg)
    pieces.append(packer.flush())
    made = Held(name, b"".join(pieces))
    made.damage = damage
    return cast(BinaryIO, made), held + len(pieces[-1])


def _read(file: BinaryIO) -> bytes | str:
    """The next piece, or what is wrong with the archive there."""
    try:
        return file.read(_READ_BYTES)
    except RefusedError:
        raise
    except DAMAGE as error:
        return str(error) or type(error).__name__
