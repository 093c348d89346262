"""Evidence that would have decided more, and the command that records it next time."""

import polars as pl

from postmortem.analysis.memory import Memory
from postmortem.result import Ending, Missing, Quantity
from postmortem.run import Run

__all__ = ["missing"]

_SAMPLE_LOOP = (
    "while sleep 1; do date -u +%FT%TZ; for f in memory.current memory.max memory.events memory.stat; do "
    'echo "==> $f <=="; cat /sys/fs/cgroup/$f; done; done > cgroup.log'
)


def missing(run: Run, memory: Memory, ending: Ending, limit: Quantity | None, budget: Quantity | None) -> list[Missing]:
    """What this run lacks, most useful first."""
    found: list[Missing] = []

    def lack(what: str, why: str, how: str) -> None:
        found.append(Missing(what=what, why_it_matters=why, how_to_record=how))

    if run.table("kills").is_empty():
        lack(
            "kernel log",
            "only it (or the oom_kill counter) proves who was killed, by whose limit, and what memory consisted of",
            "dmesg -T > dmesg.txt   # on the host; or: journalctl -k -o short-iso > kernel.log",
        )
    if memory.empty:
        lack(
            "memory samples",
            "without them heap, overhead and growth are assumed from the profile, not measured",
            _SAMPLE_LOOP,
        )
    elif not memory.has_counters:
        lack(
            "memory.stat beside memory.current",
            "reclaimable page cache, shared memory and kernel memory cannot be told from the rest",
            _SAMPLE_LOOP,
        )
    elif (memory.interval_s or 0) > 10:
        lack(
            f"samples closer than {memory.interval_s:.0f} s apart",
            "what happened between two samples is not seen",
            _SAMPLE_LOOP,
        )
    if ending.exit_code is None and ending.how not in ("finished", "stopped"):
        lack(
            "the daemon's exit status",
            "137 says SIGKILL, 139 a crash, 0 an orderly end; a pipe (`| tee`) hides it",
            'cuzk-daemon …; echo "exit_status=$?" > exit.txt   # or: docker inspect -f "{{json .State}}" NAME',
        )
    if limit is None:
        lack("the memory limit", "no arithmetic without it", "cat /sys/fs/cgroup/memory.max   # or give --limit 342GiB")
    if budget is None:
        lack(
            "the daemon's budget",
            "no slack and no margin without it",
            "give --budget 331GiB, or keep the log's first lines",
        )
    if run.model.circuits and run.first("budget", pl.col("op").is_in(["acquire", "release"])) is None:
        lack(
            "DEBUG lines of the budget ledger",
            "reservations are modelled from the profile's rules instead of read",
            "RUST_LOG=info,cuzk_core::memory=debug",
        )
    return found
