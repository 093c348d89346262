"""Reports whose lines alternate because two CPUs print at once, and no caller id tells them apart.

Blocks are put together by what they name: the cgroup's path, and the pid in the task table. What names nothing
and could belong to either is left out, so that no report gets the other's limit.
"""

import dataclasses
from collections.abc import Iterable
from typing import TypeVar

from postmortem_parsers.kernel_log.draft import Counter, Draft, Message
from postmortem_parsers.kernel_log.tasks import TaskRow
from postmortem_parsers.kernel_log.victim import Kill

__all__ = ["Mixed"]

_T = TypeVar("_T")


@dataclasses.dataclass
class _Block:
    """`memory: usage …` to the end of a stats block."""

    path: str | None
    counters: dict[str, Counter]
    draft: Draft


@dataclasses.dataclass
class _Table:
    columns: list[str] | None
    tasks: list[TaskRow]
    torn: bool = False


@dataclasses.dataclass
class Mixed:
    """Two or more open reports and the blocks between them."""

    openers: list[Draft]
    blocks: list[_Block] = dataclasses.field(default_factory=list[_Block])
    tables: list[_Table] = dataclasses.field(default_factory=list[_Table])
    loose: list[tuple[str, Counter]] = dataclasses.field(default_factory=list[tuple[str, Counter]])
    chosen: list[tuple[Kill, Message]] = dataclasses.field(default_factory=list[tuple[Kill, Message]])

    def cpu(self, pid: int, comm: str) -> None:
        """`CPU: … PID: … Comm: …` belongs to the report whose trigger has that name."""
        for draft in self.openers:
            if draft.trigger == comm and draft.trigger_pid is None:
                draft.trigger_pid = pid
                return

    def counter(self, name: str, counter: Counter) -> None:
        """A usage line; its block is known when the block's path follows."""
        self.loose.append((name, counter))

    def stats_head(self, path: str | None, at: Message) -> Draft:
        """A new stats block; two heads with nothing between them mean that their lines will alternate."""
        names = [name for name, _ in self.loose]
        alternating = bool(self.blocks) and not self.blocks[-1].draft.stats.values
        block = _Block(path, dict(self.loose) if len(set(names)) == len(names) else {}, Draft(first=at, last=at))
        self.loose.clear()
        if alternating:
            block.draft.stats.ambiguous = self.blocks[-1].draft.stats.ambiguous = True
        self.blocks.append(block)
        return block.draft

    def stat(self, message: str) -> None:
        """A line of the latest stats block."""
        if self.blocks:
            self.blocks[-1].draft.stats.add(message)

    def table(self, columns: list[str] | None) -> None:
        """A new task table; one without rows when the next begins cannot be told from it."""
        torn = bool(self.tables) and not self.tables[-1].tasks
        if torn:
            self.tables[-1].torn = True
        self.tables.append(_Table(columns, [], torn=torn))

    def task(self, task: TaskRow) -> None:
        """A row of the latest table."""
        if self.tables:
            self.tables[-1].tasks.append(task)

    def kill(self, kill: Kill, at: Message) -> Draft:
        """Puts the report of this victim together and takes its parts out."""
        chosen = next((pair for pair in self.chosen if pair[0].pid == kill.pid), None)
        table = _only(table for table in self.tables if any(task.pid == kill.pid for task in table.tasks))
        path = chosen[0].oom_memcg if chosen else None
        block = _only(block for block in self.blocks if path is not None and block.path == path)
        opener = self._opener(table)
        draft = opener or Draft(first=at, last=at)
        draft.torn = opener is None or table is None or table.torn or block is None or not block.counters
        draft.chosen, draft.last = chosen, at
        draft.kills.append((kill, at))
        if block is not None:
            draft.counters, draft.stats = block.counters, block.draft.stats
            draft.paths = [block.path] if block.path else []
            self.blocks.remove(block)
        if table is not None:
            draft.has_table, draft.columns = True, table.columns
            draft.tasks = [] if table.torn else table.tasks
            self.tables.remove(table)
        if opener is not None:
            self.openers.remove(opener)
        if chosen is not None:
            self.chosen.remove(chosen)
        return draft

    def _opener(self, table: _Table | None) -> Draft | None:
        """The report whose trigger lives in the victim's table; the last one open needs no proof."""
        if len(self.openers) == 1:
            return self.openers[0]
        if table is None or table.torn:
            return None
        pids, names = {task.pid for task in table.tasks}, {task.name for task in table.tasks}
        by_pid = [draft for draft in self.openers if draft.trigger_pid in pids]
        return _only(by_pid) or _only(draft for draft in self.openers if draft.trigger in names)


def _only(items: Iterable[_T]) -> _T | None:
    """The item when there is exactly one."""
    found = list(items)
    return found[0] if len(found) == 1 else None
