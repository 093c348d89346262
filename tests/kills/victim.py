"""A program that takes memory of one kind until it is killed, and says on a pipe how much it has: the truth.

    victim.py CGROUP_PROCS STATE_FD SCENARIO [PATH]

It enters the cgroup first, so that the interpreter itself is charged elsewhere. Each `KIND BYTES` line on STATE_FD is
written after the bytes were touched.
"""

import ctypes
import datetime as dt
import mmap
import os
import signal
import sys
import time
from pathlib import Path

MIB = 1 << 20
PAGE = mmap.PAGESIZE
BLOCK = b"\1" * MIB  # made before the cgroup is entered: a temporary one would be charged, and in no truth
MAP_NORESERVE = 0x4000  # asm-generic; the mmap module has no name for it
PR_SET_NAME = 15
KEPT: list[object] = []


class Truth:
    """What was allocated so far, told through a pipe."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def add(self, kind: str, size: int) -> None:
        os.write(self.descriptor, f"{kind} {size}\n".encode())


def now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def log(text: str) -> None:
    say(f"time={now()} level=info {text}")


def touched(truth: Truth, kind: str, size: int, flags: int) -> mmap.mmap:
    """A mapping of `size` bytes, every page written."""
    mapping = mmap.mmap(-1, size, flags=flags)
    if hasattr(mmap, "MADV_NOHUGEPAGE") and flags & mmap.MAP_PRIVATE:
        mapping.madvise(mmap.MADV_NOHUGEPAGE)
    for _ in range(0, size, MIB):
        mapping.write(BLOCK)
        truth.add(kind, MIB)
    KEPT.append(mapping)
    return mapping


def anonymous(truth: Truth, size: int) -> mmap.mmap:
    return touched(truth, "anon", size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def shared(truth: Truth, size: int) -> mmap.mmap:
    """Page-locked GPU memory is charged like this."""
    return touched(truth, "shmem", size, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)


def untracked_shared_memory(truth: Truth, _: str) -> None:
    log("msg=mem.init budget_mb=200 total_ram_mb=24105")
    anonymous(truth, 48 * MIB)
    log("msg=job.admitted job=1 budget_used_mb=48")
    for number in range(1, 1000):
        shared(truth, 4 * MIB)
        log(f"msg=pool.alloc size_mb=4 total_mb={4 * number}")
        log("msg=pool.checkin size_mb=4")
        time.sleep(0.01)


def page_tables(truth: Truth, _: str) -> None:
    """Reads one byte in each 2 MiB: the zero page is mapped, which costs nothing, by page tables, which cost a page each."""
    size = 256 << 30
    mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE, prot=mmap.PROT_READ)
    mapping.madvise(mmap.MADV_NOHUGEPAGE)
    KEPT.append(mapping)
    for at in range(0, size, 2 * MIB):
        mapping[at]
        truth.add("pagetables", PAGE)
        if at % (1 << 30) == 0:
            time.sleep(0.005)


def leak(truth: Truth, _: str) -> None:
    """Each job works in memory that it gives back, and loses 5 MiB."""
    say(f"{now()} mill: may use 200 MiB")
    for number in range(1, 1000):
        work = anonymous(truth, 8 * MIB)
        time.sleep(0.06)
        KEPT.remove(work)
        work.close()
        truth.add("anon", -8 * MIB)
        anonymous(truth, 5 * MIB)
        say(f"{now()} mill: job {number} ground in 60 ms")
        time.sleep(0.06)


def tmpfs(truth: Truth, path: str) -> None:
    anonymous(truth, 48 * MIB)
    with Path(path).open("wb", buffering=0) as file:
        for _ in range(4096):
            file.write(BLOCK)
            truth.add("tmpfs", MIB)
            time.sleep(0.003)


def neighbour(truth: Truth, _: str) -> None:
    """The one that stays alive though it holds most of the limit: the kernel prefers the others."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"backup", 0, 0, 0)
    touched(truth, "neighbour", 150 * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    truth.add("ready", 1)
    signal.pause()


def beside_a_neighbour(truth: Truth, _: str) -> None:
    for _ in range(1000):
        anonymous(truth, 2 * MIB)
        time.sleep(0.01)


def page_cache(truth: Truth, path: str) -> None:
    """Reads far more than the limit through the page cache, and lives. Its last line comes before its memory goes."""
    log("msg=mem.init budget_mb=200")
    anonymous(truth, 48 * MIB)
    with Path(path).open("rb", buffering=0) as file:
        while file.read(4 * MIB):
            time.sleep(0.002)
    time.sleep(0.3)
    log("msg=done")
    time.sleep(0.2)


SCENARIOS = {
    run.__name__: run
    for run in (untracked_shared_memory, page_tables, leak, tmpfs, neighbour, beside_a_neighbour, page_cache)
}


def main() -> None:
    procs, descriptor, scenario, path = (*sys.argv[1:], "")[:4]
    signal.alarm(60)  # Whatever happens, it does not stay.
    Path(procs).write_text(str(os.getpid()))
    if scenario != neighbour.__name__:
        Path("/proc/self/oom_score_adj").write_text("1000")
    SCENARIOS[scenario](Truth(int(descriptor)), path)


if __name__ == "__main__":
    main()
