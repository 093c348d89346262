"""The one sentence: how it ended, when, why, with the figures."""

from postmortem.result import Arithmetic, Ending, Pool, Verdict
from postmortem.units import format_gib

__all__ = ["sentence"]

_HOW = {
    "cgroup_limit": "killed by the cgroup's memory limit",
    "cgroup_limit_probable": "probably killed by the cgroup's memory limit",
    "host_oom": "killed because the host ran out of memory",
    "userland_oom": "killed by a userland OOM daemon",
    "sigkill_unexplained": "killed by SIGKILL without a sign of memory shortage",
    "crashed": "crashed",
    "stopped": "was stopped",
    "finished": "finished",
    "running": "was still running when the log ends",
    "unknown": "ended in an unknown way",
}


def sentence(
    name: str, ending: Ending, verdict: Verdict, arithmetic: Arithmetic, pool: Pool | None, phase: str | None
) -> str:
    """Plain words, every figure with its unit."""
    when = f" at {ending.time:%Y-%m-%d %H:%M:%S}Z" if ending.time else ""
    where = f", in {phase}" if phase else ""
    how = _HOW[ending.how]
    verb = "" if how.startswith(("crashed", "was", "finished", "ended")) else "was "
    head = f"{name} {verb}{how}{when}{where}"
    why = _why(verdict, arithmetic, pool)
    return f"{head}: {why}." if why else f"{head}."


def _why(verdict: Verdict, arithmetic: Arithmetic, pool: Pool | None) -> str:
    """The clause after the colon."""
    said = _said(arithmetic)
    if arithmetic.slack is None and verdict.cause in _BY_CLASS and verdict.causes:
        return f"{verdict.causes[0].evidence[0].text}, under a limit of {said['limit']}"
    if verdict.cause == "inconclusive":
        return f"{_WHY['inconclusive']}{_shares(arithmetic)}"
    if verdict.cause == "untracked_pinned":
        return _pinned(said, pool)
    text = _WHY.get(verdict.cause)
    return text.format(**said) if text else _background(arithmetic)


_WHY = {
    "overhead": "overhead took {overhead} against a margin of {margin} (budget {budget}, limit {limit})",
    "leak": "memory that no ledger explains grew with completed work to {overhead} against a margin of {margin} (limit {limit})",
    "limit_misdetected": "the budget of {budget} is not below the limit of {limit}",
    "transient_spike": "a load took about {transient} for a while, more than was provisioned for it, under a limit of {limit}",
    "working_set": "live partitions took {working_set}, more than they had reserved, under a limit of {limit}",
    "neighbour": "other processes in the cgroup held {neighbour} of its {limit}",
    "host_oom": "the host was out of memory; the process's own limit ({limit}) was not the reason",
    "inconclusive": "the evidence does not decide why",
}

_BY_CLASS = ("overhead", "untracked_pinned", "leak")  # causes that their own evidence tells best without a ledger
_CLASSES = {
    "anonymous": "anonymous",
    "shared_memory": "shared",
    "kernel": "the kernel's",
    "neighbour": "other processes'",
    "pinned_uncovered": "of the pool",
    "unaccounted": "in no counter",
}


def _shares(arithmetic: Arithmetic) -> str:
    """What memory consisted of, the largest first, where the kernel's classes are all that is known."""
    classes = [part for part in arithmetic.parts if part.part in _CLASSES and part.actual.best > 0]
    if not any(part.part in ("anonymous", "shared_memory", "kernel") for part in classes):
        return ""
    classes.sort(key=lambda part: -part.actual.best)
    told = ", ".join(f"{format_gib(part.actual.best)} {_CLASSES[part.part]}" for part in classes)
    return f"; at the end memory was {told}"


def _said(arithmetic: Arithmetic) -> dict[str, str]:
    """Every figure that a sentence may need, in words."""
    quantities = {
        "limit": arithmetic.limit,
        "budget": arithmetic.budget,
        "margin": arithmetic.margin,
        "slack": arithmetic.slack,
        **dict.fromkeys(("overhead", "transient", "working_set", "neighbour", "pinned_uncovered")),
        **{part.part: part.actual for part in arithmetic.parts if ":" not in part.part},
    }
    return {
        name: format_gib(quantity.best) if quantity else f"an unknown {_PLAIN.get(name, 'amount')}"
        for name, quantity in quantities.items()
    }


_PLAIN = {"limit": "limit", "budget": "budget", "margin": "margin", "slack": "slack"}


def _pinned(said: dict[str, str], pool: Pool | None) -> str:
    buffers = f" in {pool.buffers_alive} buffers, {pool.free_remaining} free" if pool else ""
    owned = format_gib(pool.total.best) if pool else "an unknown amount"
    return (
        f"the pinned pool owned {owned}{buffers}, {said['pinned_uncovered']} of it covered by no reservation; with "
        f"{said['overhead']} of overhead it ate the {said['slack']} that the budget of {said['budget']} believed to be "
        f"free under a limit of {said['limit']}"
    )


def _background(arithmetic: Arithmetic) -> str:
    if arithmetic.charged is None or arithmetic.limit is None:
        return "nothing says that memory ended it"
    return (
        f"memory did not end it ({format_gib(arithmetic.charged.best)} of {format_gib(arithmetic.limit.best)} charged)"
    )
