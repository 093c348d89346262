"""The attempts: run, look why it died, and run again with a smaller budget while memory is the reason."""

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from postmortem.guarding.budget import BudgetPlace
from postmortem.guarding.ladder import died_of_memory, next_budget, safe_budget
from postmortem.recording import session
from postmortem.recording.report import result_of
from postmortem.units import GIB, MIB, format_duration, format_gib

__all__ = ["Attempt", "Guarded", "Plan", "guard", "summary"]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to run and how to step down. Sizes in bytes."""

    command: Sequence[str]
    place: BudgetPlace
    budget: int
    folder: Path
    retries: int = 3
    step: float | None = None
    max_step: float = 0.25
    interval_s: float = 1.0


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One run under one budget."""

    number: int
    budget: int
    exit_code: int
    seconds: float
    peak: int | None
    """The largest use that was measured, in bytes."""
    jobs_done: int | None
    of_memory: bool
    cause: str | None


@dataclasses.dataclass(frozen=True)
class Guarded:
    """All attempts, and how the last one ended."""

    attempts: list[Attempt]
    next_budget: int | None
    """What a further attempt would have had, where the last one died of memory; in bytes."""

    @property
    def exit_code(self) -> int:
        """The last attempt's."""
        return self.attempts[-1].exit_code

    @property
    def budget(self) -> int:
        """The budget to write into the configuration: the last one, or below it where even that died of memory."""
        return self.attempts[-1].budget if self.next_budget is None else self.next_budget


def guard(plan: Plan, say: Callable[[str], None]) -> Guarded:
    """Run until it ends otherwise than by memory, is stopped by a signal to us, or the retries are used up."""
    plan.place.check(plan.command)
    attempts: list[Attempt] = []
    budget = plan.budget
    while True:
        attempt, result, stopped = _once(plan, len(attempts) + 1, budget)
        attempts.append(attempt)
        if not attempt.of_memory or stopped:
            return Guarded(attempts, None)
        safe = safe_budget(result)
        lower = next_budget(budget, safe, step=plan.step, max_step=plan.max_step)
        if len(attempts) > plan.retries or lower <= 0:
            return Guarded(attempts, lower)
        supported = f"safe budget {_size(safe)}" if safe is not None else "no safe budget known"
        say(
            f"attempt {attempt.number} died of memory with budget {_size(budget)} ({supported}); "
            f"again with {_size(lower)}"
        )
        budget = lower


def _size(size: int) -> str:
    """Steps of 2 % must be seen: MiB below 16 GiB."""
    return format_gib(size) if size >= 16 * GIB else f"{size / MIB:,.0f} MiB"


def _once(plan: Plan, number: int, budget: int) -> tuple[Attempt, dict[str, Any] | None, bool]:
    folder = session.new_folder(plan.folder / f"attempt-{number}")
    plan.place.write_file(budget)
    began = time.monotonic()
    done = session.record(
        plan.place.command(plan.command, budget),
        folder,
        interval_s=plan.interval_s,
        environment=plan.place.environment(os.environ, budget),
    )
    seconds = time.monotonic() - began
    result = result_of(folder, budget=budget) if done.returncode else None
    attempt = Attempt(
        number=number,
        budget=budget,
        exit_code=done.exit_code,
        seconds=seconds,
        peak=_peak(folder),
        jobs_done=_jobs(result),
        of_memory=died_of_memory(done.returncode, done.oom_kills, result),
        cause=result["verdict"]["cause"] if result else None,
    )
    return attempt, result, done.stopped_by is not None


def _jobs(result: dict[str, Any] | None) -> int | None:
    counts = [phase["jobs_done"] for phase in (result or {}).get("phases") or [] if phase.get("jobs_done") is not None]
    return sum(counts) if counts else None


def _peak(folder: Path) -> int | None:
    """The largest use in the attempt's samples."""
    try:
        lines = (folder / "memory.csv").read_text().splitlines()
    except OSError:
        return None
    column = lines[0].split(",").index("memory.current") if lines and "memory.current" in lines[0] else None
    if column is None:
        return None
    cells = [line.split(",")[column] for line in lines[1:] if line.count(",") >= column]
    return max((int(cell) for cell in cells if cell.isdecimal()), default=None)


def summary(done: Guarded) -> str:
    """The report over all attempts."""
    lines = ["attempt     budget       peak        time  jobs  exit  ended by"]
    for one in done.attempts:
        peak = _size(one.peak) if one.peak is not None else "?"
        jobs = "?" if one.jobs_done is None else str(one.jobs_done)
        by = f"memory ({one.cause})" if one.of_memory else ("itself" if one.exit_code == 0 else "no memory death")
        lines.append(
            f"{one.number:>7} {_size(one.budget):>10} {peak:>10} {format_duration(one.seconds):>11} "
            f"{jobs:>5} {one.exit_code:>5}  {by}"
        )
    if done.next_budget is not None:
        lines.append(f"every budget died of memory; the next to try is {done.budget} bytes ({_size(done.budget)})")
    else:
        lines.append(f"budget for the configuration: {done.budget} bytes ({_size(done.budget)})")
    return "\n".join(lines) + "\n"
