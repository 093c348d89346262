"""The attempts: run, look why it died, and run again with a smaller budget while memory is the reason."""

import signal
from collections.abc import Callable

from postmortem.errors import PostmortemError, UsageError
from postmortem.guarding import attempt
from postmortem.guarding.attempt import Plan
from postmortem.guarding.ladder import next_budget
from postmortem.guarding.outcome import Attempt, Guarded
from postmortem.recording import scrub
from postmortem.recording.signals import noted
from postmortem.units import format_fine

__all__ = ["guard"]


def guard(plan: Plan, say: Callable[[str], None]) -> Guarded:
    """Run until it ends otherwise than by memory, is stopped by a signal to us, or the retries are used up.

    The configuration file keeps the budget of an attempt that did not die of memory; otherwise it is put back.
    Raises UsageError where the budget would reach nobody, InputError where the command cannot be run.
    """
    unit = plan.place.unit(plan.command)
    plan.place.check()
    if plan.budget < unit:
        msg = (
            f"--budget {plan.budget} bytes is less than the unit in which it is told: use {{budget}} or {{budget_mib}}"
        )
        raise UsageError(msg)
    try:
        done = _attempts(plan, unit, say)
    except PostmortemError:
        plan.place.restore_file()
        raise
    if done.next_budget is not None:
        plan.place.restore_file()
    return done


def _attempts(plan: Plan, unit: int, say: Callable[[str], None]) -> Guarded:
    attempts: list[Attempt] = []
    budget = plan.budget // unit * unit
    command = scrub.command(plan.command)
    # A signal between two attempts ends the loop, with its report, and not us; while the command runs, the recorder
    # passes signals on to it.
    with noted(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as told:
        while True:
            made = attempt.run(plan, len(attempts) + 1, budget, lambda: bool(told))
            attempts.append(made)
            if made.ended != "memory":
                return Guarded(command=command, attempts=attempts, next_budget=None)
            lower = next_budget(budget, made.safe_budget, step=plan.step, max_step=plan.max_step)
            lower = max(0, min(lower // unit * unit, budget - unit))
            if told or len(attempts) > plan.retries or lower <= 0:
                return Guarded(command=command, attempts=attempts, next_budget=lower)
            say(_next_words(made, lower))
            budget = lower


def _next_words(made: Attempt, lower: int) -> str:
    known = f"safe budget {format_fine(made.safe_budget)}" if made.safe_budget is not None else "no safe budget known"
    died = f"attempt {made.number} died of memory with budget {format_fine(made.budget)}"
    return f"{died} ({known}); again with {format_fine(lower)}"
