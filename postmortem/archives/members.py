"""The members of archives as streams: tar, compressed tar and zip, nested, in one pass and in one order.

Listing and reading are the same walk, so that a member's number in it finds the member again. Nothing is written to
disk. What is not read (links, devices, names that climb out, bombs, encrypted or damaged data) is given with a reason.
"""

from __future__ import annotations

import dataclasses
import io
import posixpath
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

from postmortem.archives.limits import DAMAGE, Limits, RefusedError
from postmortem.archives.plain import Peeked, plain
from postmortem.decompress import compression_of

__all__ = ["Member", "is_archive", "walk"]

_BLOCK = 512
_HEAD = 1 << 16
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ARCHIVE_NAME = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2?|txz|tzst|zip)$", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Member:
    """A member of an archive, or what stands for one that is refused."""

    path: str
    """Within the outermost archive; nested archives' names are folders of it."""
    size: int
    """Bytes as stored in its own archive, decompressed; 0 where refused."""
    refused: str | None = None
    open: Callable[[], BinaryIO] | None = None
    """Its bytes, until the walk goes on; it reads forwards only. None where refused."""


def is_archive(head: bytes, name: str, limits: Limits | None = None) -> bool:
    """Whether a file that begins with `head` is a tar, a compressed tar or a zip."""
    if head.startswith(_ZIP):
        return True
    if compression_of(head):
        try:
            file, _ = plain(io.BytesIO(head), limits or Limits())
            head = file.read(_BLOCK)
        except DAMAGE:
            return _ARCHIVE_NAME.search(name) is not None
        if len(head) < _BLOCK:
            return _ARCHIVE_NAME.search(name) is not None
    return _is_tar(head)


def _is_tar(head: bytes) -> bool:
    """A tar's first header by its own check sum, which every tar since v7 has."""
    if len(head) < _BLOCK:
        return False
    try:
        tarfile.TarInfo.frombuf(head[:_BLOCK], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def walk(file: BinaryIO, limits: Limits) -> Iterator[Member]:
    """All files in an archive, nested archives opened in place. Never raises on the content."""
    for count, member in enumerate(_walk(file, "", limits, 0)):
        if count >= limits.members:
            yield Member(member.path, 0, f"more than {limits.members:,} members: the rest is not read")
            return
        yield member


def _walk(file: BinaryIO, prefix: str, limits: Limits, depth: int) -> Iterator[Member]:
    peeked = Peeked(file, 6)
    zipped = peeked.head.startswith(_ZIP)
    try:
        yield from (_zip if zipped else _tar)(file if zipped and depth == 0 else peeked.file, prefix, limits, depth)
    except RefusedError as error:
        yield Member(prefix, 0, str(error))
    except DAMAGE as error:
        yield Member(prefix, 0, f"the archive is damaged: {error or type(error).__name__}")


class _Header(tarfile.TarInfo):
    """A header that says when it is damaged; tarfile takes one behind the first for the archive's end."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> tarfile.TarInfo:  # type: ignore[override]
        """The next header."""
        import tarfile as module  # noqa: PLC0415 (the parameter's name is tarfile's own)

        try:
            return super().fromtarfile(tarfile)
        except module.HeaderError as error:
            if type(error).__name__ in {"EOFHeaderError", "EmptyHeaderError"} or not tarfile.offset:
                raise
            msg = f"{error} at byte {tarfile.offset}"
            raise module.ReadError(msg) from error


def _tar(file: BinaryIO, prefix: str, limits: Limits, depth: int) -> Iterator[Member]:
    stream, compressed = plain(file, limits)
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:
        for info in archive:
            archive.members.clear()  # type: ignore[attr-defined]  # tarfile remembers all headers; this keeps memory flat
            if info.isdir():
                continue
            why = _name_refused(info.name) or _kind_refused(info) or _size_refused(info.size, limits)
            if why:
                yield Member(posixpath.join(prefix, _shown(info.name)), 0, why)
                continue
            content = cast(BinaryIO, archive.extractfile(info))
            yield from _member(content, posixpath.join(prefix, _clean(info.name)), info.size, limits, depth)
    if compressed is not None and compressed.warnings:
        msg = "; ".join(compressed.warnings)
        raise tarfile.ReadError(msg)


def _zip(file: BinaryIO, prefix: str, limits: Limits, depth: int) -> Iterator[Member]:
    if depth or not file.seekable():  # a zip's list of members stands at its end
        file = _in_memory(file, limits)
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            why = _name_refused(info.filename) or _zip_refused(info) or _size_refused(info.file_size, limits)
            if not why and info.file_size > max(limits.ratio_from_bytes, limits.ratio * info.compress_size):
                why = f"expands more than {limits.ratio:.0f}-fold: refused as a decompression bomb"
            if why:
                yield Member(posixpath.join(prefix, _shown(info.filename)), 0, why)
                continue
            path = posixpath.join(prefix, _clean(info.filename))
            try:
                content = cast(BinaryIO, archive.open(info))
            except DAMAGE as error:
                yield Member(path, 0, f"damaged: {error}")
                continue
            with content:
                yield from _member(content, path, info.file_size, limits, depth)


def _member(content: BinaryIO, path: str, size: int, limits: Limits, depth: int) -> Iterator[Member]:
    """The member itself, or all that is in it when it is an archive."""
    try:
        peeked = Peeked(content, _HEAD)
    except DAMAGE as error:
        yield Member(path, 0, f"damaged: {error}")
        return
    if not is_archive(peeked.head, path, limits):
        yield Member(path, size, open=lambda: peeked.file)
    elif depth + 1 > limits.nesting:
        yield Member(path, 0, f"nested deeper than {limits.nesting} archives: not opened")
    else:
        yield from _walk(peeked.file, path, limits, depth + 1)


def _in_memory(file: BinaryIO, limits: Limits) -> BinaryIO:
    data = file.read(limits.held_bytes + 1)
    if len(data) > limits.held_bytes:
        msg = f"a nested zip larger than {limits.held_bytes >> 20} MiB: unpack it first, or pack it as tar"
        raise RefusedError(msg)
    return io.BytesIO(data)


def _name_refused(name: str) -> str | None:
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", name):
        return "an absolute name"
    if ".." in re.split(r"[/\\]", name):
        return "a name that climbs out of the archive"
    return None


def _kind_refused(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return f"a link (to {info.linkname[:200]}): links in archives are not followed"
    return None if info.isreg() else "neither a file nor a directory"


def _zip_refused(info: zipfile.ZipInfo) -> str | None:
    if info.flag_bits & 1:
        return "encrypted"
    is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
    return "a link: links in archives are not followed" if is_link else None


def _size_refused(size: int, limits: Limits) -> str | None:
    return f"larger than {limits.member_bytes >> 30} GiB" if size > limits.member_bytes else None


def _clean(name: str) -> str:
    return posixpath.normpath(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _shown(name: str) -> str:
    """A refused name as a label that climbs nowhere."""
    return "/".join(part for part in re.split(r"[/\\]", _clean(name)) if part not in {"", ".", ".."}) or "?"
