"""The state of one attempt at one moment: replays, lives and samples become an `Account`."""

import dataclasses
import datetime as dt

import numpy as np
import polars as pl

from postmortem.analysis.account import Account, Heap, Live, TableShare, default_heap, fitted_heap
from postmortem.analysis.charge import charge, heap_by_anon
from postmortem.analysis.cite import Citations
from postmortem.analysis.fit import HeapFit
from postmortem.analysis.loads import extracting, extraction, loaded_shares, transient
from postmortem.analysis.resident import ResidentTable, loading_at
from postmortem.analysis.state import NEVER, Replays, Stats, partitions, pool_at
from postmortem.quantity import Quantity
from postmortem.units import GIB

__all__ = ["account_at", "live_at"]


def live_at(replays: Replays, moment: dt.datetime) -> Live:
    """Partitions alive at a moment, and what of the pool each holds."""
    rows = replays.lives.filter(
        (pl.col("synth_start") <= moment) & (pl.col("gpu_end").is_null() | (pl.col("gpu_end") > moment))
    )
    ended = replays.lives.filter(pl.col("synth_end").is_not_null())["circuit"].unique()
    arrays = partitions(rows)
    now = moment.timestamp()
    released = arrays.returned <= now
    synthesis = np.where(
        arrays.synth_end < NEVER, arrays.synth_end - arrays.start, partitions(replays.lives).typical_synthesis
    )
    holders = arrays.pinned & ~released
    in_use = float(pool_at(replays.pool, np.array([now]), "in_use")[0])
    held = np.where(holders, in_use / max(1, int(holders.sum())), 0.0)
    # No more than its own three buffers, where the profile knows their size.
    own = rows["needs_abc"].cast(pl.Float64).to_numpy()
    held = np.where(own > 0, np.minimum(held, own), held)
    full = rows["full"].cast(pl.Float64).to_numpy()
    abc = rows["abc"].cast(pl.Float64).to_numpy()
    return Live(
        age_s=now - arrays.start,
        synthesis_s=np.maximum(synthesis, 0.5),
        pinned=arrays.pinned,
        released=np.asarray(released),
        need=arrays.need,
        rest=rows["needs_rest"].cast(pl.Float64).to_numpy(),
        reservation=np.where(released, full - abc, full),
        held=held,
        paced=(
            rows["circuit"].is_in(ended.to_list(), nulls_equal=True) | (replays.lives["circuit"].n_unique() == 1)
        ).to_numpy(),
    )


def account_at(
    replays: Replays,
    moment: dt.datetime,
    cites: Citations,
    *,
    killed: bool,
    limit: Quantity | None,
    budget: Quantity | None,
    stats: Stats,
    neighbour: Quantity | None,
    found: HeapFit | None,
) -> Account:
    """Everything that the arithmetic needs at a moment."""
    live = live_at(replays, moment)
    heap = _heap(found, live, replays)
    loading = loading_at(replays.tables, moment)
    shares = loaded_shares(replays, loading, moment, limit)
    present = [t for t in replays.tables if t.start <= moment and not _gone(t, moment)]
    tables = [_table(t, shares.get(t.name), cites) for t in _bounded_by_shmem(present, replays, stats)]
    charged, reclaimable, unreclaimable = charge(replays, moment, cites, stats, limit, killed=killed)
    pool_total = int(pool_at(replays.pool, np.array([moment.timestamp()]))[0])
    in_use = int(pool_at(replays.pool, np.array([moment.timestamp()]), "in_use")[0])
    at = cites.all(replays.pool.last) if replays.pool.last else ()
    return Account(
        at=moment,
        killed=killed,
        limit=limit,
        budget=budget,
        reserved=_reserved(replays, moment, budget, cites),
        permanent=replays.ledger.at(moment)[1],
        charged=charged,
        reclaimable=reclaimable,
        unreclaimable=unreclaimable,
        tables=tables,
        pool_total=Quantity(low=pool_total, best=pool_total, high=pool_total, basis="derived", lines=at),
        pool_in_use=in_use,
        live=live,
        heap=heap,
        transient=transient(loading, shares, cites),
        extraction=extraction(replays, moment, cites),
        extraction_reserved=len(extracting(replays, moment)) * replays.model.pce_extraction,
        neighbour=neighbour,
        anon=stats.anon,
        heap_by_anon=heap_by_anon(replays, moment, stats, cites) if live.count else None,
        shmem=stats.shmem,
        pagetables=stats.pagetables,
        kernel=stats.kernel,
        shmem_unmapped=_unmapped(stats),
        heap_tables=sum(round(t.actual.best) for t in tables if t.name.startswith("pce:")),
        pinned_tables=sum(round(t.actual.best) for t in tables if t.name.startswith("srs:")),
    )


def _heap(found: HeapFit | None, live: Live, replays: Replays) -> Heap:
    squeezed = not replays.memory.has_counters
    return fitted_heap(found, live, squeezed=squeezed) if found else default_heap(live)


def _bounded_by_shmem(present: list[ResidentTable], replays: Replays, stats: Stats) -> list[ResidentTable]:
    """Pinned tables whose size the log rounds cannot be larger than measured shared memory leaves room for."""
    pinned = [t for t in present if t.kind == "srs"]
    if stats.shmem is None or not pinned:
        return present
    room = max(0, stats.shmem - replays.pool.total - sum(t.best for t in pinned))
    return [
        dataclasses.replace(t, high=min(t.high, t.best + room)) if t.kind == "srs" and t.end else t for t in present
    ]


def _gone(table: ResidentTable, moment: dt.datetime) -> bool:
    return table.gone is not None and table.gone <= moment


def _table(table: ResidentTable, share: Quantity | None, cites: Citations) -> TableShare:
    """A table's row: its permanent reservation against what of it is in memory."""
    whole = table.quantity(cites.all(*table.at, most=2))
    actual = whole
    if share is not None:
        actual = Quantity(low=share.low, best=share.best, high=share.high, basis=share.basis, lines=whole.lines)
    provision = Quantity(low=table.best, best=table.best, high=table.best, basis=whole.basis, lines=whole.lines)
    return TableShare(table.name, provision, actual)


def _reserved(replays: Replays, moment: dt.datetime, budget: Quantity | None, cites: Citations) -> Quantity:
    reserved, _ = replays.ledger.at(moment)
    last = replays.ledger.last_stated(moment)
    basis = replays.ledger.basis_at(moment)
    slack = GIB if basis == "derived" else max(GIB, min(replays.ledger.largest_correction, reserved // 10))
    high = reserved + slack
    if budget is not None:
        high = max(reserved, min(high, budget.high))
    lines = cites.all((last.source, last.line)) if last else ()
    return Quantity(low=max(0, reserved - slack), best=reserved, high=high, basis=basis, lines=lines)


def _unmapped(stats: Stats) -> int | None:
    """Shared memory beyond what is mapped; on cgroups `file_mapped`/`mapped_file` counts mapped shmem too."""
    if stats.shmem is None or stats.mapped is None:
        return None
    return max(0, stats.shmem - stats.mapped)
