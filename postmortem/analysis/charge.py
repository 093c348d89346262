"""What was charged to the cgroup at a moment, and what anonymous memory says of the heap."""

import datetime as dt

import numpy as np
import polars as pl

from postmortem.analysis.cite import Citations
from postmortem.analysis.resident import resident_at
from postmortem.analysis.state import Replays, Stats, partitions, pool_at, seconds
from postmortem.quantity import Quantity

__all__ = ["charge", "heap_by_anon"]


_USUAL_OVERHEAD = 0.03  # of the limit, where nothing tells it from page cache


def charge(
    replays: Replays,
    moment: dt.datetime,
    cites: Citations,
    stats: Stats,
    limit: Quantity | None,
    *,
    killed: bool,
) -> tuple[Quantity | None, Quantity | None, Quantity | None]:
    """(charged, reclaimable, unreclaimable) at the moment."""
    if stats.usage is not None and stats.at is not None:
        at = cites.all(stats.at)
        usage = Quantity(low=stats.usage, best=stats.usage, high=stats.usage, basis="measured", lines=at)
        if stats.reclaimable is None:
            return usage, None, _wanted(_widened(usage, low=round(0.98 * stats.usage)))
        gone = Quantity(low=0, best=stats.reclaimable, high=stats.reclaimable, basis="measured", lines=at)
        return usage, gone, _wanted(usage - gone)
    rows = replays.memory.upto(moment)
    if killed and limit is not None:
        # It was killed because what cannot be given back reached the limit: between the last sample and it.
        last = rows["current"][-1] if rows.height else None
        low = max(round(0.98 * limit.low), min(last or 0, limit.low))
        whole = Quantity(low=min(low, limit.low), best=limit.best, high=limit.high, basis="derived", lines=limit.lines)
        nothing = Quantity(low=0, best=0, high=limit.high - whole.low, basis="derived")
        return whole, nothing, _wanted(whole)
    if rows.is_empty():
        return None, None, None
    row = rows.row(-1, named=True)
    half = replays.memory.step // 2
    at = cites.all((row["source"], row["line"]))
    charged = Quantity(
        low=row["current"] - half, best=row["current"], high=row["current"] + half, basis="measured", lines=at
    )
    now = np.array([moment.timestamp()])
    known = resident_at(replays.tables, now)[0] + pool_at(replays.pool, now)[0]
    if row["reclaimable"] is not None:
        cache = Quantity(
            low=row["reclaimable"], best=row["reclaimable"], high=row["reclaimable"], basis="measured", lines=at
        )
        return charged, cache, charged - cache
    # Anything between what the ledgers account for and all of it may be page cache.
    least = round(min(known, charged.low))
    usual = round(_USUAL_OVERHEAD * (limit.best if limit is not None else charged.best))
    middle = min(charged.high, least + usual)
    return charged, None, Quantity(low=least, best=middle, high=charged.high, basis="assumed", lines=at)


def _wanted(quantity: Quantity) -> Quantity:
    """What was wanted at a kill: the request that could not be met (a few hugepages to a GiB) comes on top of the charge."""
    return Quantity(
        low=quantity.low,
        best=quantity.best,
        high=round(quantity.high * 1.005),
        basis=quantity.basis,
        lines=quantity.lines,
    )


def _widened(quantity: Quantity, *, low: int) -> Quantity:
    """The quantity with a wider lower end."""
    return Quantity(low=low, best=quantity.best, high=quantity.high, basis=quantity.basis, lines=quantity.lines)


def heap_by_anon(replays: Replays, moment: dt.datetime, stats: Stats, cites: Citations) -> Quantity | None:
    """Growth of anonymous memory since the last sample at which no partition was alive, tables on the heap taken out.

    None without such a sample, or when so much work was done since that the base may have grown too.
    """
    rows = replays.memory.upto(moment).filter(pl.col("anon").is_not_null())
    if stats.anon is None or rows.is_empty():
        return None
    times = seconds(rows["time"])
    arrays = partitions(replays.lives)
    alive = np.searchsorted(np.sort(arrays.start), times + 1.0, side="right") - np.searchsorted(
        np.sort(arrays.end), times - 1.0, side="right"
    )
    idle = np.flatnonzero(alive == 0)
    if not len(idle):
        return None
    heap_tables = [t for t in replays.tables if t.kind == "pce"]
    heap_tables = [t for t in replays.tables if t.kind == "pce"]
    bases = rows["anon"].cast(pl.Float64).to_numpy() - resident_at(heap_tables, times)
    # Of the newest idle stretch the least: a table on the heap grows before the line that says it is there.
    stretch = idle[times[idle] >= np.max(arrays.end[arrays.end < times[idle[-1]]], initial=0.0)]
    chosen = int(stretch[np.argmin(bases[stretch])])
    row = rows.row(chosen, named=True)
    ended = int(((arrays.end > times[chosen]) & (arrays.end < moment.timestamp())).sum())
    now = stats.anon - resident_at(heap_tables, np.array([moment.timestamp()]))[0]
    best = max(0.0, now - max(bases[chosen], 0.0))
    # What was freed since may not have been given back; the base may have grown by it.
    low = best * (0.9 if ended < 4 else 0.6)
    at = cites.all((row["source"], row["line"]), *([stats.at] if stats.at else []))
    return Quantity(
        low=round(low),
        best=round(best if ended < 4 else 0.85 * best),
        high=round(best * 1.02),
        basis="derived",
        lines=at,
    )
