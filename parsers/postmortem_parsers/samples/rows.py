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
    number, sizes that no memory has, and a limit in the very last line that is the cut beginning of the one before.
    """
    filled = cells.filter(~pl.col("cell").str.strip_chars().str.to_lowercase().str.contains(NO_VALUE))
    sized = with_sizes(filled, "cell", "unit", "exact")
    is_limit = pl.col("metric").is_in(list(LIMITS))
    none = is_limit & ((pl.col("value") >= UNLIMITED) | (pl.col("value") <= 0))
    broken = pl.col("value").is_null() | (~is_limit & (pl.col("value") >= UNLIMITED))
    skip(context, sized.filter(broken), "not a size")
    good = sized.filter(~broken & ~none)
    cut = _cut_limits(good)
    skip(context, cut, "cut off in the limit")
    good = good.join(cut, on=["line", "metric"], how="anti") if cut.height else good
    flags = pl.col("local_time", "clock_only").fill_null(value=False)  # no time: nothing is uncertain about its zone
    tables.add("samples", good.with_columns(flags, source=pl.lit(context.source)))


def _cut_limits(rows: pl.DataFrame) -> pl.DataFrame:
    """The limit of the last line, where its digits are the beginning of the limit before it."""
    limits = rows.filter(pl.col("metric").is_in(list(LIMITS))).select("line", "text", "metric", "cell")
    if not limits.height:
        return limits
    before = limits.with_columns(before=pl.col("cell").shift().over("metric"))
    return before.filter(
        (pl.col("line") == rows["line"].max())
        & (pl.col("cell").str.len_chars() < pl.col("before").str.len_chars())
        & pl.col("before").str.starts_with(pl.col("cell"))
        & pl.col("text").str.ends_with(pl.col("cell"))
    )


def mark(tables: Tables, rows: pl.DataFrame, what: str, context: Context) -> None:
    """Add `rows` (line, text, time, local_time, value, value_ulp) to `marks` as `what`."""
    tables.add("marks", rows.with_columns(what=pl.lit(what), source=pl.lit(context.source)))
