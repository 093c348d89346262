"""Bytes of whole lines as a table of clean text lines.

The one place that knows polars' unstable line reader and its traps: it fails as a whole on one byte of bad
UTF-8, so such a chunk is decoded with replacement first; and it decompresses what begins like gzip, zstandard or
zlib (the two letters `x^` are enough), so such a chunk is read behind an empty line.
"""

from __future__ import annotations

import re

import polars as pl

from postmortem.chunks import Chunk

__all__ = ["clean", "lines_of", "raw_lines"]

# Colour and cursor codes (ECMA-48 CSI) and titles (OSC); codes also as they look after copy and paste from a
# terminal or a pager: `^[[2m` (cat -v, less) and `←[2m` (Windows consoles).
_CODES = r"(?:\x1b|\^\[|←)\[[0-?]*[ -/]*[@-~]|\x1b\][0-9]+;[^\x07\x1b]*(?:\x07|\x1b\\)?"
# What they begin with; a single byte is looked for first, since that is ten times as fast.
_BEGINNINGS = ((b"\x1b", b"\x1b"), (b"^", b"^["), (b"\xe2", "←[".encode()))
# `docker compose logs` puts the service before each line: `cuzk-1  | 2026-…`.
_SERVICE = re.compile(rb"([\w.-]{1,64}) +\| ")
_SERVICE_TEXT = r"^[\w.-]{1,64} +\| "
_SERVICES_AT_MOST = 8
_TRACING = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z(?:\\u001b\[0m)? +(?:\\u001b\[\d+m *)?(?:TRACE|DEBUG|INFO|WARN|ERROR)")
_COMPRESSED = (b"\x1f", b"\x28", b"\x78")


def lines_of(chunk: Chunk) -> pl.DataFrame:
    """Columns `line` (1-based number in the stream) and `text` (no colour codes, no CR, no NUL)."""
    lines, coloured = raw_lines(chunk)
    return lines.with_columns(clean(lines["text"])) if coloured else lines


def raw_lines(chunk: Chunk) -> tuple[pl.DataFrame, bool]:
    """The same with colour codes, and whether there are any."""
    data = chunk.data
    for unwanted in (b"\0", b"\r"):
        if unwanted in data:
            data = data.replace(unwanted, b"")
    coloured = any(byte in data and beginning in data for byte, beginning in _BEGINNINGS)
    text = _split(data)
    if len(text) < chunk.lines:  # A last line of nothing but NULs.
        text = pl.concat([text, pl.repeat("", chunk.lines - len(text), dtype=pl.String, eager=True).alias("text")])
    if _from_compose(data):
        text = text.str.replace(_SERVICE_TEXT, "")
    elif _from_docker(data):
        inner = text.str.json_path_match("$.log").str.strip_chars_end("\r\n")
        text = inner.fill_null(text).alias("text")
        coloured = coloured or b"\\u001b" in data
    numbers = pl.int_range(chunk.first_line, chunk.first_line + len(text), dtype=pl.Int64, eager=True)
    return pl.DataFrame({"line": numbers, "text": text}), coloured


def _from_compose(data: bytes) -> bool:
    """Whether nearly all of the chunk's first lines begin with one of a few services' names and a bar."""
    if b" | " not in data[:4096]:
        return False
    head = [line for line in data[:16384].split(b"\n")[:40] if line.strip()]
    services = [match[1] for line in head if (match := _SERVICE.match(line))]
    return len(services) >= max(2, 0.9 * len(head)) and len(set(services)) <= min(_SERVICES_AT_MOST, len(services) // 2)


def _from_docker(data: bytes) -> bool:
    """Whether the chunk is docker's json-file log of a daemon that writes tracing lines (kernel logs keep their dress)."""
    head = data[:16384].split(b"\n")[:-1][:40]
    wrapped = [line for line in head if line.startswith((b'{"log":"', b'{"log": "'))]
    return len(wrapped) >= max(1, 0.9 * len(head)) and any(_TRACING.search(line) for line in wrapped)


def clean(text: pl.Series) -> pl.Series:
    """Text without terminal codes."""
    return text.str.replace_all(_CODES, "").str.replace_all("\x1b", "", literal=True)


def _split(data: bytes) -> pl.Series:
    if not data:
        return pl.Series("text", [], dtype=pl.String)
    if data[:1] in _COMPRESSED:
        return _split(b"\n" + data).slice(1)
    try:
        return pl.read_lines(data, name="text").to_series()
    except pl.exceptions.ComputeError:
        repaired = data.decode("utf-8", "replace").encode()
        return pl.read_lines(repaired, name="text").to_series()
