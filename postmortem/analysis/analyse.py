"""The whole analysis of one run, in the order of design.md, section 3."""

import dataclasses
import datetime as dt

import msgspec
import numpy as np
import polars as pl

from postmortem.analysis import arithmetic, attempts, clock, decompose, ground, kills, phases, survival, verdict
from postmortem.analysis.account import Account
from postmortem.analysis.cite import Citations
from postmortem.analysis.draws import Draws, draw
from postmortem.analysis.examine import Examined, examine
from postmortem.analysis.fit import HeapFit, features
from postmortem.analysis.growth import Growth, growth
from postmortem.analysis.heap import fit_heap
from postmortem.analysis.missing import missing
from postmortem.analysis.moment import account_at
from postmortem.analysis.neighbours import neighbour
from postmortem.analysis.resident import resident_at
from postmortem.analysis.state import partitions, pool_at
from postmortem.analysis.summary import sentence
from postmortem.analysis.timeline import closed, timeline
from postmortem.analysis.unmodelled import growth_with_work
from postmortem.result import (
    Attempt,
    BySize,
    Part,
    PartitionLife,
    Phase,
    Pool,
    Quantity,
    Result,
    Source,
    Verdict,
)
from postmortem.run import Excerpts, Run

__all__ = ["analyse"]

_MOST_PARTITIONS = 2000


def analyse(run: Run, excerpts: Excerpts, version: str) -> tuple[Result, pl.DataFrame]:
    """(result, timeline) of a run. Never raises for what the evidence holds or lacks."""
    placed = clock.place(run)
    whole = placed.run.inside_window()
    spans = attempts.spans(whole)
    all_kills = kills.dedupe(whole.table("kills"))
    found_phases = phases.pair(whole.table("phases"))
    examined = [examine(whole, span, all_kills, found_phases, last=span is spans[-1]) for span in spans]
    chosen = next((e for e in reversed(examined) if e.died_of_memory), examined[-1])
    return _Report(whole, placed, examined, chosen, all_kills, version).build(excerpts)


class _Report:
    """The chosen attempt's arithmetic and verdict, and the run around it."""

    def __init__(
        self,
        run: Run,
        placed: clock.Placed,
        examined: list[Examined],
        chosen: Examined,
        all_kills: pl.DataFrame,
        version: str,
    ) -> None:
        self.run, self.placed, self.examined, self.chosen = run, placed, examined, chosen
        self.all_kills, self.version = all_kills, version
        self.cites: Citations = chosen.cites

    def build(self, excerpts: Excerpts) -> tuple[Result, pl.DataFrame]:
        """All pieces, then the citations' text."""
        chosen = self.chosen
        found = fit_heap(chosen.replays, chosen.limit.best if chosen.limit else None, chosen.end)
        account = self._account(found)
        draws = None if decompose.without_model(self.run) else draw(account)
        split = decompose.decompose(self.run, chosen, account, self.cites) if draws is None else None
        grown = growth_with_work(chosen, split) if split else _growth(chosen, account, draws)
        typical = float(np.median(account.live.need)) if account.live.count else _typical_need(chosen)
        table = arithmetic.build(account, draws, arithmetic.describe_fit(found, typical) if found else None, grown)
        table = decompose.fill(table, split) if split else table
        knowledge = verdict.Knowledge(
            samples=chosen.replays.memory.samples.height >= 8,
            counters=chosen.replays.memory.has_counters,
            processes=not self.run.table("tasks").is_empty() or _has_processes(self.run),
            host_total=_host_total(self.run),
        )
        judged = verdict.judge(
            chosen.ending, account, draws, grown, knowledge, verdict.findings_of(account, draws, grown), split
        )
        pool = self._pool(draws)
        bare = Verdict(cause=judged.cause, confidence=round(judged.confidence, 2), summary="", causes=judged.causes)
        text = sentence(_name(self.run, chosen), chosen.ending, bare, table, pool, self._phase_name())
        result = Result(
            postmortem_version=self.version,
            name=self.run.name,
            profile=self.run.profile,
            sources=self._sources(),
            ending=chosen.ending,
            verdict=Verdict(cause=bare.cause, confidence=bare.confidence, summary=text, causes=bare.causes),
            arithmetic=table,
            pool=pool,
            kills=kills.describe(self.all_kills, chosen.kills, self.cites),
            phases=self._phases(),
            attempts=self._attempts(),
            survival=survival.survive(
                chosen.replays,
                account,
                draws,
                self._rate(),
                leak=judged.cause == "leak",
                ahead=_growth_ahead(chosen, grown),
            ),
            evidence=[],
            missing=missing(self.run, chosen.replays.memory, chosen.ending, chosen.limit, chosen.budget),
            warnings=self._warnings(draws),
            partitions=self._partitions(),
        )
        shown = decompose.folded(table.parts) if split else table.parts
        return _with_evidence(result, self.cites, excerpts), self._timeline(account, shown)

    def _account(self, found: HeapFit | None) -> Account:
        chosen = self.chosen
        moment = chosen.end or dt.datetime.fromtimestamp(0, dt.UTC)
        return account_at(
            chosen.replays,
            moment,
            self.cites,
            killed=chosen.ending.how in ("cgroup_limit", "cgroup_limit_probable"),
            limit=chosen.limit,
            budget=chosen.budget,
            stats=chosen.stats,
            neighbour=neighbour(self.run, chosen, self.cites),
            found=found,
        )

    def _pool(self, draws: Draws | None) -> Pool | None:
        pool = self.chosen.replays.pool
        if pool.last is None:
            return None
        lines = self.cites.all(*([pool.last] + ([pool.last_free[:2]] if pool.last_free else [])))

        def exact(size: int) -> Quantity:
            return Quantity(low=size, best=size, high=size, basis="derived", lines=lines)

        uncovered = None
        if draws is not None:
            low, best, high = draws.interval(draws.uncovered)
            uncovered = Quantity(low=low, best=best, high=high, basis="derived", lines=lines)
        sizes = sorted(set(pool.idle) | set(pool.in_use))
        return Pool(
            buffers_alive=pool.alive,
            buffers_in_use=pool.in_use.total(),
            free_remaining=pool.idle.total(),
            total=exact(pool.total),
            in_use=exact(pool.in_use_bytes),
            idle=exact(pool.total - pool.in_use_bytes),
            uncovered=uncovered,
            peak=exact(pool.peak),
            failed_checkouts=pool.failed,
            by_size=[BySize(size=s, alive=pool.idle[s] + pool.in_use[s], idle=pool.idle[s]) for s in sizes],
            buffers_ever=pool.ever,
        )

    def _sources(self) -> list[Source]:
        return [
            Source(
                path=s.path,
                sha256=s.sha256,
                bytes=s.bytes,
                lines=s.lines,
                parsers=sorted(s.parsers),
                unmatched=s.unmatched,
                skipped=s.skipped,
                warnings=list(s.warnings),
                unmatched_examples=list(s.unmatched_examples),
                clock=self.placed.notes.get(i),
                columns=list(s.columns),
            )
            for i, s in enumerate(self.run.sources)
        ]

    def _phase_name(self) -> str | None:
        """The phase in which the chosen attempt ended."""
        cut = [p for p in self.chosen.phases if p.end is None]
        return cut[-1].name if cut and self.chosen.ending.how != "finished" else None

    def _phases(self) -> list[Phase]:
        found: list[Phase] = []
        for examined in self.examined:
            jobs = _jobs_done(examined.run)
            for span in examined.phases:
                end = span.end or examined.log_end
                done = span.completed if span.completed is not None else _between(jobs, span.start, end)
                found.append(
                    Phase(
                        name=span.name,
                        start=span.start,
                        end=span.end,
                        peak=_peak(examined, span.start, span.end or examined.end),
                        jobs_done=done,
                        ended="cut" if span.end is None else "complete",
                        attempt=examined.span.number,
                        count=span.count,
                        lines=list(self.cites.all(span.at)),
                    )
                )
        return found

    def _attempts(self) -> list[Attempt]:
        return [
            Attempt(
                number=e.span.number,
                start=e.span.start,
                end=e.ending.time or e.log_end,
                budget=e.budget,
                peak=_peak(e, None, None),
                ending=e.ending.how,
                jobs_done=len(_jobs_done(e.run)),
                pool_peak=e.replays.pool.peak,
                exit_code=e.ending.exit_code,
                analysed=e is self.chosen,
            )
            for e in self.examined
        ]

    def _rate(self) -> float | None:
        """Proofs an hour of the chosen attempt."""
        jobs, start, end = _jobs_done(self.chosen.run), self.chosen.span.start, self.chosen.log_end
        if not len(jobs) or start is None or end is None or end <= start:
            return None
        return len(jobs) / ((end - start).total_seconds() / 3600)

    def _warnings(self, draws: Draws | None) -> list[str]:
        found = [f"{s.path}: {w}" for s in self.run.sources for w in s.warnings]
        found += self.placed.warnings + ground.untested(self.run)
        found += [w for e in self.examined for w in e.warnings]
        if draws is not None and draws.weight[0] == 0:
            found.append(
                "the best estimate of the heap contradicts a measured counter: the figures lean on the counter"
            )
        return list(dict.fromkeys(found))

    def _partitions(self) -> list[PartitionLife]:
        found: list[PartitionLife] = []
        for examined in self.examined:
            alive = examined is self.chosen and examined.ending.how not in ("finished", "stopped")
            names = (
                "job",
                "partition",
                "circuit",
                "queued",
                "synth_start",
                "synth_end",
                "gpu_start",
                "prove_returned",
                "gpu_end",
                "pinned",
            )
            found += [
                PartitionLife(**row, attempt=examined.span.number, alive_at_end=alive and row["gpu_end"] is None)
                for row in examined.replays.lives.select(names).tail(_MOST_PARTITIONS).iter_rows(named=True)
            ]
        return found[-_MOST_PARTITIONS:]

    def _timeline(self, account: Account, parts: list[Part]) -> pl.DataFrame:
        frames: list[pl.DataFrame] = []
        for examined in self.examined:
            own = account if examined is self.chosen else None
            if own is None:
                own = account_of_other(examined, account)
            frame = timeline(
                examined.replays,
                own,
                examined.end,
                attempt=examined.span.number,
                limit=examined.limit.best if examined.limit else None,
                budget=examined.budget.best if examined.budget else None,
                jobs_done=_jobs_done(examined.run),
            )
            if examined is self.chosen:
                frame = closed(frame, parts, account.pool_total.best - account.pool_in_use)
            frames.append(frame)
        return pl.concat(frames)


def account_of_other(examined: Examined, chosen: Account) -> Account:
    """Another attempt's account, with the chosen one's measured heap: its build is the same."""
    account = account_at(
        examined.replays,
        examined.end or dt.datetime.fromtimestamp(0, dt.UTC),
        examined.cites,
        killed=examined.ending.how in ("cgroup_limit", "cgroup_limit_probable"),
        limit=examined.limit,
        budget=examined.budget,
        stats=examined.stats,
        neighbour=None,
        found=None,
    )
    return dataclasses.replace(account, heap=chosen.heap)


def _growth_ahead(chosen: Examined, grown: Growth | None) -> float:
    """Bytes by which a steadily growing overhead would have grown over the phase that was cut."""
    if grown is None or not grown.steady:
        return 0.0
    cut = [p for p in chosen.phases if p.end is None and p.count]
    jobs = _jobs_done(chosen.run)
    left = sum(max(0, (p.count or 0) - _between(jobs, p.start, chosen.end)) for p in cut[-1:])
    per_job = grown.done / max(1, len(jobs))
    return grown.slope * per_job * left


def _with_evidence(result: Result, cites: Citations, excerpts: Excerpts) -> Result:
    return msgspec.structs.replace(result, evidence=cites.evidence(excerpts))


def _name(run: Run, chosen: Examined) -> str:
    """The daemon's, where its own lines were read; else the victim's; else the run's."""
    if run.profile is not None and run.model.processes:
        return run.model.processes[0]
    return (chosen.ending.victim.name if chosen.ending.victim else None) or run.name


def _jobs_done(run: Run) -> pl.Series:
    """Completion times of jobs, one a job; the client's own lines where the daemon's are missing."""
    work = run.pick("work", pl.col("op") == "job_done", ["time", "op", "job"])
    if work.height:
        named = work.filter(pl.col("job").is_not_null()).unique("job", keep="first", maintain_order=True)["time"]
        return pl.concat([named, work.filter(pl.col("job").is_null())["time"]]).sort()
    return run.table("marks").filter(pl.col("what") == "proof_done")["time"].sort()


def _between(times: pl.Series, start: dt.datetime | None, end: dt.datetime | None) -> int:
    if start is None or end is None:
        return 0
    return int(times.is_between(start, end).sum())


def _peak(examined: Examined, start: dt.datetime | None, end: dt.datetime | None) -> Quantity | None:
    rows = examined.replays.memory.samples
    if start is not None and end is not None:
        rows = rows.filter(pl.col("time").is_between(start, end))
    if rows.is_empty():
        return None
    row = rows.sort("current").row(-1, named=True)
    half = examined.replays.memory.step // 2
    at = (examined.cites.run.cite(row["source"], row["line"]),)
    return Quantity(
        low=row["current"] - half, best=row["current"], high=row["current"] + half, basis="measured", lines=at
    )


def _typical_need(examined: Examined) -> float:
    rows = examined.replays.lives
    need = (rows["needs_abc"] + rows["needs_rest"]).median() if rows.height else None
    return float(need) if isinstance(need, (int, float)) and need else float(1 << 30)


def _has_processes(run: Run) -> bool:
    return not run.table("samples").filter(pl.col("metric") == "rss_process").is_empty()


def _host_total(run: Run) -> int | None:
    marks = run.table("marks").filter((pl.col("what") == "host_total_stated") & pl.col("value").is_not_null())
    return int(marks["value"][0]) if marks.height else None


def _growth(chosen: Examined, account: Account, draws: Draws | None) -> Growth | None:
    """The test for a leak, on samples below the limit."""
    samples = chosen.replays.memory.upto(chosen.end)
    if samples.height < 8 or chosen.limit is None or chosen.replays.lives.is_empty():
        return None
    times = (samples["time"].dt.timestamp("us").cast(pl.Float64) / 1e6).to_numpy()
    rest = samples["unreclaimable"].cast(pl.Float64).to_numpy() - resident_at(chosen.replays.tables, times)
    rest = rest - pool_at(chosen.replays.pool, times)
    arrays = partitions(chosen.replays.lives)
    base = rest - features(arrays, times, account.heap.ramps[0][0]) @ account.heap.best
    done = np.searchsorted(np.sort(arrays.end), times, side="right").astype(float)
    loaded = max((t.end.timestamp() for t in chosen.replays.tables if t.end), default=0.0)
    usable = (samples["current"].to_numpy() < 0.995 * chosen.limit.best) & (times > loaded + 10)
    final = float(np.searchsorted(np.sort(arrays.end), times[-1], side="right"))
    at_kill = float(draws.interval(draws.overhead)[1]) if draws is not None and account.killed else 0.0
    return growth(base[usable], done[usable], (final, at_kill))
