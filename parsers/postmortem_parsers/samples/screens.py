"""Screens that a tool prints again and again, under a time line of the loop round it or under none.

Written by `while …; do date; docker stats --no-stream; done`, `docker stats` itself (its screen codes are gone),
`kubectl top pod|node` (with --containers), `free -b/-k/-m/-g/-h` (procps 3 and 4). A sample:

    2026-03-19T02:16:10+00:00
                   total        used        free      shared  buff/cache   available
    Mem:          528126      310022       11618       12001      206486      204001

kubectl's memory is the working set: use less inactive file pages. Not read: `free -w` and `-t`'s further lines.
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem.units import GIB, KIB, MIB
from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import STAMP, with_times
from postmortem_parsers.samples.guess import unit_word
from postmortem_parsers.samples.inline import DOCKER_ROW, add_use_and_limit, four_digits
from postmortem_parsers.samples.rows import add_samples

__all__ = ["ScreensParser"]

_TIME_LINE = rf"^(?:[-=#*]+ *|\[)?({STAMP})\]?:?(?: *[-=#*]+)?$"
_DOCKER_HEADER = r"^(?:CONTAINER|NAME)(?: ID)? .*MEM USAGE ?/ ?LIMIT.*$"
_KUBECTL_HEADER = (
    r"^(?:NAMESPACE +)?(?:POD +)?NAME +CPU\(cores\)(?: +CPU\(?%\)?)? +MEMORY\(bytes\)(?: +MEMORY\(?%\)?)?$"
)
_KUBECTL_ROW = (
    r"^((?:[a-z0-9][\w.-]* +){0,2}[a-z0-9][\w.-]*) +[0-9]+m?(?: +[0-9]+%)? +([0-9]+(?:[KMGT]i?)?)(?: +[0-9]+%)?$"
)
_FREE_HEADER = r"^total +used +free +shared.*$"
_FREE_SIZE = r"[0-9.]+(?:[KMGTP]i?|[BkmgKMGT])?"
_MEM_ROW = rf"^Mem: +({_FREE_SIZE}) +({_FREE_SIZE}) +({_FREE_SIZE}) +({_FREE_SIZE}) +({_FREE_SIZE}) +({_FREE_SIZE})$"
_SWAP_ROW = rf"^Swap: +({_FREE_SIZE}) +({_FREE_SIZE}) +({_FREE_SIZE})$"
_FREE_OTHER = r"^(?:-/\+ buffers/cache:|Total:|Low:|High:) .*$"
_MEM_METRICS = ("host_total", "host_used", "host_free", "shmem", "cache", "host_available")
_SWAP_METRICS = ("swap_total", "swap", "swap_free")
_HEADERS = (_DOCKER_HEADER, _KUBECTL_HEADER, _FREE_HEADER)
_ROWS = (DOCKER_ROW, _KUBECTL_ROW, _MEM_ROW, _SWAP_ROW, _FREE_OTHER)
_SHAPES = "|".join(f"(?:{shape})" for shape in (_TIME_LINE, *_HEADERS, *_ROWS))


class ScreensParser:
    """docker stats, kubectl top and free, each row at the time of the last time line."""

    name: ClassVar[str] = "samples_screens"
    reads: ClassVar[str] = "loops over `docker stats`, `kubectl top`, `free`, with time lines between or without"
    example: ClassVar[str] = "NAME        CPU(cores)   MEMORY(bytes)\ncuzk-0      9120m        204Gi"
    priority: ClassVar[int] = 50
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """The share of lines of these shapes, where a header or a time line says that they are screens."""
        shown = pl.Series([line.strip() for line in head.lines if line.strip()], dtype=pl.String)
        headers = shown.str.contains("|".join(_HEADERS)).any()
        times = shown.str.contains(_TIME_LINE).any()
        docker, free = shown.str.contains(DOCKER_ROW).any(), shown.str.contains(_MEM_ROW).any()
        if not (headers or ((docker or free) and times)):
            return 0.0
        share = float(shown.str.contains(_SHAPES).sum()) / shown.len()
        return share if share >= 0.8 else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Time lines, headers and rows."""
        del context
        return lines["text"].str.strip_chars().str.contains(_SHAPES)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples`."""
        tables = Tables()
        text = pl.col("text")
        rows = lines.with_columns(text.str.strip_chars())
        rows = with_times(rows.with_columns(stamp=text.str.extract(_TIME_LINE, 1)), "stamp")
        rows = rows.with_columns(pl.col("time", "local_time", "clock_only").forward_fill())
        rows = rows.filter(pl.col("stamp").is_null())
        _add_docker(tables, rows, context)
        if lines["text"].str.strip_chars().str.contains(_KUBECTL_HEADER).any():
            _add_kubectl(tables, rows, context)
        _add_free(tables, rows, context)
        return tables


def _add_docker(tables: Tables, rows: pl.DataFrame, context: Context) -> None:
    text = pl.col("text")
    docker = rows.filter(text.str.contains(DOCKER_ROW)).with_columns(
        own=text.str.extract(DOCKER_ROW, 1),
        subject=text.str.extract(DOCKER_ROW, 2),
        use=text.str.extract(DOCKER_ROW, 3),
        limit=four_digits(text.str.extract(DOCKER_ROW, 4)),
    )
    if not docker.height:
        return
    context.columns.append("docker stats: MEM USAGE taken for current, LIMIT for limit (cgroup)")
    without = docker.filter(pl.col("own").is_null())
    add_use_and_limit(tables, without, context)
    add_use_and_limit(tables, with_times(docker.filter(pl.col("own").is_not_null()), "own"), context)


def _add_kubectl(tables: Tables, rows: pl.DataFrame, context: Context) -> None:
    text = pl.col("text")
    nodes = rows["text"].str.contains(r"MEMORY\(?%").any()
    found = rows.filter(text.str.contains(_KUBECTL_ROW) & ~text.str.contains(_FREE_HEADER)).with_columns(
        cell=text.str.extract(_KUBECTL_ROW, 2),
        subject=text.str.extract(_KUBECTL_ROW, 1).str.replace_all(r"\s+", "/"),
        metric=pl.lit("working_set"),
        scope=pl.lit("host" if nodes else "cgroup"),
        unit=pl.lit(1, pl.Int64),
        exact=pl.lit(value=False),
    )
    if found.height:
        context.columns.append("kubectl top: MEMORY taken for working_set (use less inactive file pages)")
        add_samples(tables, found, context)


def _add_free(tables: Tables, rows: pl.DataFrame, context: Context) -> None:
    text = pl.col("text")
    memory = rows.filter(text.str.contains(_MEM_ROW))
    if not memory.height:
        return
    unit = _free_unit(memory["text"])
    context.columns.append(f"free: taken for the host's memory, {unit_word(unit)} where no unit is printed")
    cells = [
        rows.filter(text.str.contains(pattern)).with_columns(
            cell=text.str.extract(pattern, n),
            metric=pl.lit(metric),
            scope=pl.lit("host"),
            subject=pl.lit(None, pl.String),
            unit=pl.lit(unit, pl.Int64),
            exact=pl.lit(unit <= KIB),
        )
        for pattern, metrics in ((_MEM_ROW, _MEM_METRICS), (_SWAP_ROW, _SWAP_METRICS))
        for n, metric in enumerate(metrics, start=1)
    ]
    add_samples(tables, pl.concat(cells), context)


def _free_unit(rows: pl.Series) -> int:
    """The unit of bare numbers, from the size of the machine: 10 GB is its least in bytes, 5 GB in kB, 4 GB in MiB."""
    total = rows.str.extract(_MEM_ROW, 1)
    if total.str.contains("[A-Za-z]").any():
        return 1
    largest = float(re.sub(r"[^0-9.]", "", str(total.cast(pl.Float64, strict=False).max() or 0)) or 0)
    return next(unit for least, unit in ((1e10, 1), (5e6, KIB), (4e3, MIB), (0, GIB)) if largest >= least)
