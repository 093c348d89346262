"""Memory figures on single lines that stand anywhere, also between a daemon's own lines.

Written by monitoring loops of wrappers (`HH:MM:SS a / b`, `[mem] …`), `docker stats` with a time stamp on the line or
none, cuzk-bench (`[RSS] after …`, `peak RSS`), and cuzk's memprobe and memcheck with benchmark.sh. Samples:

    02:16:12 40.2 GiB / 342 GiB
    [mem] 17:18:24 cgroup 93 / 225 GiB (41%)
    2026-03-19T02:16:12+00:00 3f1c9a0b77aa cuzk 812.44% 9.3GiB / 420GiB 2.21% 1.2GB / 3.4GB 0B / 0B 240
    [2026-02-22 00:21:40] memprobe: limit=200 GiB usable=191 GiB overhead=7 GiB

`a / b` is taken as use and limit. Not read: docker's network and disk columns, progress lines (`1.2 GB / 3.4 GB` with
words behind). Screens under a time line of their own are `screens.py`'s.
"""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from postmortem.units import GIB
from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import STAMP, with_times
from postmortem_parsers.samples.rows import add_samples, mark
from postmortem_parsers.samples.sizes import SIZE, with_sizes

__all__ = ["DOCKER_ROW", "InlineParser", "add_use_and_limit", "four_digits"]

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_UNIT = r"(?:[KMGT]i?B|[kKMGT]|B)"
_SCREEN_CODE = r"(?:(?:\x1b|\^\[|←)\[[0-9;?]*[A-Za-z])*"
_TAG = r"(?:\[[A-Za-z][\w -]{0,20}\]:?\s+)?"
_WORDS = r"(?i:cgroup|container|memory|mem|usage|use|used|current|memory\.current)(?:[ :=]+(?i:memory|usage|use|used))?[ :=]+"
# a: number, b: its unit, which may be left to the second number
_A_OF_B = rf"({_NUMBER})\s?({_UNIT})?\s*/\s*({_NUMBER}\s?{_UNIT})(?:\s*\(?{_NUMBER}\s?%\)?)?"
_CLOCK_LINE = rf"^{_TAG}\[?({STAMP})\]?[ ,\t:]+{_TAG}(?:{_WORDS})?{_A_OF_B}$"
_CLOCK_USE = rf"^{_TAG}\[?({STAMP})\]?[ ,\t:]+{_TAG}{_WORDS}({_NUMBER}\s?{_UNIT})$"
DOCKER_ROW = (
    rf"^{_SCREEN_CODE}(?:\[?({STAMP})\]?[ ,\t]+)?(?:[0-9a-f]{{12,64}}\s+)?(?:([A-Za-z0-9][\w.-]*)\s+)?(?:{_NUMBER}%\s+|--\s+)?"
    rf"({_NUMBER}{_UNIT})\s*/\s*({_NUMBER}(?:[KMGT]iB))\s+{_NUMBER}%(?:\s+.*)?$"
)
"""A row of `docker stats`; groups: stamp, name, use, limit. The percentage behind tells memory from input and output."""
_RSS = rf"^\s*\[RSS\]\s+(\S.*?)\s+({_NUMBER}\s?{_UNIT})$"
_PEAK_RSS = rf"^\s*(?:peak|max|maximum) (?:RSS|rss):\s+({_NUMBER}\s?{_UNIT})$"
_STAMPED = rf"^(?:\[?({STAMP})\]?\s+)?"
_LIMIT_STATED = rf"{_STAMPED}cgroup memory limit:\s+({SIZE})(?:\s+\([\w.]+\))?(?:,\s+host MemTotal\s+({SIZE}))?$"
_PROBE = rf"{_STAMPED}(?:memprobe|memcheck): ((?:\w+=\s?{SIZE}[ ,]*)+)$"
_PROBE_START = rf"{_STAMPED}(?:memprobe|memcheck): ([a-z].*)$"
_SHAPES = (_CLOCK_LINE, _CLOCK_USE, DOCKER_ROW, _RSS, _PEAK_RSS, _LIMIT_STATED, _PROBE_START)
_LIKELY = r"[0-9]\s?(?:[KMGTk]i?B?|B)\b|memprobe|memcheck"  # cheap, and false for most lines of a log
_PROBE_KEYS = {
    "probe_limit": "limit",
    "probe_usable": "usable",
    "probe_overhead": "overhead",
    "probe_budget": "budget",
    "probe_used": "used",
}


class InlineParser:
    """Single lines, offered to every stream."""

    name: ClassVar[str] = "samples_inline"
    reads: ClassVar[str] = "`HH:MM:SS use / limit` lines, docker stats rows, [RSS] lines, memprobe and memcheck"
    example: ClassVar[str] = "02:16:12 40.2 GiB / 342 GiB"
    priority: ClassVar[int] = 52
    whole: ClassVar[bool] = False

    def __init__(self) -> None:
        self._said: set[str] = set()

    def sniff(self, head: Head) -> float:
        """These lines can stand anywhere; where they are the whole stream, they are sure."""
        shown = pl.Series([line.strip() for line in head.lines if line.strip()], dtype=pl.String)
        share = float(shown.str.contains(_any_shape()).sum()) / shown.len() if shown.len() else 0.0
        return max(0.05, share)

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Lines of one of the shapes, whole."""
        del context
        text = lines["text"].str.strip_chars()
        likely = text.str.contains(_LIKELY)
        if not likely.any():
            return likely
        return likely & text.str.contains(_any_shape())

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples`; limits that are stated and results of probes as `marks`."""
        tables = Tables()
        rows = lines.with_columns(pl.col("text").str.strip_chars())
        self._add_docker(tables, rows, context)
        rows = rows.filter(~pl.col("text").str.contains(DOCKER_ROW))
        self._add_clock_lines(tables, rows, context)
        _add_rss(tables, rows, context)
        _add_statements(tables, rows, context)
        return tables

    def _add_clock_lines(self, tables: Tables, rows: pl.DataFrame, context: Context) -> None:
        text = pl.col("text")
        pairs = rows.filter(text.str.contains(_CLOCK_LINE)).with_columns(
            stamp=text.str.extract(_CLOCK_LINE, 1),
            use=text.str.extract(_CLOCK_LINE, 2)
            + text.str.extract(_CLOCK_LINE, 3).fill_null(
                text.str.extract(_CLOCK_LINE, 4).str.extract(r"([A-Za-z]+)$", 1)
            ),
            limit=text.str.extract(_CLOCK_LINE, 4),
            subject=pl.lit(None, pl.String),
        )
        alone = rows.filter(text.str.contains(_CLOCK_USE) & ~text.str.contains(_CLOCK_LINE)).with_columns(
            stamp=text.str.extract(_CLOCK_USE, 1),
            use=text.str.extract(_CLOCK_USE, 2),
            limit=pl.lit(None, pl.String),
            subject=pl.lit(None, pl.String),
        )
        both = pl.concat([pairs, alone])
        if both.height:
            self._say(context, "lines `time a / b`: a taken for current, b for limit (cgroup), rounded as printed")
            add_use_and_limit(tables, with_times(both, "stamp"), context)

    def _add_docker(self, tables: Tables, rows: pl.DataFrame, context: Context) -> None:
        text = pl.col("text")
        docker = rows.filter(text.str.contains(DOCKER_ROW)).with_columns(
            stamp=text.str.extract(DOCKER_ROW, 1),
            subject=text.str.extract(DOCKER_ROW, 2),
            use=text.str.extract(DOCKER_ROW, 3),
            limit=four_digits(text.str.extract(DOCKER_ROW, 4)),
        )
        if docker.height:
            self._say(
                context,
                "docker stats: MEM USAGE taken for current, LIMIT for limit (cgroup); "
                "docker 20.10 and later leave inactive file pages out of it",
            )
            add_use_and_limit(tables, with_times(docker, "stamp"), context)

    def _say(self, context: Context, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            context.columns.append(sentence)


def four_digits(size: pl.Expr) -> pl.Expr:
    """Sizes of docker with all their digits: it prints `%.4g` (go-units), which drops zeros; its `342GiB` says 342.0."""
    padded = size
    for digits, zeros in ((1, ".000"), (2, ".00"), (3, ".0")):
        padded = padded.str.replace(rf"^([0-9]{{{digits}}})([A-Za-z])", rf"${{1}}{zeros}${{2}}")
    return padded


def _any_shape() -> str:
    return "|".join(f"(?:{shape})" for shape in _SHAPES)


def add_use_and_limit(tables: Tables, rows: pl.DataFrame, context: Context) -> None:
    """`current` from the column `use` and `limit` from the column `limit`, both as text with units."""
    cells = [
        rows.with_columns(
            cell=pl.col(column),
            metric=pl.lit(metric),
            scope=pl.lit("cgroup"),
            unit=pl.lit(1, pl.Int64),
            exact=pl.lit(value=False),
        )
        for column, metric in (("use", "current"), ("limit", "limit"))
    ]
    add_samples(tables, pl.concat(cells).filter(pl.col("cell").is_not_null()), context)


def _add_rss(tables: Tables, rows: pl.DataFrame, context: Context) -> None:
    """cuzk-bench's own size; its lines carry no time, the words between become the subject."""
    text = pl.col("text")
    found = rows.with_columns(
        cell=text.str.extract(_RSS, 2).fill_null(text.str.extract(_PEAK_RSS, 1)),
        subject=text.str.extract(_RSS, 1),
        metric=pl.when(text.str.contains(_PEAK_RSS)).then(pl.lit("peak")).otherwise(pl.lit("rss_process")),
        scope=pl.lit("process"),
        unit=pl.lit(1, pl.Int64),
        exact=pl.lit(value=False),
        time=pl.lit(None),
        local_time=pl.lit(value=False),
        clock_only=pl.lit(value=False),
    ).filter(pl.col("cell").is_not_null())
    if found.height:
        add_samples(tables, found, context)


def _add_statements(tables: Tables, rows: pl.DataFrame, context: Context) -> None:
    text = pl.col("text")
    stated = rows.with_columns(stamp=text.str.extract(_LIMIT_STATED, 1))
    _add_mark(tables, stated, text.str.extract(_LIMIT_STATED, 2), "limit_stated", context)
    _add_mark(tables, stated, text.str.extract(_LIMIT_STATED, 3), "host_total_stated", context)
    probes = rows.with_columns(stamp=text.str.extract(_PROBE_START, 1))
    fields = text.str.extract(_PROBE, 2)
    for what, key in _PROBE_KEYS.items():
        _add_mark(tables, probes, fields.str.extract(rf"\b{key}=\s?({SIZE})", 1), what, context)
    others = with_times(probes.filter(text.str.contains(_PROBE_START) & fields.is_null()), "stamp")
    if others.height:
        mark(tables, others, "probe", context)


def _add_mark(tables: Tables, rows: pl.DataFrame, size: pl.Expr, what: str, context: Context) -> None:
    """A mark for each row that states the size. These tools print whole GiB, rounded down."""
    found = rows.with_columns(size=size, unit=pl.lit(GIB)).filter(pl.col("size").is_not_null())
    if found.height:
        mark(tables, with_times(with_sizes(found, "size", "unit"), "stamp"), what, context)
