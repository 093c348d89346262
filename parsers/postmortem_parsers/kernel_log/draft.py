"""One kernel report while its lines come in, and the rows of `kills` and `tasks` that it becomes."""

import dataclasses
import datetime as dt

from postmortem_parsers.kernel_log.stats import HostCounts, Stats
from postmortem_parsers.kernel_log.tasks import TaskRow
from postmortem_parsers.kernel_log.victim import Kill, pgtables_bytes

__all__ = ["Counter", "Draft", "Message"]

_DEFAULT_PAGE = 4096
Row = dict[str, object]


@dataclasses.dataclass(frozen=True)
class Message:
    """One undressed kernel line."""

    line: int
    message: str
    time: dt.datetime | None = None
    local_time: bool = False
    no_year: bool = False
    uptime_s: float | None = None
    hostname: str | None = None
    caller: str | None = None
    dress: str | None = None


@dataclasses.dataclass(frozen=True)
class Counter:
    """A page counter's line, in bytes: `memory: usage 204800kB, limit 204800kB, failcnt 3446`."""

    usage: int | None
    limit: int | None
    failcnt: int | None


@dataclasses.dataclass
class Draft:
    """What is known of one report so far."""

    first: Message
    last: Message
    trigger: str | None = None
    trigger_pid: int | None = None
    nodemask: str | None = None
    counters: dict[str, Counter] = dataclasses.field(default_factory=dict[str, Counter])
    stats: Stats = dataclasses.field(default_factory=Stats)
    paths: list[str] = dataclasses.field(default_factory=list[str])
    host: HostCounts | None = None
    has_table: bool = False
    columns: list[str] | None = None
    tasks: list[TaskRow] = dataclasses.field(default_factory=list[TaskRow])
    limited_by: str | None = None
    """The path in `killed as a result of limit of …` (before 4.19)."""
    task_in: str | None = None
    chosen: tuple[Kill, Message] | None = None
    candidate: tuple[Kill, Message] | None = None
    kills: list[tuple[Kill, Message]] = dataclasses.field(default_factory=list[tuple[Kill, Message]])
    group: bool = False
    torn: bool = False
    """Its lines were mixed with another report's and could not all be told apart."""

    def settle(self) -> None:
        """Falls back on weaker words for the victim when no `Killed process` line came."""
        if not self.kills:
            weaker = self.chosen or self.candidate
            if weaker is not None and (weaker[0].pid is not None or weaker[0].name is not None):
                self.kills.append(weaker)

    def page_size(self) -> int:
        """Bytes of a page: from the buddy list, from the victim's size in kB against pages, else 4 KiB."""
        if self.host is not None and self.host.page_size:
            return self.host.page_size
        pages = {task.pid: task.columns.get("total_vm") for task in self.tasks}
        for kill, _ in self.kills:
            count = pages.get(kill.pid) if kill.pid is not None else None
            if kill.total_vm is not None and count:
                ratio = kill.total_vm / count
                for size in (4096, 16384, 65536):
                    # The victim may have grown a little between the table and its own line.
                    if abs(ratio / size - 1) < 0.2:
                        return size
        return _DEFAULT_PAGE

    def _constraint(self, kill: Kill) -> str | None:
        stated = kill.constraint or (self.chosen[0].constraint if self.chosen else None)
        if stated is not None:
            return stated
        memcg = kill.memcg if kill.memcg is not None or self.candidate is None else self.candidate[0].memcg
        if memcg or self.limited_by is not None or "memory" in self.counters:
            return "memcg"
        # Before 4.19 the three host-wide constraints share one text; a nodemask could mean a memory policy.
        return "global" if memcg is False and self.nodemask in (None, "(null)", "0") else None

    def _complete(self, kill: Kill, constraint: str | None) -> bool:
        if self.trigger is None or self.torn or not kill.sized or not self.first.message.count("invoked oom-killer"):
            return False
        if self.has_table and kill.pid not in {task.pid for task in self.tasks} and not self.group:
            return False
        if constraint == "memcg":
            return "memory" in self.counters and bool(self.stats.values) and not self.stats.ambiguous
        return self.host is not None

    def _counted(self) -> Row:
        memory, kmem = self.counters.get("memory"), self.counters.get("kmem")
        swap_usage, swap_limit = self._swap(memory)
        return {
            "usage": memory.usage if memory else None,
            "limit": memory.limit if memory else None,
            "failcnt": memory.failcnt if memory else None,
            "swap_usage": swap_usage,
            "swap_limit": swap_limit,
            "kmem_usage": kmem.usage if kmem else None,
            "kmem_limit": kmem.limit if kmem else None,
        }

    def _swap(self, memory: Counter | None) -> tuple[int | None, int | None]:
        """v2 counts swap alone; v1's `memory+swap` holds memory too, and is 0 where swap accounting is off."""
        if swap := self.counters.get("swap"):
            return swap.usage, swap.limit
        both = self.counters.get("memory+swap")
        if both is None or memory is None or both.usage is None or memory.usage is None or both.usage < memory.usage:
            return None, None
        usage = both.usage - memory.usage
        if both.limit is None or memory.limit is None:
            return usage, None
        return usage, both.limit - memory.limit

    def rows(self, report: int) -> tuple[list[Row], list[Row]]:
        """Rows for `kills` (one a victim) and `tasks`."""
        page_size = self.page_size()
        tasks: list[Row] = [{"report": report, **task.sized(page_size)} for task in self.tasks]
        by_pid = {task["pid"]: task for task in reversed(tasks)}
        return [self._kill_row(report, kill, at, page_size, by_pid.get(kill.pid)) for kill, at in self.kills], tasks

    def cut_row(self, report: int) -> Row:
        """The row of a report that was cut before it named anybody: victim and pid are null."""
        return self._kill_row(report, Kill(memcg="memory" in self.counters or None), self.last, self.page_size(), None)

    def _kill_row(self, report: int, kill: Kill, at: Message, page_size: int, task: Row | None) -> Row:
        constraint = self._constraint(kill)
        chosen = self.chosen[0] if self.chosen else Kill()
        stated = chosen.pid is None or chosen.pid == kill.pid or self.group
        kmem = self.counters.get("kmem")
        stats = self.stats.normal(kmem.usage if kmem else None)
        if not stats and constraint != "memcg" and self.host is not None:
            stats = self.host.normal(page_size)
        table = task or {}
        pgtables = table.get("pgtables")
        sized = kill.total_vm is not None
        timed = next((message for message in (at, self.first, self.last) if message.time or message.uptime_s), at)
        return {
            "time": timed.time,
            "line": at.line,
            "report": report,
            "killer": "kernel",
            "constraint": constraint,
            "oom_memcg": (chosen.oom_memcg or self.limited_by or self._first_path()) if constraint == "memcg" else None,
            "task_memcg": (chosen.task_memcg if stated else None) or self.task_in,
            "victim": kill.name if kill.name is not None else table.get("name"),
            "pid": kill.pid,
            "uid": _or(kill.uid, _or(chosen.uid if chosen.pid == kill.pid else None, table.get("uid"))),
            "trigger": self.trigger,
            "trigger_pid": self.trigger_pid,
            **self._counted(),
            "total_vm": kill.total_vm if sized else table.get("total_vm"),
            "anon_rss": kill.anon_rss if sized else table.get("rss_anon"),
            "file_rss": kill.file_rss if sized else table.get("rss_file"),
            "shmem_rss": kill.shmem_rss if sized else table.get("rss_shmem"),
            "pgtables": _or(pgtables_bytes(kill, pgtables if isinstance(pgtables, int) else None), pgtables),
            "oom_score_adj": _or(kill.oom_score_adj, table.get("oom_score_adj")),
            "oom_group": self.group,
            **stats,
            "host_total": self.host.total(page_size) if self.host else None,
            "page_size": page_size,
            "complete": self._complete(kill, constraint),
            "hostname": at.hostname or self.first.hostname,
            "uptime_s": timed.uptime_s,
            "local_time": timed.local_time,
            "no_year": timed.no_year,
            "first_line": self.first.line,
            "last_line": self.last.line,
        }

    def _first_path(self) -> str | None:
        return self.paths[0] if self.paths else None


def _or(first: object, second: object) -> object:
    return second if first is None else first
