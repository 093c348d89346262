"""Loops that print a time on one line and bare values on the next ones.

Written by `while sleep 5; do date +%s; cat /sys/fs/cgroup/memory.current; done` and its relatives (`date`,
`date -Is`, `date +%T`). Comments and the shell's trace (`+ while …`) may stand before; `# limit: N` states the limit.
A sample:

    Wed Jul 15 03:29:46 UTC 2026
    3663314944

Not read: loops that print names as well (see `dumps.py`) or time and value on one line (`delimited.py`).
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import DATED, EPOCH, STAMP, with_times
from postmortem_parsers.samples.guess import by_values, unit_of, unit_word
from postmortem_parsers.samples.rows import add_samples, mark, skip
from postmortem_parsers.samples.sizes import SIZE, with_sizes

__all__ = ["LoopParser"]

_TIME_LINE = rf"^({STAMP})$"
_VALUE_LINE = rf"^({SIZE}|max)$"
_LIMIT_LINE = rf"^#?\s*(?:memory |mem |cgroup )*(?:limit|max|memory\.max|memory\.limit_in_bytes)\s*[:=]?\s*({SIZE})$"
_ASIDE = r"^(?:#|\+ |cat: )"
_ANY = re.compile("|".join(f"(?:{p})" for p in (_TIME_LINE, _VALUE_LINE, _LIMIT_LINE, _ASIDE)))
_MONTH_US = 30 * 86_400 * 1_000_000


class LoopParser:
    """Lines of time and lines of values, told apart by what a clock would show."""

    name: ClassVar[str] = "samples_loop"
    reads: ClassVar[str] = "loops that print a time and then bare values (`date +%s; cat memory.current`)"
    example: ClassVar[str] = "1773886571\n8352785044"
    priority: ClassVar[int] = 50
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """The share of lines of these shapes, where times and values take turns."""
        lines = pl.DataFrame(
            {"text": [line.strip() for line in head.lines if line.strip()]}, schema={"text": pl.String}
        )
        if not lines.height:
            return 0.0
        share = sum(bool(_ANY.match(line)) for line in lines["text"]) / lines.height
        kinds = _with_kinds(lines)
        times, values = int(kinds["is_time"].sum()), int(kinds["is_value"].sum())
        return share if share >= 0.8 and times and values and times <= values + 2 + values // 2 else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Times, values, comments, traces and the complaints of `cat`."""
        del context
        return lines["text"].str.strip_chars().str.contains(_ANY.pattern)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples`, and of `marks` for a stated limit."""
        tables = Tables()
        rows = _with_kinds(lines.with_columns(pl.col("text").str.strip_chars()))
        skip(context, rows.filter(pl.col("text").str.starts_with("cat: ")), "the counter could not be read")
        _add_stated_limit(tables, rows, context)
        values = rows.filter(pl.col("is_value") & (pl.col("moment") > 0))
        skip(context, rows.filter(pl.col("is_value") & (pl.col("moment") == 0)), "a value before the first time")
        skip(context, rows.filter("is_bad_time"), "no such time")
        if values.height:
            add_samples(tables, _named(values, context), context)
        return tables


def _with_kinds(rows: pl.DataFrame) -> pl.DataFrame:
    """`is_time`, `is_value`, the time filled down, `moment` (times so far) and `place` (values since the last time)."""
    text = pl.col("text")
    timed = with_times(rows.with_columns(stamp=text.str.extract(_TIME_LINE, 1)), "stamp")
    numeric = text.str.contains(rf"^{EPOCH}$")
    if timed["text"].str.contains(rf"^{DATED}$").any() or timed["clock_only"].any():
        is_time = pl.col("time").is_not_null() & ~numeric
    else:
        # A value can look like an epoch (1.7 GB). Half of the numbers are times, and close together: those near
        # the middle one are times, whatever else falls into the range is a value.
        middle = timed["time"].drop_nulls().cast(pl.Int64).median()
        near = (pl.col("time").cast(pl.Int64) - middle).abs() < _MONTH_US if middle is not None else pl.lit(value=False)
        is_time = pl.col("time").is_not_null() & near
    is_value = text.str.contains(_VALUE_LINE) & ~pl.col("is_time")
    looks_timed = text.str.contains(rf"^(?:{DATED}|[0-9]{{1,2}}:[0-9]{{2}}:[0-9]{{2}})")
    timed = timed.with_columns(is_time=is_time.fill_null(value=False)).with_columns(
        is_value=is_value,
        is_bad_time=looks_timed & ~pl.col("is_time"),
        moment=pl.col("is_time").cum_sum(),
    )
    filled = [
        pl.when("is_time").then(pl.col(name)).forward_fill().alias(name)
        for name in ("time", "local_time", "clock_only")
    ]
    return timed.with_columns(*filled, place=pl.col("is_value").cum_sum().over("moment"))


def _add_stated_limit(tables: Tables, rows: pl.DataFrame, context: Context) -> None:
    stated = rows.with_columns(size=pl.col("text").str.extract(_LIMIT_LINE, 1), unit=pl.lit(1)).filter(
        pl.col("size").is_not_null()
    )
    if stated.height:
        sized = with_sizes(stated, "size", "unit").with_columns(time=pl.lit(None), local_time=pl.lit(None))
        mark(tables, sized.filter(pl.col("value") > 0), "limit_stated", context)


def _named(values: pl.DataFrame, context: Context) -> pl.DataFrame:
    """The values with the metric and unit that their place after the time and their size tell."""
    whole = values.filter(pl.col("line") != (context.cut_line or 0))  # a cut line may be the beginning of a time
    whole = whole if whole.height else values
    most = whole.group_by("moment").agg(pl.col("place").max())["place"].mode().sort()[-1]
    columns = {
        str(place): whole.filter(pl.col("place") == place)["text"].str.extract(r"^([0-9.]+)", 1)
        for place in range(1, min(most, 6) + 1)
    }
    metrics = by_values(columns)
    units = {p: 1 if _has_unit(values, int(p)) else unit_of(columns[p]) for p in metrics}
    for place, metric in metrics.items():
        which = "bare values" if most == 1 else f"value {place} after each time"
        context.columns.append(f"{which}: taken for {metric} (cgroup) by its values, in {unit_word(units[place])}")
    skip(
        context, values.filter(~pl.col("place").is_in([int(p) for p in metrics])), "a value whose meaning is not known"
    )
    kept = values.filter(pl.col("place").is_in([int(p) for p in metrics])).with_columns(pl.col("place").cast(pl.String))
    return kept.with_columns(
        cell="text",
        metric=pl.col("place").replace_strict(metrics, return_dtype=pl.String),
        unit=pl.col("place").replace_strict(units, return_dtype=pl.Int64),
        exact=pl.lit(value=True),
        scope=pl.lit("cgroup"),
        subject=pl.lit(None, pl.String),
    )


def _has_unit(values: pl.DataFrame, place: int) -> bool:
    return bool(values.filter(pl.col("place") == place)["text"].str.contains(r"[A-Za-z]$").any())
