"""Words and colour classes that only the page needs, beside the ones that all reports share (`words`)."""

from postmortem.result import How

__all__ = ["CERTAINTY", "SEVERITY", "STACK", "confidence", "part_kind"]

# What the page colours an ending by: a death by memory, another failure, or nothing wrong.
SEVERITY: dict[How, str] = {
    "cgroup_limit": "death",
    "cgroup_limit_probable": "death",
    "host_oom": "death",
    "userland_oom": "death",
    "sigkill_unexplained": "failure",
    "crashed": "failure",
    "stopped": "calm",
    "finished": "calm",
    "running": "calm",
    "unknown": "failure",
}

CERTAINTY = {
    "proven": "proven by the evidence",
    "probable": "probable on this evidence",
    "weak": "weak: little evidence",
}

# The timeline's stacked parts from the bottom up: column of the table, word on the page.
STACK: dict[str, str] = {
    "resident": "Resident tables",
    "working_set": "Working set, covered",
    "pinned_uncovered_in_use": "Pinned in use, uncovered",
    "pool_idle": "Pinned, idle",
    "transient": "Transient load",
    "overhead": "Overhead",
    "neighbour": "Other processes",
    "reclaimable": "Reclaimable cache",
}

_KINDS = frozenset({"resident", "working_set", "transient", "overhead", "neighbour"})


def part_kind(part: str) -> str:
    """The part's colour class, the same in every figure of the page."""
    name = part.partition(":")[0]
    if name == "pinned_uncovered":
        return "pinned_uncovered_in_use"
    return name if name in _KINDS else "other"


def confidence(value: float) -> str:
    """The verdict's confidence in a word."""
    if value >= 0.9:
        return "very likely"
    if value >= 0.7:
        return "likely"
    return "possible" if value >= 0.4 else "uncertain"
