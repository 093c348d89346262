"""What `postmortem probe --json` (0.1 and later) prints: one JSON object a probe, several where they were appended.

    {
     "schema": "postmortem-probe/1",
     "time": "2026-03-19T02:10:00Z",
     "limit": 367219703808, …

Not read of it: the single limits but the host's, and how each kind of memory was charged.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, cast

import polars as pl

from postmortem_parsers.interface import Context, Head, Skipped, Tables

__all__ = ["ProbeParser"]

_START = re.compile(r'\{\s*"schema":\s*"postmortem-probe/')
_CUT = "cut off or not a probe's result"
_MOST = 1 << 60  # bytes; above are the kernel's words for "no limit"
_KEYS = {
    "limit": ("probe_limit", "the smallest limit, {limited_by}"),
    "used": ("probe_used", "used before"),
    "usable": ("probe_usable", "could be allocated"),
    "budget": ("probe_budget", "the budget that the probe recommends"),
}

_Fact = tuple[str, str, str, int]
"""(key, what, words, bytes) of a mark."""


class ProbeParser:
    """Table `marks`: probe_limit, probe_used, probe_usable, probe_overhead, probe_budget, host_total_stated."""

    name: ClassVar[str] = "probe"
    reads: ClassVar[str] = "`postmortem probe --json`: limit, what could be allocated, overhead, budget"
    example: ClassVar[str] = '{"schema": "postmortem-probe/1", "time": "2026-03-19T02:10:00Z", "limit": 367219703808}'
    priority: ClassVar[int] = 45
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """Sure by the beginning."""
        return 1.0 if _START.match("\n".join(head.lines[:3]).lstrip()) else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Every line: nothing else stands in such a file."""
        del context
        return pl.repeat(value=True, n=lines.height, eager=True, dtype=pl.Boolean)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Reads object after object; what follows one that cannot be read is skipped with it."""
        tables = Tables()
        numbers, texts = lines["line"].to_list(), lines["text"].to_list()
        rest = list(zip(numbers, texts, strict=True))
        while rest := _without_blank(rest):
            text = "\n".join(line for _, line in rest)
            try:
                found, end = json.JSONDecoder().raw_decode(text)
            except (ValueError, RecursionError):
                found, end = None, len(text)
            used = text.count("\n", 0, end) + 1
            facts = _facts(cast("dict[str, Any]", found)) if isinstance(found, dict) else []
            if facts:
                _add(tables, facts, cast("dict[str, Any]", found).get("time"), rest[:used], context)
            else:
                context.skipped.extend(Skipped(number, _CUT, line) for number, line in rest[:used])
            rest = rest[used:]
        return tables


def _without_blank(rest: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return next((rest[n:] for n, (_, line) in enumerate(rest) if line.strip()), [])


def _add(tables: Tables, facts: list[_Fact], at: object, lines: list[tuple[int, str]], context: Context) -> None:
    marks = [(what, words, value, _line_of(key, lines)) for key, what, words, value in facts]
    frame = pl.DataFrame(
        marks, schema={"what": pl.String, "text": pl.String, "value": pl.Int64, "line": pl.Int64}, orient="row"
    )
    time = pl.Series([str(at)] * len(marks), dtype=pl.String).str.to_datetime(
        "%Y-%m-%dT%H:%M:%SZ", strict=False, time_unit="us", time_zone="UTC"
    )
    constants = {"source": pl.lit(context.source), "local_time": pl.lit(value=False)}
    tables.add("marks", frame.with_columns(time=time, **constants))


def _line_of(key: str, lines: list[tuple[int, str]]) -> int:
    return next((number for number, text in lines if f'"{key}":' in text), lines[0][0])


def _facts(probe: dict[str, Any]) -> list[_Fact]:
    """What is no size is left out."""
    host = probe.get("limited_by") == "host"  # then the limit is the host's memory, and no cgroup's
    facts = [
        (key, "host_total_stated" if host and key == "limit" else what, words.format_map({"limited_by": where}), value)
        for key, (what, words) in _KEYS.items()
        if (value := _size(probe.get(key))) is not None
        for where in [str(probe.get("limited_by"))]
    ]
    measured = probe.get("measured")
    rows = cast("list[object]", measured) if isinstance(measured, list) else []
    stated = [cast("dict[str, Any]", one).get("overhead") for one in rows if isinstance(one, dict)]
    overheads = [size for one in stated if (size := _size(one)) is not None]
    if overheads:
        facts.append(("overhead", "probe_overhead", "charged beside what was allocated", max(overheads)))
    return facts


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None
