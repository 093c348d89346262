"""The same batch on a real dask scheduler with two worker processes, one of which is killed in the middle."""

import os
import signal
from pathlib import Path

import distributed
import polars as pl
import pytest
from batch.small import run

from postmortem.archives.find import find
from postmortem.batch.batch import Tally, run_batch
from postmortem.batch.cluster import Cluster
from postmortem.batch.crew import Processes
from postmortem.batch.work import Settings


@pytest.fixture(scope="module")
def scheduler():
    before = dict(os.environ)
    try:
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster:
            yield cluster
    finally:  # dask sets what it wants its workers to have, and leaves it to the tests after these
        os.environ.clear()
        os.environ.update(before)


def frame(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "runs.parquet").drop("report")


def test_a_worker_killed_half_way_costs_no_run(scheduler: distributed.LocalCluster, tmp_path: Path):
    source = tmp_path / "runs"
    for number in range(24):
        run(source / f"{number:02d}", dies=number % 3 == 0)
    run_batch(find([str(source)]), Settings(str(tmp_path / "here"), reports="none"), Processes(2))
    killed: list[int] = []

    def kill_one(tally: Tally) -> None:
        if tally.finished >= 12 and not killed:
            killed.append(next(iter(scheduler.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    settings = Settings(str(tmp_path / "there"), reports="failed")
    tally = run_batch(find([str(source)]), settings, Cluster(scheduler.scheduler_address), kill_one)
    assert killed
    assert tally == Tally(24, analysed=24)
    there = frame(tmp_path / "there")
    assert there.drop("analysis").equals(frame(tmp_path / "here").drop("analysis"))
    assert len(list((tmp_path / "there" / "reports").glob("*.html"))) == 8


def test_a_run_that_passes_its_bounds_on_a_worker_is_a_row_with_its_reason(
    scheduler: distributed.LocalCluster, tmp_path: Path
):
    source = tmp_path / "runs"
    run(source / "small")
    run(source / "zlarge")
    big = (source / "zlarge" / "cgroup.csv").read_text().splitlines()
    (source / "zlarge" / "cgroup.csv").write_text("\n".join([big[0], *big[1:] * 60_000]) + "\n")
    settings = Settings(str(tmp_path / "out"), reports="none", memory_bytes=450 << 20)
    run_batch(find([str(source)]), settings, Cluster(scheduler.scheduler_address))
    found = dict(frame(tmp_path / "out").select("name", "status").iter_rows())
    assert found == {"small": "done", "zlarge": "out_of_memory"}
