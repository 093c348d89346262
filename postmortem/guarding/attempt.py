"""One attempt: the command under `record`, then its post-mortem in a process of its own, and the figures of both."""

import csv
import dataclasses
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from postmortem.guarding.budget import BudgetPlace
from postmortem.guarding.ladder import died_of_memory, safe_budget
from postmortem.guarding.outcome import Attempt, Ended
from postmortem.recording import session
from postmortem.recording.report import ANALYZE
from postmortem.recording.say import say
from postmortem.recording.session import Recording

__all__ = ["Plan", "run"]

_STOPS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_LOOK_S = 0.1
_SIGKILLED = 128 + signal.SIGKILL
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO


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
    profile: str | None = None
    evidence: str | None = None
    """A probe's result, kept in each run directory."""


def run(plan: Plan, number: int, budget: int, stopping: Callable[[], bool]) -> Attempt:
    """Run the command under this budget; `stopping` says whether we were told to stop while it is analysed."""
    name = f"attempt-{number}"
    folder = session.new_folder(plan.folder / name)
    plan.place.write_file(budget)
    began = time.monotonic()
    done = session.record(
        plan.place.command(plan.command, budget),
        folder,
        interval_s=plan.interval_s,
        environment=plan.place.environment(os.environ, budget),
    )
    seconds = time.monotonic() - began
    if plan.evidence is not None:
        (folder / "probe.json").write_text(plan.evidence)
    page = plan.folder / f"{name}.postmortem.html"
    result = _analysed(folder, page, budget, plan.profile, stopping)
    of_memory = died_of_memory(done.returncode, done.oom_kills, result, _processes(folder))
    ended = _ended(done, of_memory=of_memory)
    verdict = result["verdict"] if result else {"cause": None, "summary": None}
    limit = ((result or {}).get("arithmetic") or {}).get("limit") or {}
    return Attempt(
        number=number,
        budget=budget,
        folder=name,
        exit_code=done.exit_code,
        ended=ended,
        seconds=seconds,
        peak=_peak(folder / "memory.csv"),
        limit=limit.get("best"),
        jobs_done=_jobs(result),
        cause=verdict["cause"] if of_memory else None,
        summary=verdict["summary"] if ended in {"memory", "signal"} else None,
        safe_budget=safe_budget(result) if of_memory else None,
        page=page.name if page.exists() else None,
    )


def _ended(done: Recording, *, of_memory: bool) -> Ended:
    if done.stopped_by in _STOPS:
        return "stopped"
    if of_memory:
        return "memory"
    if done.exit_code == 0:
        return "finished"
    # A shell that ran the command reports its signal as 128 + N.
    killed = done.returncode is not None and (done.returncode < 0 or done.exit_code == _SIGKILLED)
    return "signal" if killed else "exit code"


def _analysed(
    folder: Path, page: Path, budget: int, profile: str | None, stopping: Callable[[], bool]
) -> dict[str, Any] | None:
    """The analysis as plain values, its page written; None where it failed or we are stopping."""
    command = [*ANALYZE, str(folder), "--budget", str(budget)]
    command += ["--format", "html,json", "-o", str(page), *(["--profile", profile] if profile else [])]
    running = subprocess.Popen(  # noqa: S603 (our own command)
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while running.poll() is None:
        if stopping():
            running.terminate()
        try:
            running.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            continue
    said = running.communicate()[1].decode(errors="replace").strip()
    if running.returncode != 0:
        say(f"{folder.name} could not be analysed: {said or f'exit status {running.returncode}'}")
        return None
    try:
        found: dict[str, Any] = json.loads(page.with_name(f"{folder.name}.postmortem.json").read_bytes())
    except (OSError, ValueError) as error:
        say(f"{folder.name} could not be analysed: {error}")
        return None
    return found


def _jobs(result: dict[str, Any] | None) -> int | None:
    if result is None or result.get("profile") is None:
        return None
    return sum(one["jobs_done"] for one in result["attempts"])


def _processes(folder: Path) -> set[int] | None:
    """All processes of the command that were seen; None where the kernel numbers them otherwise than we do."""
    try:
        if _PID_NAMESPACE.readlink().name != _FIRST_NAMESPACE:
            return None
        with (folder / "processes.csv").open(errors="replace", newline="") as lines:
            seen = {int(pid) for row in csv.DictReader(lines) if (pid := row.get("pid") or "").isdecimal()}
        return seen | {int(pid) for pid in re.findall(r"^pid=(\d+)$", (folder / "exit.txt").read_text(), re.MULTILINE)}
    except (OSError, csv.Error):
        return None


def _peak(file: Path) -> int | None:
    """The largest use in the samples, which can be many, of the cgroup that the command ended in."""
    largest: dict[str, int] = {}
    group = ""
    try:
        with file.open(errors="replace", newline="") as lines:
            for row in csv.DictReader(lines):
                use, group = row.get("memory.current") or "", row.get("cgroup") or group
                if use.isdecimal():
                    largest[group] = max(largest.get(group, 0), int(use))
    except (OSError, csv.Error):
        return None
    return largest.get(group)
