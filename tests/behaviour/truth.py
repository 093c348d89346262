"""What is known to be true of a run, from any of the files that state it, and how an analysis is held against it."""

import dataclasses
from typing import Any

from postmortem.result import Result
from postmortem.units import GIB, format_gib

WIDEST = 0.2  # of the limit: wider intervals say nothing
CONFIDENT = 0.7
PAGES = 1 << 20  # what rounding to whole pages can make of a few dozen figures
CGROUP = {"cgroup_limit", "cgroup_limit_probable"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Truth:
    """Sizes in bytes; None = nothing is known, or no evidence states it."""

    endings: set[str] | None
    causes: set[str]
    pool: tuple[int, int, int] | None = None
    """Buffers alive, in use, idle."""
    limit: int | None = None
    budget: int | None = None
    parts: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    """Between which sizes each part truly was; `resident` is the sum of all tables."""
    narrow: set[str] = dataclasses.field(default_factory=set)
    """Parts that the run's evidence tells to a fifth of the limit."""


def of_fixture(stated: dict[str, Any]) -> Truth:
    """An `expected.json` of ours. A model's last step may have passed the limit; the kernel's charge cannot."""
    past = stated["past_the_limit"]
    pool = stated["pool"]
    return Truth(
        endings={stated["ending"]},
        causes={stated["cause"]},
        pool=tuple(pool[name] for name in ("buffers_alive", "buffers_in_use", "free_remaining")) if pool else None,
        limit=stated["limit"],
        budget=stated["budget"],
        parts={name: (size - past, size) for name, size in stated["parts"].items()},
        narrow=set(stated["narrow"]),
    )


_ENDED_BY = {
    "cgroup": CGROUP,
    "host": {"host_oom"},
    "panic": {"crashed"},
    "sigsegv": {"crashed"},
    "xid": {"crashed"},
    "sigterm": {"stopped"},
    "disk_full": {"crashed", "stopped"},
    "client_timeout": {"running", "unknown", "finished", "stopped"},
    "sigkill_operator": {"sigkill_unexplained"},
    None: {"finished"},
}


def of_simulated(stated: dict[str, Any]) -> Truth:
    """A `truth.json` of the first model: figures in GiB beside a `label`."""
    killed, evidence, parts = stated["killed"], stated["evidence"], stated["parts_at_end"]
    told = evidence["samples"] not in (None, "loop") or (evidence["dmesg"] and killed == "cgroup")
    past = max(0, round(stated["unreclaimable_at_end"] * GIB) - stated["limit"]) if killed == "cgroup" else 0
    sizes = {name: round(parts[name] * GIB) for name in ("resident", "pinned_uncovered", "overhead")}
    return Truth(
        endings=_ENDED_BY.get(killed),
        causes={stated["label"]},
        pool=tuple(stated["pool"][name] for name in ("buffers", "in_use", "free")) if stated["pool"]["ever"] else None,
        limit=stated["limit"] if told else None,
        budget=stated["budget"],
        parts={name: (size - past, size) for name, size in sizes.items()} if told and evidence["samples"] else {},
        narrow=set(sizes) if killed == "cgroup" and evidence["samples"] else set(),
    )


_END_KINDS = {"sigterm": {"stopped"}, "clean": {"finished"}, "panic": {"crashed"}, "sigsegv": {"crashed"}}


def of_detailed(stated: dict[str, Any]) -> Truth:
    """A `truth.json` of the second model: figures in bytes, several attempts, evidence withheld on purpose."""
    label, evidence, groups = stated["label"], stated["evidence"], stated["groups_at_end"]
    withheld = label == "inconclusive"
    cause = "not_memory" if label == "not_oom" else label
    endings = _END_KINDS.get(stated["end"]["kind"])
    if stated["killed"]:
        endings = {"host_oom"} if stated["kill_kind"] == "global" else CGROUP
    if withheld:
        endings = {"cgroup_limit_probable", "unknown", "running", "sigkill_unexplained"}
    pool, limit = stated["pool_at_end"], stated["limit_bytes"]
    sampled = stated["kill_kind"] == "memcg" and bool(evidence["sample_shapes"]) and not withheld
    # What no line tells: a buffer that is being populated, other processes where no table of them is left.
    overhead = groups["overhead"] + groups["leak"]
    unseen = groups["others"] + groups["pool_populating"]
    parts = {"resident": (groups["srs"] + groups["pce"],) * 2, "overhead": (overhead, overhead + unseen)}
    in_use = pool["buffers_live"] - pool["free_remaining"]
    return Truth(
        endings=endings,
        causes={cause, stated["underlying"]} if withheld else {cause},
        pool=(pool["buffers_live"], in_use, pool["free_remaining"]) if pool["buffers_ever_allocated"] else None,
        limit=limit if sampled else None,
        budget=stated["budget_bytes"],
        parts=parts if sampled else {},
        narrow=set(parts) if sampled else set(),
    )


def of_real(stated: dict[str, Any]) -> Truth:
    """A `truth.json` of a program that a real kernel killed or did not: only what the program itself had allocated."""
    died = stated["returncode"] == -9
    wrong = {"untracked_pinned"} if stated["scenario"] == "tmpfs" else set()
    memory = {"untracked_pinned", "overhead", "leak", "neighbour", "working_set", "inconclusive"}
    return Truth(
        endings=CGROUP if died else {"finished"},
        causes=({stated["scenario"]} & memory or memory - wrong) if died else {"not_memory"},
        limit=stated["limit"],
    )


def of_any(stated: dict[str, Any]) -> Truth:
    """Any `truth.json`, told apart by its fields."""
    if "groups_at_end" in stated:
        return of_detailed(stated)
    return of_simulated(stated) if "parts_at_end" in stated else of_real(stated)


def misses(result: Result, truth: Truth, *, doubtful_causes: bool = False) -> list[str]:
    """Every way in which a result is not what is true, in words; `doubtful_causes` lets a wrong cause pass that is said with doubt."""
    found: list[str] = []
    how, verdict = result.ending.how, result.verdict
    if truth.endings is not None and how not in truth.endings:
        found.append(f"ending {how}, truly {sorted(truth.endings)}")
    wrong = verdict.cause not in truth.causes
    if wrong and not (doubtful_causes and (verdict.cause == "inconclusive" or verdict.confidence < CONFIDENT)):
        found.append(f"cause {verdict.cause} ({verdict.confidence}), truly {sorted(truth.causes)}")
    return found + _pool(result, truth) + _limits(result, truth) + _parts(result, truth)


def _pool(result: Result, truth: Truth) -> list[str]:
    if truth.pool is None:
        return []
    pool = result.pool
    mine = (pool.buffers_alive, pool.buffers_in_use, pool.free_remaining) if pool else None
    return [] if mine == truth.pool else [f"pool (alive, in use, free) {mine}, truly {truth.pool}"]


def _limits(result: Result, truth: Truth) -> list[str]:
    found: list[str] = []
    for name, true in (("limit", truth.limit), ("budget", truth.budget)):
        mine = getattr(result.arithmetic, name)
        if true is not None and (mine is None or not mine.low <= true <= mine.high or abs(mine.best - true) >= GIB):
            found.append(f"{name} {mine}, truly {format_gib(true)}")
    return found


def _parts(result: Result, truth: Truth) -> list[str]:
    found: list[str] = []
    for name, (least, most) in truth.parts.items():
        rows = [p.actual for p in result.arithmetic.parts if p.part == name or p.part.startswith(f"{name}:")]
        if not rows:
            found.append(f"{name} is missing, truly {format_gib(most)}")
            continue
        low, high = sum(row.low for row in rows), sum(row.high for row in rows)
        if low > most + PAGES or high < least - PAGES:
            found.append(f"{name} in [{format_gib(low)}, {format_gib(high)}], truly {format_gib(most)}")
        if name in truth.narrow and result.arithmetic.limit and high - low > WIDEST * result.arithmetic.limit.best:
            found.append(f"{name} in [{format_gib(low)}, {format_gib(high)}] is too wide")
    return found
