"""From kernel messages to reports: a state machine for each host and printing CPU.

Reads 2.6.36 to 6.1x, memcg v1 and v2, host-wide, cpuset and mempolicy reports, whole, cut, without their head
(the kernel prints it only ten times in five seconds) or mixed with one another.
Not read: call traces, registers, per-zone numbers.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable

from postmortem_parsers.kernel_log.draft import Counter, Draft, Message
from postmortem_parsers.kernel_log.mixed import Mixed
from postmortem_parsers.kernel_log.numbers import as_int, kib, limit_bytes
from postmortem_parsers.kernel_log.stats import HostCounts
from postmortem_parsers.kernel_log.tasks import task_columns, task_row
from postmortem_parsers.kernel_log.victim import chosen_victim, killed, reaped, sacrificed
from postmortem_parsers.kernel_log.words import ANCHORS, CONTINUATION

__all__ = ["Reports", "kind_of", "mend", "read_reports"]

_ANCHORS = [(kind, re.compile(pattern)) for kind, pattern in ANCHORS.items()]
_CPU = re.compile(
    r"(?:CPU: \d+ .*?PID: (?P<pid>\d+) Comm: (?P<comm>.{1,16}?)(?: (?:Not tainted|Tainted:|Kdump:).*)?$)|(?:Pid: (?P<pid0>\d+), comm: (?P<comm0>.{1,16}?) (?:Not tainted|Tainted:))"
)
_INVOKED = re.compile(r"(?P<task>.{1,64}?) invoked oom-killer:(?:.*?nodemask=(?P<nodes>[^\s,]+))?")
_USAGE = re.compile(r"(memory|memory\+swap|swap|kmem): usage (\d+)kB, limit (\d+)kB, failcnt (\d+)$")
_USAGE_CUT = re.compile(r"(memory|memory\+swap|swap|kmem): usage (\d+)kB, limit (?:(\d+)kB|max)?")
_TASK_IN = re.compile(r"Task in (\S+) killed as a result of limit of (\S+)$")
_STATS_HEAD = re.compile(r"Memory cgroup stats(?: for (?P<path>.+?))?:(?P<rest>\s*(?:[a-z_]+:\d+KB\b.*)?)$")
_GROUP = re.compile(r"Tasks in (.+) are going to be killed")
_TAILS = re.compile(CONTINUATION)
_SENTENCES = ("invoked", "oom_kill", "kill", "killed")
_SAME_MOMENT_S = 2.0
_GROUP_S = 60.0


def _apart_s(before: Message, after: Message) -> float:
    """Seconds between two lines, 0 where no clock tells."""
    if before.uptime_s is not None and after.uptime_s is not None:
        return abs(after.uptime_s - before.uptime_s)
    if before.time is not None and after.time is not None:
        return abs((after.time - before.time).total_seconds())
    return 0.0


def kind_of(message: str) -> str | None:
    """Which anchor `message` is, if any."""
    return next((kind for kind, pattern in _ANCHORS if pattern.match(message)), None)


def mend(messages: Iterable[Message]) -> list[Message]:
    """Puts back together what a mailer or a terminal broke, and lends a bare line the head of the line before."""
    mended: list[Message] = []
    for message in messages:
        before = mended[-1] if mended else None
        if message.dress is not None or before is None:
            mended.append(message)
            continue
        bare_tail = kind_of(message.message) is None and _TAILS.match(message.message) is not None
        if bare_tail and message.line - before.line <= 3 and kind_of(before.message) in _SENTENCES:
            glue = " " if re.search(r"(?:[,:)]|[Kk]ill|Killed|process|kB|sacrifice)$", before.message) else ""
            mended[-1] = dataclasses.replace(before, message=before.message + glue + message.message)
        elif message.time is None and message.uptime_s is None and message.line - before.line <= 80:
            mended.append(dataclasses.replace(before, line=message.line, message=message.message, dress=None))
        else:
            mended.append(message)
    return mended


@dataclasses.dataclass
class Reports:
    """All drafts that named (or were cut before they named) a victim, and the alarms that killed nobody."""

    drafts: list[Draft] = dataclasses.field(default_factory=list[Draft])
    without_kill: list[Draft] = dataclasses.field(default_factory=list[Draft])
    groups: list[tuple[str, Message]] = dataclasses.field(default_factory=list[tuple[str, Message]])
    broken: list[tuple[Message, str]] = dataclasses.field(default_factory=list[tuple[Message, str]])
    """Lines that are the kernel's by their beginning and could not be read whole, with the reason."""
    known_pids: set[int | None] = dataclasses.field(default_factory=set[int | None])


class _Lane:
    """The reports that one host's one printing context writes, one after the other unless mixed."""

    def __init__(self, reports: Reports) -> None:
        self.reports = reports
        self.draft: Draft | None = None
        self.mixed: Mixed | None = None
        self.section: str | None = None
        self.uptime: float | None = None
        self._on: dict[str, Callable[[Message], None]] = {
            "invoked": self._invoked,
            "taskin": self._task_in,
            "usage": self._usage,
            "stats": self._stats,
            "meminfo": self._meminfo,
            "tasks": self._tasks,
            "oom_kill": self._oom_kill,
            "kill": self._kill,
            "killed": self._kill,
            "reaper": self._reaper,
            "group": self._group,
            "no_kill": self._no_kill,
            "deadlock": self._no_kill,
            "allocation": self._allocation,
        }

    def feed(self, message: Message) -> None:
        """Take the next message of this lane."""
        if message.uptime_s is not None:
            if self.uptime is not None and message.uptime_s < self.uptime - 5:
                self.close()  # another boot
            self.uptime = message.uptime_s
        kind = kind_of(message.message)
        handler = self._on.get(kind) if kind else None
        if handler is not None:
            handler(message)
        else:
            self._body(message)

    def close(self, *, cut: bool = False) -> None:
        """End what is open; `cut`: the text ends here, so a victim may have been named after it."""
        if self.mixed is not None:
            self.reports.without_kill.extend(self.mixed.openers)
            self.mixed = None
        if self.draft is not None:
            draft, self.draft = self.draft, None
            draft.settle()
            repeated = any(other.trigger == draft.trigger for other in self.reports.without_kill)
            if draft.kills or (cut and draft.trigger is not None and not repeated):
                self.reports.drafts.append(draft)
            elif draft.trigger is not None:
                self.reports.without_kill.append(draft)
        self.section = None

    def _open(self, at: Message, *, fresh: bool) -> Draft:
        """The open report; a new one when `fresh` and the open one has its victim already."""
        if self.draft is not None and fresh and (self.draft.kills or self.draft.chosen):
            self.close()
        if self.draft is None:
            self.draft = Draft(first=at, last=at)
        self.draft.last = at
        return self.draft

    def _invoked(self, at: Message) -> None:
        match = _INVOKED.match(at.message)
        trigger = match["task"] if match else None
        opener = Draft(first=at, last=at, trigger=trigger, nodemask=match["nodes"] if match else None)
        if self.mixed is not None:
            self.mixed.openers.append(opener)
        elif self.draft is not None and self._unfinished(self.draft, at):
            self.mixed = Mixed([self.draft, opener])
            self.mixed.loose.extend(self.draft.counters.items())
            self.draft = None
        else:
            self.close()
            self.draft = opener
        self.section = "trace"

    @staticmethod
    def _unfinished(draft: Draft, at: Message) -> bool:
        """Whether the open report can still be printing while another begins (else it ended without a kill)."""
        if draft.kills or draft.chosen or draft.candidate or draft.has_table or draft.trigger is None:
            return False
        if at.caller is not None:
            return False  # one context prints one report at a time
        return _apart_s(draft.last, at) < _SAME_MOMENT_S

    def _task_in(self, at: Message) -> None:
        if self.mixed is None:
            draft = self._open(at, fresh=True)
            if match := _TASK_IN.match(at.message):
                draft.task_in, draft.limited_by = match[1], match[2]
        self.section = "stats"

    def _usage(self, at: Message) -> None:
        match = _USAGE.match(at.message) or _USAGE_CUT.match(at.message)
        if match is None:
            return
        failcnt = as_int(match[4]) if match.re is _USAGE else None
        counter = Counter(kib(match[2]), limit_bytes(match[3]), failcnt)
        if self.mixed is not None:
            self.mixed.counter(match[1], counter)
        else:
            self._open(at, fresh=match[1] == "memory").counters.setdefault(match[1], counter)
        self.section = "stats"

    def _stats(self, at: Message) -> None:
        match = _STATS_HEAD.match(at.message)
        path = match["path"] if match else None
        if self.mixed is not None:
            stats = self.mixed.stats_head(path, at).stats
        else:
            draft = self._open(at, fresh=True)
            draft.paths.extend([path] if path else [])
            stats = draft.stats
        if match and match["rest"].strip():
            stats.add(match["rest"].strip())
        self.section = "stats"

    def _meminfo(self, at: Message) -> None:
        self.section = None
        if self.draft is not None and not self.draft.kills:
            self.draft.host = HostCounts()
            self.draft.last = at
            self.section = "host"

    def _tasks(self, at: Message) -> None:
        columns = task_columns(at.message)
        self.section = "tasks"
        if self.mixed is not None:
            if columns is not None:
                self.mixed.table(columns)
            return
        draft = self._open(at, fresh=True)
        draft.has_table = True
        draft.columns = columns or draft.columns

    def _oom_kill(self, at: Message) -> None:
        chosen = chosen_victim(at.message)
        self.section = None
        if chosen is None or chosen.pid is None:
            self.reports.broken.append((at, "the oom-kill line is cut"))
        if chosen is None:
            return
        if chosen.pid is not None:
            self.reports.known_pids.add(chosen.pid)
        if self.mixed is not None:
            self.mixed.chosen.append((chosen, at))
        else:
            self._open(at, fresh=True).chosen = (chosen, at)

    def _kill(self, at: Message) -> None:
        self.section = None
        candidate = sacrificed(at.message)
        if candidate is not None and "Killed process" not in at.message:
            if self.mixed is None:
                self._open(at, fresh=True).candidate = (candidate, at)
            return
        kill = killed(at.message)
        if kill is None or not kill.sized:
            self.reports.broken.append((at, "the victim's line is cut"))
        if kill is None:
            return
        self.reports.known_pids.add(kill.pid)
        if self.mixed is not None:
            self.reports.drafts.append(self.mixed.kill(kill, at))
            if not self.mixed.openers:
                self.mixed = None
            return
        self._add_victim(kill.pid, at).kills.append((kill, at))

    def _add_victim(self, pid: int | None, at: Message) -> Draft:
        """The report that a further victim belongs to: the open one, unless it has its own and kills no group."""
        draft = self.draft
        if draft is not None:
            other = {kill.pid for kill, _ in draft.kills} - {pid}
            chosen = draft.chosen[0].pid if draft.chosen else None
            if draft.group:
                foreign = _apart_s(draft.last, at) > _GROUP_S
            else:
                foreign = bool(other) or (chosen is not None and chosen != pid)
            if foreign:
                self.close()
        return self._open(at, fresh=False)

    def _reaper(self, at: Message) -> None:
        """Names the victim where nothing else did; its sizes are what is left after the reaping."""
        self.section = None
        kill = reaped(at.message)
        if kill is None or self.mixed is not None:
            return
        if kill.pid not in self.reports.known_pids:
            self._open(at, fresh=True).kills.append((kill, at))
            self.reports.known_pids.add(kill.pid)
        elif self.draft is not None and kill.pid in {known.pid for known, _ in self.draft.kills}:
            self.draft.last = at

    def _group(self, at: Message) -> None:
        if match := _GROUP.match(at.message):
            self.reports.groups.append((match[1], at))
            if self.mixed is None:
                self._open(at, fresh=False).group = True

    def _no_kill(self, at: Message) -> None:
        self.section = None
        if self.draft is not None and not self.draft.kills:
            self.draft.last = at
            self.reports.without_kill.append(self.draft)
            self.draft = None

    def _allocation(self, _at: Message) -> None:
        """A failed allocation prints a Mem-Info too, and kills nobody."""
        self.close()

    def _body(self, at: Message) -> None:
        """Lines whose shape counts only inside the section that they stand in."""
        cpu = _CPU.match(at.message)
        if cpu is not None:
            self._cpu(int(cpu["pid"] or cpu["pid0"]), cpu["comm"] or cpu["comm0"])
        elif self.section == "stats":
            self._stat(at)
        elif self.section == "host" and self.draft is not None and self.draft.host is not None:
            self.draft.host.add(at.message)
            self.draft.last = at
        elif self.section == "tasks":
            self._task(at)

    def _cpu(self, pid: int, comm: str) -> None:
        if self.mixed is not None:
            self.mixed.cpu(pid, comm)
        elif self.draft is not None and self.draft.trigger_pid is None and self.section == "trace":
            self.draft.trigger_pid = pid

    def _stat(self, at: Message) -> None:
        if self.mixed is not None:
            self.mixed.stat(at.message)
        elif self.draft is not None and not self.draft.kills and self.draft.stats.add(at.message):
            self.draft.last = at

    def _task(self, at: Message) -> None:
        columns = self.mixed.tables[-1].columns if self.mixed and self.mixed.tables else None
        task = task_row(at.message, at.line, self.draft.columns if self.draft else columns)
        if task is None:
            if re.match(r"\[\s*\d", at.message):
                self.reports.broken.append((at, "the task's row is cut"))
            return
        if self.mixed is not None:
            self.mixed.task(task)
        elif self.draft is not None and not self.draft.kills:
            self.draft.tasks.append(task)
            self.draft.last = at


def read_reports(messages: Iterable[Message]) -> Reports:
    """All reports in `messages`, which come in the order of their lines."""
    reports = Reports()
    lanes: dict[tuple[str | None, str | None], _Lane] = {}
    for message in mend(messages):
        key = (message.hostname, message.caller)
        lanes.setdefault(key, _Lane(reports)).feed(message)
    for lane in lanes.values():
        lane.close(cut=True)
    reports.drafts.sort(key=lambda draft: draft.first.line)
    return reports
