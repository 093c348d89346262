"""The memory timeline: parts, pool and budget on one axis (schema.TIMELINE)."""

import datetime as dt

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem.analysis.account import Account
from postmortem.analysis.fit import features, heap_of_each, overlaps
from postmortem.analysis.resident import resident_at
from postmortem.analysis.state import Replays, partitions, pool_at
from postmortem.result import Part
from postmortem.schema import TIMELINE

__all__ = ["closed", "timeline"]

Floats = npt.NDArray[np.float64]
_NEVER = 1e18
_MOST_ROWS = 20_000


def timeline(
    replays: Replays,
    account: Account,
    end: dt.datetime | None,
    *,
    attempt: int,
    limit: int | None,
    budget: int | None,
    jobs_done: pl.Series,
) -> pl.DataFrame:
    """One attempt's rows: at each sample, and at each change of pool or partitions between them."""
    times = _moments(replays, end)
    if not len(times):
        return pl.DataFrame(schema=TIMELINE)
    resident = resident_at(replays.tables, times)
    total, in_use = pool_at(replays.pool, times), pool_at(replays.pool, times, "in_use")
    heap, covered, live = _working(replays, account, times, in_use)
    charged, unreclaimable, reclaimable, sampled = _charged(replays, account, times, end)
    transient = _transient(replays, account, times)
    known = resident + total + heap + transient
    overhead = np.where(np.isnan(unreclaimable), np.nan, np.maximum(unreclaimable - known, 0))
    reserved = replays.ledger.reserved_at(times)
    frame = pl.DataFrame(
        {
            "time": [_moment(t) for t in times],
            "attempt": np.full(len(times), attempt),
            "resident": resident,
            "working_set": heap + covered,
            "pinned_uncovered_in_use": np.maximum(in_use - covered, 0),
            "pool_idle": np.maximum(total - in_use, 0),
            "transient": transient,
            "overhead": overhead,
            "neighbour": np.zeros(len(times)),
            "reclaimable": reclaimable,
            "unreclaimable": unreclaimable,
            "charged": np.where(sampled, charged, np.nan),
            "limit": np.full(len(times), np.nan if limit is None else float(limit)),
            "budget": np.full(len(times), np.nan if budget is None else float(budget)),
            "reserved": reserved,
            "pool_total": total,
            "pool_in_use": in_use,
            "buffers_alive": pool_at(replays.pool, times, "alive"),
            "free_remaining": pool_at(replays.pool, times, "free"),
            "live_partitions": live,
            "jobs_done": np.searchsorted(_epoch(jobs_done), times, side="right").astype(float),
        },
        nan_to_null=True,
    )
    floats = pl.col(pl.Float64).round()
    return frame.with_columns(floats).select(pl.col(name).cast(dtype) for name, dtype in TIMELINE.items())


def closed(frame: pl.DataFrame, parts: list[Part], pool_idle: int) -> pl.DataFrame:
    """The timeline with its last row as the arithmetic has it: what was measured at the kill is known better there."""
    if frame.is_empty() or not parts:
        return frame
    # Where the evidence contradicts itself a part can come out below nothing: the table says so, a stack cannot.
    actual = {part.part: max(0, part.actual.best) for part in parts}
    uncovered = actual.get("pinned_uncovered", 0)
    last = {
        "resident": sum(size for name, size in actual.items() if name.startswith("resident:")),
        "working_set": actual.get("working_set", 0),
        "pinned_uncovered_in_use": max(0, uncovered - pool_idle),
        "pool_idle": min(pool_idle, uncovered),
        "transient": actual.get("transient", 0),
        "overhead": actual.get("overhead", 0),
        "neighbour": actual.get("neighbour", 0),
        "unreclaimable": sum(actual.values()),
    }
    at_end = pl.int_range(pl.len()) == pl.len() - 1
    return frame.with_columns(
        pl.when(at_end).then(pl.lit(size, dtype=pl.Int64)).otherwise(pl.col(name)).alias(name)
        for name, size in last.items()
    )


def _moment(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(round(float(seconds), 6), dt.UTC)


def _epoch(column: pl.Series) -> Floats:
    return np.sort((column.drop_nulls().dt.timestamp("us").cast(pl.Float64) / 1e6).to_numpy())


def _moments(replays: Replays, end: dt.datetime | None) -> Floats:
    """All moments at which something is known, thinned evenly where there are too many, the end always kept."""
    columns = [
        replays.memory.samples["time"],
        replays.pool.steps["time"] if replays.pool.steps.width else pl.Series([], dtype=pl.Datetime("us", "UTC")),
    ]
    columns += [replays.lives[name] for name in ("synth_start", "gpu_start", "gpu_end")]
    times = np.unique(np.concatenate([_epoch(column) for column in columns]))
    if end is not None:
        times = np.unique(np.append(times[times <= end.timestamp()], end.timestamp()))
    if len(times) <= _MOST_ROWS:
        return times
    return times[np.unique(np.linspace(0, len(times) - 1, _MOST_ROWS).astype(int))]


def _working(replays: Replays, account: Account, times: Floats, in_use: Floats) -> tuple[Floats, Floats, Floats]:
    """(heap, covered pinned bytes, live partitions) at each moment, by the account's best heap shares."""
    arrays = partitions(replays.lives)
    if not len(arrays.start):
        return np.zeros(len(times)), np.zeros(len(times)), np.zeros(len(times))
    ramp, shares = account.heap.ramps[0][0], account.heap.best
    heap = features(arrays, times, ramp) @ shares
    alive = np.searchsorted(np.sort(arrays.start), times, side="right") - np.searchsorted(
        np.sort(arrays.end), times, side="right"
    )
    full = replays.lives["full"].cast(pl.Float64).to_numpy()
    pinned = np.flatnonzero(arrays.pinned)
    spans = arrays.start[pinned], arrays.returned[pinned]
    holders = sum((np.bincount(at, minlength=len(times)) for _, at in overlaps(*spans, times)), np.zeros(len(times)))
    share = in_use / np.maximum(holders, 1)
    covered = np.zeros(len(times))
    for which, at in overlaps(*spans, times):
        part = pinned[which]
        # A partition that the log ended before its buffers came back holds no heap of its own.
        own = np.where(times[at] < arrays.end[part], heap_of_each(arrays, part, times[at], ramp, shares), 0.0)
        covered += np.bincount(at, np.minimum(share[at], np.maximum(full[part] - own, 0)), len(times))
    return heap, np.minimum(covered, in_use), alive.astype(float)


def _charged(
    replays: Replays, account: Account, times: Floats, end: dt.datetime | None
) -> tuple[Floats, Floats, Floats, npt.NDArray[np.bool_]]:
    """(charged, unreclaimable, reclaimable, sampled here) at each moment; between samples interpolated, never beyond them."""
    samples = replays.memory.upto(end)
    nothing = np.full(len(times), np.nan)
    if samples.is_empty():
        return nothing, nothing.copy(), nothing.copy(), np.zeros(len(times), dtype=bool)
    at = (samples["time"].dt.timestamp("us").cast(pl.Float64) / 1e6).to_numpy()

    def along(name: str) -> Floats:
        values = samples[name].cast(pl.Float64).to_numpy()
        good = ~np.isnan(values)
        if not good.any():
            return nothing.copy()
        return np.interp(times, at[good], values[good], left=np.nan, right=np.nan)

    charged, unreclaimable, reclaimable = along("current"), along("unreclaimable"), along("reclaimable")
    if account.killed and end is not None and account.unreclaimable is not None:
        last = times >= end.timestamp() - 1e-6
        unreclaimable[last] = account.unreclaimable.best
        charged[last] = account.unreclaimable.best
    # A gap of many intervals is a gap in the evidence, not a line.
    gap = 5 * (replays.memory.interval_s or 1.0)
    nearest = np.minimum(
        np.abs(times - at[np.clip(np.searchsorted(at, times), 0, len(at) - 1)]),
        np.abs(times - at[np.clip(np.searchsorted(at, times) - 1, 0, len(at) - 1)]),
    )
    far = nearest > gap
    for values in (charged, unreclaimable, reclaimable):
        values[far] = np.nan
    return charged, unreclaimable, reclaimable, np.isin(times, at)


def _transient(replays: Replays, account: Account, times: Floats) -> Floats:
    """Only the load at the end was accounted for: it grows evenly from its start."""
    values = np.zeros(len(times))
    amount = account.transient.best + account.extraction.best
    if not amount or account.at is None:
        return values
    starts = [t.start for t in replays.tables if t.end is None] + [
        e.start for e in replays.extractions if e.end is None
    ]
    if not starts:
        return values
    begin, finish = min(starts).timestamp(), account.at.timestamp()
    return amount * np.clip((times - begin) / max(finish - begin, 1e-6), 0, 1)
