"""A run as a row of `runs.parquet`, its parts as rows of `parts.parquet`.

Sizes are whole bytes, times UTC. Null where nothing is known, and all of the analysis's columns are null for a run whose
`status` is not `done`.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, cast

import polars as pl

from postmortem.quantity import Quantity
from postmortem.result import Result

__all__ = ["PARTS", "RUNS", "Row", "failed_row", "parts_rows", "run_row"]

Row = dict[str, Any]

_TIME = pl.Datetime("us", "UTC")
_SIZE = pl.Int64()
_TEXT = pl.String()

RUNS = pl.Schema(
    {
        "run": _TEXT,  # identity: folder or log in all sources
        "name": _TEXT,  # its last name, or run.toml's
        "tags": pl.List(_TEXT),  # run.toml's, as `key=value` or words
        "content": _TEXT,  # SHA-256 over the names and bytes of its files
        "analysis": _TEXT,  # version and options that made the row
        "status": _TEXT,  # done, no_evidence, unreadable, timed_out, out_of_memory, died, failed, refused
        "error": _TEXT,  # why, where status is not `done`
        "report": _TEXT,  # its HTML report, relative to the batch's folder
        "files": pl.Int64(),
        "bytes": pl.Int64(),  # of the files as stored
        "lines": pl.Int64(),
        "unmatched": pl.Int64(),  # lines of no known kind
        "skipped": pl.Int64(),  # broken lines
        "profile": _TEXT,
        "ending": _TEXT,
        "ending_time": _TIME,
        "exit_code": pl.Int64(),
        "signal": pl.Int64(),
        "certainty": _TEXT,
        "cause": _TEXT,
        "confidence": pl.Float64(),
        "summary": _TEXT,
        "limit": _SIZE,
        "budget": _SIZE,
        "margin": _SIZE,
        "reserved": _SIZE,
        "charged": _SIZE,
        "unreclaimable": _SIZE,
        "excess": _SIZE,  # sum of the parts' excesses
        "overhead": _SIZE,  # actual
        "uncovered": _SIZE,  # pinned pool that no reservation stands for, actual
        "transient": _SIZE,
        "neighbour": _SIZE,
        "largest_excess": _TEXT,  # the part with the largest one
        "pool_peak": _SIZE,
        "peak": _SIZE,  # highest unreclaimable of the timeline
        "peak_charged": _SIZE,
        "peak_unseen": _SIZE,  # highest of unreclaimable beyond what was reserved at that moment
        "safe_budget": _SIZE,
        "safe_budget_low": _SIZE,
        "safe_budget_high": _SIZE,
        "margin_needed": _SIZE,
        "partitions_at_once": pl.Int64(),  # with the pool counted in the budget
        "per_hour_now": pl.Float64(),  # proofs per hour as it ran
        "per_hour_counted": pl.Float64(),  # and with the pool counted
        "start": _TIME,
        "end": _TIME,
        "duration_s": pl.Float64(),
        "jobs_done": pl.Int64(),
        "attempts": pl.Int64(),
        "warnings": pl.Int64(),
    }
)

PARTS = pl.Schema(
    {
        "run": _TEXT,
        "part": _TEXT,
        "provision": _SIZE,
        "actual": _SIZE,
        "actual_low": _SIZE,
        "actual_high": _SIZE,
        "excess": _SIZE,
        "excess_low": _SIZE,
        "excess_high": _SIZE,
        "basis": _TEXT,
    }
)


def run_row(result: Result, timeline: pl.DataFrame) -> Row:
    """The columns that come of the analysis."""
    a, s, ending, verdict = result.arithmetic, result.survival, result.ending, result.verdict
    parts = {part.part: part for part in a.parts}
    largest = max(a.parts, key=lambda part: part.excess.best, default=None)
    row: Row = {
        "files": len(result.sources),
        "bytes": sum(source.bytes for source in result.sources),
        "lines": sum(source.lines for source in result.sources),
        "unmatched": sum(source.unmatched for source in result.sources),
        "skipped": sum(source.skipped for source in result.sources),
        "profile": result.profile,
        "ending": ending.how,
        "ending_time": ending.time,
        "exit_code": ending.exit_code,
        "signal": ending.signal,
        "certainty": ending.certainty,
        "cause": verdict.cause,
        "confidence": verdict.confidence,
        "summary": verdict.summary,
        **{
            name: _best(getattr(a, name))
            for name in ("limit", "budget", "margin", "reserved", "charged", "unreclaimable")
        },
        "excess": _best(a.excess_sum),
        **{
            column: _best(parts[part].actual) if part in parts else None
            for column, part in (
                ("overhead", "overhead"),
                ("uncovered", "pinned_uncovered"),
                ("transient", "transient"),
                ("neighbour", "neighbour"),
            )
        },
        "largest_excess": largest.part if largest is not None and largest.excess.best > 0 else None,
        "pool_peak": _best(result.pool.peak) if result.pool else None,
        "safe_budget": _best(s.safe_budget),
        "safe_budget_low": s.safe_budget.low if s.safe_budget else None,
        "safe_budget_high": s.safe_budget.high if s.safe_budget else None,
        "margin_needed": _best(s.margin_needed),
        "partitions_at_once": s.pool_counted.partitions_at_once if s.pool_counted else None,
        "per_hour_now": s.pool_counted.proofs_per_hour.get("now") if s.pool_counted else None,
        "per_hour_counted": s.pool_counted.proofs_per_hour.get("then") if s.pool_counted else None,
        "attempts": len(result.attempts),
        "jobs_done": sum(attempt.jobs_done for attempt in result.attempts),
        "warnings": len(result.warnings),
    }
    return {**row, **_span(result, timeline), **_peaks(timeline)}


def failed_row(status: str, error: str) -> Row:
    """A run that could not be analysed."""
    return {"status": status, "error": error[:1000]}


def parts_rows(run: str, result: Result) -> list[Row]:
    """The parts of the identity; sizes in bytes."""
    return [
        {
            "run": run,
            "part": part.part,
            "provision": part.provision.best,
            "actual": part.actual.best,
            "actual_low": part.actual.low,
            "actual_high": part.actual.high,
            "excess": part.excess.best,
            "excess_low": part.excess.low,
            "excess_high": part.excess.high,
            "basis": part.actual.basis,
        }
        for part in result.arithmetic.parts
    ]


def _best(quantity: Quantity | None) -> int | None:
    return None if quantity is None else quantity.best


def _span(result: Result, timeline: pl.DataFrame) -> Row:
    times = [time for attempt in result.attempts for time in (attempt.start, attempt.end) if time is not None]
    if not times:
        times = cast("list[dt.datetime]", timeline["time"].drop_nulls().to_list())
    if not times:
        return {}
    start, end = min(times), max(times)
    return {"start": start, "end": end, "duration_s": (end - start).total_seconds()}


def _peaks(timeline: pl.DataFrame) -> Row:
    if not timeline.height:
        return {}
    unseen = (pl.col("unreclaimable") - pl.col("reserved")).max()
    return timeline.select(
        peak=pl.col("unreclaimable").max().cast(pl.Int64),
        peak_charged=pl.col("charged").max().cast(pl.Int64),
        peak_unseen=unseen.cast(pl.Int64),
    ).row(0, named=True)
