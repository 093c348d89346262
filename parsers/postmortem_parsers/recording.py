"""What `postmortem record` (0.1 and later) keeps beside logs and samples: arrival times, and how the run was started.

arrivals.csv: when a file of the run directory held how many lines, for lines without a time of their own:

    time,lines,file
    1796119871.192,17,run.log

start.json: one object in one line: command, pid, limits and budgets in bytes,
whether the kernel's log could be read. Not read of it: environment, versions.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, cast

import polars as pl

from postmortem_parsers.interface import Context, Head, Skipped, Tables

__all__ = ["RecordingParser"]

_HEADER = "time,lines,file"
_ROW = r"^([0-9]{9,11}\.[0-9]{3}),([0-9]{1,15}),(\S.*)$"
_START = re.compile(r'^\{"postmortem": "[^"]*", "started": "')
_CUT = "cut off: not a whole row"


class RecordingParser:
    """Table `marks`: arrival, limit_stated, budget_stated, daemon_pid, command, kernel_log."""

    name: ClassVar[str] = "recording"
    reads: ClassVar[str] = "`postmortem record`: arrival times of log lines, the start's command, limits and budgets"
    example: ClassVar[str] = "time,lines,file\n1796119871.192,17,run.log"
    priority: ClassVar[int] = 45
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """Sure by the first line alone."""
        first = head.lines[0] if head.lines else ""
        return 1.0 if first == _HEADER or _START.match(first) else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Every line: nothing else stands in these files."""
        del context
        return pl.repeat(value=True, n=lines.height, eager=True, dtype=pl.Boolean)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Reads one of the two files."""
        tables = Tables()
        if _START.match(lines["text"][0]):
            for number, text in lines.select("line", "text").iter_rows():
                _add_start(tables, number, text, context)
        else:
            _add_arrivals(tables, lines.filter(pl.col("text") != _HEADER), context)
        return tables


def _add_arrivals(tables: Tables, lines: pl.DataFrame, context: Context) -> None:
    text = pl.col("text")
    rows = lines.select(
        "line",
        "text",
        time=(text.str.extract(_ROW, 1).cast(pl.Float64) * 1e6).round().cast(pl.Int64).cast(pl.Datetime("us", "UTC")),
        value=text.str.extract(_ROW, 2).cast(pl.Int64),
        file=text.str.extract(_ROW, 3),
    )
    broken = pl.col("time").is_null() | (pl.col("line") == (context.cut_line or 0))
    context.skipped.extend(
        Skipped(number, _CUT, given) for number, given in rows.filter(broken).select("line", "text").iter_rows()
    )
    good = rows.filter(~broken)
    tables.add(
        "marks",
        good.with_columns(
            text=pl.col("file"), what=pl.lit("arrival"), source=pl.lit(context.source), local_time=pl.lit(value=False)
        ),
    )


def _add_start(tables: Tables, number: int, text: str, context: Context) -> None:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        context.skipped.append(Skipped(number, _CUT, text))
        return
    start = cast("dict[str, Any]", given)
    marks = [(what, words, value) for what, words, value in _facts(start) if words]
    time = pl.Series([str(start.get("started"))] * len(marks)).str.to_datetime(
        "%Y-%m-%dT%H:%M:%S%.f%z", strict=False, time_unit="us"
    )
    frame = pl.DataFrame(marks, schema={"what": pl.String, "text": pl.String, "value": pl.Int64}, orient="row")
    constants = {"line": pl.lit(number), "source": pl.lit(context.source), "local_time": pl.lit(value=False)}
    tables.add("marks", frame.with_columns(time=time, **constants))


def _facts(start: dict[str, Any]) -> list[tuple[str, str, int | None]]:
    """(what, words, value) of each mark, hostile values left out."""
    facts: list[tuple[str, str, int | None]] = []
    command = start.get("command")
    if isinstance(command, list):
        facts.append(("command", " ".join(map(str, cast("list[object]", command))), None))
    if (limit := _size(start.get("binding_limit"))) is not None:
        facts.append(("limit_stated", f"the smallest limit of {start.get('cgroup')} and its ancestors", limit))
    if isinstance(kernel_log := start.get("kernel_log"), str):
        facts.append(("kernel_log", kernel_log, None))
    if (pid := _size(start.get("pid"))) is not None:
        facts.append(("daemon_pid", "the process that was recorded", pid))
    budgets = start.get("budgets")
    for one in cast("list[object]", budgets) if isinstance(budgets, list) else []:
        stated = cast("dict[str, object]", one) if isinstance(one, dict) else {}
        if (size := _size(stated.get("size"))) is not None:
            facts.append(
                ("budget_stated", f"{stated.get('name')} = {stated.get('text')} ({stated.get('where')})", size)
            )
    return facts


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 60 else None
