"""A batch from a real S3 server and into it gives the rows of the folder, and nothing else is written."""

import subprocess
import sys
import tarfile
from pathlib import Path

import fsspec
import polars as pl
import pytest
from batch.small import run

from postmortem.archives.find import find
from postmortem.batch.batch import run_batch
from postmortem.batch.crew import Processes
from postmortem.batch.rows import RUNS
from postmortem.batch.store import Store
from postmortem.batch.target import Bucket, Folder, target_of
from postmortem.batch.work import Outcome, Settings
from postmortem.errors import InputError, UsageError

COMMAND = [sys.executable, "-m", "postmortem", "batch"]
OWN = ["run", "report", "analysis"]  # where a run lies, not what it is


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    for number in range(4):
        run(folder / f"{number}", dies=number % 2 == 0)
    return folder


def rows(data: Path | bytes) -> list[dict]:
    return pl.read_parquet(data).sort("name").drop(OWN).to_dicts()


def test_from_a_bucket_into_a_bucket(runs: Path, tmp_path: Path, bucket):
    store, variables = bucket
    run_batch(find([str(runs)]), Settings(str(tmp_path / "alone"), reports="none"), Processes(2))
    with tarfile.open(tmp_path / "two.tar.gz", "w:gz") as archive:
        for name in ("2", "3"):
            archive.add(runs / name, name)
    store.mkdir("runs")
    store.mkdir("fleets")
    for name in ("0", "1"):
        store.put(str(runs / name), f"runs/deep/{name}", recursive=True)
    store.put_file(str(tmp_path / "two.tar.gz"), "runs/two.tar.gz")
    here = tmp_path / "here"
    here.mkdir()
    command = [*COMMAND, "s3://runs", "--out", "s3://fleets/all", "-j", "2"]
    first = subprocess.run(command, cwd=here, env=variables, capture_output=True, text=True, check=True, timeout=120)
    assert "4 analysed, 0 unchanged" in first.stderr
    assert rows(store.cat_file("fleets/all/runs.parquet")) == rows(tmp_path / "alone" / "runs.parquet")
    reports = pl.read_parquet(store.cat_file("fleets/all/runs.parquet"))["report"].drop_nulls().to_list()
    assert len(reports) == 2
    assert b"<!doctype html>" in store.cat_file(f"fleets/all/{reports[0]}")[:100].lower()
    assert b"</html>" in store.cat_file("fleets/all/index.html")
    assert list(here.iterdir()) == []
    again = subprocess.run(command, cwd=here, env=variables, capture_output=True, text=True, check=True, timeout=120)
    assert "0 analysed, 4 unchanged" in again.stderr
    assert not [name for name in store.find("fleets") if "/journal/" in name]


def test_a_bucket_that_is_not_there_is_said_in_a_line(runs: Path, bucket):
    _, variables = bucket
    command = [*COMMAND, str(runs), "--out", "s3://nobody-made-this/all"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "s3://nobody-made-this/all" in done.stderr
    assert "Traceback" not in done.stderr


def test_own_results_below_a_source_are_no_runs():
    files = fsspec.filesystem("memory")
    files.pipe_file("/mixed/a/run.log", b"2026-03-19T02:00:00Z  INFO cuzk_daemon: cuzk-daemon starting\n")
    files.pipe_file("/mixed/fleet/reports/b.log", b"2026-03-19T02:00:00Z  INFO cuzk_daemon: cuzk-daemon starting\n")
    found = find(["memory://mixed"], skip="memory://mixed/fleet")
    assert [found.run for found in found.runs] == ["mixed/a"]


def test_a_killed_client_loses_only_the_rows_of_its_last_seconds():
    store = Store(Bucket("memory://killed/fleet"))
    for number in range(250):
        store.add(Outcome(f"r{number:03d}", dict.fromkeys(RUNS) | {"run": f"r{number:03d}", "status": "failed"}))
    del store  # without `close`: as a kill leaves it
    Store(Bucket("memory://killed/fleet"))
    data = fsspec.filesystem("memory").cat_file("/killed/fleet/runs.parquet")
    assert pl.read_parquet(data)["run"].to_list() == [f"r{number:03d}" for number in range(200)]


def test_a_url_of_a_store_that_is_not_installed_gives_a_hint():
    with pytest.raises(UsageError, match="pip install"):
        target_of("nowhere://bucket/fleet")


def test_a_file_url_is_a_folder(tmp_path: Path):
    target = target_of(f"file://{tmp_path}")
    assert isinstance(target, Folder)
    target.write("x", b"1")
    assert (tmp_path / "x").read_bytes() == b"1"


def test_what_a_store_refuses_is_an_error_with_its_reason(monkeypatch: pytest.MonkeyPatch):
    target = Bucket("memory://refuses/fleet")

    def refuse(*_: object) -> None:
        message = "quota exceeded"
        raise RuntimeError(message)  # stores raise what they like

    monkeypatch.setattr(target._files, "pipe_file", refuse)
    with pytest.raises(InputError, match=r"quota exceeded.*call again"):
        target.write("a", b"")
