"""Compressed inputs as plain bytes: gzip, zstandard, xz and bzip2, told apart by their first bytes, not by a name.

Several members (frames) in a row are read as one, as `zcat` does. Of a truncated or damaged input everything up
to the damage is given, and a warning.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, cast

__all__ = ["compression_of", "decompressed"]

# What a decoder is given at a time. All but zstandard's can be asked for a bounded piece of output; that one gives all
# at once, and its run-length blocks expand about 32,000-fold: behind a step that made much, smaller ones follow.
_STEP = {"gz": 1 << 18, "zst": 1 << 12, "xz": 1 << 14, "bz2": 1 << 14}
_SMALLEST_STEP = 1 << 6
_PIECE = 8 << 20

# What a stream may ask for before it gives a byte: as much as zstd(1) allows unasked, and twice what `xz -9` needs.
_ZST_WINDOW = 1 << 27
_XZ_MEMORY = 1 << 27

_MAGIC = {"gz": b"\x1f\x8b", "zst": b"\x28\xb5\x2f\xfd", "xz": b"\xfd7zXZ\x00", "bz2": b"BZh"}
_SKIPPABLE = tuple(bytes([code]) + b"\x2a\x4d\x18" for code in range(0x50, 0x60))
"""Frames of zstandard that hold no content (RFC 8878, 3.1.2)."""


class _Decoder(Protocol):
    """The decoder of one member."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class _Deflate(Protocol):
    """zlib's decoder, and isal's in the same form."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Remark(NamedTuple):
    """What is wrong with a stream."""

    text: str
    again: bool = False
    """A second, finer pass may give more."""
    damage: int | None = None
    """How many stored bytes were surely sound, where others are not."""


def compression_of(head: bytes) -> str | None:
    """`gz`, `zst`, `xz` or `bz2` by the first bytes of a stream, None for anything else."""
    if head.startswith(_SKIPPABLE):
        return "zst"
    return next((name for name, magic in _MAGIC.items() if head.startswith(magic)), None)


def decompressed(
    pieces: Iterator[bytes],
    kind: str,
    warn: Callable[[str], None],
    again: Callable[[], Iterator[bytes]] | None = None,
) -> Iterator[bytes]:
    """The plain bytes of a compressed stream, in pieces of some MiB (at the very worst 128 MiB, of a zstandard bomb).

    Never raises on the content: `warn` is told where a damaged or truncated input stops. `again` gives the stored bytes
    once more: isal keeps back the last bytes before the end of what is there, and every decoder what it made of a step
    before it met the damage in it; a second pass in steps of one byte gives them.
    """
    given = 0
    for item in _decoded(pieces, kind, fast=again is not None):
        if isinstance(item, bytes):
            given += len(item)
            yield item
        elif again is not None and item.again:
            yield from _salvaged(again(), kind, given, item.damage, warn)
        else:
            warn(item.text)


def _salvaged(
    pieces: Iterator[bytes], kind: str, given: int, damage: int | None, warn: Callable[[str], None]
) -> Iterator[bytes]:
    """What the reference decoder makes of a damaged stream, without the first `given` bytes of it."""
    fine_from = None if damage is None else damage - _STEP[kind]
    for item in _decoded(pieces, kind, fine_from=fine_from):
        if isinstance(item, bytes):
            if len(item) > given:
                yield item[given:]
            given = max(0, given - len(item))
        else:
            warn(item.text)


def _decoded(
    pieces: Iterator[bytes], kind: str, *, fast: bool = False, fine_from: int | None = None
) -> Iterator[bytes | _Remark]:
    """Plain bytes, and at the end what is wrong. From the stored byte `fine_from` on, one byte is decoded at a time."""
    member: _Decoder | None = None
    errors = _errors(kind)
    done, step = 0, _STEP[kind]
    for piece in pieces:
        start = 0
        while start < len(piece):
            data = piece[start : start + (step if fine_from is None or done + step <= fine_from else 1)]
            start, length, made = start + len(data), len(data), 0
            while data:
                if member is None:
                    if not _begins_member(data, kind):
                        # Padding or foreign bytes behind the last member: gzip(1) ignores them too.
                        if data.strip(b"\0"):
                            yield _Remark(f"bytes after the end of the {kind} data were ignored")
                        return
                    member = _decoder_of(kind, fast=fast)
                try:
                    for plain in _outputs(member, kind, data):
                        made += len(plain)
                        yield plain
                except errors as error:
                    yield _Remark(f"{kind} data is damaged ({error}): read up to the damage", again=True, damage=done)
                    return
                data = b""
                if member.eof:
                    data, member = member.unused_data, None
            done += length
            step = max(_SMALLEST_STEP, step // 8) if made > _PIECE else min(_STEP[kind], step * 2)
    if member is not None:
        if kind == "gz" and not fast:
            yield cast(_Deflate, member).flush()
        yield _Remark(f"{kind} data is truncated: read as far as it goes", again=fast and kind == "gz")


def _begins_member(data: bytes, kind: str) -> bool:
    magics = (_MAGIC[kind], *_SKIPPABLE) if kind == "zst" else (_MAGIC[kind],)
    return any(data.startswith(magic[: len(data)]) for magic in magics)


def _decoder_of(kind: str, *, fast: bool) -> _Decoder:
    match kind:
        case "gz" if fast:
            from isal import isal_zlib  # noqa: PLC0415 (most inputs are not compressed)

            return cast(_Decoder, isal_zlib.decompressobj(wbits=31))
        case "gz":
            return cast(_Decoder, zlib.decompressobj(wbits=31))
        case "zst":
            import zstandard  # noqa: PLC0415 (as above)

            return cast(_Decoder, zstandard.ZstdDecompressor(max_window_size=_ZST_WINDOW).decompressobj())
        case "xz":
            return lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
        case _:
            return bz2.BZ2Decompressor()


def _errors(kind: str) -> tuple[type[Exception], ...]:
    general: tuple[type[Exception], ...] = (OSError, EOFError, ValueError)
    match kind:
        case "gz":
            from isal import isal_zlib  # noqa: PLC0415 (as above)

            return (*general, zlib.error, cast("type[Exception]", isal_zlib.error))
        case "zst":
            import zstandard  # noqa: PLC0415 (as above)

            return (*general, zstandard.ZstdError)
        case _:
            return (*general, lzma.LZMAError)


def _outputs(member: _Decoder, kind: str, data: bytes) -> Iterator[bytes]:
    """What a decoder makes of `data`."""
    if isinstance(member, (lzma.LZMADecompressor, bz2.BZ2Decompressor)):
        yield member.decompress(data, _PIECE)
        while not member.eof and not member.needs_input:
            yield member.decompress(b"", _PIECE)
    elif kind == "gz":
        deflate = cast(_Deflate, member)
        while data and not deflate.eof:
            yield deflate.decompress(data, _PIECE)
            data = deflate.unconsumed_tail
    else:
        yield member.decompress(data)
