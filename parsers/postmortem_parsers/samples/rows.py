"""The last step of every sample parser: cells with a known meaning become rows of `samples`, broken ones are reported."""

from __future__ import annotations

import polars as pl

from postmortem_parsers.interface import Context, Skipped, Tables
from postmortem_parsers.samples.names import LIMITS, UNLIMITED
from postmortem_parsers.samples.sizes import NO_VALUE, with_sizes

__all__ = ["add_samples", "mark", "skip"]


def skip(context: Context, lines: pl.DataFrame, reason: str) -> None:
    """Report `lines` (columns `line`, `text`) as claimed but broken, each once."""
    context.skipped.extend(
        Skipped(line, reason, text)
        for line, text in lines.select("line", "text").unique("line").sort("line").iter_rows()
    )


def add_samples(tables: Tables, cells: pl.DataFrame, context: Context) -> None:
    """Add the cells to `samples`.

    `cells` has line, text (the whole line), cell, time, local_time, clock_only, metric, scope, subject, unit, exact.
    Dropped in silence: cells that say that there is no number, and limits that are none. Reported: cells that are no
    number, sizes that no memory has, and digits that the stream's end may have cut.
    """
    filled = cells.filter(~pl.col("cell").str.strip_chars().str.to_lowercase().str.contains(NO_VALUE))
    sized = with_sizes(filled, "cell", "unit", "exact")
    is_limit = pl.col("metric").is_in(list(LIMITS))
    none = is_limit & ((pl.col("value") >= UNLIMITED) | (pl.col("value") <= 0))
    broken = pl.col("value").is_null() | (~is_limit & (pl.col("value") >= UNLIMITED))
    skip(context, sized.filter(broken), "not a size")
    good = sized.filter(~broken & ~none)
    if context.cut_line is not None and good["line"].max() == context.cut_line:
        good = good.with_columns(cut=_is_cut(context.cut_line))
        skip(context, good.filter("cut"), "cut off: the last number may not be whole")
        good = good.filter(~pl.col("cut"))
    flags = pl.col("local_time", "clock_only").fill_null(value=False)  # no time: nothing is uncertain about its zone
    tables.add("samples", good.with_columns(flags, source=pl.lit(context.source)))


def _is_cut(cut_line: int) -> pl.Expr:
    """Whether bare digits at the end of an unfinished last line have lost some.

    A use counts as cut when it has fewer digits than the one before, a limit when it differs from it: a use that is
    a little too small does no harm, a wrong limit would.
    """
    before = pl.col("cell").shift().over("metric", "subject")
    at_end = (pl.col("line") == cut_line) & pl.col("text").str.ends_with(pl.col("cell"))
    shorter = (pl.col("cell").str.len_chars() < before.str.len_chars()).fill_null(value=False)
    other = (pl.col("cell") != before).fill_null(value=True)
    changed = pl.when(pl.col("metric").is_in(list(LIMITS))).then(other).otherwise(shorter)
    return at_end & pl.col("cell").str.contains("[0-9]$") & changed


def mark(tables: Tables, rows: pl.DataFrame, what: str, context: Context) -> None:
    """Add `rows` (line, text, time, local_time, value, value_ulp) to `marks` as `what`."""
    tables.add("marks", rows.with_columns(what=pl.lit(what), source=pl.lit(context.source)))
