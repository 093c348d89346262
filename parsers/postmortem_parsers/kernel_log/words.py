"""The words by which kernel lines are known, anchored at the beginning of the undressed message.

Anchors are lines that only a kernel prints; what may follow them (a stats block, a task table) has shapes that
other files share, and counts only in the section that an anchor opens. Both Rust's and Python's regex read these.
"""

__all__ = ["ANCHORS", "ANY_ANCHOR", "ANY_SHAPE", "CONTINUATION", "ROUGH", "SECTIONS", "SHAPES"]

ANCHORS: dict[str, str] = {
    "invoked": r"^.{1,64}? invoked oom-killer: ?(?:gfp_mask|order|\.\.\.|$)",
    "taskin": r"^Task in \S+ killed as a result of limit of ",
    "usage": r"^(?:memory|memory\+swap|swap|kmem): usage \d+kB, limit ",
    "stats": r"^Memory cgroup stats(?: for [^:]+)?:",
    "meminfo": r"^Mem-Info:$",
    "tasks": r"^(?:Tasks state \(memory values in pages\):|\[?\s*pid\s*\]?\s+uid\s+tgid\s+total_vm)",
    "oom_kill": r"^oom-kill:constraint=CONSTRAINT_",
    "kill": r"^(?:Memory cgroup out of memory|Memory cgroup stats|Out of memory(?: \([\w ]+\))?): [Kk]ill(?:ed)?(?: process|$)",
    "killed": r"^Killed process \d+(?: \(.*\),?|,? UID \d+,? \(.*\),?) (?:UID:? ?\d+,? )?(?:total-vm|vsz):",
    "reaper": r"^oom_reaper: (?:reaped|unable to reap) (?:process|pid)",
    "group": r"^Tasks in .{1,4096} are going to be killed due to memory\.oom\.group set",
    "no_kill": r"^(?:Memory cgroup out of memory|Out of memory)(?::| and) no killable process",
    "deadlock": r"^Kernel panic - not syncing: (?:Out of memory|System is deadlocked on memory)",
    "allocation": r"^.{1,64}: page allocation (?:failure|stalls)",
    "xid": r"^NVRM: (?:GPU at \S+ )?Xid ",
    "fault": r"^(?:traps: )?.{1,64}\[\d+\]:? (?:segfault at [0-9a-f]+ ip|general protection|trap [a-z ]+ ip:)",
}
ANY_ANCHOR = "|".join(f"(?:{pattern})" for pattern in ANCHORS.values())

SECTIONS = {
    "invoked": "trace",
    "taskin": "stats",
    "usage": "stats",
    "stats": "stats",
    "meminfo": "host",
    "tasks": "tasks",
    "oom_kill": "tail",
    "kill": "tail",
    "killed": "tail",
    "allocation": "host",
}
"""Which section an anchor opens; other anchors close whatever was open."""

_TRACE = (
    r"^(?:Call Trace:|CPU: \d+ |Hardware name: |Tainted: |Modules linked in:|</?[A-Z]+>$|\?? ?[\w.]+\+0x[0-9a-f]+/0x[0-9a-f]+|RIP: |RSP: |"
    r"R[A-Z0-9]{2}: |Code: |CS: |DR\d: |CR2: |FS: |ORIG_RAX: |\[<[0-9a-f]+>\]|Pid: \d+, comm: |.{1,64} cpuset=|Workqueue: )"
)
_STAT = r"^[a-z][a-z0-9_.]{2,40} \d{1,20}$|^cache:\d+KB|^[a-z_]+:\d+KB(?: |$)"
_HOST = (
    r"^(?:active_anon:|active_file:|unevictable:|slab_reclaimable:|mapped:|free:|kernel_misc|Node \d+ |lowmem_reserve|"
    r"\d+ total pagecache pages|\d+ pages |\d+ (?:reserved|slab) pages|Free swap |Total swap |Swap cache stats|Normal: |DMA|HighMem)"
)
_TASK = r"^\[?\s*\d{1,7}\s*\]?(?:\s+-?\d+){5,}\s+\S"
_TAIL = r"^(?:process \d+ |\d{1,7} \(.{1,16}\),? (?:UID|total-vm)|[\w/.,()-]*,?\s*(?:total-vm|anon-rss|file-rss|shmem-rss|pgtables|UID|oom_score_adj):|[\w./=,-]*(?:oom_memcg|task_memcg|task|pid|uid)=|\d*kB,|or sacrifice child|process$)"
_INVOKED_TAIL = r"^(?:gfp_mask=|order=|oom_score_adj=|oom_adj=|nodemask=)"

SHAPES = {
    "trace": f"{_TRACE}|{_INVOKED_TAIL}",
    "stats": f"{_STAT}",
    "host": f"{_TRACE}|{_HOST}",
    "tasks": _TASK,
    "tail": _TAIL,
}
CONTINUATION = f"{_TAIL}|{_INVOKED_TAIL}"
"""What a mailer or a terminal may have broken off a sentence."""
ANY_SHAPE = "|".join(
    f"(?:{pattern})"
    for pattern in (_INVOKED_TAIL, _STAT, _HOST, _TASK, _TAIL, r"^CPU: \d+ |^Pid: \d+, comm: |^.{1,64} cpuset=")
)

ROUGH = (
    r"oom-killer|: usage \d+kB|Memory cgroup|Mem-Info|Tasks state|tgid\s+total_vm|oom-kill:|ut of memory|Killed process|"
    r"oom_reaper|oom\.group|killed as a result|page allocation|NVRM: |segfault at|general protection|trap \w|Kernel panic"
)
"""What every anchor holds; one scan over all lines finds the few that deserve a second look."""
