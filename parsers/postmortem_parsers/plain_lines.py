"""Lines of a benchmark client and of wrapper scripts, by the expressions of a profile.

    [2026-02-22 00:21:52] === one: 5 proofs, concurrency 1 ===
      [3/10] COMPLETED — 61.2s (prove=4312 ms, queue=180 ms)
    === Batch Summary ===          (with the `name: value` lines below it)

cuzk-bench and benchmark.sh in all their builds so far. A wrapper's stamp carries no zone: such rows have `local_time`.
Not read: exit codes on their own, shells' messages, transport errors (see `exits`), memory samples.
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.profiles import Block, Line, Profile
from postmortem_parsers.records import RowMaker
from postmortem_parsers.timestamps import TIME_TYPE

__all__ = ["PlainLinesParser", "expressions", "unstamped"]

# `[2026-02-22 00:21:35] ` before a wrapper's own words; `[2026-02-22T00:21:35.123+0000]` before those of a JVM.
_STAMP = (
    r"^\[?([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?)(Z|[+-]00:?00|)(?:\]?[ :]\s*|\])"
)
_GROUP_NAME = re.compile(r"\(\?P?<\w+>")
_LONGEST_BLOCK = 20
"""Lines below a heading that may still belong to it."""


class PlainLinesParser:
    """The profile's `[[line]]` and `[[block]]` patterns."""

    name: ClassVar[str] = "lines"
    reads: ClassVar[str] = "benchmark client's and wrapper scripts' lines: phases, proofs, restarts, budget changes"
    example: ClassVar[str] = "[2026-02-22 00:21:52] === one: 5 proofs, concurrency 1 ==="
    priority: ClassVar[int] = 40
    whole: ClassVar[bool] = True  # A block's lines may stand in two chunks.

    def sniff(self, head: Head) -> float:
        """They may stand anywhere in a captured file."""
        del head
        return 0.2

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Lines that one of the profile's expressions matches."""
        known = expressions(_profile(context))
        if not known:
            return pl.Series([False] * lines.height)
        any_of = "|".join(f"(?:{expression})" for expression in known)
        return unstamped(lines["text"]).str.contains(any_of)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of the patterns; blocks become one row at their heading."""
        profile, tables = _profile(context), Tables()
        lines = _timed(lines)
        left = lines
        for line in profile.line:
            mask = left["text"].str.contains(line.regex)
            tables.update(_line_rows(line, left.filter(mask), profile, context))
            left = left.filter(~mask)
        for block in profile.block:
            tables.update(_block_rows(block, left, profile, context))
        return tables


def _profile(context: Context) -> Profile:
    assert isinstance(context.profile, Profile)
    return context.profile


def expressions(profile: Profile) -> list[str]:
    """The regular expressions of a profile's lines and blocks, without names of groups."""
    # Names of groups must differ within one expression, and `claim` joins them all.
    lines = [_GROUP_NAME.sub("(", line.regex) for line in profile.line]
    blocks = [expression for block in profile.block for expression in (block.begins, *block.lines.values())]
    return lines + blocks


def unstamped(text: pl.Series) -> pl.Series:
    """Texts without the stamp before them."""
    return text.str.replace(_STAMP, "").str.strip_chars_end()


def _timed(lines: pl.DataFrame) -> pl.DataFrame:
    """The text behind a stamp, and the stamp as `time`; `local` where it names no zone."""
    stamp = lines["text"].str.extract(_STAMP).str.replace("T", " ", literal=True).str.replace(",", ".", literal=True)
    time = stamp.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False).dt.replace_time_zone("UTC")
    zoned = lines["text"].str.extract(_STAMP, 2) != ""
    local = pl.DataFrame({"time": time.cast(TIME_TYPE), "zoned": zoned}).select(
        "time", local=pl.when(pl.col("time").is_not_null()).then(~pl.col("zoned"))
    )
    return lines.select("line", unstamped(lines["text"])).hstack(local)


def _line_rows(line: Line, lines: pl.DataFrame, profile: Profile, context: Context) -> Tables:
    if lines.is_empty() or not line.rows:
        return Tables()
    rows = RowMaker(lines, profile, context)
    groups = lines["text"].str.extract_groups(line.regex).struct.unnest()
    for field, text in rows.wanted(line.rows):
        rows.put(field, text, lines["text"] if field == "*" else groups[field])
    return _with_local_time(rows.make(line.rows), lines)


def _block_rows(block: Block, lines: pl.DataFrame, profile: Profile, context: Context) -> Tables:
    heads = lines.filter(lines["text"].str.contains(block.begins))
    if heads.is_empty():
        return Tables()
    rows = RowMaker(heads, profile, context)
    for field, text in rows.wanted([block.row]):
        rows.put(field, text, _below(heads, lines, block.lines[field], context))
    return _with_local_time(rows.make([block.row]), heads)


def _below(heads: pl.DataFrame, lines: pl.DataFrame, expression: str, context: Context) -> pl.Series:
    """For each heading the value of the next matching line below it, before the next heading."""
    values = lines.select(pl.col("line").alias("at"), pl.col("text").str.extract(expression).alias("value"))
    values = values.filter(pl.col("value").is_not_null() & (pl.col("at") != (context.cut_line or 0)))
    spans = heads.select("line", until=pl.col("line").shift(-1, fill_value=2**62))
    found = spans.join_asof(values, left_on="line", right_on="at", strategy="forward")
    near = (found["at"] < found["until"]) & (found["at"] - found["line"] <= _LONGEST_BLOCK)
    return found["value"].zip_with(near.fill_null(value=False), pl.Series([None] * found.height, dtype=pl.String))


def _with_local_time(tables: Tables, lines: pl.DataFrame) -> Tables:
    told = lines.filter(pl.col("local").is_not_null()).select("line", local_time=pl.col("local"))
    if told.is_empty():
        return tables
    marked = Tables()
    for name in tables.names():
        frame = tables.get(name)
        if frame is not None:
            marked.add(name, frame.drop("local_time", strict=False).join(told, on="line", how="left"))
    return marked
