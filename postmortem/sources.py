"""Inputs as streams of lines: files, directories (one run each), standard input, open binary files.

What is compressed is decompressed on the way; size and SHA-256 are those of the file as it is stored.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from postmortem.background import Hasher, ahead
from postmortem.chunks import CHUNK_BYTES, Chunk, as_utf8, chunks, exact
from postmortem.decompress import compression_of, decompressed
from postmortem.errors import InputError, NoEvidenceError, NotFoundError

__all__ = ["Stream", "find"]

_READ_BYTES = 4 << 20
_HEAD_BYTES = 1 << 16
_SPOOL_IN_MEMORY = 64 << 20
_ANSWERS = frozenset({"expected.json", "truth.json"})  # what a fixture says of itself is no evidence
_OUR_OUTPUT = re.compile(r"\.postmortem\.")
_COMPRESSION_SUFFIX = re.compile(r"\.(gz|zst|zstd|xz|bz2)$", re.IGNORECASE)

# Bytes that no log holds: control codes other than tab, newlines, form feed, backspace, bell and escape. NULs are
# left out: a log that was truncated under a writer (logrotate's copytruncate) begins with many of them.
_CONTROL = bytes(code for code in range(1, 32) if code not in b"\a\b\t\n\f\r\x1b")
_BINARY_SHARE = 0.1
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class _Place(NamedTuple):
    """Where a chunk stands in a plain file."""

    first_line: int
    lines: int
    start: int
    length: int


class Stream:
    """One input. `sha256` and `bytes` are known once `chunks` has run to its end; it can be run again."""

    def __init__(self, path: str, source: Path | BinaryIO) -> None:
        self.path = path
        """As the user gave it, or relative to the directory that he gave."""
        self.warnings: list[str] = []
        self.sha256 = ""
        self.bytes = 0
        self._source = source
        self._places: list[_Place] = []
        self.head = self._read_head()
        """The first bytes as stored, at most 64 KiB."""
        self.compression = compression_of(self.head)

    def __repr__(self) -> str:
        return f"Stream({self.path!r})"

    @property
    def name(self) -> str:
        """File name without folder and compression suffix; `-` for standard input."""
        return _COMPRESSION_SUFFIX.sub("", Path(self.path).name) if self.path != "-" else "-"

    @property
    def empty(self) -> bool:
        """No byte in it."""
        return not self.head

    @property
    def binary(self) -> bool:
        """Neither text nor a compression that we read."""
        return self.compression is None and _looks_binary(self.head)

    def chunks(self, *, size: int = CHUNK_BYTES, hashed: bool = True) -> Iterator[Chunk]:
        """Chunks of whole lines. Never raises on the content; an unreadable rest is a warning."""
        hasher = Hasher() if hashed else None
        seen = hasher.update if hasher else _ignore
        if isinstance(self._source, Path) and self.compression is None and not self.head.startswith(_UTF16):
            yield from self._plain_chunks(self._source, size, seen)
        else:
            yield from self._piped_chunks(size, seen)
        if hasher:
            self.sha256, self.bytes = hasher.close(), hasher.bytes

    def chunks_with(self, lines: AbstractSet[int]) -> Iterator[Chunk]:
        """The chunks that hold any of these lines, read again; after `chunks` has run."""
        last = max(lines, default=0)
        for chunk in self._places or self.chunks(hashed=False):
            if chunk.first_line > last:
                return
            if not lines.isdisjoint(range(chunk.first_line, chunk.first_line + chunk.lines)):
                yield chunk if isinstance(chunk, Chunk) else self._again(chunk)

    def _plain_chunks(self, path: Path, size: int, seen: Callable[[bytes], None]) -> Iterator[Chunk]:
        with _open(path, self.path) as file:
            start = len(codecs.BOM_UTF8) if self.head.startswith(codecs.BOM_UTF8) else 0
            seen(self.head[:start])
            places: list[_Place] = []
            for chunk in exact(self._reader_of(file), self._warn, seen, start=start, size=size):
                places.append(_Place(chunk.first_line, chunk.lines, chunk.place or 0, len(chunk.data)))
                yield chunk
        self._places = places

    def _piped_chunks(self, size: int, seen: Callable[[bytes], None]) -> Iterator[Chunk]:
        stored = self._stored(seen)
        plain = stored
        if self.compression:
            plain = ahead(decompressed(stored, self.compression, self._warn, lambda: self._stored(_ignore)))
        try:
            yield from chunks(as_utf8(plain), self._warn, size=size)
        finally:
            plain.close()
        for _ in stored:  # Whatever the decompressor left, for size and hash.
            pass

    def _again(self, place: _Place) -> Chunk:
        with self._open() as file:
            data = self._reader_of(file)(place.start, place.length)
        return Chunk(data, place.first_line, cut=not data.endswith(b"\n"))

    def _stored(self, seen: Callable[[bytes], None]) -> Generator[bytes, None, None]:
        file = self._open()
        try:
            while piece := self._read(file):
                seen(piece)
                yield piece
        finally:
            if file is not self._source:
                file.close()

    def _read(self, file: BinaryIO) -> bytes:
        try:
            return file.read(_READ_BYTES)
        except OSError as error:  # A failing disk or network mount: what was read so far still counts.
            self._warn(f"reading stopped: {error.strerror or error}")
            return b""

    def _reader_of(self, file: BinaryIO) -> Callable[[int, int], bytes]:
        """Read so many bytes at a place; fewer only at the end."""

        def read(place: int, length: int) -> bytes:
            try:
                data = os.pread(file.fileno(), length, place)
                while len(data) < length and (more := os.pread(file.fileno(), length - len(data), place + len(data))):
                    data += more
            except OSError as error:
                self._warn(f"reading stopped: {error.strerror or error}")
                return b""
            return data

        return read

    def _open(self) -> BinaryIO:
        if isinstance(self._source, Path):
            return _open(self._source, self.path)
        self._source.seek(0)
        return self._source

    def _read_head(self) -> bytes:
        file = self._open()
        try:
            return file.read(_HEAD_BYTES)
        except OSError as error:
            msg = f"{self.path}: cannot be read ({error.strerror or error})"
            raise InputError(msg) from error
        finally:
            if file is not self._source:
                file.close()

    def _warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)


def find(paths: Sequence[str | Path | BinaryIO]) -> list[Stream]:
    """The streams of a run, in the order of their paths.

    A directory stands for all files in it, without hidden ones and earlier outputs of ours. `-` is standard
    input. Raises NotFoundError, InputError (no permission) or NoEvidenceError (nothing in it), each with what
    to do.
    """
    streams: dict[str, Stream] = {}
    several = len(paths) > 1
    for path in paths:
        for stream in _streams_of(path, several=several):
            streams.setdefault(stream.path, stream)
    found = sorted(streams.values(), key=lambda stream: stream.path)
    if not found:
        raise NoEvidenceError("no input: name a log file, a directory, or - for standard input")
    _refuse_only_empty(found)
    return found


def _refuse_only_empty(streams: list[Stream]) -> None:
    if all(stream.empty for stream in streams):
        names = ", ".join(stream.path for stream in streams[:3])
        msg = f"{names}: empty; give the daemon's captured output, memory samples or a kernel log"
        raise NoEvidenceError(msg)
    for stream in streams:
        if stream.empty:
            stream.warnings.append("empty")


def _streams_of(path: str | Path | BinaryIO, *, several: bool) -> Iterator[Stream]:
    if not isinstance(path, (str, Path)):
        yield Stream(str(getattr(path, "name", "-")), _seekable(path))
        return
    if str(path) == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] (so it is where the caller closed it)
            raise InputError("-: standard input is closed; give a file, or pipe something in")
        yield Stream("-", _spooled(sys.stdin.buffer))
        return
    where = Path(path)
    try:
        mode = where.stat().st_mode
    except PermissionError as error:
        msg = f"{path}: no permission to read it; run as its owner or copy it"
        raise InputError(msg) from error
    except (OSError, ValueError) as error:
        msg = f"{path}: no such file or directory; check the path"
        raise NotFoundError(msg) from error
    if stat.S_ISDIR(mode):
        yield from _streams_in(where, prefix=where.name if several else "")
    elif stat.S_ISREG(mode):
        yield Stream(str(path), where)
    elif stat.S_ISCHR(mode) or stat.S_ISBLK(mode):  # Some have no end, and others are disks.
        msg = f"{path}: a device, not a file; give a file, or - for standard input"
        raise InputError(msg)
    else:  # A pipe such as bash's <(…): it can be read only once.
        with _open(where, str(path)) as file:
            yield Stream(str(path), _spooled(file))


def _streams_in(directory: Path, *, prefix: str) -> Iterator[Stream]:
    found = False
    for file in sorted(_files_in(directory)):
        shown = file.relative_to(directory)
        found = True
        yield Stream(str(Path(prefix) / shown), file)
    if not found:
        msg = f"{directory}: holds no files to read; give the folder with the run's logs"
        raise NoEvidenceError(msg)


def _files_in(directory: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        msg = f"{error.filename}: no permission to list it; run as its owner or copy it"
        raise InputError(msg) from error

    for folder, folders, names in os.walk(directory, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(folder) / name
            if not name.startswith(".") and name not in _ANSWERS and not _OUR_OUTPUT.search(name) and _is_file(file):
                yield file


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError as error:  # In a directory that may be listed but not entered.
        msg = f"{path}: no permission to look at it; run as its owner or copy it"
        raise InputError(msg) from error


def _open(path: Path, shown: str) -> BinaryIO:
    try:
        return path.open("rb")
    except PermissionError as error:
        msg = f"{shown}: no permission to read it; run as its owner or copy it"
        raise InputError(msg) from error
    except FileNotFoundError as error:
        msg = f"{shown}: no such file; check the path"
        raise NotFoundError(msg) from error
    except OSError as error:
        msg = f"{shown}: cannot be read ({error.strerror or error})"
        raise InputError(msg) from error


def _seekable(file: BinaryIO) -> BinaryIO:
    return file if file.seekable() else _spooled(file)


def _spooled(file: BinaryIO) -> BinaryIO:
    """A copy that can be read again, on disk when it is large."""
    spool = cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=_SPOOL_IN_MEMORY))  # noqa: SIM115 (the stream owns it)
    while piece := file.read(_READ_BYTES):
        spool.write(piece)
    spool.seek(0)
    return spool


def _ignore(data: bytes) -> None:
    """Nobody asks for the hash of what is read again."""
    del data


def _looks_binary(head: bytes) -> bool:
    if head.startswith(_UTF16):
        return False
    text = head.replace(b"\0", b"")
    if not text:
        return False
    control = len(text) - len(text.translate(None, _CONTROL))
    broken = text.decode("utf-8", "replace").count("�")
    return control + broken > _BINARY_SHARE * len(text)
