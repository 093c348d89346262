"""The next budget after a death: the one that the post-mortem supports, within bounds. All sizes in bytes."""

from collections.abc import Set as AbstractSet
from typing import Any

__all__ = ["LEAST_STEP", "MEMORY_DEATHS", "died_of_memory", "next_budget", "safe_budget"]

LEAST_STEP = 0.02
MEMORY_DEATHS = frozenset({"cgroup_limit", "cgroup_limit_probable", "host_oom", "userland_oom"})
_SIGKILL = 9
_RESERVE_SHARE = 0.02  # of the limit; assumed: what grows beside the budget may not have been at its largest
_UNSUPPORTED_STEP = 0.10
"""The step where the post-mortem knows no safe budget: the ladder that operators use."""


def died_of_memory(
    returncode: int | None, oom_kills: int, result: dict[str, Any] | None, ours: AbstractSet[int] | None = None
) -> bool:
    """Whether memory ended the command: it was killed (itself or, by a wrapper's word, its child) and the evidence says why.

    The cgroup's count of kills alone can be of a neighbour's: it decides only where there is no analysis. `ours`: the
    command's processes in the kernel's numbers, None where those are not known (in a container's pid namespace).
    """
    if returncode not in {-_SIGKILL, 128 + _SIGKILL}:
        return False
    if result is None:
        return oom_kills > 0
    if returncode == -_SIGKILL and ours and _only_others(result.get("kills") or [], ours):
        return False
    return result["ending"]["how"] in MEMORY_DEATHS


def _only_others(kills: list[dict[str, Any]], ours: AbstractSet[int]) -> bool:
    """Whether the kernel's reports name victims, and none of them is ours."""
    victims = {kill.get("pid") for kill in kills if kill.get("relevant", True)}
    return bool(victims) and None not in victims and not victims & ours


def safe_budget(result: dict[str, Any] | None) -> int | None:
    """The budget that the analysis supports: its own safe budget (the lower bound), else the first-order one.

    First order: limit less what was used beyond the reservations at the death, less a reserve.
    """
    if result is None:
        return None
    found = _figure((result.get("survival") or {}).get("safe_budget"), "low")
    if found is not None:
        return found
    arithmetic = result.get("arithmetic") or {}
    limit, used, reserved = (_figure(arithmetic.get(name), "best") for name in ("limit", "unreclaimable", "reserved"))
    if limit is None or used is None or reserved is None:
        return None
    return max(0, limit - max(0, used - reserved) - int(limit * _RESERVE_SHARE)) or None


def _figure(quantity: dict[str, Any] | None, which: str) -> int | None:
    value = (quantity or {}).get(which)
    if value is None:
        value = (quantity or {}).get("best")
    return None if value is None else int(value)


def next_budget(budget: int, safe: int | None, *, step: float | None, max_step: float) -> int:
    """The budget of the next attempt; `step` (a share) gives the classic ladder whatever the post-mortem says."""
    if step is not None:
        return int(budget * (1 - step))
    wanted = safe if safe is not None else int(budget * (1 - _UNSUPPORTED_STEP))
    return max(int(budget * (1 - max_step)), min(wanted, int(budget * (1 - LEAST_STEP))))
