"""The identity of arithmetic.md, section 2: provision against actual, part by part, and what ate the slack."""

import numpy as np

from postmortem.analysis.account import Account
from postmortem.analysis.draws import Draws
from postmortem.analysis.fit import HeapFit, Ramp
from postmortem.analysis.growth import Growth
from postmortem.quantity import weakest
from postmortem.result import Arithmetic, Basis, Fit, FitTerm, Part, Quantity
from postmortem.units import GIB, format_gib

__all__ = ["build", "describe_fit"]

_ZERO = Quantity(low=0, best=0, high=0, basis="derived")


def build(account: Account, draws: Draws | None, fit: Fit | None, growth: Growth | None) -> Arithmetic:
    """The table; without a limit, a budget or anything charged, only what is known."""
    parts = _parts(account, draws, growth) if draws is not None else []
    margin = account.limit - account.budget if account.limit and account.budget else None
    slack = account.budget - account.reserved if account.budget and account.reserved else None
    excess_sum = _sum([p.excess for p in parts], draws) if parts else None
    return Arithmetic(
        at=account.at,
        limit=account.limit,
        budget=account.budget,
        margin=margin,
        reserved=account.reserved,
        slack=slack,
        charged=account.charged,
        reclaimable=account.reclaimable,
        unreclaimable=account.unreclaimable,
        parts=parts,
        excess_sum=excess_sum,
        discrepancy=excess_sum - slack if excess_sum and slack and account.killed else None,
        fit=fit,
    )


def _sum(excesses: list[Quantity], draws: Draws | None) -> Quantity:
    """Sum of the excesses. What one part has more another has less: its interval is that of the sum, not the intervals' sum."""
    best = sum(e.best for e in excesses)
    if draws is None:
        return Quantity(low=best, best=best, high=best, basis="modelled")
    total = (
        draws.overhead
        - draws.margin
        + draws.uncovered
        + draws.working_actual
        - draws.working_provision
        + draws.transient
        - draws.transient_provision
        + draws.neighbour
    )
    low, middle, high = draws.interval(total)
    shift = best - middle
    return Quantity(low=low + shift, best=best, high=high + shift, basis=_weakest(excesses))


def _weakest(quantities: list[Quantity]) -> Basis:
    bases: list[Basis] = [quantity.basis for quantity in quantities]
    return weakest(*bases)


def _parts(account: Account, draws: Draws, growth: Growth | None) -> list[Part]:
    """One row a part, in the order of the table in arithmetic.md."""
    parts = [
        Part(part=f"resident:{t.name}", provision=t.provision, actual=t.actual, excess=t.actual - t.provision)
        for t in account.tables
    ]
    pool_lines = account.pool_total.lines
    reserved = account.reserved or _ZERO
    provision = _quantity(draws, draws.working_provision, reserved.basis, reserved.lines)
    heap_basis: Basis = account.heap.basis if account.live.count else "derived"
    working = _quantity(draws, draws.working_actual, heap_basis, pool_lines)
    parts.append(
        Part(
            part="working_set",
            provision=provision,
            actual=working,
            excess=_quantity(draws, draws.working_actual - draws.working_provision, heap_basis, reserved.lines),
            note=_working_note(account, draws),
        )
    )
    uncovered = _quantity(draws, draws.uncovered, heap_basis, pool_lines)
    parts.append(
        Part(part="pinned_uncovered", provision=_ZERO, actual=uncovered, excess=uncovered, note=_pool_note(account))
    )
    if account.transient.high or account.extraction.high:
        lines = account.transient.lines + account.extraction.lines
        parts.append(
            Part(
                part="transient",
                provision=_quantity(draws, draws.transient_provision, "modelled", lines),
                actual=_quantity(draws, draws.transient, "modelled", lines),
                excess=_quantity(draws, draws.transient - draws.transient_provision, "modelled", lines),
            )
        )
    if account.neighbour is not None:
        parts.append(Part(part="neighbour", provision=_ZERO, actual=account.neighbour, excess=account.neighbour))
    margin = account.limit - account.budget if account.limit and account.budget else _ZERO
    basis = _weakest([account.unreclaimable or _ZERO, reserved])
    if heap_basis == "assumed":
        basis = "assumed"
    cites = (account.unreclaimable or _ZERO).lines
    parts.append(
        Part(
            part="overhead",
            provision=margin,
            actual=_quantity(draws, draws.overhead, basis, cites),
            excess=_quantity(draws, draws.overhead - draws.margin, basis, cites),
            note=_overhead_note(account),
            split=_split(account, draws, growth),
        )
    )
    return parts


def _quantity(draws: Draws, values: "object", basis: Basis, lines: tuple[str, ...]) -> Quantity:
    low, best, high = draws.interval(values)  # pyright: ignore[reportArgumentType] (one of the draws' own arrays)
    return Quantity(low=low, best=best, high=high, basis=basis, lines=lines)


def _working_note(account: Account, draws: Draws) -> str | None:
    if not account.live.count:
        return None
    _, heap, _ = draws.interval(draws.heap)
    _, covered, _ = draws.interval(draws.covered)
    return f"{account.live.count} live partitions: heap {format_gib(heap)}, covered pinned {format_gib(covered)}"


def _pool_note(account: Account) -> str | None:
    idle = account.pool_total.best - account.pool_in_use
    if not account.pool_total.best:
        return None
    return (
        f"pool {format_gib(account.pool_total.best)}: in use {format_gib(account.pool_in_use)}, idle {format_gib(idle)}"
    )


def _overhead_note(account: Account) -> str | None:
    if account.shmem_unmapped and account.shmem_unmapped > GIB // 4:
        return f"{format_gib(account.shmem_unmapped)} of shared memory is mapped by no process: files in /dev/shm or another tmpfs"
    return None


def _split(account: Account, draws: Draws, growth: Growth | None) -> dict[str, Quantity]:
    """What the overhead consists of, as far as the evidence tells."""
    split: dict[str, Quantity] = {}
    _, overhead, _ = draws.interval(draws.overhead)

    def measured(size: int) -> Quantity:
        return Quantity(low=size, best=size, high=size, basis="measured", lines=(account.unreclaimable or _ZERO).lines)

    if account.pagetables is not None:
        split["page tables"] = measured(account.pagetables)
    if account.kernel is not None:
        split["other kernel memory"] = measured(max(0, account.kernel - (account.pagetables or 0)))
    if account.shmem is not None:
        rest = account.shmem - account.pool_total.best - account.pinned_tables
        low = rest - sum(t.actual.high - t.actual.best for t in account.tables if t.name.startswith("srs:"))
        if rest > GIB // 16:
            split["shared memory beside pool and tables"] = Quantity(
                low=max(0, low), best=rest, high=rest, basis="derived"
            )
    if growth is not None and growth.steady:
        low, best, high = (round(max(0.0, slope) * growth.done) for slope in (growth.low, growth.slope, growth.high))
        split["growth with completed work"] = Quantity(
            low=low, best=min(best, max(overhead, 0)), high=high, basis="derived"
        )
    return split


def describe_fit(found: HeapFit, typical_need: float) -> Fit:
    """The fit in GiB a partition, for the reader."""
    names = (
        ("heap of a pinned partition", 0, 1, "assumed by the accounting: only what stands beside a, b, c"),
        ("heap of an unpinned partition", 2, 3, "all of a partition's need is on the heap"),
    )
    terms = [
        FitTerm(
            name=name,
            best=float(found.shares[start] + found.shares[age]) * typical_need,
            half_width=1.96 * float(np.hypot(*np.nan_to_num(found.errors[[start, age]], posinf=0.0))) * typical_need,
            unit="bytes a partition, fully grown",
            meaning=meaning,
        )
        for name, start, age, meaning in names
        if found.identified[age]
    ]
    return Fit(
        terms=terms,
        samples_used=found.intervals,
        samples_as_bounds=found.bounds,
        residual_std=round(found.spread),
        note=_ramp_note(found.ramp),
    )


def _ramp_note(ramp: Ramp) -> str:
    if ramp.of_synthesis:
        return f"a partition's heap grows over {ramp.value:.0%} of its synthesis time"
    return f"a partition's heap grows for {ramp.value:.0f} s"
