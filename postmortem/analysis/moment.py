"""The state of one attempt at one moment: replays, lives and samples become an `Account`."""

import dataclasses
import datetime as dt

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem.analysis.account import Account, Heap, Live, TableShare, default_heap, fitted_heap
from postmortem.analysis.cite import Citations
from postmortem.analysis.fit import FitInput, HeapFit, Partitions, fit, thin
from postmortem.analysis.ledger import Ledger
from postmortem.analysis.memory import Memory
from postmortem.analysis.pool import PoolReplay
from postmortem.analysis.resident import Extraction, ResidentTable, loading_at, resident_at
from postmortem.model import MemoryModel
from postmortem.result import Quantity
from postmortem.units import GIB

__all__ = ["Replays", "account_at", "fit_heap", "live_at", "pool_at"]

Floats = npt.NDArray[np.float64]
_NEVER = 1e18


@dataclasses.dataclass(frozen=True)
class Replays:
    """Everything that was reconstructed of one attempt."""

    pool: PoolReplay
    ledger: Ledger
    tables: list[ResidentTable]
    extractions: list[Extraction]
    lives: pl.DataFrame
    memory: Memory
    model: MemoryModel


def _seconds(column: pl.Series) -> Floats:
    """Epoch seconds; `_NEVER` for null."""
    return np.asarray((column.dt.timestamp("us").cast(pl.Float64) / 1e6).fill_null(_NEVER).to_numpy())


def partitions(lives: pl.DataFrame) -> Partitions:
    """Lives as arrays."""
    need = (lives["needs_abc"] + lives["needs_rest"]).cast(pl.Float64).to_numpy()
    # A circuit that the profile does not know: shares of a GiB, so that the fit still measures bytes.
    return Partitions(
        start=_seconds(lives["synth_start"]),
        synth_end=_seconds(lives["synth_end"]),
        returned=_seconds(lives["prove_returned"]),
        end=_seconds(lives["gpu_end"]),
        pinned=lives["pinned"].fill_null(value=False).to_numpy(),
        need=np.where(need > 0, need, float(GIB)),
    )


def pool_at(pool: PoolReplay, times: Floats, column: str = "total") -> Floats:
    """A column of the pool's steps at each moment (epoch seconds)."""
    steps = pool.steps.filter(pl.col("time").is_not_null())
    if steps.is_empty():
        return np.zeros(len(times))
    at = _seconds(steps["time"])
    values = np.concatenate([[0.0], steps[column].cast(pl.Float64).to_numpy()])
    return values[np.searchsorted(np.maximum.accumulate(at), times, side="right")]


def fit_heap(replays: Replays, limit: int | None, until: dt.datetime | None) -> HeapFit | None:
    """The fit of fit.py over the attempt's samples up to the end."""
    samples = replays.memory.upto(until)
    if samples.height < 8 or replays.lives.is_empty() or replays.memory.scope is None:
        return None
    times = _seconds(samples["time"]) + replays.memory.stamp_s / 2
    keep = thin(times)
    times = times[keep]
    charged = samples["current"].cast(pl.Float64).to_numpy()[keep]
    unreclaimable = samples["unreclaimable"].cast(pl.Float64).to_numpy()[keep]
    known = resident_at(replays.tables, times) + pool_at(replays.pool, times)
    changed = replays.pool.steps.filter(pl.col("total").diff().fill_null(1) != 0)
    return fit(
        FitInput(
            times=times,
            rest=unreclaimable - known,
            saturated=np.asarray(charged >= 0.995 * limit) if limit else np.zeros(len(times), dtype=bool),
            stamp_s=replays.memory.stamp_s,
            pool_changes=_seconds(changed.drop_nulls("time")["time"]),
            load_windows=_load_windows(replays, float(times[-1])),
            step=replays.memory.step,
            partitions=partitions(replays.lives),
        )
    )


def _load_windows(replays: Replays, end: float) -> tuple[tuple[float, float], ...]:
    """Spans in which tables load or are extracted: memory moves for other reasons than partitions."""
    windows = [(t.start.timestamp() - 8, (t.end.timestamp() if t.end else end) + 1.5) for t in replays.tables]
    windows += [(e.start.timestamp() - 1, (e.end.timestamp() if e.end else end) + 4) for e in replays.extractions]
    return tuple(windows)


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
        arrays.synth_end < _NEVER, arrays.synth_end - arrays.start, partitions(replays.lives).typical_synthesis
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


@dataclasses.dataclass(frozen=True)
class Stats:
    """A breakdown of the cgroup measured at (or close to) the moment. Bytes; None where not measured."""

    anon: int | None = None
    file: int | None = None
    shmem: int | None = None
    kernel: int | None = None
    pagetables: int | None = None
    mapped: int | None = None
    reclaimable: int | None = None
    usage: int | None = None
    at: tuple[int, int] | None = None


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
    shares = _loaded_shares(replays, loading, moment, limit)
    tables = [
        _table(t, shares.get(t.name), cites) for t in replays.tables if t.start <= moment and not _gone(t, moment)
    ]
    charged, reclaimable, unreclaimable = _charge(replays, moment, cites, stats, limit, killed=killed)
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
        transient=_transient(loading, shares, cites),
        extraction=_extraction(replays, moment, cites),
        extraction_reserved=len(_extracting(replays, moment)) * replays.model.pce_extraction,
        neighbour=neighbour,
        anon=stats.anon,
        heap_by_anon=_heap_by_anon(replays, moment, stats, cites) if live.count else None,
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


def _loaded_shares(
    replays: Replays, loading: list[ResidentTable], moment: dt.datetime, limit: Quantity | None
) -> dict[str, Quantity]:
    """Bytes of each loading table that are in memory: by the samples' slope, else by the pace of finished loads."""
    shares: dict[str, Quantity] = {}
    for table in loading:
        elapsed = max(0.0, (moment - table.start).total_seconds())
        paces = [
            t.best / (t.end - t.start).total_seconds() for t in replays.tables if t.end and t.end > t.start and t.best
        ]
        slope = _slope(replays.memory, table.start, moment, limit.best if limit else None)
        if slope is not None and slope > 0 and len(loading) == 1:
            # While it loads the file is mapped and copied at once: memory grows by both.
            pace, basis = slope / 2, "derived"
        else:
            pace, basis = (float(np.median(paces)) if paces else float(GIB)), "modelled"
        best = min(float(table.best), pace * elapsed)
        shares[table.name] = Quantity(
            low=round(0.7 * best), best=round(best), high=round(min(1.25 * best, table.high)), basis=basis
        )
    return shares


def _slope(memory: Memory, start: dt.datetime, end: dt.datetime, limit: int | None) -> float | None:
    """Bytes a second between two moments, from samples below the limit; None with fewer than four."""
    rows = memory.samples.filter(pl.col("time").is_between(start, end))
    if limit is not None:
        rows = rows.filter(pl.col("current") < 0.99 * limit)
    if rows.height < 4:
        return None
    change = (rows["unreclaimable"][-1] - rows["unreclaimable"][0]) / (
        rows["time"][-1] - rows["time"][0]
    ).total_seconds()
    return float(change)


def _transient(loading: list[ResidentTable], shares: dict[str, Quantity], cites: Citations) -> Quantity:
    """Bytes of mapped files that cannot be given back while they are being copied (cuzk-daemon.md, section 4)."""
    tables = [t for t in loading if t.kind == "srs"]
    low = best = high = 0
    for table in tables:
        share = shares[table.name]
        low, best, high = low + round(0.5 * share.low), best + share.best, high + share.high
    lines = cites.all(*(t.at[0] for t in tables))
    return Quantity(low=low, best=best, high=high, basis="modelled" if tables else "derived", lines=lines)


def _extracting(replays: Replays, moment: dt.datetime) -> list[Extraction]:
    """Extractions in flight."""
    return [e for e in replays.extractions if e.start <= moment and (e.end is None or e.end > moment)]


def _extraction(replays: Replays, moment: dt.datetime, cites: Citations) -> Quantity:
    """Heap of PCE extractions in flight: at least the table that grows, at most it and its working copy."""
    running = _extracting(replays, moment)
    low = best = high = 0
    for extraction in running:
        circuit = replays.model.circuit(extraction.circuit)
        size = circuit.pce if circuit else 0
        age = (moment - extraction.start).total_seconds()
        done = min(1.0, age / _typical_extraction(replays))
        best += round(size * done)
        high += round((size + replays.model.pce_extraction) * min(1.0, 2 * done))
    return Quantity(low=low, best=best, high=high, basis="modelled", lines=cites.all(*(e.at for e in running)))


def _typical_extraction(replays: Replays) -> float:
    """Median seconds of finished extractions; half a minute where none finished."""
    spans = [(e.end - e.start).total_seconds() for e in replays.extractions if e.end]
    return max(1.0, float(np.median(spans))) if spans else 30.0


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


def _charge(
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
    middle = (least + charged.high) // 2
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


def _heap_by_anon(replays: Replays, moment: dt.datetime, stats: Stats, cites: Citations) -> Quantity | None:
    """Growth of anonymous memory since the last sample at which no partition was alive, tables on the heap taken out.

    None without such a sample, or when so much work was done since that the base may have grown too.
    """
    rows = replays.memory.upto(moment).filter(pl.col("anon").is_not_null())
    if stats.anon is None or rows.is_empty():
        return None
    times = _seconds(rows["time"])
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


def _unmapped(stats: Stats) -> int | None:
    """Shared memory beyond what is mapped; on cgroups `file_mapped`/`mapped_file` counts mapped shmem too."""
    if stats.shmem is None or stats.mapped is None:
        return None
    return max(0, stats.shmem - stats.mapped)
