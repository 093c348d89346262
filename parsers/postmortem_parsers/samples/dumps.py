"""Dumps of kernel memory files, once or in a loop, under times and file headings.

Written by `head`/`tail` (`==> memory.stat <==`), `grep .`, scripts with headings of their own, or plain
`date; cat …` loops; any of memory.* and pids.* of cgroup v2 and v1, memory.pressure, /proc/meminfo,
/proc/PID/status, /proc/PID/smaps_rollup. A sample:

    === 2026-02-22T00:21:56.742Z ===
    memory.current: 108531281920
    memory.events:
    max 0
    oom_kill 0

Not read: memory.numa_stat, per-event files, bare values under no heading after the first (nothing says whose they are).
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import DATED, EPOCH, STAMP, with_times
from postmortem_parsers.samples.names import FILE_LINES, FILES, table
from postmortem_parsers.samples.rows import add_samples, skip

__all__ = ["CgroupDumpParser"]

_NAMES = "|".join(
    re.escape(name) for name in sorted({*FILES, *FILE_LINES} - {"", "meminfo", "status", "pressure/memory"})
)
_FILE = rf"(?:[\w./:@\\-]*/)?(?:{_NAMES})|/proc/(?:[0-9]+|self|pressure|meminfo)(?:/(?:status|smaps_rollup|memory))?"
_NUMBER = r"(?:[0-9]+|max)"
_TIME_LINE = rf"^(?:[=#*-]+ *|\+ *|[Tt]ime[:=] *|\[)?({STAMP})\]?:?(?: *[=#*-]+)?$"
_HEADING = rf"^(?:==> *|#+ *|\$ *|\+ *|--+ *|==+ *|\[ *)?(?:cat +)?({_FILE}) *(?:<==|--+|==+|:|\])?$"
_INLINE_VALUE = rf"^({_FILE}) *[:= ] *({_NUMBER})$"  # `memory.current: 123`, and `grep . memory.*`
_INLINE_LINE = rf"^({_FILE}):([a-z_]+)[ :]+([0-9]+)$"  # `grep . memory.stat`
_PAIR = r"^([a-z][a-z0-9_]*) +([0-9]+)$"
_COLON = r"^([A-Za-z_]+(?:\((?:anon|file)\))?):\s+([0-9]+)(?: kB)?$"
_PRESSURE = r"^(some|full) avg10=([0-9.]+) avg60=[0-9.]+ avg300=[0-9.]+ total=[0-9]+$"
_PROCESS_TEXT = r"^(Name|Pid|Umask|State|Tgid|Ngid|PPid|TracerPid|Uid|Gid|Groups|NS\w+|Kthread|Threads|Sig\w+|Shd\w+|Cap\w+|THP_enabled|untag_mask|NoNewPrivs|Seccomp\w*|Specul\w+|Cpus_\w+|Mems_\w+|\w*ctxt_switches|CoreDumping|FDSize):\s*(.*)$"
_ROLLUP = r"^[0-9a-f]{8,16}-[0-9a-f]{8,16} ---p .*\[rollup\]$"
_CUT = r"^[a-z]+_?[a-z_]*$|^[a-z_]+\.[a-z_.]*$"
_BARE = rf"^{_NUMBER}$"
_PLAIN = [_HEADING, _INLINE_VALUE, _INLINE_LINE, _PAIR, _COLON, _PRESSURE, _PROCESS_TEXT, _ROLLUP, _BARE]
_ANY = re.compile("|".join(f"(?:{p})" for p in [_TIME_LINE, *_PLAIN]))
_KNOWN_NAMES = {name for lines in FILE_LINES.values() for name in lines}


class CgroupDumpParser:
    """Time lines, headings and values, joined by filling each downwards."""

    name: ClassVar[str] = "samples_dump"
    reads: ClassVar[str] = (
        "dumps of memory.* files (cgroup v1 and v2), /proc/meminfo, /proc/PID/status, smaps_rollup, PSI"
    )
    example: ClassVar[str] = "==> memory.current <==\n12619387868"
    priority: ClassVar[int] = 50
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """The share of lines of these shapes, where some of them carry names that only such files have."""
        text = [line.strip() for line in head.lines if line.strip()]
        anchors = sum(_is_anchor(line) for line in text)
        share = sum(bool(_ANY.match(line)) for line in text) / len(text) if text else 0.0
        return share if share >= 0.8 and anchors >= 1 and anchors * 20 >= len(text) else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """All lines of a dump, its blank ones and a name that lost its value included."""
        del context
        text = lines["text"].str.strip_chars()
        return (text == "") | text.str.contains(_ANY.pattern) | text.str.contains(_CUT)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples`."""
        tables = Tables()
        rows = lines.with_columns(pl.col("text").str.strip_chars()).filter(pl.col("text") != "")
        if not rows.height:
            return tables
        read = _with_values(_with_processes(_with_headings(_with_moments(rows))))
        skip(context, read.filter("cut"), "cut off: a name without its value")
        skip(context, read.filter("unnamed"), "a bare number whose file is not named")
        known = read.join(table(), on=["file", "name"], how="inner", maintain_order="left")
        subject = (
            pl.when(pl.col("scope") == "process").then(pl.col("process")).when(pl.col("scope") == "cgroup").then("path")
        )
        add_samples(tables, _children_included(known.with_columns(subject=subject)), context)
        return tables


def _is_anchor(line: str) -> bool:
    if re.match(_HEADING, line) or re.match(_INLINE_VALUE, line) or re.match(_INLINE_LINE, line):
        return True
    named = re.match(_PAIR, line) or re.match(_COLON, line)
    return bool(named and named[1] in _KNOWN_NAMES) or bool(re.match(_PRESSURE, line))


def _with_moments(rows: pl.DataFrame) -> pl.DataFrame:
    """`time`, `local_time`, `clock_only` filled down from the time lines; `is_time`, `moment` (their number)."""
    text = pl.col("text")
    stamp = text.str.extract(_TIME_LINE, 1)
    is_epoch = text.str.contains(rf"^{EPOCH}$")
    after_heading = text.shift().str.contains(_HEADING).fill_null(value=False)
    # A bare number right after a bare number (an epoch) is a value, though it might be a time as well.
    first_of_run = ~is_epoch.shift().fill_null(value=False) | after_heading.shift().fill_null(value=False)
    rows = rows.with_columns(stamp=pl.when(~is_epoch | (~after_heading & first_of_run)).then(stamp))
    rows = with_times(rows, "stamp")
    dated = rows["stamp"].str.contains(rf"^{DATED}$").any()
    return rows.with_columns(
        is_time=pl.col("time").is_not_null() & ~(pl.col("clock_only") & dated),
    ).with_columns(
        *(
            pl.when("is_time").then(pl.col(name)).forward_fill().alias(name)
            for name in ("time", "local_time", "clock_only")
        ),
        moment=pl.col("is_time").cum_sum(),
    )


def _with_headings(rows: pl.DataFrame) -> pl.DataFrame:
    """`heading` (the path that a line stands under, in its moment) and `is_heading`."""
    text = pl.col("text")
    own = text.str.extract(_HEADING, 1)
    inline = text.str.extract(_INLINE_LINE, 1).fill_null(text.str.extract(_INLINE_VALUE, 1))
    return rows.with_columns(is_heading=own.is_not_null()).with_columns(
        after_heading=pl.col("is_heading").shift().fill_null(value=False),
        heading=inline.fill_null(own.forward_fill().over("moment")),
    )


def _with_processes(rows: pl.DataFrame) -> pl.DataFrame:
    """`process` (pid:name) of the block of /proc/PID/status or smaps_rollup that a line is in."""
    text = pl.col("text")
    name = text.str.extract(r"^Name:\s*(.*)$", 1)
    pid = text.str.extract(r"^Pid:\s*([0-9]+)$", 1)
    block = (pl.col("is_heading") | pl.col("is_time") | name.is_not_null() | text.str.contains(_ROLLUP)).cum_sum()
    found = rows.with_columns(block=block, process_name=name, pid=pid).with_columns(
        process_name=pl.col("process_name").drop_nulls().first().over("block"),
        pid=pl.col("pid")
        .drop_nulls()
        .first()
        .over("block")
        .fill_null(pl.col("heading").str.extract(r"/proc/([0-9]+)/", 1)),
    )
    # A heading ends the block that the name stands in, the heading's pid does not change.
    return found.with_columns(
        process=pl.when(pl.col("pid").is_not_null())
        .then(pl.concat_str("pid", "process_name", separator=":", ignore_nulls=True))
        .otherwise("process_name")
    )


def _with_values(rows: pl.DataFrame) -> pl.DataFrame:
    """`file`, `name` (to look up), `cell`, `path` (the cgroup's), and what is wrong: `cut`, `unnamed`."""
    text = pl.col("text")
    bare = text.str.contains(_BARE) & ~pl.col("is_time")
    first_bare = bare & (bare.cum_sum().over("moment") == 1) & pl.col("heading").is_null()
    inline = text.str.extract(_INLINE_LINE, 2)
    inline_value = text.str.extract(_INLINE_VALUE, 2)
    base = pl.col("heading").str.extract(r"((?:pressure/)?[^/]+)$", 1)
    path = pl.col("heading").str.extract(r"^(?:/sys/fs/cgroup)?(?:/memory)?(/.*)/[^/]+$", 1)
    one_value = inline_value.is_not_null() | (bare & pl.col("after_heading"))
    named = pl.coalesce(
        inline, text.str.extract(_PAIR, 1), text.str.extract(_COLON, 1), text.str.extract(_PRESSURE, 1), pl.lit("")
    )
    is_pair = named != ""
    known_file = base.is_in([file for file in FILE_LINES if file])
    return rows.with_columns(
        file=pl.when(first_bare)
        .then(pl.lit("memory.current"))
        .when(one_value | known_file)
        .then(base)
        .otherwise(pl.lit("")),
        name=pl.when(one_value | first_bare).then(pl.lit("")).otherwise(named),
        cell=pl.coalesce(
            text.str.extract(_INLINE_LINE, 3),
            inline_value,
            text.str.extract(_PAIR, 2),
            text.str.extract(_COLON, 2),
            text.str.extract(_PRESSURE, 2),
            text.str.extract(rf"^({_NUMBER})$", 1),
        ),
        path=pl.when(path.str.starts_with("/proc")).then(None).otherwise(path),
        unnamed=bare & ~first_bare & ~pl.col("after_heading"),
        cut=text.str.contains(_CUT) & ~pl.col("is_heading") & ~is_pair & (text != "max"),
    ).filter(~pl.col("is_time") & ~pl.col("is_heading") | pl.col("cut"))


def _children_included(known: pl.DataFrame) -> pl.DataFrame:
    """v1 prints both `rss` and `total_rss`: the second holds the children as well and replaces the first."""
    totals = known.filter(pl.col("name").str.starts_with("total_"))["name"].str.strip_prefix("total_").unique()
    return known.filter(~pl.col("name").is_in(totals.implode()))
