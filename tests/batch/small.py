"""Small runs for the tests of the batch: samples, and a kernel's word where the run died."""

import os
from pathlib import Path

GIB = 1 << 30
LIMIT = 8 * GIB

KILL = (
    "2026-03-19T02:05:00,000000+00:00 Memory cgroup out of memory: Killed process 4242 (cuzk) total-vm:16777216kB, "
    "anon-rss:8126464kB, file-rss:1024kB, shmem-rss:0kB, UID:0 pgtables:16000kB oom_score_adj:0\n"
)


def run(folder: Path, *, dies: bool = False) -> Path:
    folder.mkdir(parents=True)
    rows = ["time,current,limit,anon"]
    for step in range(20):
        used = LIMIT * (step + 1) // (20 if dies else 40)
        rows.append(f"2026-03-19T02:{step // 4:02d}:{step % 4 * 15:02d}Z,{used},{LIMIT},{used * 9 // 10}")
    (folder / "cgroup.csv").write_text("\n".join(rows) + "\n")
    if dies:
        (folder / "dmesg.txt").write_text(KILL)
    return folder


def samples() -> Path | None:
    """The simulated runs with known truth, where POSTMORTEM_SAMPLES names them."""
    named = os.environ.get("POSTMORTEM_SAMPLES")
    return Path(named) / "simulated" if named else None
