"""A toy daemon that really dies above a known budget: it holds what its budget allows, and 40 MiB that it does not count.

    python mill.py CGROUP.PROCS --budget=BYTES

It logs what it reserves and each job that is done; `mill.toml` says how to read that. In a cgroup of 200 MiB it dies with
more than 160 MiB less its interpreter (some 8 MiB): 162 MiB is too much, 148 MiB is not.
"""

import datetime as dt
import mmap
import os
import sys
import time
from pathlib import Path

MIB = 1 << 20
BLOCK = 4 * MIB
UNCOUNTED = 40 * MIB
JOBS = 60


def say(text):
    now = dt.datetime.now(dt.UTC)
    sys.stdout.write(f"{now:%Y-%m-%dT%H:%M:%S.%fZ} mill: {text}\n")
    sys.stdout.flush()


def taken(kind, size):
    made = mmap.mmap(-1, size, flags=kind | mmap.MAP_ANONYMOUS)
    made[::4096] = b"\1" * (size // 4096)
    return made


def main(procs, option):
    Path(procs).write_text(str(os.getpid()))
    budget = int(option.partition("=")[2])
    say(f"may use {budget // MIB} MiB")
    uncounted = [taken(mmap.MAP_SHARED, BLOCK) for _ in range(UNCOUNTED // BLOCK)]
    live, done = [], 0
    for _ in range(JOBS):
        if (len(live) + 1) * BLOCK > budget:
            live.pop(0).close()
            done += 1
            say(f"job {done} ground in 20 ms")
        live.append(taken(mmap.MAP_PRIVATE, BLOCK))
        say(f"{len(live) * BLOCK} bytes reserved")
        time.sleep(0.02)
    say(f"finished with {len(uncounted)} blocks that nobody counted")


main(*sys.argv[1:])
