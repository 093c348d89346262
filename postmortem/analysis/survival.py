"""What would have survived: a budget at which this run's own work stays below the limit, and the ladder of budgets.

Two bounds, the lower one counts. First order (arithmetic.md, section 5): B' = L - largest (W + growth still to come of
live partitions - R) - reserve. By partitions: as many as fit beside tables, overhead and reserve, each with the heap
and the pinned bytes that it really takes.
"""

import numpy as np
import polars as pl

from postmortem.analysis.account import Account, Floats
from postmortem.analysis.draws import Draws
from postmortem.analysis.state import Replays
from postmortem.model import reserve
from postmortem.result import Ladder, PoolCounted, Quantity, Survival
from postmortem.units import GIB

__all__ = ["survive"]

_RUNGS = (1.0, 0.9, 0.81, 0.729)


def survive(
    replays: Replays, account: Account, draws: Draws | None, rate: float | None, *, leak: bool, ahead: float = 0.0
) -> Survival:
    """The recommendation; empty where limit or budget are unknown.

    `rate`: proofs an hour that the run made. `ahead`: bytes by which the overhead would have gone on to grow with the
    work that was left.
    """
    if draws is None or account.limit is None or account.budget is None:
        return Survival(safe_budget=None, margin_needed=None, ladder=[], pool_counted=None)
    if leak:
        return Survival(
            safe_budget=None,
            margin_needed=None,
            ladder=_ladder(replays, account, draws, None),
            pool_counted=None,
            reserve=reserve(account.limit.best),
            note="No budget survives a leak; a smaller one only delays the end. Restart before the growth fills the margin.",
        )
    keep = reserve(account.limit.best)
    low, best, high = _safe(account, draws, keep, ahead)
    safe = Quantity(low=low, best=best, high=high, basis="modelled")
    needed = account.limit - safe
    return Survival(
        safe_budget=safe,
        margin_needed=needed,
        ladder=_ladder(replays, account, draws, safe),
        pool_counted=_counted(replays, account, draws, keep, rate),
        reserve=keep,
        note="First order: the run's own work under a smaller budget; scheduling may differ.",
    )


def _safe(account: Account, draws: Draws, keep: int, ahead: float) -> tuple[int, int, int]:
    """(low, best, high) of the safe budget, never above the one that the run had if it died."""
    assert account.limit is not None
    assert account.budget is not None
    limit = account.limit.best
    charged = account.unreclaimable.best if account.unreclaimable else limit
    reserved = draws.working_provision[0] + account.permanent
    first_order = limit - (charged - reserved) - keep
    grown = first_order - max(0.0, float(_full_heap(account).sum()) - draws.heap[0])
    by_partitions = _by_partitions(account, draws, keep, ahead)
    if by_partitions is not None and account.pool_total.best <= account.pool_in_use * 1.01:
        best = min(first_order, by_partitions)
    else:
        # Idle buffers are freed only when the budget fills: how many partitions then fit cannot be told from one run.
        best = min(first_order, max(grown - ahead, float(account.permanent)))
    top = account.budget.best - GIB if account.killed else limit - keep

    def bounded(value: float) -> int:
        return round(max(0.0, min(value, top)))

    return bounded(min(grown, best)), bounded(best), bounded(max(first_order, best))


def _by_partitions(account: Account, draws: Draws, keep: int, ahead: float) -> float | None:
    """The largest budget that admits no more partitions than fit beside everything else; None without live ones."""
    each = _each(account)
    if each is None or account.limit is None:
        return None
    need, full = each
    fixed = draws.tables[0] + max(draws.overhead[0], 0) + draws.neighbour[0] + draws.transient[0]
    fit = max(0, int((account.limit.best - keep - ahead - fixed) // max(need, 1.0)))
    # One partition more than fits may not be admitted: the budget ends just below its reservation.
    return account.permanent + (fit + 1) * full - GIB // 4


def _full_heap(account: Account) -> Floats:
    """Heap of each live partition when fully grown, by the best shares."""
    shares = account.heap.best
    first = np.where(account.live.pinned, 0, 2)
    return (shares[first] + shares[first + 1]) * account.live.need


def _each(account: Account) -> tuple[float, float] | None:
    """(bytes that one partition really takes when grown, bytes that it reserves); None without live partitions."""
    live = account.live
    if not live.count or live.reservation.max(initial=0) <= 0:
        return None
    heap = float(np.median(_full_heap(account)))
    held = float(np.median(live.held[live.pinned])) if live.pinned.any() else 0.0
    return heap + held, float(np.median(live.reservation[~live.released])) if (~live.released).any() else float(
        live.reservation.max()
    )


def _ladder(replays: Replays, account: Account, draws: Draws, safe: Quantity | None) -> list[Ladder]:
    """The classic recovery ladder: which rung would have been the first to survive, and what each would have peaked at."""
    if account.budget is None:
        return []
    rungs: list[Ladder] = []
    for factor in _RUNGS:
        budget = int(account.budget.best * factor) // GIB * GIB
        survives: bool | None = None
        if factor == 1.0 and account.killed:
            survives = False
        elif safe is not None:
            survives = True if budget <= safe.low else False if budget > safe.high else None
        rungs.append(Ladder(budget=budget, survives=survives, peak=_rung_peak(replays, account, draws, budget)))
    return rungs


def _rung_peak(replays: Replays, account: Account, draws: Draws, budget: int) -> Quantity | None:
    """Peak under a budget: everything that does not depend on it, and as many grown partitions as it admits."""
    each = _each(account)
    if each is None:
        return None
    need, full = each
    idle = account.pool_total.best - account.pool_in_use
    admitted = min(_most_live(replays), max(0, int((budget - account.permanent) // max(full, 1.0))))
    fixed = draws.tables[0] + max(draws.overhead[0], 0) + draws.neighbour[0] + draws.transient[0] + idle
    low, high = fixed + 0.85 * admitted * need, fixed + 1.15 * admitted * need
    return Quantity(low=round(low), best=round(fixed + admitted * need), high=round(high), basis="modelled")


def _counted(replays: Replays, account: Account, draws: Draws, keep: int, rate: float | None) -> PoolCounted | None:
    """With each buffer reserved until it is freed: how many partitions fit at once, and what that costs."""
    each = _each(account)
    if each is None or account.limit is None or account.pool_total.best == 0:
        return None
    need, _ = each
    fixed = draws.tables[0] + max(draws.overhead[0], 0) + draws.neighbour[0]
    fit = max(0, int((account.limit.best - keep - fixed) // max(need, 1.0)))
    most = int(_most_live(replays))
    then = None if rate is None or not most else round(rate * min(1.0, fit / most), 2)
    return PoolCounted(
        partitions_at_once=fit, proofs_per_hour={"now": None if rate is None else round(rate, 2), "then": then}
    )


def _most_live(replays: Replays) -> int:
    """Most partitions alive at once."""
    starts = replays.lives["synth_start"].drop_nulls().sort()
    if starts.is_empty():
        return 0
    events = pl.concat(
        [
            pl.DataFrame({"time": replays.lives["synth_start"], "step": 1}),
            pl.DataFrame({"time": replays.lives["gpu_end"], "step": -1}),
        ]
    ).drop_nulls()
    most = events.sort("time", "step")["step"].cum_sum().max()
    return most if isinstance(most, int) else 0
