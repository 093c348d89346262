"""A batch from sources to tables: found, compared with what is done, worked off, kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from postmortem.archives.find import Found
from postmortem.archives.grouping import FoundRun, Refusal
from postmortem.batch.crew import Crew
from postmortem.batch.pool import run_all
from postmortem.batch.rows import failed_row
from postmortem.batch.store import Store
from postmortem.batch.target import target_of
from postmortem.batch.work import Outcome, Settings, Task, base_row

__all__ = ["Progress", "Tally", "run_batch"]


@dataclasses.dataclass
class Tally:
    """How far a batch is."""

    total: int
    unchanged: int = 0
    analysed: int = 0
    failed: int = 0
    """Rows whose status is not `done`."""

    @property
    def finished(self) -> int:
        """Runs that need nothing more."""
        return self.unchanged + self.analysed + self.failed


Progress = Callable[[Tally], None]


def run_batch(found: Found, settings: Settings, crew: Crew, progress: Progress = lambda _: None) -> Tally:
    """Analyse what is found into `settings.out`; runs whose content and analysis are known are left.

    What is done is kept whatever ends the call: KeyboardInterrupt, a full disk, kill -9.
    """
    store = Store(target_of(settings.out))
    tally = Tally(len(found.runs) + len(found.refused))

    def keep(outcome: Outcome) -> None:
        if outcome.row is None:
            tally.unchanged += 1
        else:
            store.add(outcome)
            done = outcome.row["status"] == "done"
            tally.analysed += done
            tally.failed += not done
        progress(tally)

    try:
        known = store.known()
        for refusal in found.refused:
            keep(_refused(refusal, settings))
        run_all(_tasks(found.runs, settings, known), crew, keep)
    finally:
        store.close()
    return tally


def _tasks(runs: Sequence[FoundRun], settings: Settings, known: dict[str, tuple[str, str]]) -> Iterator[Task]:
    """In the order of places and numbers, so that a worker passes an archive once."""
    for run in sorted(
        runs, key=lambda run: max(((entry.place, entry.number) for entry in run.entries), default=("", 0))
    ):
        content, analysis = known.get(run.run, (None, None))
        yield Task(run, settings, content if analysis == settings.analysis else None)


def _refused(refusal: Refusal, settings: Settings) -> Outcome:
    run = FoundRun(refusal.path, refusal.path.rpartition("/")[2] or refusal.path, (), "refused")
    return Outcome(run.run, base_row(Task(run, settings)) | failed_row("refused", refusal.reason))
