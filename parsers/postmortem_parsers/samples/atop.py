"""`atop -P MEM,PRM` (atop 2.x): parseable lines of the host's memory and of each process.

    MEM gpu-host 1773886571 2026/03/19 02:16:11 10 4096 132031744 41588736 30412288 2030 812331 120 400213
    PRM gpu-host 1773886571 2026/03/19 02:16:11 10 19392 (cuzk-daemon) S 4096 401231232 341200128 …

MEM is in pages of the size that it states, PRM's sizes are kB. Not read: other labels, PRG and the like; `atop -J`.
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem.units import KIB
from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import with_times
from postmortem_parsers.samples.rows import add_samples, skip

__all__ = ["AtopParser"]

_LINE = r"^(?:[A-Z]{3,4} \S+ ([0-9]{10}) [0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]{8} [0-9]+ |SEP$|RESET$)"
_MEM = r"^MEM \S+ ([0-9]{10}) \S+ \S+ [0-9]+ ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+)"
_PRM = r"^PRM \S+ ([0-9]{10}) \S+ \S+ [0-9]+ ([0-9]+) \((.*)\) \S [0-9]+ [0-9]+ ([0-9]+)"
# after the page size: physical memory, free, page cache, buffers, slab
_MEM_FIELDS = {"host_total": 3, "host_free": 4, "cache": 5, "buffers": 6, "slab": 7}


class AtopParser:
    """The labels MEM and PRM."""

    name: ClassVar[str] = "samples_atop"
    reads: ClassVar[str] = "`atop -P MEM,PRM`: the host's memory and resident sizes of processes"
    example: ClassVar[str] = (
        "MEM gpu-host 1773886571 2026/03/19 02:16:11 10 4096 132031744 41588736 30412288 2030 812331"
    )
    priority: ClassVar[int] = 50
    whole: ClassVar[bool] = False

    def sniff(self, head: Head) -> float:
        """The share of lines of atop's form, where the two labels that we read are among them."""
        text = [line.strip() for line in head.lines if line.strip()]
        if not any(re.match(_MEM, line) or re.match(_PRM, line) for line in text):
            return 0.0
        share = sum(bool(re.match(_LINE, line)) for line in text) / len(text)
        return share if share >= 0.8 else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Every line of atop's form."""
        del context
        return lines["text"].str.strip_chars().str.contains(_LINE)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples` of scope host and process."""
        tables = Tables()
        text = pl.col("text")
        rows = lines.with_columns(text.str.strip_chars())
        broken = text.str.contains("^(?:MEM|PRM) ") & ~text.str.contains(f"(?:{_MEM})|(?:{_PRM})")
        skip(context, rows.filter(broken), "cut off: fewer fields than the label has")
        memory = with_times(rows.filter(text.str.contains(_MEM)).with_columns(stamp=text.str.extract(_MEM, 1)), "stamp")
        for metric, group in _MEM_FIELDS.items():
            cells = memory.with_columns(
                cell=text.str.extract(_MEM, group),
                metric=pl.lit(metric),
                scope=pl.lit("host"),
                subject=pl.lit(None, pl.String),
                unit=text.str.extract(_MEM, 2).cast(pl.Int64),
                exact=pl.lit(value=True),
            )
            add_samples(tables, cells, context)
        processes = with_times(
            rows.filter(text.str.contains(_PRM)).with_columns(stamp=text.str.extract(_PRM, 1)), "stamp"
        )
        cells = processes.with_columns(
            cell=text.str.extract(_PRM, 4),
            metric=pl.lit("rss_process"),
            scope=pl.lit("process"),
            subject=pl.concat_str(text.str.extract(_PRM, 2), text.str.extract(_PRM, 3), separator=":"),
            unit=pl.lit(KIB, pl.Int64),
            exact=pl.lit(value=True),
        )
        add_samples(tables, cells, context)
        return tables
