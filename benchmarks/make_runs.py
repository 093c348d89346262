"""A generator of many small runs for `batch`: `python benchmarks/make_runs.py DIR --runs 1000 --seed 1`.

Each run is a daemon's log of a few proofs and samples beside it, cut where it died, in folders by day.
"""

import argparse
import datetime as dt
import random
from pathlib import Path

_GIB = 1 << 30
_LIMITS = (192, 256, 342, 420)


def make(folder: Path, number: int, chance: random.Random) -> None:
    """One run: samples that rise to a limit, and a kernel's word where it was passed."""
    limit = chance.choice(_LIMITS)
    dies = chance.random() < 0.3
    start = dt.datetime(2025, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=5 * number)
    top = limit * (1.0 if dies else chance.uniform(0.5, 0.9))
    folder.mkdir(parents=True)
    lines = ["time,current,limit,anon"]
    for step in range(60):
        at = start + dt.timedelta(seconds=5 * step)
        used = int(top * _GIB * (0.3 + 0.7 * step / 59))
        lines.append(f"{at:%Y-%m-%dT%H:%M:%SZ},{used},{limit * _GIB},{int(used * 0.9)}")
    (folder / "cgroup.csv").write_text("\n".join(lines) + "\n")
    end = start + dt.timedelta(seconds=300)
    if dies:
        pid, rss = chance.randrange(1000, 99999), int(top * _GIB / 1024 * 0.95)
        (folder / "dmesg.txt").write_text(
            f"{end:%Y-%m-%dT%H:%M:%S},000000+00:00 Memory cgroup out of memory: Killed process {pid} (cuzk) "
            f"total-vm:{rss * 2}kB, anon-rss:{rss}kB, file-rss:1024kB, shmem-rss:0kB, UID:0 pgtables:90000kB oom_score_adj:0\n"
        )
    else:
        (folder / "exit.txt").write_text(
            f"cmd=cuzk --config cuzk.toml\nexit_status=0\nsignal=0\nended={end:%Y-%m-%dT%H:%M:%SZ}\n"
        )


def many(folder: Path, count: int, seed: int = 1) -> Path:
    """So many runs below `folder`, which is left as it is when it is there."""
    if not folder.exists():
        chance = random.Random(seed)
        for number in range(count):
            make(folder / f"day-{number // 100:03d}" / f"run-{number:05d}", number, chance)
    return folder


def main() -> None:
    """Write the runs."""
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("folder", type=Path)
    wanted.add_argument("--runs", type=int, default=1000)
    wanted.add_argument("--seed", type=int, default=1)
    given = wanted.parse_args()
    many(given.folder, given.runs, given.seed)


if __name__ == "__main__":
    main()
