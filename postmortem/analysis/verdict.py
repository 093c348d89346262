"""Why it died: causes ranked by their share of what ate the slack, each with evidence for and against.

Identifiers and meaning: arithmetic.md, section 4. A cause's confidence is the chance that it is the largest under
everything that is uncertain (draws.py), lowered where the evidence cannot tell it from its neighbours.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from postmortem.analysis.account import Account
from postmortem.analysis.decompose import Decomposition
from postmortem.analysis.draws import Draws
from postmortem.analysis.ending import MEMORY_DEATHS
from postmortem.analysis.growth import Growth
from postmortem.analysis.unmodelled import causes_of
from postmortem.result import Cause, CauseName, Ending, Finding, Quantity, Share
from postmortem.units import GIB, format_gib

__all__ = ["Judged", "Knowledge", "judge"]

Floats = npt.NDArray[np.float64]

_NAME_AT = 0.4  # a cause less likely than this to be the largest is not named
_CERTAINTY = {"proven": 1.0, "probable": 0.9, "weak": 0.6}
_HIGHEST = 0.97

ADVICE: dict[CauseName, str] = {
    "untracked_pinned": "Count the pool's buffers in the budget until they are freed; until then run below the safe budget.",
    "overhead": "Leave a larger margin: the measured overhead and a reserve.",
    "limit_misdetected": "Make the daemon read the cgroup's limit (memory.max, memory.limit_in_bytes), or state the budget.",
    "transient_spike": "Load one table at a time, drop the file mapping as it is copied, or provision twice its size.",
    "leak": "Find the growth; until then restart before it reaches the margin.",
    "working_set": "Correct the reservation per circuit to what a partition really takes.",
    "neighbour": "Move the other process out of the cgroup, or provision it.",
    "host_oom": "The host is overcommitted: lower the sum of the limits, or give this cgroup protection (memory.min).",
}


@dataclasses.dataclass(frozen=True)
class Knowledge:
    """What kinds of evidence there were; decides what may be told apart."""

    samples: bool
    """Memory samples that span the run, so that growth can be tested."""
    counters: bool
    """Samples that tell page cache from the rest."""
    processes: bool
    """A task table or per-process samples, so that neighbours can be excluded."""
    host_total: int | None


@dataclasses.dataclass(frozen=True)
class Judged:
    """The verdict without its sentence."""

    cause: CauseName
    confidence: float
    causes: list[Cause]


def judge(
    ending: Ending,
    account: Account,
    draws: Draws | None,
    growth: Growth | None,
    knowledge: Knowledge,
    findings: dict[str, list[Finding]],
    split: Decomposition | None = None,
) -> Judged:
    """The verdict of one attempt. `findings` holds evidence by cause, and by `not:` cause; `split` stands in for draws."""
    certainty = _CERTAINTY[ending.certainty]
    if ending.how == "host_oom":
        return Judged("host_oom", _HIGHEST * certainty, [_simple("host_oom", ending, findings)])
    if ending.how == "userland_oom":
        return _ranked(ending, account, draws, growth, knowledge, findings, split)
    if ending.how not in MEMORY_DEATHS:
        return _not_memory(ending, certainty, account)
    return _ranked(ending, account, draws, growth, knowledge, findings, split)


def _not_memory(ending: Ending, certainty: float, account: Account) -> Judged:
    """Something else ended it, or nothing is known to have."""
    unsure = ending.how == "unknown" or (
        ending.how in ("running", "sigkill_unexplained") and ending.certainty == "weak"
    )
    low = _well_below(account)
    if unsure and not low:
        return Judged("inconclusive", 0.3, [])
    confidence = 0.6 if unsure else _HIGHEST * certainty
    return Judged("not_memory", confidence, [_simple("not_memory", ending, {})])


def _well_below(account: Account) -> bool:
    """Memory was measured, and what of it could not be given back was not near the limit when the evidence ended."""
    if account.charged is None or account.limit is None or account.charged.basis != "measured":
        return False
    cache = account.reclaimable
    counted = account.unreclaimable if cache is not None and cache.basis == "measured" else None
    held = counted or account.charged
    return held.high < 0.9 * account.limit.low


def _simple(cause: CauseName, ending: Ending, findings: dict[str, list[Finding]]) -> Cause:
    return Cause(
        cause=cause,
        excess=None,
        share=None,
        evidence=[*ending.evidence, *findings.get(cause, [])],
        against=[*ending.against, *findings.get(f"not:{cause}", [])],
        advice=ADVICE.get(cause),
    )


def _ranked(
    ending: Ending,
    account: Account,
    draws: Draws | None,
    growth: Growth | None,
    knowledge: Knowledge,
    findings: dict[str, list[Finding]],
    split: Decomposition | None,
) -> Judged:
    certainty = _CERTAINTY[ending.certainty]
    misdetected = _misdetected(account, knowledge, findings)
    if draws is None:
        cause, confidence, causes = causes_of(split, growth, ADVICE) if split else ("inconclusive", 0.3, [])
        if misdetected is not None:
            return Judged("limit_misdetected", 0.9 * certainty, [misdetected, *causes])
        return Judged(cause, confidence * certainty, causes)
    top, chance, ranked = _rank(_excesses(draws), draws, findings)
    if top == "overhead" and (leaked := _leaked(growth, draws.overhead - draws.margin)) is not None:
        # Growth is a part of the overhead; it becomes a cause of its own where the overhead decides.
        top, chance, ranked = _rank(_excesses(draws, leaked), draws, findings)
    if misdetected is not None:
        return Judged("limit_misdetected", min(_HIGHEST, 0.95 * certainty), [misdetected, *ranked])
    if not ranked:
        return Judged("inconclusive", 0.3, [])
    confidence = round(min(_HIGHEST, chance * certainty * _separable(top, growth, knowledge, account)), 2)
    if chance < _NAME_AT or confidence < 0.3:
        return Judged("inconclusive", confidence, ranked)
    return Judged(top, confidence, ranked)


def _rank(
    excess: dict[CauseName, Floats], draws: Draws, findings: dict[str, list[Finding]]
) -> tuple[CauseName, float, list[Cause]]:
    """(the cause most often the largest, its chance to be, all causes that matter in that order)."""
    names = list(excess)
    table = np.stack([np.maximum(excess[name], 0.0) for name in names])
    total = np.maximum(table.sum(axis=0), 1.0)
    winners = table.argmax(axis=0)
    largest = [draws.share_of(winners == i) for i in range(len(names))]
    causes = [_cause(name, excess[name], table[i] / total, draws, findings) for i, name in enumerate(names)]
    order = sorted(range(len(names)), key=lambda i: (-largest[i], -_share(causes[i])))
    return names[order[0]], largest[order[0]], [causes[i] for i in order if _matters(causes[i])]


def _share(cause: Cause) -> float:
    return cause.share.best if cause.share else 0.0


def _matters(cause: Cause) -> bool:
    return cause.share is not None and cause.share.high >= 0.02


def _excesses(draws: Draws, leaked: Floats | None = None) -> dict[CauseName, Floats]:
    """Excess by cause; growth that counts as a leak is taken out of the overhead."""
    overhead = draws.overhead - draws.margin
    found: dict[CauseName, Floats] = {
        "untracked_pinned": draws.uncovered,
        "overhead": overhead,
        "working_set": draws.working_actual - draws.working_provision,
        "transient_spike": draws.transient - draws.transient_provision,
        "neighbour": draws.neighbour,
    }
    if leaked is not None:
        found |= {"leak": leaked, "overhead": overhead - leaked}
    return found


def _leaked(growth: Growth | None, overhead: Floats) -> Floats | None:
    """What of the overhead's excess is growth: all of a steady one; of another, if it is most of the excess, what is sure."""
    if growth is None:
        return None
    size = growth.total if growth.steady else growth.least
    if not growth.steady and size < 0.6 * max(float(np.median(overhead)), 1.0):
        return None
    return np.clip(size, 0.0, np.maximum(overhead, 0.0))


def _cause(name: CauseName, excess: Floats, share: Floats, draws: Draws, findings: dict[str, list[Finding]]) -> Cause:
    low, best, high = draws.interval(excess)
    lowest, middle, highest = (round(v / 1e6, 3) for v in draws.interval(share * 1e6))
    return Cause(
        cause=name,
        excess=Quantity(low=low, best=best, high=high, basis="derived"),
        share=Share(low=lowest, best=middle, high=highest),
        evidence=findings.get(name, []),
        against=findings.get(f"not:{name}", []),
        advice=ADVICE.get(name),
    )


def _misdetected(account: Account, knowledge: Knowledge, findings: dict[str, list[Finding]]) -> Cause | None:
    """The budget is not below the limit: whatever else, it could not have kept the process inside."""
    if account.limit is None or account.budget is None:
        return None
    margin = account.limit.best - account.budget.best
    if margin > 0:
        return None
    findings = dict(findings)
    lines = [*account.budget.lines, *account.limit.lines]
    text = f"the budget of {format_gib(account.budget.best)} is not below the limit of {format_gib(account.limit.best)}"
    found = [Finding(text=text, lines=lines)]
    if (
        knowledge.host_total is not None
        and abs(knowledge.host_total - account.budget.best) < knowledge.host_total // 16
    ):
        found.append(
            Finding(
                text=f"it is the host's {format_gib(knowledge.host_total)} less a constant: the container's limit was not seen"
            )
        )
    excess = Quantity(low=-margin, best=-margin, high=-margin, basis="derived", lines=tuple(lines[:8]))
    return Cause(
        cause="limit_misdetected",
        excess=excess,
        share=None,
        evidence=[*found, *findings.get("limit_misdetected", [])],
        against=findings.get("not:limit_misdetected", []),
        advice=ADVICE["limit_misdetected"],
    )


def _separable(cause: CauseName, growth: Growth | None, knowledge: Knowledge, account: Account) -> float:
    """How far the evidence can tell this cause from those that look like it."""
    factor = 1.0
    if cause == "transient_spike" and account.extraction.best > account.transient.best:
        factor *= 0.85  # an extraction's heap is modelled, never logged
    if (
        cause == "untracked_pinned"
        and not account.heap.measured_pinned
        and account.pool_in_use > account.pool_total.best / 2
    ):
        factor *= 0.7  # whether buffers in use are covered hangs on heap that was not measured
    if cause in ("overhead", "leak", "neighbour"):
        # All three are "what no ledger explains"; growth needs samples, neighbours a look at processes.
        if not knowledge.samples:
            factor *= 0.55
        elif growth is None:
            factor *= 0.85
        elif not growth.steady and not knowledge.counters:
            # Page cache that makes way hides growth: neither a leak nor its absence is shown.
            factor *= 0.65
        if not knowledge.processes and cause != "neighbour":
            factor *= 0.75
    return factor


def findings_of(account: Account, draws: Draws | None, growth: Growth | None) -> dict[str, list[Finding]]:
    """Sentences with figures, for and against each cause."""
    found: dict[str, list[Finding]] = {}

    def say(cause: str, text: str, lines: tuple[str, ...] = (), weight: float = 0.7) -> None:
        found.setdefault(cause, []).append(Finding(text=text, lines=list(lines), weight=weight))

    if draws is None:
        return found
    _say_pool(account, draws, say)
    _, overhead, _ = draws.interval(draws.overhead)
    _, margin, _ = draws.interval(draws.margin)
    relation = "more than" if overhead > margin else "less than"
    target = "overhead" if overhead > margin else "not:overhead"
    say(
        target,
        f"overhead took {format_gib(overhead)}, {relation} the margin of {format_gib(margin)}",
        (account.unreclaimable.lines if account.unreclaimable else ()),
        0.8,
    )
    if overhead <= margin:
        say("untracked_pinned", "overhead alone would have fitted in the margin", weight=0.4)
    else:
        say("not:untracked_pinned", "overhead alone would not have fitted in the margin either", weight=0.4)
    if growth is not None:
        per = f"{format_gib(growth.slope)} a completed partition (95 %: {format_gib(growth.low)} to {format_gib(growth.high)})"
        if growth.steady:
            say("leak", f"what no ledger explains grew by {per}, steadily to the end", weight=0.9)
        else:
            say("not:leak", f"what no ledger explains did not grow steadily with completed work ({per})", weight=0.5)
    if account.neighbour is not None:
        say(
            "neighbour",
            f"other processes in the cgroup held {format_gib(account.neighbour.best)}",
            account.neighbour.lines,
            0.9,
        )
    if account.transient.best:
        say(
            "transient_spike",
            f"a table was loading: about {format_gib(account.transient.best)} of its file was mapped beside the copy",
            account.transient.lines,
            0.8,
        )
    if account.extraction.best:
        say(
            "transient_spike",
            f"PCE extraction was running: about {format_gib(account.extraction.best)} on the heap",
            account.extraction.lines,
            0.8,
        )
    return found


def _say_pool(account: Account, draws: Draws, say: "object") -> None:
    """The pool's findings."""
    assert callable(say)
    total, in_use = account.pool_total.best, account.pool_in_use
    if not total:
        return
    _, uncovered, _ = draws.interval(draws.uncovered)
    idle = total - in_use
    say(
        "untracked_pinned",
        f"the pool owned {format_gib(total)} ({format_gib(idle)} idle); {format_gib(uncovered)} of it no reservation covered",
        account.pool_total.lines,
        0.9,
    )
    if account.shmem is not None:
        rest = account.shmem - total - account.pinned_tables
        if rest > max(GIB // 4, total // 20):
            say(
                "not:untracked_pinned",
                f"shared memory was {format_gib(account.shmem)}, {format_gib(rest)} more than pool and pinned tables account for",
                (account.unreclaimable.lines if account.unreclaimable else ()),
                0.7,
            )
        else:
            say(
                "untracked_pinned",
                f"shared memory of {format_gib(account.shmem)} matches pool and pinned tables",
                (account.unreclaimable.lines if account.unreclaimable else ()),
                0.9,
            )
