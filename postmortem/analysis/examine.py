"""One attempt examined: its replays, how it ended, and what limit and budget it had."""

import dataclasses
import datetime as dt

import polars as pl

from postmortem.analysis import attempts, ending, kills, ledger, lives, phases, pool, resident
from postmortem.analysis.cite import Citations
from postmortem.analysis.memory import Memory, memory
from postmortem.analysis.state import Replays, Stats, pool_at
from postmortem.analysis.thinning import Thinning
from postmortem.model import MemoryModel
from postmortem.result import Ending, Quantity
from postmortem.run import Run
from postmortem.units import format_gib

__all__ = ["Examined", "examine"]


@dataclasses.dataclass(frozen=True)
class Examined:
    """One attempt, before its arithmetic."""

    span: attempts.Span
    run: Run
    replays: Replays
    kills: pl.DataFrame
    ending: Ending
    limit: Quantity | None
    budget: Quantity | None
    end: dt.datetime | None
    """The moment that the arithmetic is about."""
    log_end: dt.datetime | None
    phases: list[phases.PhaseSpan]
    stats: Stats
    cites: Citations
    warnings: list[str]

    @property
    def died_of_memory(self) -> bool:
        """Whether the ending has a memory cause."""
        return self.ending.how in ending.MEMORY_DEATHS


def examine(
    whole: Run, span: attempts.Span, all_kills: pl.DataFrame, found_phases: list[phases.PhaseSpan], *, last: bool
) -> Examined:
    """Replay one attempt and decide how it ended."""
    run = attempts.cut(whole, span)
    cites = Citations(whole)
    warnings: list[str] = []
    budget = _budget(whole, run, span, cites)
    model = _fitting_model(run, budget, warnings)
    series = memory(run.table("samples"))
    log_end = _log_end(run, span)
    mine = kills.concerns(all_kills, run, span, log_end if last else span.end)
    replayed = pool.replay(run.frames("pool"), Thinning(run.rows("pool"), series.samples["time"]))
    warnings += replayed.warnings
    found_tables = resident.tables(run.table("resident"), model)
    found_lives = lives.lives(run.frames("work", lives.COLUMNS), model)
    found_extractions = resident.extractions(run.table("resident"))
    replays = Replays(
        pool=replayed,
        ledger=ledger.replay(
            run.frames("budget", ledger.COLUMNS),
            found_lives,
            found_tables,
            found_extractions,
            model,
            budget.best if budget else None,
        ),
        tables=found_tables,
        extractions=found_extractions,
        lives=found_lives,
        memory=series,
        model=model,
    )
    limit = _limit(whole, run, series, mine, cites)
    own_phases = [p for p in found_phases if _within(p.start, span)]
    evidence_end = _latest(
        [log_end, series.samples["time"].max() if not series.empty else None, run.table("ends")["time"].max()]
    )
    facts = ending.Facts(
        run=run,
        kills=mine,
        memory=series,
        limit=limit.best if limit else None,
        log_end=log_end,
        evidence_end=evidence_end,
        modelled_use=_least_use(replays, log_end) if series.empty else None,
        last=last,
        open_phase=any(p.end is None for p in own_phases[-1:]),
    )
    decided = ending.decide(facts, cites)
    stats = _stats(mine, series)
    moment = _moment(decided, log_end, evidence_end, series, died=decided.how in ending.MEMORY_DEATHS)
    return Examined(
        span=span,
        run=run,
        replays=replays,
        kills=mine,
        ending=decided,
        limit=limit,
        budget=budget,
        end=moment,
        log_end=log_end,
        phases=own_phases,
        stats=stats,
        cites=cites,
        warnings=warnings,
    )


def _fitting_model(run: Run, budget: Quantity | None, warnings: list[str]) -> MemoryModel:
    """The profile's constants, unless they cannot be this run's: one partition may not reserve the whole budget."""
    model = run.model
    if budget is None or not model.circuits:
        return model
    smallest = min((c.full for c in model.circuits.values() if c.full), default=0)
    named = [model.circuit(name) for name in run.table("resident")["circuit"].drop_nulls().unique()]
    full = max((c.full for c in named if c), default=smallest)
    if full <= budget.best:
        return model
    warnings.append(
        f"the profile's reservation of {format_gib(full)} a partition exceeds the whole budget of {format_gib(budget.best)}: "
        "its constants are not used for this run"
    )
    return MemoryModel(processes=model.processes, proof_kinds=model.proof_kinds)


def _log_end(run: Run, span: attempts.Span) -> dt.datetime | None:
    """The newest dated line of the daemon's own log within the attempt."""
    daemon = ("work", "pool", "budget", "resident")
    sources, times = set[int](), list[object]()
    for name in daemon:
        for frame in run.frames(name, ["source", "time"]):
            sources.update(frame["source"].unique())
            times.append(frame["time"].max())
    lines = run.lines_time.filter(pl.col("source").is_in(list(sources)) & pl.col("time").is_not_null())
    if span.end is not None:
        lines = lines.filter(pl.col("time") < span.end - dt.timedelta(seconds=2))
    newest = lines["time"].max() if lines.height else None
    return _latest([*times, newest])


def _latest(times: list[object]) -> dt.datetime | None:
    known = [t for t in times if isinstance(t, dt.datetime)]
    return max(known) if known else None


def _within(time: dt.datetime | None, span: attempts.Span) -> bool:
    if time is None or span.start is None:
        return span.end is None
    return (span.number == 1 or time >= span.start - dt.timedelta(seconds=5)) and (
        span.end is None or time < span.end - dt.timedelta(seconds=2)
    )


def _budget(whole: Run, run: Run, span: attempts.Span, cites: Citations) -> Quantity | None:
    """The user's word; an exact snapshot; the daemon's line (whole GiB, rounded down); the wrapper's."""
    stated = whole.options.budget
    if stated is not None:
        return Quantity(low=stated, best=stated, high=stated, basis="measured", lines=("--budget",))
    known = pl.col("total").is_not_null()
    for kind in (pl.col("total_ulp").fill_null(0) == 0, pl.col("op") == "init", pl.lit(value=True)):
        row = run.first("budget", known & kind)
        if row is not None:
            ulp = max(0, (row["total_ulp"] or 0) - 1)
            at = cites.all((row["source"], row["line"]))
            return Quantity(low=row["total"], best=row["total"], high=row["total"] + ulp, basis="measured", lines=at)
    marks = whole.table("marks").filter((pl.col("what") == "budget_stated") & pl.col("value").is_not_null())
    if span.end is not None:
        marks = marks.filter(pl.col("time").is_null() | (pl.col("time") < span.end - dt.timedelta(seconds=2)))
    if marks.is_empty():
        return None
    row = marks.row(-1, named=True)
    return Quantity(
        low=row["value"],
        best=row["value"],
        high=row["value"],
        basis="measured",
        lines=cites.all((row["source"], row["line"])),
    )


def _limit(whole: Run, run: Run, series: Memory, mine: pl.DataFrame, cites: Citations) -> Quantity | None:
    """The user's word; the kill report's limit; sampled limits; a stated one. The finest statement wins."""
    stated = whole.options.limit
    if stated is not None:
        return Quantity(low=stated, best=stated, high=stated, basis="measured", lines=("--limit",))
    memcg = mine.filter(pl.col("limit").is_not_null() & (pl.col("constraint") == "memcg"))
    if memcg.height:
        row = memcg.row(-1, named=True)
        return _exact(row["limit"], 0, cites.all((row["source"], row["first_line"] or row["line"])))
    if not series.empty and series.samples["limit"].null_count() < series.samples.height:
        row = series.samples.filter(pl.col("limit").is_not_null()).row(-1, named=True)
        ulp = (
            run.table("samples")
            .filter((pl.col("metric") == "limit") & (pl.col("source") == row["source"]))["value_ulp"]
            .drop_nulls()
        )
        return _exact(row["limit"], int(ulp[0]) if len(ulp) else 0, cites.all((row["source"], row["line"])))
    marks = whole.table("marks").filter(
        pl.col("what").is_in(["limit_stated", "probe_limit"]) & pl.col("value").is_not_null()
    )
    if marks.height:
        row = marks.sort("value_ulp", nulls_last=False).row(0, named=True)
        return _exact(row["value"], row["value_ulp"] or 0, cites.all((row["source"], row["line"])))
    return None


def _exact(value: int, ulp: int, lines: tuple[str, ...]) -> Quantity:
    half = ulp // 2
    return Quantity(low=value - half, best=value, high=value + half, basis="measured", lines=lines)


def _least_use(replays: Replays, moment: dt.datetime | None) -> int | None:
    """What tables, pool and the least heap of live partitions alone account for."""
    if moment is None:
        return None
    seconds = pl.Series([moment]).dt.timestamp("us").cast(pl.Float64).to_numpy() / 1e6
    tables = sum(t.best for t in replays.tables if t.end is not None and t.gone is None)
    live = replays.lives.filter(pl.col("gpu_end").is_null())
    unpinned = live.filter(~pl.col("pinned").fill_null(value=False))
    heap = int(live["needs_rest"].sum()) + int(unpinned["needs_abc"].sum()) // 2
    return int(pool_at(replays.pool, seconds)[0]) + tables + heap


def _stats(mine: pl.DataFrame, series: Memory) -> Stats:
    """A measured breakdown at the end: the kill report's, else the last sample's counters."""
    reports = mine.filter(pl.col("usage").is_not_null() & (pl.col("constraint") == "memcg"))
    if reports.height:
        row = reports.row(-1, named=True)
        cache = None
        if row["stat_file"] is not None and row["stat_shmem"] is not None:
            cache = max(0, row["stat_file"] - row["stat_shmem"])
        elif row["stat_inactive_file"] is not None:
            cache = row["stat_inactive_file"] + (row["stat_active_file"] or 0)
        return Stats(
            anon=row["stat_anon"],
            file=row["stat_file"],
            shmem=row["stat_shmem"],
            kernel=row["stat_kernel"] if row["stat_kernel"] is not None else row["kmem_usage"],
            pagetables=row["stat_pagetables"] if row["stat_pagetables"] is not None else row["pgtables"],
            mapped=row["stat_file_mapped"],
            reclaimable=cache,
            usage=row["usage"],
            at=(row["source"], row["first_line"] or row["line"]),
        )
    if series.empty:
        return Stats()
    row = _last_before_fall(series.samples).row(-1, named=True)
    if row["anon"] is None and row["shmem"] is None:
        return Stats()
    return Stats(
        anon=row["anon"] if (series.interval_s or 0) <= 2 else None,
        file=row["file"],
        shmem=row["shmem"] if (series.interval_s or 0) <= 2 else None,
        kernel=row["kernel"],
        pagetables=row["pagetables"] or None,
        mapped=row["file_mapped"],
    )


def _last_before_fall(samples: pl.DataFrame) -> pl.DataFrame:
    """Samples up to the last high one: after a kill the sampler sees memory fall."""
    top = samples["current"].max()
    assert isinstance(top, int)
    tail = samples.with_row_index().filter(pl.col("current") >= 0.98 * top)
    last = tail["index"][-1]
    fell = samples["current"][-1] < 0.9 * top and samples.height - last <= 10
    return samples.head(last + 1) if fell else samples


def _moment(
    decided: Ending, log_end: dt.datetime | None, evidence_end: dt.datetime | None, series: Memory, *, died: bool
) -> dt.datetime | None:
    """When the arithmetic is drawn up: at the kill, else when the evidence ends."""
    if died:
        # What the log says happened before the kill, whatever the kernel's clock says.
        tail = _last_before_fall(series.samples)["time"][-1] if not series.empty else None
        return _latest([decided.time if decided.certainty == "proven" else tail, log_end])
    return log_end or evidence_end
