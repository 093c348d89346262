"""Tasks through a crew: a bounded number at once, deaths of workers turned into rows, the rest tried again."""

from __future__ import annotations

import concurrent.futures
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future

from postmortem.batch.crew import Crew
from postmortem.batch.rows import failed_row
from postmortem.batch.target import target_of
from postmortem.batch.work import Outcome, Task, base_row, work
from postmortem.errors import PostmortemError

__all__ = ["run_all"]

_DEATHS = (concurrent.futures.BrokenExecutor,)
_DIED = "its worker process died: out of memory on the machine, or a crash"


def run_all(tasks: Iterable[Task], crew: Crew, done: Callable[[Outcome], None]) -> None:
    """Do all tasks and give each outcome to `done` as it comes. Memory stays flat: only what is at work is held.

    When a local worker dies, the pool is lost with all that was at work. A note tells which run was too slow or too
    large; without one, the runs that were at work are tried one at a time, and the one that kills its worker again is
    the culprit.
    """
    try:
        _Work(iter(tasks), crew, done).run()
    finally:
        crew.close()


class _Work:
    """What waits, what is at work, and what is suspected of killing its worker."""

    def __init__(self, waiting: Iterator[Task], crew: Crew, done: Callable[[Outcome], None]) -> None:
        self._waiting, self._crew, self._done = waiting, crew, done
        self._again: deque[Task] = deque()
        self._suspects: deque[Task] = deque()
        self._at_work: dict[Future[Outcome], Task] = {}
        self._alone = False
        """Whether suspects are being tried, one at a time."""
        self._executor = crew.start()

    def run(self) -> None:
        """Until nothing is left."""
        while True:
            if not self._at_work and self._alone != bool(self._suspects):
                self._alone = not self._alone
                self._restart()
            whole = self._submit()
            if not self._at_work and whole:
                return
            broken = self._collect()
            if broken or not whole:
                broken += self._at_work.values()
                self._at_work.clear()
                self._restart()
                self._sort_out(broken)

    def _restart(self) -> None:
        self._executor = self._crew.start(1 if self._alone else None)

    def _submit(self) -> bool:
        """Fill the workers; False where the pool turns out to be broken."""
        while len(self._at_work) < (1 if self._alone else 2 * self._crew.workers):
            task = self._next()
            if task is None:
                break
            try:
                self._at_work[self._executor.submit(work, task)] = task
            except _DEATHS:  # a worker died since the last look: this task was not at work
                (self._suspects if self._alone else self._again).appendleft(task)
                return False
        return True

    def _next(self) -> Task | None:
        if self._alone:
            return self._suspects.popleft() if self._suspects else None
        return self._again.popleft() if self._again else next(self._waiting, None)

    def _collect(self) -> list[Task]:
        """Give on what is finished; the tasks that were lost with a worker."""
        broken: list[Task] = []
        if not self._at_work:
            return broken
        for future in concurrent.futures.wait(self._at_work, return_when=concurrent.futures.FIRST_COMPLETED).done:
            task = self._at_work.pop(future)
            outcome = _outcome(future, task, self._crew)
            if outcome is None:
                broken.append(task)
            else:
                self._done(outcome)
        return broken

    def _sort_out(self, broken: list[Task]) -> None:
        noted = [(task, _note(task)) for task in broken]
        known = any(outcome for _, outcome in noted)
        for task, outcome in noted:
            if outcome is not None:
                self._done(outcome)
            elif self._alone:
                self._done(Outcome(task.run.run, base_row(task) | failed_row("died", _DIED)))
            else:
                (self._again if known else self._suspects).append(task)


def _outcome(future: Future[Outcome], task: Task, crew: Crew) -> Outcome | None:
    """A task's outcome; None where a local worker died with it or beside it."""
    try:
        return future.result()
    except _DEATHS:
        return None
    except Exception as error:
        if crew.retries_itself:  # dask's KilledWorker, or what its serialisation raises
            return _note(task) or Outcome(task.run.run, base_row(task) | failed_row("died", f"{_DIED} ({error})"))
        raise


def _note(task: Task) -> Outcome | None:
    """What the worker's guard left behind."""
    try:
        target = target_of(task.settings.out)
        said = target.read(task.note)
    except PostmortemError:
        return None
    if said is None:
        return None
    target.remove(task.note)
    status, _, error = said.decode(errors="replace").partition("\t")
    return Outcome(task.run.run, base_row(task) | failed_row(status, error))
