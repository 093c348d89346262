"""Compressed inputs as plain bytes: gzip, zstandard, xz and bzip2, told apart by their first bytes, not by a name.

Several members (frames) in a row are read as one, as `zcat` does. Of a truncated or damaged input everything up
to the damage is given, and a warning.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol, cast

import zstandard

__all__ = ["compression_of", "decompressed"]

# Small steps bound the memory that one call can ask for: zlib expands at most 1032-fold, zstandard's run-length
# blocks about 32,000-fold, bzip2 and xz are asked for a bounded piece at a time.
_STEP = {"gz": 1 << 16, "zst": 1 << 12, "xz": 1 << 14, "bz2": 1 << 14}
_PIECE = 8 << 20

_MAGIC = {"gz": b"\x1f\x8b", "zst": b"\x28\xb5\x2f\xfd", "xz": b"\xfd7zXZ\x00", "bz2": b"BZh"}
_ERRORS = (zlib.error, zstandard.ZstdError, lzma.LZMAError, OSError, EOFError, ValueError)


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


def compression_of(head: bytes) -> str | None:
    """`gz`, `zst`, `xz` or `bz2` by the first bytes of a stream, None for anything else."""
    return next((name for name, magic in _MAGIC.items() if head.startswith(magic)), None)


def decompressed(pieces: Iterator[bytes], kind: str, warn: Callable[[str], None]) -> Iterator[bytes]:
    """The plain bytes of a compressed stream, in pieces of at most some MiB.

    Never raises on the content: `warn` is told where a damaged or truncated input stops.
    """
    decoder: _Decoder | None = None
    for piece in pieces:
        for start in range(0, len(piece), _STEP[kind]):
            data = piece[start : start + _STEP[kind]]
            while data:
                if decoder is None:
                    if not data.startswith(_MAGIC[kind][: len(data)]):
                        # Padding or foreign bytes behind the last member: gzip(1) ignores them too.
                        if data.strip(b"\0"):
                            warn(f"bytes after the end of the {kind} data were ignored")
                        return
                    decoder = _new_decoder(kind)
                try:
                    yield from _decode(decoder, data)
                except _ERRORS as error:
                    warn(f"{kind} data is damaged ({error}): read up to the damage")
                    return
                data = b""
                if decoder.eof:
                    data, decoder = decoder.unused_data, None
    if decoder is not None:
        warn(f"{kind} data is truncated: read as far as it goes")


def _new_decoder(kind: str) -> _Decoder:
    if kind == "gz":
        return cast(_Decoder, zlib.decompressobj(wbits=31))
    if kind == "zst":
        return cast(_Decoder, zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj())
    return cast(_Decoder, lzma.LZMADecompressor() if kind == "xz" else bz2.BZ2Decompressor())


def _decode(decoder: _Decoder, data: bytes) -> Iterator[bytes]:
    if isinstance(decoder, (lzma.LZMADecompressor, bz2.BZ2Decompressor)):
        yield decoder.decompress(data, _PIECE)
        while not decoder.eof and not decoder.needs_input:
            yield decoder.decompress(b"", _PIECE)
    else:
        yield cast("zstandard.ZstdDecompressionObj", decoder).decompress(data)
