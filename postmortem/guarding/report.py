"""The report over all attempts, for the terminal."""

from postmortem.guarding.outcome import Attempt, Guarded
from postmortem.units import format_duration, format_fine

__all__ = ["summary"]


def summary(done: Guarded) -> str:
    """For people, at 80 columns."""
    lines = ["  #      budget        peak         time  jobs    per hour  exit  ended by"]
    lines += [_row(one) for one in done.attempts]
    lines.append(f"{done.answer}.")
    lines.append(f"Budget for the configuration: {done.budget} bytes ({format_fine(done.budget)}).")
    return "\n".join(lines) + "\n"


def _row(one: Attempt) -> str:
    peak = "?" if one.peak is None else format_fine(one.peak)
    jobs = "?" if one.jobs_done is None else str(one.jobs_done)
    rate = "?" if one.jobs_per_hour is None else f"{one.jobs_per_hour:,.1f}"
    return (
        f"{one.number:>3} {format_fine(one.budget):>11} {peak:>11} {format_duration(one.seconds):>12} "
        f"{jobs:>5} {rate:>11} {one.exit_code:>5}  {one.ended_by}"
    )
