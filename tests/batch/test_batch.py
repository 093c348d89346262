"""A batch gives each run its row, survives what is in the runs and what happens to it, and goes on where it stopped."""

import concurrent.futures
import dataclasses
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import polars as pl
import pytest
from batch.small import run, samples

import postmortem
from postmortem.archives.find import find
from postmortem.archives.grouping import FoundRun
from postmortem.batch import pool
from postmortem.batch.batch import Tally, run_batch
from postmortem.batch.cluster import Cluster
from postmortem.batch.crew import Processes
from postmortem.batch.rows import PARTS, RUNS
from postmortem.batch.store import Store
from postmortem.batch.target import Folder
from postmortem.batch.work import Outcome, Settings, Task, work
from postmortem.errors import InputError, UsageError

COMMAND = [sys.executable, "-m", "postmortem", "batch"]


def done(source: Path, out: Path, **settings) -> Tally:
    return run_batch(find([str(source)]), Settings(str(out), **{"reports": "none", **settings}), Processes(2))


def rows(out: Path) -> dict[str, dict]:
    return {row["run"]: row for row in pl.read_parquet(out / "runs.parquet").iter_rows(named=True)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "runs"
    run(folder / "alive")
    run(folder / "dead", dies=True)
    return folder


@pytest.fixture(scope="module")
def result(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    assert done(runs, out, reports="failed") == Tally(2, analysed=2)
    return out


def test_the_row_says_what_the_analysis_of_the_folder_alone_says(runs: Path, result: Path):
    alone = postmortem.analyze(runs / "dead").result
    row = rows(result)["runs/dead"]
    assert (row["ending"], row["cause"], row["confidence"]) == (
        alone.ending.how,
        alone.verdict.cause,
        alone.verdict.confidence,
    )
    assert row["limit"] == (alone.arithmetic.limit.best if alone.arithmetic.limit else None)
    assert row["ending"] == "cgroup_limit"
    assert row["status"] == "done"


def test_tables_have_the_documented_columns(result: Path):
    assert pl.read_parquet(result / "runs.parquet").schema == RUNS
    assert pl.read_parquet(result / "parts.parquet").schema == PARTS


def test_a_death_by_memory_gets_its_report_and_the_others_do_not(result: Path):
    reports = {name: row["report"] for name, row in rows(result).items()}
    assert reports["runs/alive"] is None
    assert "<!doctype html>" in (result / str(reports["runs/dead"])).read_text()[:100].lower()


def pack(runs: Path, folder: Path, kind: str) -> None:
    if kind == "zip":
        with zipfile.ZipFile(folder / "runs.zip", "w") as archive:
            for file in sorted(runs.rglob("*.*")):
                archive.write(file, file.relative_to(runs))
        return
    with tarfile.open(folder / "runs.tar.gz", "w:gz") as archive:
        archive.add(runs, "deep")
    if kind == "nested":
        with zipfile.ZipFile(folder / "outer.zip", "w") as archive:
            archive.write(folder / "runs.tar.gz", "in/runs.tar.gz")
        (folder / "runs.tar.gz").unlink()


@pytest.mark.parametrize("kind", ["tar.gz", "zip", "nested"])
def test_packed_runs_give_the_same_rows_as_the_folders(runs: Path, result: Path, tmp_path: Path, kind: str):
    source = tmp_path / "packed"
    source.mkdir()
    pack(runs, source, kind)
    for found in find([str(source)]).runs:
        outcome = work(Task(found, Settings(str(tmp_path), reports="none")))
        assert outcome.row is not None
        same = next(row for row in rows(result).values() if row["name"] == found.name)
        assert outcome.row["content"] == same["content"]
        differing = {key for key, value in outcome.row.items() if same[key] != value}
        assert differing <= {"run", "report", "analysis"}


def test_a_second_call_does_only_what_is_new_or_changed(runs: Path, tmp_path: Path):
    source = tmp_path / "runs"
    run(source / "one")
    run(source / "two")
    assert done(source, tmp_path / "out") == Tally(2, analysed=2)
    (source / "two" / "cgroup.csv").write_bytes((runs / "dead" / "cgroup.csv").read_bytes())
    run(source / "three")
    assert done(source, tmp_path / "out") == Tally(3, unchanged=1, analysed=2)
    assert set(rows(tmp_path / "out")) == {"runs/one", "runs/two", "runs/three"}


def test_other_options_make_the_rows_anew(tmp_path: Path):
    one, other = Settings(str(tmp_path)), Settings(str(tmp_path), budget=1 << 30)
    assert one.analysis != other.analysis
    assert one.analysis == dataclasses.replace(one, timeout_s=1.0, memory_bytes=5).analysis


def test_what_fails_is_a_row_with_its_reason_and_the_rest_is_done(tmp_path: Path):
    source = tmp_path / "runs"
    run(source / "a" / "same")
    run(source / "b" / "same")
    (source / "text").mkdir()
    (source / "text" / "run.log").write_text("hello\n")
    (source / "toml").mkdir()
    (source / "toml" / "run.toml").write_text("limit = 'much'")
    (source / "cut.zip").write_bytes(b"PK\x03\x04" + bytes(range(256)))
    tally = done(source, tmp_path / "out")
    found = {name: row["status"] for name, row in rows(tmp_path / "out").items()}
    assert found == {
        "runs/a/same": "done",
        "runs/b/same": "done",
        "runs/text": "no_evidence",
        "runs/toml": "unreadable",
        "runs/cut.zip": "refused",
    }
    assert all(row["error"] for row in rows(tmp_path / "out").values() if row["status"] != "done")
    assert (tally.analysed, tally.failed) == (2, 3)


def test_a_run_that_takes_too_long_or_too_much_is_a_row_and_the_rest_is_done(tmp_path: Path):
    source = tmp_path / "runs"
    run(source / "small")
    run(source / "zlarge")
    big = (source / "zlarge" / "cgroup.csv").read_text().splitlines()
    (source / "zlarge" / "cgroup.csv").write_text("\n".join([big[0], *big[1:] * 60_000]) + "\n")
    done(source, tmp_path / "out", memory_bytes=450 << 20)
    found = rows(tmp_path / "out")
    assert {name: row["status"] for name, row in found.items()} == {
        "runs/small": "done",
        "runs/zlarge": "out_of_memory",
    }
    assert "450 MiB" in found["runs/zlarge"]["error"]


def test_the_command_killed_in_the_middle_goes_on_where_it_was(tmp_path: Path):
    source = tmp_path / "runs"
    for number in range(12):
        run(source / f"{number:02d}", dies=number % 2 == 0)
    out = tmp_path / "out"
    command = [*COMMAND, str(source), "--out", str(out), "--reports", "none", "-j", "1"]
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    journal = out / ".batch" / "journal.jsonl"
    until = time.monotonic() + 30
    while time.monotonic() < until and not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    with journal.open("ab") as file:
        file.write(b'{"row": {"run": "cut')  # as a death within a write leaves it
    second = subprocess.run(command, capture_output=True, text=True, check=True)
    unchanged = int(second.stderr.split(" unchanged")[0].rsplit(maxsplit=1)[-1])
    assert 2 <= unchanged < 12
    assert f"{12 - unchanged} analysed" in second.stderr
    assert len(rows(out)) == 12
    assert (out / "index.html").exists()


def test_a_worker_killed_from_outside_costs_no_run(tmp_path: Path):
    source = tmp_path / "runs"
    for number in range(8):
        run(source / f"{number:02d}")
    killed: list[int] = []

    class Watched(Processes):
        def kill_one(self, _: Tally) -> None:
            assert self._executor is not None
            if not killed:
                killed.append(next(iter(self._executor._processes)))
                os.kill(killed[0], signal.SIGKILL)

    crew = Watched(2)
    tally = run_batch(find([str(source)]), Settings(str(tmp_path / "out"), reports="none"), crew, crew.kill_one)
    assert killed
    assert tally == Tally(8, analysed=8)
    assert len(rows(tmp_path / "out")) == 8


def kill_worker_on_poison(task: Task) -> Outcome:
    """Stands for `work` with a run that crashes its process."""
    if task.run.name == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    return Outcome(task.run.run, {"run": task.run.run, "status": "done"})


def test_the_run_that_crashes_its_worker_is_told_from_those_beside_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    class Forked(Processes):  # so that the workers have this module
        def start(self, workers: int | None = None):
            self.close()
            self._executor = concurrent.futures.ProcessPoolExecutor(
                workers or 2, mp_context=multiprocessing.get_context("fork")
            )
            return self._executor

    monkeypatch.setattr(pool, "work", kill_worker_on_poison)
    names = ["a", "b", "poison", "c", "d", "e"]
    tasks = [Task(FoundRun(name, name, (), ""), Settings(str(tmp_path))) for name in names]
    seen: dict[str, str] = {}
    pool.run_all(tasks, Forked(2), lambda outcome: seen.update({outcome.run: (outcome.row or {})["status"]}))
    assert seen == {name: "died" if name == "poison" else "done" for name in names}


def test_dry_run_shows_the_runs_and_why_and_writes_nothing(runs: Path, tmp_path: Path):
    shown = subprocess.run(
        [*COMMAND, str(runs), "--dry-run", "--out", str(tmp_path / "out")], capture_output=True, text=True, check=True
    )
    assert "runs/dead: run 'dead', one folder, 2 files" in shown.stdout
    assert not (tmp_path / "out").exists()


def test_a_cluster_without_dask_gives_a_hint(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'oom-postmortem\[cluster\]'"):
        Cluster("tcp://scheduler:8786")


def test_a_full_disk_ends_the_batch_with_advice_and_keeps_what_was_there(tmp_path: Path):
    source, out = tmp_path / "runs", tmp_path / "out"
    run(source / "one")
    done(source, out)
    before = (out / "runs.parquet").read_bytes()
    run(source / "two")
    command = [*COMMAND, str(source), "--out", str(out), "--reports", "none"]
    # A disk that takes no more than 64 bytes a file.
    full = subprocess.run(["prlimit", "--fsize=64", *command], capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert f"{out}: cannot be written (File too large)" in full.stderr
    assert "call again" in full.stderr
    assert "Traceback" not in full.stderr
    assert (out / "runs.parquet").read_bytes() == before
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1 analysed, 1 unchanged" in again.stderr


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(tmp_path: Path):
    target = Folder(tmp_path)
    target.write("runs.parquet", b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(InputError, match=r"File too large.*call again"):
            target.write("runs.parquet", bytes(2 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read("runs.parquet") == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["runs.parquet"]


def test_two_batches_do_not_write_into_one_folder(tmp_path: Path):
    store = Store(Folder(tmp_path / "out"))
    with pytest.raises(UsageError, match="another batch"):
        Store(Folder(tmp_path / "out"))
    store.close()


def test_simulated_runs_keep_their_causes_in_a_batch(tmp_path: Path):
    source = samples()
    if source is None:
        pytest.skip("POSTMORTEM_SAMPLES names no samples")
    done(source, tmp_path / "out")
    for name, row in rows(tmp_path / "out").items():
        alone = postmortem.analyze(source / row["name"]).result
        assert (row["ending"], row["cause"], row["safe_budget"]) == (
            alone.ending.how,
            alone.verdict.cause,
            alone.survival.safe_budget and alone.survival.safe_budget.best,
        ), name
