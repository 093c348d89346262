"""Loops over `ps`: a time line, then one process a line.

Written by `while sleep 2; do echo "--- $(date '+%F %T')"; ps -eo pid,rss,comm; done` with or without ps's header,
and by `ps aux` under a time line. Sizes are kB, as ps (procps 2 to 4) prints them. A sample:

    --- 2026-06-02 18:08:32
       19392       682496 cuzk-daemon

Not read: ps with other columns than pid, a size and a name, unless its header is there; threads.
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem.units import KIB
from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import STAMP, with_times
from postmortem_parsers.samples.rows import add_samples, skip

__all__ = ["ProcessesParser"]

_TIME_LINE = rf"^(?:[-=#*]+ *|\[)?({STAMP})\]?:?(?: *[-=#*]+)?$"
_THREE = r"^([0-9]{1,7}) +([0-9]+) +(\S.*)$"
_HEADER = re.compile(r"^(?=.*\bPID\b)(?=.*\bRSS\b)[A-Z%+_ ]+$")
_CUT = r"^[0-9]{1,7}(?: +[0-9]*)?$"
_RSS_NAMES = ("RSS", "RSZ", "RSSIZE")
_NAME_NAMES = ("COMMAND", "CMD", "COMM", "UCMD", "ARGS")


class ProcessesParser:
    """Resident size of each process at each time."""

    name: ClassVar[str] = "samples_ps"
    reads: ClassVar[str] = "loops over ps: a time line, then pid, resident kB and name a line; also `ps aux`"
    example: ClassVar[str] = "--- 2026-06-02 18:08:32\n   19392       682496 cuzk-daemon"
    priority: ClassVar[int] = 50
    whole: ClassVar[bool] = True

    def __init__(self) -> None:
        self._header: str | None = None

    def sniff(self, head: Head) -> float:
        """The share of time lines and process lines, where there are both."""
        lines = [line.strip() for line in head.lines if line.strip()]
        if not lines:
            return 0.0
        times = sum(bool(re.match(_TIME_LINE, line)) for line in lines)
        self._header = next((line for line in lines if _HEADER.match(line) and _names_all(line)), None)
        row = re.compile(_row_pattern(self._header))
        processes = sum(bool(row.match(line) or _HEADER.match(line)) for line in lines)
        share = (times + processes) / len(lines)
        return share if times and processes > times // 2 and share >= 0.8 else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Time lines, headers, process lines and their cut beginnings."""
        del context
        text = lines["text"].str.strip_chars()
        shapes = f"(?:{_TIME_LINE})|(?:{_row_pattern(self._header)})|(?:{_CUT})"
        return text.str.contains(shapes) | _is_header(text)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples` of scope process, the subject being `pid:name`."""
        tables = Tables()
        text = pl.col("text").str.strip_chars()
        rows = with_times(lines.with_columns(stamp=text.str.extract(_TIME_LINE, 1)), "stamp")
        rows = rows.with_columns(
            pl.col("time", "local_time", "clock_only").forward_fill(), is_time=pl.col("stamp").is_not_null()
        )
        pattern = _row_pattern(self._header)
        fields = {field: text.str.extract(pattern, n) for n, field in enumerate(_fields(self._header), start=1)}
        rows = rows.filter(~pl.col("is_time")).with_columns(**fields)
        is_row = pl.col("pid").is_not_null()
        skip(context, rows.filter(~is_row & ~text.str.contains(r"\bPID\b")), "cut off: no pid, size and name")
        cells = rows.filter(is_row).with_columns(
            cell="size",
            metric=pl.lit("rss_process"),
            scope=pl.lit("process"),
            subject=pl.concat_str("pid", "name", separator=":"),
            unit=pl.lit(KIB, pl.Int64),
            exact=pl.lit(value=True),
        )
        add_samples(tables, cells, context)
        return tables


def _is_header(text: pl.Series) -> pl.Series:
    return text.str.contains(r"\bPID\b") & text.str.contains(r"\bRSS\b") & text.str.contains(r"^[A-Z%+_ ]+$")


def _names_all(header: str) -> bool:
    """Whether a header has a pid, one size and a name, and is not cut before the name."""
    words = header.split()
    return "PID" in words and words[-1] in _NAME_NAMES and sum(word in _RSS_NAMES for word in words) == 1


def _fields(header: str | None) -> list[str]:
    """What the groups of the row's pattern are, in order."""
    if header is None:
        return ["pid", "size", "name"]
    fields = [
        "pid" if w == "PID" else "size" if w in _RSS_NAMES else "name" if w in _NAME_NAMES else ""
        for w in header.split()
    ]
    return [field for field in fields if field]


def _row_pattern(header: str | None) -> str:
    """The pattern of a process line: ps's columns are words, the last is the rest of the line."""
    if header is None:
        return _THREE
    parts = {"PID": "([0-9]{1,7})"} | dict.fromkeys(_RSS_NAMES, "([0-9]+)") | dict.fromkeys(_NAME_NAMES, r"(\S.*)")
    return "^" + " +".join(parts.get(word, r"\S+") for word in header.split()) + "$"
