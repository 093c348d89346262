"""Where answers go: stdout, or files that are written whole or not at all and never over what is not ours."""

import os
import re
import sys
from pathlib import Path

from postmortem.errors import InputError, UsageError

__all__ = ["FORMATS", "SUFFIXES", "OutputClosedError", "beside", "check_writable", "default_path", "emit", "write"]

FORMATS = ("html", "json", "md", "text", "perfetto")

SUFFIXES = {"html": ".html", "json": ".json", "md": ".md", "text": ".txt", "perfetto": ".trace.json"}
"""What follows `<name>.postmortem`."""

# What each kind of report of ours has near its beginning or end.
_MARKS = {
    "html": re.compile(rb'<meta name="generator" content="postmortem'),
    "json": re.compile(rb'\A\s*\{\s*"schema": ?"postmortem/'),
    "md": re.compile(rb"^Made by postmortem ", re.MULTILINE),
    "text": re.compile(rb"^postmortem [^\n]* postmortem/\d+$", re.MULTILINE),
    "perfetto": re.compile(rb'"generator": ?"postmortem'),
}
_ENDS = 16_384  # bytes of a file's beginning and end that are looked at


class OutputClosedError(Exception):
    """The reader of our stdout has gone."""


def emit(answer: str | bytes) -> None:
    """Write an answer to stdout."""
    try:
        if isinstance(answer, str):
            sys.stdout.write(answer)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(answer)
        sys.stdout.flush()
    except BrokenPipeError:  # under a name that typer does not turn into exit code 1
        raise OutputClosedError from None


def default_path(name: str) -> Path:
    """`<name>.postmortem.html` in the current directory, whatever characters the run's name holds."""
    safe = re.sub(r"[^\w.+-]+", "_", name).strip("._") or "run"
    return Path(f"{safe[:120]}.postmortem.html")


def beside(html: Path, kind: str) -> Path:
    """The file for another format beside the HTML report."""
    stem = html.name.removesuffix(".html").removesuffix(".htm")
    return html.with_name(stem + SUFFIXES[kind])


def check_writable(path: Path, kind: str, *, force: bool) -> None:
    """Raise UsageError where writing would destroy what is not ours, or cannot work."""
    if path.is_dir():
        msg = f"{path} is a directory: give a file with -o"
        raise UsageError(msg)
    if not path.parent.is_dir():
        msg = f"{path}: the directory {path.parent} does not exist"
        raise UsageError(msg)
    if path.is_file() and not force and not _is_ours(path, kind):
        msg = f"{path} exists and is no report of ours: give another file with -o, or --force to overwrite it"
        raise UsageError(msg)


def _is_ours(path: Path, kind: str) -> bool:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            ends = file.read(_ENDS)
            file.seek(max(0, size - _ENDS))
            ends += b"\n" + file.read()
    except OSError:
        return False
    return size == 0 or _MARKS[kind].search(ends) is not None


def write(path: Path, answer: str | bytes) -> None:
    """Write a file whole or not at all. Raises InputError where the system refuses."""
    data = answer.encode("utf-8", errors="replace") if isinstance(answer, str) else answer
    try:
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}"
        raise InputError(msg) from error


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name[:120]}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
