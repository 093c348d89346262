"""The lines that name a victim: `oom-kill:`, `Killed process`, `Kill process … or sacrifice child`, the reaper's.

2.6: `Killed process 7 (x) vsz:…kB, anon-rss:…`; 3.x: `Killed process 7, UID 0, (x) total-vm:…` and
`Killed process 7 (x) total-vm:…kB, anon-rss:…kB, file-rss:…kB`; 4.6+: `…, shmem-rss:…kB`;
5.5+: `…, UID:0 pgtables:460kB oom_score_adj:0`. Names can hold blanks, brackets and parentheses.
"""

import dataclasses
import re

from postmortem_parsers.kernel_log.numbers import KIB, as_int, kib

__all__ = ["Kill", "chosen_victim", "killed", "reaped", "sacrificed"]

_CONSTRAINTS = {"NONE": "global", "MEMCG": "memcg", "CPUSET": "cpuset", "MEMORY_POLICY": "memory_policy"}
_KILLED = re.compile(
    r"Killed process (?P<pid>\d+)(?:,? UID (?P<uid1>\d+),)?,? ?\((?P<name>.*)\)(?:,? UID:? ?(?P<uid2>\d+),?)?,? "
    r"(?P<sizes>(?:total-vm|vsz):.*)"
)
# A pid or a name that the line's end could have cut is not taken.
_KILLED_CUT = re.compile(r"Killed process (?:(?P<pid>\d+)\b.)?(?: ?\((?P<name>.*)\))?")
_SACRIFICED = re.compile(r"[Kk]ill process (?P<pid>\d+) \((?P<name>.*)\) (?:score|or)")
_REAPED = re.compile(r"oom_reaper: (?:reaped|unable to reap) (?:process |pid:)(?P<pid>\d+) \((?P<name>.*?)\)(?:,|$)")


@dataclasses.dataclass
class Kill:
    """A victim as one line states it; sizes in bytes, None where the line does not hold them whole."""

    pid: int | None = None
    name: str | None = None
    uid: int | None = None
    memcg: bool | None = None
    total_vm: int | None = None
    anon_rss: int | None = None
    file_rss: int | None = None
    shmem_rss: int | None = None
    pgtables: int | None = None
    oom_score_adj: int | None = None
    constraint: str | None = None
    oom_memcg: str | None = None
    task_memcg: str | None = None
    sized: bool = False
    """The kernel's own sizes of the victim were read whole."""


def _size(sizes: str, name: str) -> int | None:
    match = re.search(rf"(?<![\w-]){name}:(\d+)kB", sizes)
    return kib(match[1]) if match else None


def killed(message: str) -> Kill | None:
    """`Killed process …`; a line cut inside its sizes keeps those before the cut."""
    memcg = True if message.startswith("Memory cgroup") else False if message.startswith("Out of memory") else None
    match = _KILLED.search(message)
    if match is None:
        cut = _KILLED_CUT.search(message)
        return Kill(pid=as_int(cut["pid"]), name=cut["name"], memcg=memcg) if cut and cut["pid"] else None
    sizes = match["sizes"]
    uid = re.search(r"UID:(\d+)(?=\s|,|$)", sizes)
    score = re.search(r"oom_score_adj:(-?\d+)$", sizes)
    kill = Kill(
        pid=as_int(match["pid"]),
        name=match["name"],
        uid=as_int(match["uid1"] or match["uid2"] or (uid[1] if uid else None)),
        memcg=memcg,
        total_vm=_size(sizes, "(?:total-vm|vsz)"),
        anon_rss=_size(sizes, "anon-rss"),
        file_rss=_size(sizes, "file-rss"),
        shmem_rss=_size(sizes, "shmem-rss"),
        pgtables=_size(sizes, "pgtables"),
        oom_score_adj=as_int(score[1]) if score else None,
    )
    kill.sized = None not in (kill.total_vm, kill.anon_rss, kill.file_rss) and _whole(sizes)
    return kill


def _whole(sizes: str) -> bool:
    """Whether the line ends where some kernel's line ends."""
    return re.search(r"(?:file-rss:\d+kB|shmem-rss:\d+kB|oom_score_adj:-?\d+)$", sizes) is not None


def sacrificed(message: str) -> Kill | None:
    """`Kill process 7 (x) score 900 or sacrifice child` (before 4.19): a candidate, whose child may die instead."""
    match = _SACRIFICED.search(message)
    return (
        Kill(pid=as_int(match["pid"]), name=match["name"], memcg=message.startswith("Memory cgroup")) if match else None
    )


def reaped(message: str) -> Kill | None:
    """The reaper's line, whose sizes are what is left: they are not read."""
    match = _REAPED.search(message)
    return Kill(pid=as_int(match["pid"]), name=match["name"]) if match else None


def chosen_victim(message: str) -> Kill | None:
    """`oom-kill:constraint=…` (4.19+). A path that the line's end cuts is not taken."""
    match = re.match(r"oom-kill:constraint=CONSTRAINT_([A-Z_]+),", message)
    if match is None:
        return None

    def path(key: str) -> str | None:
        found = re.search(rf",{key}=(.*?),(?:oom_memcg|task_memcg|task|pid)=", message)
        return found[1] if found else None

    tail = re.search(r",task=(?P<name>.*),pid=(?P<pid>\d+)(?:,uid=(?P<uid>\d+))?", message)
    cut_pid = tail is not None and tail["uid"] is None  # the digits may go on behind the cut
    return Kill(
        pid=None if tail is None or cut_pid else as_int(tail["pid"]),
        name=tail["name"] if tail else None,
        uid=as_int(tail["uid"]) if tail else None,
        constraint=_CONSTRAINTS.get(match[1]),
        oom_memcg=path("oom_memcg"),
        task_memcg=path("task_memcg"),
    )


def pgtables_bytes(kill: Kill, table_bytes: int | None) -> int | None:
    """The victim's page tables in bytes.

    5.4 and 5.5 printed bytes and called them kB (mended in 5.6): told by the task table's own figure, or by
    page tables that would be larger than what they map.
    """
    value = kill.pgtables
    if value is None:
        return None
    printed = value // KIB
    impossible = kill.total_vm is not None and value > kill.total_vm and printed % 4096 == 0
    return printed if printed == table_bytes or (impossible and table_bytes is None) else value
