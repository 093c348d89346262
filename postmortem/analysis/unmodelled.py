"""Why it died, where no memory model is known: what the shares of a decomposition allow to be said.

A cause is named only where one kind of memory that nobody had provided for holds most of the limit and cannot be the
daemon's ordinary heap; anonymous memory alone, however much, names none.
"""

import numpy as np
import polars as pl

from postmortem.analysis.decompose import Decomposition
from postmortem.analysis.examine import Examined
from postmortem.analysis.growth import Growth, growth
from postmortem.analysis.resident import resident_at
from postmortem.analysis.state import pool_at
from postmortem.result import Cause, CauseName, Finding, Quantity, Share
from postmortem.units import format_gib

__all__ = ["causes_of", "growth_with_work"]

_MOST = 0.5
"""Share of what nobody provided for from which one kind of memory is named."""
_WORK = ("job_done", "done", "gpu_end")


def causes_of(
    found: Decomposition, grown: Growth | None, advice: dict[CauseName, str]
) -> tuple[CauseName, float, list[Cause]]:
    """(cause, confidence, all causes with their shares), the largest first."""
    total = max(1, found.unprovided)
    sizes = _sizes(found, grown)
    causes = [
        Cause(
            cause=name,
            excess=Quantity(low=size, best=size, high=size, basis="derived", lines=_lines(found, name)),
            share=Share(low=(share := round(min(1.0, size / total), 3)), best=share, high=share),
            evidence=[Finding(text=text, lines=list(_lines(found, name)))],
            against=against,
            advice=advice.get(name),
        )
        for name, size, _, text, against in sizes
        if size >= 0.02 * total
    ]
    for name, size, confidence, _, _ in sizes[:1]:
        if size >= _MOST * total or (name == "neighbour" and _own_use_fitted(found)):
            return name, confidence, causes
    return "inconclusive", 0.3, causes


_Size = tuple[CauseName, int, float, str, list[Finding]]


def _sizes(found: Decomposition, grown: Growth | None) -> list[_Size]:
    """Each cause with its bytes, how sure it would be, and the words for and against it."""
    sizes: list[_Size] = []
    if found.neighbour:
        text = f"other processes in the cgroup held {format_gib(found.neighbour)}"
        sizes.append(("neighbour", found.neighbour, 0.85, text, []))
    if found.uncovered:
        text = f"the pool owned {format_gib(found.account.pool_total.best)}; {format_gib(found.uncovered)} of it no reservation covered"
        sizes.append(("untracked_pinned", found.uncovered, 0.8, text, []))
    elif found.mapped:
        text = (
            f"{format_gib(found.mapped)} of shared memory was mapped by processes: page-locked GPU memory shows up so"
        )
        doubt = Finding(text="any shared mapping looks the same, and no log names a pool", weight=0.6)
        sizes.append(("untracked_pinned", found.mapped, 0.5, text, [doubt]))
    leaked = round(grown.total) if grown is not None and grown.steady else 0
    if leaked and grown is not None:
        each = f"{format_gib(grown.slope)} a job (95 %: {format_gib(grown.low)} to {format_gib(grown.high)})"
        text = f"what no ledger explains grew by {each}, steadily to the end"
        sizes.append(("leak", min(leaked, max(found.anonymous, found.beyond or 0)), 0.8, text, []))
    sizes.append(_overhead(found, leaked))
    return sorted((size for size in sizes if size[1] > 0), key=lambda size: -size[1])


def _overhead(found: Decomposition, leaked: int) -> _Size:
    """Against the margin where a ledger is known; else the kernel's memory and files in tmpfs, which no heap explains."""
    if found.beyond is not None:
        text = f"memory beyond ledger and pool passed the margin by {format_gib(max(0, found.beyond))}"
        return "overhead", found.beyond - leaked, 0.75, text, []
    size = found.kernel + found.unmapped
    kinds = (
        (found.kernel, "kernel memory, page tables above all"),
        (found.unmapped, "files in /dev/shm or another tmpfs"),
    )
    text = " and ".join(
        f"{format_gib(part)} were {words}" for part, words in kinds if part >= 0.02 * max(1, found.unprovided)
    )
    return "overhead", size, 0.75, text, []


def _own_use_fitted(found: Decomposition) -> bool:
    """Without the others the daemon was inside its own budget."""
    account = found.account
    if account.budget is None or account.unreclaimable is None:
        return False
    return account.unreclaimable.best - found.neighbour <= account.budget.best


def _lines(found: Decomposition, name: CauseName) -> tuple[str, ...]:
    part = {"neighbour": "neighbour", "untracked_pinned": "pinned_uncovered"}.get(name)
    own = next((p.actual.lines for p in found.parts if p.part == part), ())
    return own or (found.account.unreclaimable.lines if found.account.unreclaimable else ())


def growth_with_work(chosen: Examined, found: Decomposition) -> Growth | None:
    """Growth of what neither tables nor pool explain over completed jobs, at samples below the limit."""
    samples = chosen.replays.memory.upto(chosen.end)
    work = chosen.run.pick("work", pl.col("op").is_in(_WORK) & pl.col("time").is_not_null(), ["time", "op"])
    if samples.height < 8 or chosen.limit is None or work.is_empty():
        return None
    if found.account.killed:  # After the kill the sampler sees memory fall.
        high = samples.with_row_index().filter(pl.col("current") >= 0.95 * pl.col("current").max())
        samples = samples.head(int(high["index"][-1]) + 1)
    op = next(name for name in _WORK if name in work["op"])
    ends = np.sort((work.filter(pl.col("op") == op)["time"].dt.timestamp("us").cast(pl.Float64) / 1e6).to_numpy())
    times = (samples["time"].dt.timestamp("us").cast(pl.Float64) / 1e6).to_numpy()
    known = resident_at(chosen.replays.tables, times) + pool_at(chosen.replays.pool, times)
    base = samples["unreclaimable"].cast(pl.Float64).to_numpy() - known
    done = np.searchsorted(ends, times, side="right").astype(float)
    usable = (samples["current"].to_numpy() < 0.995 * chosen.limit.best) & (done > 0)
    at_end = float(base[-1]) if not found.account.killed else float(max(base.max(), found.anonymous))
    return growth(base[usable], done[usable], (float(done[-1]), at_end))
