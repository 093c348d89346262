"""Writes `fixtures/kernel/`: kernel reports from the formats' definitions, each with its expected rows.

The expected values come from the quantities that a report is written from (pages, kB), never from the parser.
Run: python tests/parsers/kernel/write_corpus.py
"""

import dataclasses
import datetime as dt
import json
import pathlib
from collections.abc import Callable

FOLDER = pathlib.Path(__file__).parents[3] / "fixtures" / "kernel"
START = dt.datetime(2026, 3, 3, 14, 2, 11, 123456, tzinfo=dt.UTC)
UPTIME = 812432.250520
NONE_KB = 9007199254740988
PAGE = 4096
KIB = 1024


@dataclasses.dataclass
class Task:
    pid: int
    name: str
    total_vm: int = 1100
    anon: int = 50
    file: int = 150
    shmem: int = 0
    pgtables: int = 57344
    swap: int = 0
    adj: int = 0
    uid: int = 0
    tgid: int | None = None

    @property
    def rss(self) -> int:
        return self.anon + self.file + self.shmem


@dataclasses.dataclass
class Spec:
    """What happened, in the kernel's own units."""

    form: str = "6.8"
    constraint: str = "memcg"
    trigger: str = "cuzk-daemon"
    trigger_pid: int | None = 1877
    oom_memcg: str | None = "/docker/3f1c9a"
    task_memcg: str | None = "/docker/3f1c9a"
    usage: int = 358612992
    limit: int = 358612992
    failcnt: int = 3367
    swap: tuple[int, int] | None = (0, 0)  # v2: swap; v1: memory+swap
    kmem: tuple[int, int] | None = None
    stats: dict[str, int] = dataclasses.field(default_factory=lambda: dict(V2))
    tasks: list[Task] = dataclasses.field(default_factory=lambda: [BASH, DAEMON])
    victim: Task = dataclasses.field(default_factory=lambda: DAEMON)
    ram: int = 66060288
    reserved: int = 1048576
    page: int = PAGE
    group: list[Task] = dataclasses.field(default_factory=list)
    reaper: bool = True
    nodemask: str = "(null)"
    meminfo: bool = False
    head: bool = True


BASH = Task(1801, "benchmark.sh", total_vm=4400, anon=200, file=600, pgtables=61440)
DAEMON = Task(1877, "cuzk-daemon", total_vm=112339482, anon=52775898, file=9000, shmem=35961623, pgtables=556929024)
V2 = {
    "anon": 216206943232, "file": 147320286208, "kernel": 3778155520, "kernel_stack": 31457280, "pagetables": 556929024,
    "percpu": 65536, "sock": 4096, "vmalloc": 1048576, "shmem": 147298799616, "file_mapped": 147298799616, "file_dirty": 0,
    "inactive_anon": 363505742848, "active_anon": 4096, "inactive_file": 10736640, "active_file": 10749952,
    "unevictable": 0, "slab_reclaimable": 9437184, "slab_unreclaimable": 8388608, "slab": 17825792,
}  # fmt: skip
V2_OLD = {name: value for name, value in V2.items() if name != "kernel"}
V1 = {
    "cache": 147320286208, "rss": 216206942208, "rss_huge": 0, "shmem": 147298799616, "mapped_file": 147298799616, "dirty": 0,
    "writeback": 0, "inactive_anon": 363505742848, "active_anon": 0, "inactive_file": 10736640, "active_file": 10749952, "unevictable": 0,
}  # fmt: skip
V1 |= {f"total_{name}": value for name, value in V1.items()}
# One line in KB, by the names of 3.10; the quantities in bytes are whole KiB.
V1_LINE = {
    "cache": 143867467 * KIB, "rss": 211139592 * KIB, "rss_huge": 0, "mapped_file": 143846484 * KIB, "swap": 0,
    "inactive_anon": 354986076 * KIB, "active_anon": 0, "inactive_file": 10485 * KIB, "active_file": 10498 * KIB, "unevictable": 0,
}  # fmt: skip
HOST = {
    "active_anon": 1234, "inactive_anon": 48765432, "isolated_anon": 0, "active_file": 4012, "inactive_file": 8235, "isolated_file": 0,
    "unevictable": 0, "dirty": 12, "writeback": 0, "slab_reclaimable": 210000, "slab_unreclaimable": 310000, "mapped": 35961623,
    "shmem": 35961623, "pagetables": 140000, "bounce": 0, "free": 66000, "free_pcp": 0, "free_cma": 0,
}  # fmt: skip


def v1(form: str) -> bool:
    return form in ("3.2", "3.10", "4.4", "4.15", "4.19v1", "5.4v1", "6.18v1")


def old(form: str) -> bool:
    return form in ("3.2", "3.10", "4.4", "4.15")


def table(spec: Spec) -> list[str]:
    heads = {
        "3.2": "[ pid ]   uid  tgid total_vm      rss cpu oom_adj oom_score_adj name",
        "3.10": "[ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name",
        "4.4": "[ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name",
        "6.8": "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
    }
    newest = spec.form in ("6.8", "6.18v1")
    head = heads.get(
        "6.8" if newest else spec.form,
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
    )
    lines = [] if old(spec.form) else ["Tasks state (memory values in pages):"]
    lines.append(head)
    for task in spec.tasks:
        base = f"[{task.pid:7d}] {task.uid:5d} {task.tgid or task.pid:5d} {task.total_vm:8d} {task.rss:8d} "
        if spec.form == "3.2":
            base += f"{3:3d} {0:7d} "
        elif spec.form == "3.10":
            base += f"{task.pgtables // spec.page:7d} {task.swap:8d} "
        elif spec.form == "4.4":
            base += f"{task.pgtables // spec.page - 2:7d} {2:7d} {task.swap:8d} "
        elif newest:
            base += f"{task.anon:8d} {task.file:8d} {task.shmem:9d} {task.pgtables:8d} {task.swap:8d} "
        else:
            base += f"{task.pgtables:8d} {task.swap:8d} "
        lines.append(f"{base}{task.adj:13d} {task.name}")
    return lines


def meminfo(spec: Spec) -> list[str]:
    kb = spec.page // KIB
    h = HOST
    return [
        "Mem-Info:",
        f"active_anon:{h['active_anon']} inactive_anon:{h['inactive_anon']} isolated_anon:{h['isolated_anon']}",
        f" active_file:{h['active_file']} inactive_file:{h['inactive_file']} isolated_file:{h['isolated_file']}",
        f" unevictable:{h['unevictable']} dirty:{h['dirty']} writeback:{h['writeback']}",
        f" slab_reclaimable:{h['slab_reclaimable']} slab_unreclaimable:{h['slab_unreclaimable']}",
        f" mapped:{h['mapped']} shmem:{h['shmem']} pagetables:{h['pagetables']} bounce:{h['bounce']}",
        f" free:{h['free']} free_pcp:{h['free_pcp']} free_cma:{h['free_cma']}",
        f"Node 0 active_anon:{h['active_anon'] * kb}kB inactive_anon:{h['inactive_anon'] * kb}kB shmem:1kB mapped:2kB",
        "Node 0 Normal free:66000kB min:67584kB low:84480kB high:101376kB present:264241152kB managed:260046848kB",
        "lowmem_reserve[]: 0 0 0 0 0",
        f"Node 0 Normal: 120*{kb}kB (UME) 45*{2 * kb}kB (UM) 3*{4 * kb}kB (M) = 66000kB",
        f"{h['active_file'] + h['inactive_file'] + h['shmem']} total pagecache pages",
        "0 pages in swap cache",
        "Free swap  = 0kB",
        "Total swap = 0kB",
        f"{spec.ram} pages RAM",
        "0 pages HighMem/MovableOnly",
        f"{spec.reserved} pages reserved",
    ]


def kill_line(spec: Spec, task: Task) -> str:
    kb = spec.page // KIB
    head = "Memory cgroup out of memory" if spec.constraint == "memcg" else "Out of memory"
    if old(spec.form):
        head = ""
    text = f"Killed process {task.pid} ({task.name}) total-vm:{task.total_vm * kb}kB, anon-rss:{task.anon * kb}kB, file-rss:{task.file * kb}kB"
    if spec.form not in ("3.2", "3.10", "4.4"):
        text += f", shmem-rss:{task.shmem * kb}kB"
    if not old(spec.form) and spec.form not in ("4.19", "4.19v1"):
        text += f", UID:{task.uid} pgtables:{task.pgtables // KIB}kB oom_score_adj:{task.adj}"
    return f"{head}: {text}" if head else text


def usage_lines(spec: Spec) -> list[str]:
    lines = [f"memory: usage {spec.usage}kB, limit {spec.limit}kB, failcnt {spec.failcnt}"]
    if spec.swap is not None:
        name = "memory+swap" if v1(spec.form) else "swap"
        lines.append(f"{name}: usage {spec.swap[0]}kB, limit {spec.swap[1]}kB, failcnt 0")
    if spec.kmem is not None:
        lines.append(f"kmem: usage {spec.kmem[0]}kB, limit {spec.kmem[1]}kB, failcnt 0")
    return lines


def stats_lines(spec: Spec) -> list[str]:
    if not spec.stats:
        return []
    if spec.form in ("3.2", "3.10", "4.4", "4.15", "4.19v1"):
        pairs = " ".join(f"{name}:{value // KIB}KB" for name, value in spec.stats.items())
        return [f"Memory cgroup stats for {spec.oom_memcg}: {pairs}"]
    return [f"Memory cgroup stats for {spec.oom_memcg}:", *(f"{name} {value}" for name, value in spec.stats.items())]


CONSTRAINTS = {"memcg": "MEMCG", "global": "NONE", "cpuset": "CPUSET", "memory_policy": "MEMORY_POLICY"}


def chosen_line(spec: Spec, task: Task) -> str:
    who = (
        f",oom_memcg={spec.oom_memcg}"
        if spec.constraint == "memcg"
        else ",global_oom"
        if spec.constraint == "global"
        else ""
    )
    return (
        f"oom-kill:constraint=CONSTRAINT_{CONSTRAINTS[spec.constraint]},nodemask={spec.nodemask},cpuset=/,mems_allowed=0"
        f"{who},task_memcg={spec.task_memcg},task={task.name},pid={task.pid},uid={task.uid}"
    )


def report(spec: Spec) -> list[str]:
    uid = " UID: 0" if spec.form == "6.18v1" else ""
    nodes = f" nodemask={spec.nodemask}," if old(spec.form) else ""
    out: list[str] = []
    if spec.head:
        out = [
            f"{spec.trigger} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL),{nodes} order=0, oom_score_adj=0",
            f"CPU: 3{uid} PID: {spec.trigger_pid} Comm: {spec.trigger} Not tainted 6.8.0-45-generic #45-Ubuntu",
            "Call Trace:",
            " <TASK>",
            " dump_stack_lvl+0x76/0xa0",
            " oom_kill_process+0x118/0x280",
            " </TASK>",
        ]
    if spec.constraint == "memcg":
        if old(spec.form):
            out.append(f"Task in {spec.task_memcg} killed as a result of limit of {spec.oom_memcg}")
        out += usage_lines(spec)
        if spec.meminfo:
            out += meminfo(spec)
        out += stats_lines(spec)
    else:
        out += meminfo(spec)
    out += table(spec)
    if old(spec.form):
        head = "Memory cgroup out of memory" if spec.constraint == "memcg" else "Out of memory"
        out.append(f"{head}: Kill process {spec.victim.pid} ({spec.victim.name}) score 930 or sacrifice child")
    else:
        out.append(chosen_line(spec, spec.victim))
    out.append(kill_line(spec, spec.victim))
    if spec.group:
        out.append(f"Tasks in {spec.oom_memcg} are going to be killed due to memory.oom.group set")
        out += [kill_line(spec, task) for task in spec.group]
    if spec.reaper:
        out.append(
            f"oom_reaper: reaped process {spec.victim.pid} ({spec.victim.name}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"
        )
    return out


# --- what the rows must hold -------------------------------------------------------------------------------------


def limited(kb: int) -> int | None:
    return None if kb >= NONE_KB - 4 else kb * KIB


def expected_stats(spec: Spec) -> dict[str, int | None]:
    names = ("anon", "file", "shmem", "kernel", "pagetables", "inactive_file", "active_file", "file_mapped")
    stats = dict.fromkeys(f"stat_{name}" for name in names)
    s = spec.stats
    if spec.constraint != "memcg":
        h, page = HOST, spec.page
        values = {
            "anon": h["active_anon"] + h["inactive_anon"] - h["shmem"],
            "file": h["active_file"] + h["inactive_file"] + h["shmem"],
            "shmem": h["shmem"],
            "kernel": h["slab_reclaimable"] + h["slab_unreclaimable"] + h["pagetables"],
            "pagetables": h["pagetables"],
            "inactive_file": h["inactive_file"],
            "active_file": h["active_file"],
            "file_mapped": h["mapped"],
        }
        return stats | {f"stat_{name}": pages * page for name, pages in values.items()}
    if not s:
        return stats
    if v1(spec.form):
        shmem = s["shmem"] if "shmem" in s else s["cache"] - s["inactive_file"] - s["active_file"]
        values = {
            "anon": s["rss"], "file": s["cache"], "shmem": shmem, "kernel": spec.kmem[0] * KIB if spec.kmem else None,
            "inactive_file": s["inactive_file"], "active_file": s["active_file"], "file_mapped": s["mapped_file"],
        }  # fmt: skip
    else:
        parts = ("kernel_stack", "pagetables", "percpu", "vmalloc", "slab")
        values = {
            "anon": s["anon"], "file": s["file"], "shmem": s["shmem"], "kernel": s.get("kernel", sum(s[part] for part in parts)),
            "pagetables": s["pagetables"], "inactive_file": s["inactive_file"], "active_file": s["active_file"], "file_mapped": s["file_mapped"],
        }  # fmt: skip
    return stats | {f"stat_{name}": value for name, value in values.items()}


def expected_swap(spec: Spec) -> tuple[int | None, int | None]:
    if spec.swap is None or spec.constraint != "memcg":
        return None, None
    usage, limit = spec.swap
    if not v1(spec.form):
        return usage * KIB, limited(limit)
    if usage < spec.usage:
        return None, None
    both, memory = limited(limit), limited(spec.limit)
    return (usage - spec.usage) * KIB, None if both is None or memory is None else both - memory


def expected_kill(
    spec: Spec, task: Task, at: "Line", lines: list["Line"], *, number: int = 1, **other: object
) -> dict[str, object]:
    memcg = spec.constraint == "memcg"
    swap_usage, swap_limit = expected_swap(spec)
    has_pgtables = spec.form != "3.2"
    return {
        "time": at.time,
        "line": at.line,
        "report": number,
        "killer": "kernel",
        "constraint": spec.constraint,
        "oom_memcg": spec.oom_memcg if memcg else None,
        "task_memcg": spec.task_memcg if memcg or not old(spec.form) else None,
        "victim": task.name,
        "pid": task.pid,
        "uid": task.uid,
        "trigger": spec.trigger if spec.head else None,
        "trigger_pid": spec.trigger_pid if spec.head else None,
        "usage": spec.usage * KIB if memcg else None,
        "limit": limited(spec.limit) if memcg else None,
        "failcnt": spec.failcnt if memcg else None,
        "swap_usage": swap_usage,
        "swap_limit": swap_limit,
        "kmem_usage": spec.kmem[0] * KIB if memcg and spec.kmem else None,
        "kmem_limit": limited(spec.kmem[1]) if memcg and spec.kmem else None,
        "total_vm": task.total_vm * spec.page,
        "anon_rss": task.anon * spec.page,
        "file_rss": task.file * spec.page,
        "shmem_rss": None if spec.form in ("3.2", "3.10", "4.4") else task.shmem * spec.page,
        "pgtables": task.pgtables if has_pgtables else None,
        "oom_score_adj": task.adj,
        "oom_group": bool(spec.group),
        **expected_stats(spec),
        "host_total": (spec.ram - spec.reserved) * spec.page if spec.meminfo or not memcg else None,
        "page_size": spec.page,
        "complete": spec.head,
        "hostname": at.hostname,
        "uptime_s": at.uptime,
        "local_time": at.local,
        "no_year": at.no_year,
        "first_line": lines[0].line,
        "last_line": lines[-1].line,
    } | other


def expected_tasks(spec: Spec, number: int = 1) -> list[dict[str, object]]:
    newest = spec.form in ("6.8", "6.18v1")
    page = spec.page
    return [
        {
            "report": number,
            "pid": task.pid,
            "tgid": task.tgid or task.pid,
            "uid": task.uid,
            "name": task.name,
            "total_vm": task.total_vm * page,
            "rss": task.rss * page,
            "rss_anon": task.anon * page if newest else None,
            "rss_file": task.file * page if newest else None,
            "rss_shmem": task.shmem * page if newest else None,
            "pgtables": None if spec.form == "3.2" else task.pgtables,
            "swap": None if spec.form == "3.2" else task.swap * page,
            "oom_score_adj": task.adj,
        }
        for task in spec.tasks
    ]


# --- dresses -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Line:
    """A dressed line and what its head says of time and place."""

    text: str
    line: int = 0
    time: str | None = None
    uptime: float | None = None
    hostname: str | None = None
    local: bool = False
    no_year: bool = False
    message: str = ""


def iso(time: dt.datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def second(time: dt.datetime) -> dt.datetime:
    return time.replace(microsecond=0)


Dress = Callable[[str, dt.datetime, float], Line]


def plain(message: str, _time: dt.datetime, _uptime: float) -> Line:
    return Line(message)


def dmesg(message: str, _time: dt.datetime, uptime: float, *, head: str = "", caller: str = "") -> Line:
    return Line(f"{head}[{uptime:12.6f}]{caller} {message}", uptime=uptime)


def dmesg_x(message: str, time: dt.datetime, uptime: float) -> Line:
    return dmesg(message, time, uptime, head="kern  :warn  : ")


def raw_priority(message: str, time: dt.datetime, uptime: float) -> Line:
    return dmesg(message, time, uptime, head="<4>")


def with_caller(message: str, time: dt.datetime, uptime: float) -> Line:
    return dmesg(message, time, uptime, caller="[T14021]")


def ctime(message: str, time: dt.datetime, _uptime: float) -> Line:
    return Line(f"[{time:%a %b} {time.day:2d} {time:%H:%M:%S %Y}] {message}", time=iso(second(time)), local=True)


def ctime_german(message: str, time: dt.datetime, _uptime: float) -> Line:
    return Line(f"[Di Mär {time.day:2d} {time:%H:%M:%S %Y}] {message}", time=iso(second(time)), local=True)


def dmesg_iso(message: str, time: dt.datetime, _uptime: float) -> Line:
    local = time.astimezone(dt.timezone(dt.timedelta(hours=1)))
    return Line(f"{local:%Y-%m-%dT%H:%M:%S},{time.microsecond:06d}+01:00 {message}", time=iso(time))


def syslog(message: str, time: dt.datetime, uptime: float) -> Line:
    text = f"{time:%b} {time.day:2d} {time:%H:%M:%S} gpu-07 kernel: [{uptime:.6f}] {message}"
    return Line(
        text, time=iso(second(time).replace(year=2000)), uptime=uptime, hostname="gpu-07", local=True, no_year=True
    )


def journal_short(message: str, time: dt.datetime, _uptime: float) -> Line:
    text = f"{time:%b %d %H:%M:%S} gpu-07 kernel: {message}"
    return Line(text, time=iso(second(time).replace(year=2000)), hostname="gpu-07", local=True, no_year=True)


def journal_precise(message: str, time: dt.datetime, _uptime: float) -> Line:
    text = f"{time:%b %d %H:%M:%S.%f} gpu-07 kernel: {message}"
    return Line(text, time=iso(time.replace(year=2000)), hostname="gpu-07", local=True, no_year=True)


def no_host(message: str, time: dt.datetime, _uptime: float) -> Line:
    text = f"{time:%b} {time.day:2d} {time:%H:%M:%S} kernel: {message}"
    return Line(text, time=iso(second(time).replace(year=2000)), local=True, no_year=True)


def journal_iso(message: str, time: dt.datetime, _uptime: float) -> Line:
    return Line(f"{time:%Y-%m-%dT%H:%M:%S}+0000 gpu-07 kernel: {message}", time=iso(second(time)), hostname="gpu-07")


def rsyslog_iso(message: str, time: dt.datetime, uptime: float) -> Line:
    return Line(
        f"{time.isoformat()} gpu-07 kernel: [{uptime:.6f}] {message}", time=iso(time), uptime=uptime, hostname="gpu-07"
    )


def monotonic(message: str, _time: dt.datetime, uptime: float) -> Line:
    return Line(f"[{uptime:12.6f}] gpu-07 kernel: {message}", uptime=uptime, hostname="gpu-07")


def rfc5424(message: str, time: dt.datetime, _uptime: float) -> Line:
    return Line(f"<4>1 {iso(time)} gpu-07 kernel - - - {message}", time=iso(time), hostname="gpu-07")


def talos(message: str, time: dt.datetime, _uptime: float) -> Line:
    return Line(f"10.5.0.2: kern: warning: [{iso(time)}]: {message}", time=iso(time))


def journal_json(message: str, time: dt.datetime, uptime: float) -> Line:
    entry = {
        "MESSAGE": message,
        "__REALTIME_TIMESTAMP": str(round(time.timestamp() * 1e6)),
        "_SOURCE_MONOTONIC_TIMESTAMP": str(round(uptime * 1e6)),
        "_HOSTNAME": "gpu-07",
        "SYSLOG_IDENTIFIER": "kernel",
        "_TRANSPORT": "kernel",
    }
    return Line(json.dumps(entry), time=iso(time), uptime=uptime, hostname="gpu-07")


def docker_json(message: str, time: dt.datetime, uptime: float) -> Line:
    entry = {"log": f"[{uptime:12.6f}] {message}\n", "stream": "stdout", "time": iso(time)}
    return Line(json.dumps(entry), time=iso(time), uptime=uptime)


def cri(message: str, time: dt.datetime, uptime: float) -> Line:
    return Line(f"{iso(time)} stdout F [{uptime:12.6f}] {message}", time=iso(time), uptime=uptime)


def compose(message: str, _time: dt.datetime, uptime: float) -> Line:
    return Line(f"kmsg-1  | [{uptime:12.6f}] {message}", uptime=uptime)


def mail(message: str, _time: dt.datetime, uptime: float) -> Line:
    return Line(f"> [{uptime:12.6f}] {message}", uptime=uptime)


def grep(message: str, _time: dt.datetime, uptime: float) -> Line:
    return Line(f"kern.log-118-[{uptime:12.6f}] {message}", uptime=uptime)


def guest(message: str, _time: dt.datetime, uptime: float) -> Line:
    return Line(f"vm-12 console: [{uptime:12.6f}] {message}", uptime=uptime)


def dressed(
    messages: list[str], dress: Dress, *, first: int = 1, start: dt.datetime = START, uptime: float = UPTIME
) -> list[Line]:
    lines: list[Line] = []
    for number, message in enumerate(messages):
        step = number * 20
        line = dress(message, start + dt.timedelta(microseconds=step), round(uptime + step / 1e6, 6))
        line.line, line.message = first + number, message
        lines.append(line)
    return lines


def at(lines: list[Line], beginning: str, occurrence: int = 0) -> Line:
    return [line for line in lines if line.message.startswith(beginning)][occurrence]


def write(name: str, lines: list[str], **expected: object) -> None:
    kills = expected.get("kills")
    if isinstance(kills, list):
        kills.sort(key=lambda kill: kill["line"])
    (FOLDER / f"{name}.log").write_text("\n".join(lines) + "\n")
    answer = {"kills": [], "tasks": [], "ends": [], "marks": [], "skipped": []} | expected
    (FOLDER / f"{name}.expected.json").write_text(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")


def killed_at(lines: list[Line], spec: Spec, task: Task | None = None) -> Line:
    return at(lines, kill_line(spec, task or spec.victim))


def simple(name: str, spec: Spec, dress: Dress = dmesg, **other: object) -> None:
    """One whole report in one dress."""
    lines = dressed(report(spec), dress)
    kill = expected_kill(spec, spec.victim, killed_at(lines, spec), lines, **other)
    write(name, [line.text for line in lines], kills=[kill], tasks=expected_tasks(spec))


OLD = {"stats": V1_LINE, "kmem": (30000, NONE_KB), "swap": (358612992, NONE_KB)}
V1_NOW = {"stats": V1, "kmem": (3690000, NONE_KB), "swap": (358612992, NONE_KB)}


def forms() -> None:
    simple("memcg-v2-6.8", Spec())
    simple("memcg-v2-5.15-sums-kernel-parts", Spec(form="5.15", stats=V2_OLD))
    simple("memcg-v2-5.4", Spec(form="5.4", stats=V2_OLD))
    simple("memcg-v1-6.18-bytes-a-line", Spec(form="6.18v1", **V1_NOW))
    simple("memcg-v1-5.4", Spec(form="5.4v1", **V1_NOW))
    simple("memcg-v1-4.19-one-line", Spec(form="4.19v1", **OLD))
    simple("memcg-v1-4.15-sacrifice", Spec(form="4.15", **OLD))
    simple("memcg-v1-4.4-nr-pmds", Spec(form="4.4", **OLD))
    simple("memcg-v1-3.10-nr-ptes", Spec(form="3.10", **OLD))
    simple("memcg-v1-3.2-cpu-oom-adj", Spec(form="3.2", **OLD))
    simple("global-6.8", Spec(constraint="global"))
    simple("global-5.15", Spec(form="5.15", constraint="global"))
    simple("global-3.10", Spec(form="3.10", constraint="global"))
    simple("cpuset-6.8", Spec(constraint="cpuset"))
    simple("mempolicy-6.8", Spec(constraint="memory_policy", nodemask="1"))
    simple("global-64k-pages", Spec(constraint="global", page=65536))
    simple("memcg-16k-pages-told-by-the-kill-line", Spec(page=16384))
    simple("memcg-with-meminfo-is-not-global", Spec(meminfo=True))
    simple("memcg-parent-limit", Spec(oom_memcg="/kubepods/pod7", task_memcg="/kubepods/pod7/c1"))
    simple("memcg-unlimited-swap", Spec(swap=(1024, NONE_KB + 3)))
    simple("memcg-v1-swap-accounting-off", Spec(form="6.18v1", stats=V1, kmem=(3690000, NONE_KB), swap=(0, NONE_KB)))
    simple(
        "memcg-v1-killed-by-memsw",
        Spec(form="6.18v1", stats=V1, kmem=None, usage=300000000, swap=(400000000, 400000000)),
    )
    simple("memcg-usage-above-lowered-limit", Spec(usage=358612992, limit=300000000))
    simple("memcg-trigger-is-not-victim", Spec(trigger="tokio-runtime-w", trigger_pid=4711))
    other = Task(2044, "lotus-worker", total_vm=62938152, anon=62151220, file=500, pgtables=509145088)
    simple("memcg-neighbour-is-victim", Spec(tasks=[BASH, other, DAEMON], victim=other))
    odd = Task(3300, "CPU 11/KVM: (x)", total_vm=900000, anon=800000, file=100, pgtables=7000064)
    simple("name-with-blanks-and-brackets", Spec(tasks=[BASH, odd], victim=odd))
    simple("name-in-parentheses", Spec(tasks=[sd := Task(77, "(sd-pam)", total_vm=42000, anon=700, file=1)], victim=sd))
    long_pid = Task(
        4194301,
        "cuzk-daemon",
        total_vm=112339482,
        anon=52775898,
        file=9000,
        shmem=35961623,
        pgtables=556929024,
        uid=1000,
        adj=-500,
    )
    simple("seven-digit-pid-user-and-adj", Spec(tasks=[BASH, long_pid], victim=long_pid))
    cache = Task(500, "dd", total_vm=1500, anon=0, file=300, pgtables=49152)
    simple("anon-zero-dirty-cache", Spec(tasks=[cache], victim=cache, trigger="dd", trigger_pid=500, reaper=False))


def dresses() -> None:
    for name, dress in {
        "bare": plain, "dmesg-x": dmesg_x, "raw-priority": raw_priority, "printk-caller": with_caller, "ctime": ctime,
        "ctime-german": ctime_german, "dmesg-iso-comma": dmesg_iso, "syslog": syslog, "journal-short": journal_short,
        "journal-precise": journal_precise, "no-host": no_host, "journal-iso": journal_iso, "rsyslog-iso": rsyslog_iso,
        "monotonic": monotonic, "rfc5424": rfc5424, "talos": talos, "journal-json": journal_json, "docker-json": docker_json,
        "containerd": cri, "compose": compose, "mail-quote": mail, "grep-marks": grep, "hypervisor-guest": guest,
    }.items():  # fmt: skip
        simple(f"dress-{name}", Spec(), dress)
    folded()
    export()
    human()


def folded() -> None:
    """rsyslog writes a line feed inside a message as #012; one line holds the whole report."""
    spec = Spec()
    line = syslog("#012".join(report(spec)), START, UPTIME)
    line.line = 1
    write(
        "dress-rsyslog-012",
        [line.text],
        kills=[expected_kill(spec, spec.victim, line, [line])],
        tasks=expected_tasks(spec),
    )
    entry = journal_json("\n".join(report(spec)), START, UPTIME)
    entry.line = 1
    write(
        "dress-journal-folded",
        [entry.text],
        kills=[expected_kill(spec, spec.victim, entry, [entry])],
        tasks=expected_tasks(spec),
    )


def export() -> None:
    """journalctl -o export: five fields and a blank line an entry; the row's line is its MESSAGE."""
    spec, texts, lines = Spec(), [], []
    for number, message in enumerate(report(spec)):
        time = START + dt.timedelta(microseconds=20 * number)
        uptime = round(UPTIME + number * 20 / 1e6, 6)
        fields = {
            "__CURSOR": f"s=1;i={number:x}",
            "__REALTIME_TIMESTAMP": str(round(time.timestamp() * 1e6)),
            "_SOURCE_MONOTONIC_TIMESTAMP": str(round(uptime * 1e6)),
            "_HOSTNAME": "gpu-07",
            "_TRANSPORT": "kernel",
            "MESSAGE": message,
        }
        lines.append(Line("", line=number * 7 + 6, time=iso(time), uptime=uptime, hostname="gpu-07", message=message))
        texts += [*(f"{key}={value}" for key, value in fields.items()), ""]
    write(
        "dress-journal-export",
        texts,
        kills=[expected_kill(spec, spec.victim, killed_at(lines, spec), lines)],
        tasks=expected_tasks(spec),
    )


def human() -> None:
    """dmesg -H: the first line names the minute, the others the time since the line before."""
    spec, lines = Spec(), []
    for number, message in enumerate(report(spec)):
        head = "[Mar 3 14:02]" if number == 0 else "[  +0.000020]"
        time = dt.datetime(2000, 3, 3, 14, 2, 0, 20 * number, tzinfo=dt.UTC)
        lines.append(
            Line(f"{head} {message}", line=number + 1, time=iso(time), local=True, no_year=True, message=message)
        )
    write(
        "dress-dmesg-human",
        [line.text for line in lines],
        kills=[expected_kill(spec, spec.victim, killed_at(lines, spec), lines)],
        tasks=expected_tasks(spec),
    )


def end(line: Line, what: str, **other: object) -> dict[str, object]:
    return {"time": line.time, "line": line.line, "what": what, "by": "kernel", "code": None, "signal": None, "name": None, "pid": None,
            "text": line.message, "local_time": line.local} | other  # fmt: skip


def counting() -> None:
    tini = Task(37074, "tini", total_vm=1024, anon=0, file=256)
    spec = Spec(tasks=[tini, BASH, DAEMON], group=[tini, BASH, DAEMON])
    lines = dressed(report(spec), dmesg)
    kills = [expected_kill(spec, task, killed_at(lines, spec, task), lines) for task in (DAEMON, tini, BASH)]
    group = at(lines, "Tasks in ")
    write("oom-group-counts-each-once", [line.text for line in lines], kills=kills, tasks=expected_tasks(spec),
          ends=[end(group, "oom_group", signal=9, name=spec.oom_memcg)])  # fmt: skip

    once = Spec()
    first = dressed(report(once), dmesg)
    again = dressed(report(once), syslog, first=len(first) + 1)
    clock = killed_at(again, once)
    kill = expected_kill(
        once, DAEMON, killed_at(first, once), first, time=clock.time, hostname="gpu-07", local_time=True, no_year=True
    )
    write(
        "same-report-from-two-log-paths",
        [line.text for line in first + again],
        kills=[kill],
        tasks=expected_tasks(once),
    )

    other = Task(2900, "python3", total_vm=55365, anon=51008, file=444, pgtables=471040)
    two = Spec(
        tasks=[other],
        victim=other,
        trigger="python3",
        trigger_pid=2900,
        oom_memcg="/b",
        task_memcg="/b",
        usage=204800,
        limit=204800,
    )
    first = dressed(report(once), dmesg)
    later = dressed(report(two), dmesg, first=len(first) + 1, uptime=UPTIME + 600)
    kills = [
        expected_kill(once, DAEMON, killed_at(first, once), first),
        expected_kill(two, other, killed_at(later, two), later, number=2),
    ]
    write(
        "two-reports-one-after-the-other",
        [line.text for line in first + later],
        kills=kills,
        tasks=expected_tasks(once) + expected_tasks(two, 2),
    )

    reboot = dressed(report(two), dmesg, first=len(first) + 1, uptime=99.5)
    kills[1] = expected_kill(two, other, killed_at(reboot, two), reboot, number=2)
    write(
        "two-boots-uptime-goes-back",
        [line.text for line in first + reboot],
        kills=kills,
        tasks=expected_tasks(once) + expected_tasks(two, 2),
    )

    pairs = list(
        zip(
            dressed(report(once), lambda m, t, u: dmesg(m, t, u, caller="[T1877]")),
            dressed(report(two), lambda m, t, u: dmesg(m, t, u, caller="[T2900]"), uptime=UPTIME + 5e-6),
            strict=False,
        )
    )
    one_lines, two_lines = [], []
    mixed: list[Line] = []
    rest = (
        dressed(report(once), lambda m, t, u: dmesg(m, t, u, caller="[T1877]"))[len(pairs) :]
        + dressed(report(two), lambda m, t, u: dmesg(m, t, u, caller="[T2900]"), uptime=UPTIME + 5e-6)[len(pairs) :]
    )
    for a, b in pairs:
        mixed += [a, b]
    mixed += rest
    for number, line in enumerate(mixed, 1):
        line.line = number
        (one_lines if "[T1877]" in line.text else two_lines).append(line)
    kills = [
        expected_kill(once, DAEMON, killed_at(one_lines, once), one_lines),
        expected_kill(two, other, killed_at(two_lines, two), two_lines, number=2),
    ]
    write(
        "two-cpus-interleaved-with-caller-ids",
        [line.text for line in mixed],
        kills=kills,
        tasks=expected_tasks(once) + expected_tasks(two, 2),
    )

    interleaved_without_ids(once, two, other)


def interleaved_without_ids(once: Spec, two: Spec, other: Task) -> None:
    """Blocks of two reports alternate; paths and pids say which belongs to which."""
    a, b = report(once), report(two)
    cut_a, cut_b = a.index(usage_lines(once)[0]), b.index(usage_lines(two)[0])
    end_a, end_b = a.index(chosen_line(once, DAEMON)), b.index(chosen_line(two, other))
    order = a[:cut_a] + b[:cut_b] + a[cut_a:end_a] + b[cut_b:end_b] + a[end_a:-1] + b[end_b:-1]
    lines = dressed(order, dmesg)
    first = dataclasses.replace(lines[0])
    kill_a, kill_b = killed_at(lines, once), killed_at(lines, two)
    head_b = at(lines, "python3 invoked")
    kills = [
        expected_kill(once, DAEMON, kill_a, [first, kill_a], report=1),
        expected_kill(two, other, kill_b, [head_b, kill_b], report=2),
    ]
    write(
        "two-cpus-interleaved-by-blocks",
        [line.text for line in lines],
        kills=kills,
        tasks=expected_tasks(once) + expected_tasks(two, 2),
    )


NOTHING = {
    "usage": None, "limit": None, "failcnt": None, "swap_usage": None, "swap_limit": None, "kmem_usage": None, "kmem_limit": None,
    **{f"stat_{name}": None for name in ("anon", "file", "shmem", "kernel", "pagetables", "inactive_file", "active_file", "file_mapped")},
    "trigger": None, "trigger_pid": None, "complete": False,
}  # fmt: skip
NO_SIZES = dict.fromkeys(("total_vm", "anon_rss", "file_rss", "shmem_rss", "pgtables"))


def cuts() -> None:
    spec = Spec()
    whole = report(spec)
    lines = dressed([kill_line(spec, DAEMON)], dmesg)
    write("only-the-kill-line", [line.text for line in lines],
          kills=[expected_kill(spec, DAEMON, lines[0], lines, **NOTHING, oom_memcg=None, task_memcg=None)])  # fmt: skip
    lines = dressed([chosen_line(spec, DAEMON)], dmesg)
    write("only-the-oom-kill-line", [line.text for line in lines],
          kills=[expected_kill(spec, DAEMON, lines[0], lines, **NOTHING, **NO_SIZES, oom_score_adj=None)])  # fmt: skip
    lines = dressed([whole[-1]], dmesg)
    write("only-the-reaper-whose-zeroes-are-no-sizes", [line.text for line in lines],
          kills=[expected_kill(spec, DAEMON, lines[0], lines, **NOTHING, **NO_SIZES, oom_score_adj=None, uid=None, constraint=None, oom_memcg=None, task_memcg=None)])  # fmt: skip
    old_line = "Out of memory: Kill process 4242 (node) score 912 or sacrifice child"
    lines = dressed([old_line], dmesg)
    node = Task(4242, "node")
    write("only-kill-process-score", [line.text for line in lines],
          kills=[expected_kill(Spec(constraint="global", form="3.10"), node, lines[0], lines, **NOTHING, **NO_SIZES, oom_score_adj=None, uid=None, host_total=None)])  # fmt: skip

    body = report(spec)
    start = body.index("anon 216206943232")
    lines = dressed(body[start:], dmesg)
    kill = expected_kill(spec, DAEMON, killed_at(lines, spec), lines)
    table_line = at(lines, "Tasks state")
    lines_from_table = lines[lines.index(table_line) :]
    kill |= NOTHING | {"first_line": lines_from_table[0].line}
    write("begins-inside-the-stats-block", [line.text for line in lines], kills=[kill], tasks=expected_tasks(spec))

    upto = body.index(chosen_line(spec, DAEMON))
    lines = dressed(body[:upto], dmesg)
    cut = expected_kill(
        spec,
        DAEMON,
        lines[-1],
        lines,
        victim=None,
        pid=None,
        uid=None,
        task_memcg=None,
        oom_score_adj=None,
        complete=False,
        **NO_SIZES,
    )
    write("ends-before-the-victim", [line.text for line in lines], kills=[cut], tasks=expected_tasks(spec))

    tail = kill_line(spec, DAEMON)
    broken = tail[: tail.index("file-rss:") + len("file-rss:3600")]
    lines = dressed([*body[:-2], broken], dmesg)
    cut = expected_kill(spec, DAEMON, lines[-1], lines, file_rss=None, shmem_rss=None, oom_score_adj=0, complete=False)
    write("kill-line-cut-inside-a-size", [line.text for line in lines], kills=[cut], tasks=expected_tasks(spec),
          skipped=[{"line": lines[-1].line, "reason": "the victim's line is cut"}])  # fmt: skip

    path = chosen_line(spec, DAEMON)
    path = path[: path.index("task_memcg=") + len("task_memcg=/docker/3f")]
    lines = dressed([*body[:upto], path, tail], dmesg)
    cut = expected_kill(spec, DAEMON, lines[-1], lines, task_memcg=None)
    write("cut-path-is-not-a-path", [line.text for line in lines], kills=[cut], tasks=expected_tasks(spec),
          skipped=[{"line": lines[-2].line, "reason": "the oom-kill line is cut"}])  # fmt: skip


def shapes() -> None:
    """Odd texts whose figures are known."""
    spec = Spec(form="5.4", stats=V2_OLD)
    body = report(spec)
    lines = dressed([line.replace("pgtables:543876kB", "pgtables:556929024kB") for line in body], dmesg)
    killed = at(lines, "Memory cgroup out of memory: Killed")
    write(
        "pgtables-in-bytes-called-kb-5.4",
        [line.text for line in lines],
        kills=[expected_kill(spec, DAEMON, killed, lines)],
        tasks=expected_tasks(spec),
    )

    spec = Spec(form="3.10", **OLD)
    body = [
        line.replace(
            f"Killed process {DAEMON.pid} ({DAEMON.name}) ", f"Killed process {DAEMON.pid}, UID 1000, ({DAEMON.name}) "
        )
        for line in report(spec)
    ]
    lines = dressed(body, dmesg)
    killed = at(lines, "Killed process")
    write(
        "uid-before-the-name-rhel7",
        [line.text for line in lines],
        kills=[expected_kill(spec, DAEMON, killed, lines, uid=1000)],
        tasks=expected_tasks(spec),
    )

    child = Task(9001, "worker", total_vm=1000000, anon=900000, file=10, pgtables=8000000 // 4096 * 4096)
    spec = Spec(form="4.15", tasks=[DAEMON, child], victim=child, **OLD)
    body = [line.replace("Kill process 9001 (worker)", "Kill process 1877 (cuzk-daemon)") for line in report(spec)]
    lines = dressed(body, dmesg)
    write(
        "the-child-dies-not-the-candidate",
        [line.text for line in lines],
        kills=[expected_kill(spec, child, killed_at(lines, spec), lines)],
        tasks=expected_tasks(spec),
    )

    spec = Spec()
    body = report(spec)
    header = next(line for line in body if line.startswith("[  pid  ]"))
    lines = dressed([line for line in body if line != header], dmesg)
    write(
        "table-without-header",
        [line.text for line in lines],
        kills=[expected_kill(spec, DAEMON, killed_at(lines, spec), lines)],
        tasks=expected_tasks(spec),
    )
    squeezed = [" ".join(line.split()) if line.startswith("[") else line for line in body]
    lines = dressed(squeezed, dmesg)
    write(
        "table-with-collapsed-blanks",
        [line.text for line in lines],
        kills=[expected_kill(spec, DAEMON, killed_at(lines, spec), lines)],
        tasks=expected_tasks(spec),
    )

    eaten = [line.replace("[", " ", 1).replace("]", " ", 1) if line.startswith("[") else line for line in body]
    lines = dressed(eaten, dmesg)
    write(
        "table-whose-brackets-html-ate",
        [line.text for line in lines],
        kills=[expected_kill(spec, DAEMON, killed_at(lines, spec), lines)],
        tasks=expected_tasks(spec),
    )

    kill = kill_line(spec, DAEMON)
    first, second_part = kill[: kill.index(" process")], kill[kill.index("process") :]
    second_part, third = second_part[: second_part.index(" anon-rss")], second_part[second_part.index("anon-rss") :]
    texts = [f"> {line}" for line in [*body[:-2], first, second_part, third]]
    lines = [Line(text, line=number) for number, text in enumerate(texts, 1)]
    write(
        "mail-wraps-inside-the-kill-line",
        texts,
        kills=[expected_kill(spec, DAEMON, lines[-3], lines[:-2])],
        tasks=expected_tasks(spec),
    )


def no_deaths() -> None:
    spec = Spec()
    body = report(spec)
    upto = body.index(chosen_line(spec, DAEMON))
    alarm = [*body[:upto], "Out of memory and no killable processes..."]
    lines = dressed(alarm, dmesg)
    mark = {
        "time": None,
        "line": 1,
        "what": "oom_without_kill",
        "text": lines[0].message,
        "value": None,
        "value_ulp": None,
        "local_time": False,
    }
    write("invoked-without-a-kill", [line.text for line in lines], marks=[mark])
    failure = ["nginx: page allocation failure: order:5, mode:0x40dc0(GFP_KERNEL|__GFP_COMP), nodemask=(null),cpuset=/,mems_allowed=0",
               "CPU: 3 PID: 900 Comm: nginx Not tainted 6.8.0", *meminfo(spec)]  # fmt: skip
    write("page-allocation-failure-is-no-kill", [line.text for line in dressed(failure, dmesg)])
    others = [
        "NVRM: Xid (PCI:0000:41:00): 31, pid=1877, name=cuzk-daemon, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS",
        "NVRM: GPU at PCI:0000:41:00: GPU-11111111-2222-3333-4444-555555555555",
        "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "cuzk-daemon[1877]: segfault at 0 ip 00007f1c2d3e4f50 sp 00007ffd1a2b3c40 error 4 in libcuda.so.1[7f1c2d000000+1000000]",
        "traps: cuzk-daemon[1878] general protection fault ip:7f1c2d3e4f50 sp:7ffd1a2b3c40 error:0 in libc.so.6[7f1c2d000000+1000]",
    ]
    lines = dressed(others, syslog)
    write("xid-and-faults", [line.text for line in lines], ends=[
        end(lines[0], "xid", code=31, pid=1877, name="cuzk-daemon"),
        end(lines[2], "xid", code=79, name="<unknown>"),
        end(lines[3], "segfault", signal=11, pid=1877, name="cuzk-daemon"),
        end(lines[4], "segfault", signal=11, pid=1878, name="cuzk-daemon"),
    ])  # fmt: skip


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    forms()
    dresses()
    counting()
    cuts()
    shapes()
    no_deaths()
