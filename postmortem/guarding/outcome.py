"""What came of a guarded command: its attempts, plain values that the reports show. Sizes in bytes."""

import dataclasses
from typing import Any, Literal

__all__ = ["Attempt", "Ended", "Guarded"]

Ended = Literal["memory", "finished", "exit code", "signal", "stopped"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attempt:
    """One run under one budget."""

    number: int
    budget: int
    folder: str
    """Its run directory, within the guard's."""
    exit_code: int
    ended: Ended
    """`stopped`: by a signal that was sent to the guard."""
    seconds: float
    peak: int | None
    """The largest use that was measured."""
    limit: int | None
    jobs_done: int | None
    """None where the log is of a daemon that no profile knows."""
    cause: str | None
    summary: str | None
    """The post-mortem's sentence on a death; None where it was none, or could not be analysed."""
    safe_budget: int | None
    page: str | None
    """Its own report, within the guard's folder."""

    @property
    def jobs_per_hour(self) -> float | None:
        """Its throughput."""
        return None if self.jobs_done is None else self.jobs_done * 3600 / max(self.seconds, 0.001)

    @property
    def ended_by(self) -> str:
        """In words."""
        if self.ended == "signal":
            return f"signal {self.exit_code - 128}, not memory"
        if self.ended == "exit code":
            return f"exit code {self.exit_code}, not memory"
        if self.ended == "memory":
            return f"memory: {self.cause.replace('_', ' ')}" if self.cause else "memory"
        return "a signal to guard" if self.ended == "stopped" else self.ended


@dataclasses.dataclass(frozen=True, kw_only=True)
class Guarded:
    """All attempts, and how the last one ended."""

    command: list[str]
    """Without what is secret in it."""
    attempts: list[Attempt]
    next_budget: int | None
    """What a further attempt would have had, where the last one died of memory."""

    @property
    def exit_code(self) -> int:
        """The last attempt's."""
        return self.attempts[-1].exit_code

    @property
    def budget(self) -> int:
        """The budget to write into the configuration: the last one, or below it where even that died of memory."""
        return self.attempts[-1].budget if self.next_budget is None else self.next_budget

    @property
    def answer(self) -> str:
        """One sentence; sizes are left to `budget`."""
        last, tried = self.attempts[-1], len(self.attempts)
        attempts = "the first attempt" if tried == 1 else f"attempt {tried}"
        if self.next_budget is not None:
            every = "The only budget" if tried == 1 else f"Each of {tried} budgets"
            return f"{every} died of memory; the budget is the next to try"
        if last.ended == "finished":
            return f"The command survived in {attempts}"
        return f"In {attempts} the command ended otherwise than by memory ({last.ended_by})"

    def to_dict(self) -> dict[str, Any]:
        """For scripts: sizes in bytes."""
        attempts = [
            {**dataclasses.asdict(one), "jobs_per_hour": one.jobs_per_hour, "ended_by": one.ended_by}
            for one in self.attempts
        ]
        return {
            "schema": "postmortem-guard/1",
            "command": self.command,
            "answer": self.answer,
            "attempts": attempts,
            "budget": self.budget,
            "survived": self.next_budget is None,
            "exit_code": self.exit_code,
        }
