"""The result of an analysis: plain typed values, and their JSON.

Keys are read by others: they are added to, never renamed. Sizes are whole bytes, times ISO 8601 UTC.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

import msgspec

from postmortem.quantity import Basis, Quantity, Value

__all__ = [
    "Arithmetic",
    "Attempt",
    "Basis",
    "BySize",
    "Cause",
    "CauseName",
    "Ending",
    "Evidence",
    "Finding",
    "Fit",
    "FitTerm",
    "How",
    "Kill",
    "Ladder",
    "Missing",
    "Part",
    "PartitionLife",
    "Phase",
    "Pool",
    "PoolCounted",
    "Quantity",
    "Result",
    "Share",
    "Source",
    "Survival",
    "Verdict",
    "Victim",
]

How = Literal[
    "cgroup_limit",
    "cgroup_limit_probable",
    "host_oom",
    "userland_oom",
    "sigkill_unexplained",
    "crashed",
    "stopped",
    "finished",
    "running",
    "unknown",
]
CauseName = Literal[
    "untracked_pinned",
    "overhead",
    "limit_misdetected",
    "transient_spike",
    "leak",
    "working_set",
    "neighbour",
    "host_oom",
    "not_memory",
    "inconclusive",
]


class Source(Value, frozen=True, kw_only=True):
    """One input and what was read of it."""

    path: str
    sha256: str
    bytes: int
    lines: int
    parsers: list[str]
    unmatched: int
    skipped: int = 0
    warnings: list[str] = []
    unmatched_examples: list[str] = []
    clock: str | None = None
    """How this source's times were put on the UTC axis, in words, with the uncertainty."""
    columns: list[str] = []
    """What its columns or values were taken to mean, in words."""


class Victim(Value, frozen=True, kw_only=True):
    """Who was killed."""

    name: str | None
    pid: int | None


class Finding(Value, frozen=True, kw_only=True):
    """One piece of evidence in words, with its lines (`file:line`)."""

    text: str
    lines: list[str] = msgspec.field(name="from", default_factory=list[str])
    weight: float = 1.0
    """How much it says: 1 = proof, 0 = hardly anything. Only for the order on the page."""


class Ending(Value, frozen=True, kw_only=True):
    """How it ended, before why (arithmetic.md, section 3)."""

    how: How
    time: dt.datetime | None
    time_uncertainty_s: float | None
    exit_code: int | None
    signal: int | None
    victim: Victim | None
    evidence: list[Finding]
    against: list[Finding]
    certainty: Literal["proven", "probable", "weak"] = "weak"


class Share(Value, frozen=True, kw_only=True):
    """A share of what ate the slack, 0…1."""

    low: float
    best: float
    high: float


class Cause(Value, frozen=True, kw_only=True):
    """One cause, with the evidence for and against it."""

    cause: CauseName
    excess: Quantity | None
    share: Share | None
    evidence: list[Finding] = msgspec.field(name="for")
    against: list[Finding]
    advice: str | None = None


class Verdict(Value, frozen=True, kw_only=True):
    """Why it ended, in one sentence and as ranked causes."""

    cause: CauseName
    confidence: float
    summary: str
    causes: list[Cause]


class Part(Value, frozen=True, kw_only=True):
    """One row of the identity: what was set aside for a part, and what it took."""

    part: str
    """resident:srs:porep-32g | resident:pce:… | working_set | pinned_uncovered | transient | overhead | neighbour

    Where the daemon's profile has no memory model, or no budget is known, the kernel's classes stand for the overhead:
    anonymous | shared_memory | kernel | unaccounted (charged, in no counter) | page_cache (given back before a kill).
    """
    provision: Quantity
    actual: Quantity
    excess: Quantity
    note: str | None = None
    split: dict[str, Quantity] = {}
    """What the part consists of, where the evidence tells it (overhead: pagetables, kernel, leak, …)."""


class FitTerm(Value, frozen=True, kw_only=True):
    """One term of the fit."""

    name: str
    best: float
    half_width: float
    """95 % confidence half-width, bytes per unit of the term."""
    unit: str
    meaning: str


class Fit(Value, frozen=True, kw_only=True):
    """The least-squares fit of memory against the ledgers (arithmetic.md, section 1)."""

    terms: list[FitTerm]
    samples_used: int
    samples_as_bounds: int
    residual_std: int
    note: str | None = None


class Arithmetic(Value, frozen=True, kw_only=True):
    """The identity of arithmetic.md, section 2, at one moment."""

    at: dt.datetime | None
    limit: Quantity | None
    budget: Quantity | None
    margin: Quantity | None
    reserved: Quantity | None
    slack: Quantity | None
    charged: Quantity | None
    reclaimable: Quantity | None
    unreclaimable: Quantity | None
    parts: list[Part]
    excess_sum: Quantity | None
    discrepancy: Quantity | None
    fit: Fit | None = None


class BySize(Value, frozen=True, kw_only=True):
    """Buffers of one size."""

    size: int
    alive: int
    idle: int


class Pool(Value, frozen=True, kw_only=True):
    """The pinned pool at the end."""

    buffers_alive: int
    buffers_in_use: int
    free_remaining: int
    total: Quantity
    in_use: Quantity
    idle: Quantity
    uncovered: Quantity | None
    peak: Quantity
    failed_checkouts: int
    by_size: list[BySize]
    buffers_ever: int = 0


class Kill(Value, frozen=True, kw_only=True):
    """One kill report."""

    time: dt.datetime | None
    constraint: str | None
    killer: str
    oom_memcg: str | None
    task_memcg: str | None
    victim: str | None
    pid: int | None
    trigger: str | None
    usage: int | None
    limit: int | None
    failcnt: int | None
    total_vm: int | None
    anon_rss: int | None
    file_rss: int | None
    shmem_rss: int | None
    pgtables: int | None
    oom_group: bool
    complete: bool
    lines: list[str] = msgspec.field(name="from")
    relevant: bool = True
    """False for a report that concerns another process, time or host."""


class Phase(Value, frozen=True, kw_only=True):
    """One phase of the run."""

    name: str
    start: dt.datetime | None
    end: dt.datetime | None
    peak: Quantity | None
    jobs_done: int
    ended: Literal["complete", "cut"]
    attempt: int = 1
    count: int | None = None
    lines: list[str] = msgspec.field(name="from", default_factory=list[str])


class Attempt(Value, frozen=True, kw_only=True):
    """One life of the daemon in the capture."""

    number: int
    start: dt.datetime | None
    end: dt.datetime | None
    budget: Quantity | None
    peak: Quantity | None
    ending: How
    jobs_done: int = 0
    pool_peak: int | None = None
    exit_code: int | None = None
    analysed: bool = False
    """True for the attempt that verdict and arithmetic are about."""


class Ladder(Value, frozen=True, kw_only=True):
    """One rung of the recovery ladder."""

    budget: int
    survives: bool | None
    peak: Quantity | None


class PoolCounted(Value, frozen=True, kw_only=True):
    """What counting the pool in the budget would mean."""

    partitions_at_once: int | None
    proofs_per_hour: dict[str, float | None]


class Survival(Value, frozen=True, kw_only=True):
    """What would have survived."""

    safe_budget: Quantity | None
    margin_needed: Quantity | None
    ladder: list[Ladder]
    pool_counted: PoolCounted | None
    reserve: int | None = None
    note: str | None = None


class Evidence(Value, frozen=True, kw_only=True):
    """A cited line, its text, and the lines around it."""

    id: str
    source: str
    line: int
    text: str
    around: list[tuple[int, str]] = []


class Missing(Value, frozen=True, kw_only=True):
    """Evidence that would have decided more."""

    what: str
    why_it_matters: str
    how_to_record: str


class PartitionLife(Value, frozen=True, kw_only=True):
    """One partition's times; None where the log does not say."""

    job: str
    partition: int | None
    circuit: str | None
    attempt: int
    queued: dt.datetime | None = None
    synth_start: dt.datetime | None = None
    synth_end: dt.datetime | None = None
    gpu_start: dt.datetime | None = None
    prove_returned: dt.datetime | None = None
    gpu_end: dt.datetime | None = None
    pinned: bool | None = None
    alive_at_end: bool = False


class Result(Value, frozen=True, kw_only=True):
    """The whole result, as the JSON has it."""

    schema: Literal["postmortem/1"] = "postmortem/1"
    postmortem_version: str
    name: str
    profile: str | None
    sources: list[Source]
    ending: Ending
    verdict: Verdict
    arithmetic: Arithmetic
    pool: Pool | None
    kills: list[Kill]
    phases: list[Phase]
    attempts: list[Attempt]
    survival: Survival
    evidence: list[Evidence]
    missing: list[Missing]
    warnings: list[str]
    partitions: list[PartitionLife] = []

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the JSON has them (times as text)."""
        return msgspec.to_builtins(self)
