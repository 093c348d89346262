"""One value in a TOML, YAML, JSON or INI file, replaced in its place: comments, order, quotes and line ends stay as they are."""

import contextlib
import dataclasses
import errno
import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from postmortem.errors import UsageError

__all__ = ["ConfigFile", "Found", "find"]

_SECTION = re.compile(r"^\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:[#;].*)?$")
# A key at the beginning of its line, `=` or `:`, and a value up to a comment or the line's end.
_LINE = re.compile(
    r"""^(?P<indent>\s*(?:-\s+)?)(?P<key>"[^"]+"|'[^']+'|[\w.-]+)\s*(?P<sign>[=:])(?:\s+|(?<==)|$)"""
    r"""(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s#;"'](?:[^#;\n]*[^\s#;])?|)\s*(?:[#;].*)?$"""
)
_BLOCK = re.compile(r"^[|>][+-]?\d?$")
_JSON_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclasses.dataclass(frozen=True)
class Found:
    """One scalar of a file: where it stands in the text, and its whole path."""

    path: str
    start: int
    end: int


def find(text: str, key: str) -> list[Found]:
    """All scalars whose path is `key` or ends in it (`budget`, `memory.budget`)."""
    scalars = (
        _in_json(text) if text.lstrip()[:1] in {"{", "["} and not _SECTION.match(_first(text)) else _in_lines(text)
    )
    return [one for one in scalars if one.path == key or one.path.endswith(f".{key}")]


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def _in_lines(text: str) -> Iterator[Found]:
    section, at, block = "", 0, None
    parents: list[tuple[int, str]] = []
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        indent = len(bare) - len(bare.lstrip())
        if block is not None and (indent > block or not bare.strip()):
            at += len(line)
            continue
        block = None
        if header := _SECTION.match(bare):
            section, parents = header[1].replace('"', ""), []
        elif found := _LINE.match(bare):
            depth, name = len(found["indent"]), found["key"].strip("\"'")
            parents = [one for one in parents if one[0] < depth] if found["sign"] == ":" else []
            path = ".".join([*([section] if section else []), *(one for _, one in parents), name])
            if _BLOCK.match(found["value"]):
                block = indent
            elif found["value"]:
                yield Found(path, at + found.start("value"), at + found.end("value"))
            elif found["sign"] == ":":
                parents.append((depth, name))
        at += len(line)


def _in_json(text: str) -> Iterator[Found]:
    parents: list[str] = []
    key, name, value_next = "", "", False
    for token in _JSON_TOKEN.finditer(text):
        word = token[0]
        if word in {"{", "["}:
            parents.append(name if value_next else "")
            value_next = False
        elif word in {"}", "]"}:
            parents = parents[:-1]
            value_next = False
        elif word == ":":
            name, value_next = key, True
        elif word == ",":
            value_next = False
        elif value_next:
            yield Found(".".join([*(one for one in parents if one), name]), token.start(), token.end())
            value_next = False
        else:
            key = word.strip('"')


@dataclasses.dataclass
class ConfigFile:
    """The file, its key and what it held before. Raises UsageError where the key is not there exactly once."""

    path: Path
    key: str
    _before: bytes | None = None

    def check(self) -> None:
        """Find the key without writing anything."""
        self._replaced("0")

    def set(self, value: str) -> None:
        """Replace the value, whole or not at all."""
        data = self._replaced(value)
        if self._before is None:
            self._before = self._read()
        self._write(data)

    def restore(self) -> None:
        """Put back what the file held before the first `set`."""
        if self._before is not None:
            self._write(self._before)

    def _read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            msg = f"--set-file {self.path}: {error.strerror}"
            raise UsageError(msg) from error

    def _replaced(self, value: str) -> bytes:
        try:
            text = self._read().decode()
        except UnicodeDecodeError as error:
            msg = f"--set-file {self.path}: not UTF-8 text"
            raise UsageError(msg) from error
        found = find(text, self.key)
        if len(found) != 1:
            paths = f" ({', '.join(one.path for one in found)}: give the whole path)" if found else ""
            msg = f"--set-file {self.path}: {len(found)} lines set {self.key!r}; exactly one is needed{paths}"
            raise UsageError(msg)
        (one,) = found
        changed = text[: one.start] + _quoted(text[one.start : one.end], value, text, self.path) + text[one.end :]
        self._check_parses(text, changed)
        return changed.encode()

    def _check_parses(self, before: str, after: str) -> None:
        """What could be parsed before must be afterwards."""
        parse = {".toml": tomllib.loads, ".json": json.loads}.get(self.path.suffix.lower())
        if parse is None:
            return
        try:
            parse(before)
        except ValueError:
            return
        try:
            parse(after)
        except ValueError as error:
            msg = f"--set-file {self.path}: setting {self.key!r} would break the file ({error}); use --set instead"
            raise UsageError(msg) from error

    def _write(self, data: bytes) -> None:
        target = self.path.resolve()  # a link stays a link
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            try:
                _write_like(target, part, data)
                part.replace(target)
            except OSError as error:
                if error.errno not in {errno.EBUSY, errno.EACCES, errno.EPERM}:
                    raise
                # A file that is mounted into a container by itself, or in a folder of others, can only be overwritten.
                target.write_bytes(data)
            finally:
                part.unlink(missing_ok=True)
        except OSError as error:
            msg = f"--set-file {self.path}: {error.strerror}; the file must be writable (or use --set or --set-env)"
            raise UsageError(msg) from error


def _write_like(target: Path, part: Path, data: bytes) -> None:
    """Write `part` with the rights and, where we may give it away, the owner of `target`."""
    status = target.stat()
    with part.open("xb") as file:
        os.fchmod(file.fileno(), status.st_mode & 0o7777)
        with contextlib.suppress(PermissionError):
            os.fchown(file.fileno(), status.st_uid, status.st_gid)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _quoted(before: str, value: str, text: str, path: Path) -> str:
    """The value in the quotes of the one before it; a word gets some where the format needs them."""
    if before[:1] in {'"', "'"}:
        return f"{before[0]}{value}{before[0]}"
    needs = path.suffix.lower() in {".toml", ".json"} or text.lstrip()[:1] == "{"
    return f'"{value}"' if needs and not _NUMBER.fullmatch(value) else value
