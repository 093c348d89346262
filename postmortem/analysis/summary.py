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
    limit = format_gib(arithmetic.limit.best) if arithmetic.limit else "an unknown limit"
    budget = format_gib(arithmetic.budget.best) if arithmetic.budget else "an unknown budget"
    parts = {part.part: part for part in arithmetic.parts}

    def actual(name: str) -> str:
        return format_gib(parts[name].actual.best) if name in parts else "an unknown amount"

    margin = format_gib(arithmetic.margin.best) if arithmetic.margin else "an unknown margin"
    slack = format_gib(arithmetic.slack.best) if arithmetic.slack else "unknown slack"
    match verdict.cause:
        case "untracked_pinned":
            buffers = f" in {pool.buffers_alive} buffers, {pool.free_remaining} free" if pool else ""
            owned = format_gib(pool.total.best) if pool else "an unknown amount"
            return (
                f"the pinned pool owned {owned}{buffers}, {actual('pinned_uncovered')} of it covered by no reservation; with "
                f"{actual('overhead')} of overhead it ate the {slack} that the budget of {budget} believed to be free under "
                f"a limit of {limit}"
            )
        case "overhead":
            return f"overhead took {actual('overhead')} against a margin of {margin} (budget {budget}, limit {limit})"
        case "leak":
            return f"memory that no ledger explains grew with completed work to {actual('overhead')} against a margin of {margin} (limit {limit})"
        case "limit_misdetected":
            return f"the budget of {budget} is not below the limit of {limit}"
        case "transient_spike":
            return f"a load took about {actual('transient')} for a while that nothing had provisioned, under a limit of {limit}"
        case "working_set":
            return f"live partitions took {actual('working_set')}, more than they had reserved, under a limit of {limit}"
        case "neighbour":
            return f"other processes in the cgroup held {actual('neighbour')} of its {limit}"
        case "host_oom":
            return f"the host was out of memory; the process's own limit ({limit}) was not the reason"
        case "inconclusive":
            return "the evidence does not decide why"
        case _:
            return _background(arithmetic)


def _background(arithmetic: Arithmetic) -> str:
    if arithmetic.charged is None or arithmetic.limit is None:
        return "nothing says that memory ended it"
    return f"memory did not end it ({format_gib(arithmetic.charged.best)} of {format_gib(arithmetic.limit.best)} charged)"
