"""`sar -r` (sysstat 10 to 12): the host's memory at clock times under a header with the day.

    Linux 6.8.0-45-generic (gpu-host-12)    03/19/2026      _x86_64_        (96 CPU)

    02:16:10    kbmemfree   kbavail kbmemused  %memused kbbuffers  kbcached
    02:16:11    166354944 633733120 625811456     79.00      8120 471230104

Clock times are local. The day is the header's (month first, as sysstat prints unless S_TIME_FORMAT=ISO) and moves on
when the clock goes back. Not read: averages, swap and huge-page reports, other languages.
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import with_times
from postmortem_parsers.samples.names import lookup
from postmortem_parsers.samples.rows import add_samples, skip

__all__ = ["SarParser"]

_BANNER = r"^Linux \S+ \(.*\)\s+([0-9]{2,4}[-/][0-9]{2}[-/][0-9]{2,4})\s.*$"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?: [AP]M)?"
_HEADER = rf"^(?:{_CLOCK}) +(kbmemfree .*)$"
_ROW = rf"^({_CLOCK}) +([0-9.]+(?: +[0-9.]+)*)$"
_AVERAGE = r"^Average: "
_SHAPES = f"(?:{_BANNER})|(?:{_HEADER})|(?:{_ROW})|(?:{_AVERAGE})"


class SarParser:
    """The columns that the header names."""

    name: ClassVar[str] = "samples_sar"
    reads: ClassVar[str] = "`sar -r` of sysstat: the host's memory"
    example: ClassVar[str] = "02:16:10    kbmemfree   kbavail kbmemused\n02:16:11    166354944 633733120 625811456"
    priority: ClassVar[int] = 50
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """The share of lines of these shapes, where the header of the memory report is among them."""
        text = [line.strip() for line in head.lines if line.strip()]
        if not any(re.match(_HEADER, line) for line in text):
            return 0.0
        share = sum(bool(re.match(_SHAPES, line)) for line in text) / len(text)
        return share if share >= 0.8 else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Banner, headers, rows, averages."""
        del context
        return lines["text"].str.strip_chars().str.contains(_SHAPES)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples` of scope host."""
        tables = Tables()
        text = pl.col("text")
        rows = lines.with_columns(text.str.strip_chars()).with_columns(
            header=text.str.strip_chars().str.extract(_HEADER, 1).forward_fill(),
            day=text.str.strip_chars().str.extract(_BANNER, 1).forward_fill(),
        )
        rows = rows.filter(text.str.contains(_ROW) & pl.col("header").is_not_null())
        rows = _with_days(rows.with_columns(clock=text.str.extract(_ROW, 1)))
        rows = rows.with_columns(cells=text.str.extract(_ROW, 2).str.replace_all(r" +", " ").str.split(" "))
        for header in rows["header"].unique(maintain_order=True):
            columns = header.split()
            mine = rows.filter(pl.col("header") == header)
            fits = pl.col("cells").list.len() == len(columns)
            skip(context, mine.filter(~fits), f"cut off: fewer than {len(columns)} columns")
            _add(tables, mine.filter(fits), columns, context)
        return tables


def _add(tables: Tables, rows: pl.DataFrame, columns: list[str], context: Context) -> None:
    for i, name in enumerate(columns):
        if (counter := lookup(name)) is None:
            continue
        cells = rows.with_columns(
            cell=pl.col("cells").list.get(i),
            metric=pl.lit(counter.metric),
            scope=pl.lit(counter.scope),
            subject=pl.lit(None, pl.String),
            unit=pl.lit(counter.unit, pl.Int64),
            exact=pl.lit(counter.exact),
        )
        add_samples(tables, cells, context)


def _with_days(rows: pl.DataFrame) -> pl.DataFrame:
    """`time` of day and clock, the day counted on where the clock goes back by hours."""
    iso = pl.col("day").str.replace(r"^([0-9]{2})/([0-9]{2})/([0-9]{4})$", "${3}-${1}-${2}")
    clocks = with_times(rows, "clock")
    back = (pl.col("time").diff().fill_null(pl.duration(hours=0)) < pl.duration(hours=-1)) & (
        pl.col("day") == pl.col("day").shift()
    ).fill_null(value=True)
    passed = clocks.select(passed=back.cum_sum())["passed"]
    dated = with_times(clocks.with_columns(stamp=pl.concat_str(iso, "clock", separator=" ")), "stamp")
    known = dated["time"].is_not_null()
    dated = dated.with_columns(passed=passed)
    time = pl.when(known).then(pl.col("time")).otherwise(clocks["time"]) + pl.duration(days=pl.col("passed"))
    return dated.with_columns(time=time, clock_only=~known, local_time=pl.lit(value=True))
