"""How `postmortem batch` grows: runs a second on one core and two, the client's memory, the page for a large fleet.

`python -m benchmarks.batch --runs 1000 --more 10000`. Runs are made from a seed below `.bench/`; the table of the page's
part is the batch's own rows, repeated.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

import polars as pl

from benchmarks.make_runs import many
from postmortem.fleet import figures
from postmortem_reports.fleet import render

_FOLDER = Path(".bench") / "batch"


def batch(source: Path, out: Path, workers: int) -> tuple[float, int]:
    """(seconds, MiB that the client alone had at most) of one batch into a fresh folder."""
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    command = [sys.executable, "-m", "postmortem", "batch", str(source), "--out", str(out), "-j", str(workers)]
    # On one core the client has to share it with its only worker.
    cores = ",".join(str(core) for core in range(workers))
    client = subprocess.Popen(["taskset", "-c", cores, *command, "--reports", "none"], stderr=subprocess.DEVNULL)
    peak = 0
    while client.poll() is None:
        peak = max(peak, _high_water(client.pid))
        time.sleep(0.05)
    return time.perf_counter() - began, peak >> 10


def _high_water(pid: int) -> int:
    """KiB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def page(rows: Path, count: int) -> tuple[float, int]:
    """(seconds, MiB) of the fleet's page for a table of `count` rows."""
    own = pl.read_parquet(rows)
    times = -(-count // own.height)
    table = pl.concat([own.with_columns(run=pl.col("run") + f"-{n}") for n in range(times)]).head(count)
    path = _FOLDER / "fleet.parquet"
    table.write_parquet(path)
    began = time.perf_counter()
    text = render(*figures(path))
    return time.perf_counter() - began, len(text.encode()) >> 20


def main() -> None:
    """Measure and print."""
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--runs", type=int, default=1_000)
    wanted.add_argument("--more", type=int, default=10_000, help="for the client's memory")
    wanted.add_argument("--rows", type=int, default=100_000, help="for the page")
    given = wanted.parse_args()
    out = _FOLDER / "out"
    few, more = (many(_FOLDER / f"runs-{count}", count) for count in (given.runs, given.more))
    print("| what | seconds | runs a second | client's peak MiB |\n| --- | --- | --- | --- |")
    rates: list[float] = []
    for name, source, count, workers in (
        (f"{given.runs:,} runs, one core", few, given.runs, 1),
        (f"{given.runs:,} runs, two cores", few, given.runs, 2),
        (f"{given.more:,} runs, two cores", more, given.more, 2),
    ):
        seconds, peak = batch(source, out, workers)
        done = pl.read_parquet(out / "runs.parquet").filter(pl.col("status") == "done").height
        assert done == count, f"{done} of {count} runs were analysed"
        rates.append(count / seconds)
        print(f"| {name} | {seconds:.1f} | {count / seconds:.1f} | {peak} |", flush=True)
    seconds, mib = page(out / "runs.parquet", given.rows)
    print(f"\nTwo cores against one: {rates[1] / rates[0]:.2f} ×. index.html of {given.rows:,} rows: ", end="")
    print(f"{seconds:.1f} s, {mib} MiB.")


if __name__ == "__main__":
    main()
