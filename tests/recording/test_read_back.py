"""`analyze` understands all that `record` leaves: arrival times, the start, every table."""

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import postmortem
from postmortem import reading, sources
from postmortem.analysis import clock
from postmortem.run import Run
from postmortem_parsers import registry
from postmortem_parsers.profiles import load

RECORD = [sys.executable, "-m", "postmortem", "record", "--no-report"]
NOON = dt.datetime(2026, 3, 13, 12, 0, tzinfo=dt.UTC)


def _placed(folder: Path) -> clock.Placed:
    read = reading.read(sources.find([folder]), registry.load_parsers()[0], load())
    return clock.place(Run(name="run", tables=read.tables, sources=read.sources, lines_time=read.lines_time))


def _arrivals(folder: Path, *rows: tuple[float, int], file: str = "run.log") -> None:
    text = "".join(f"{NOON.timestamp() + second:.3f},{lines},{file}\n" for second, lines in rows)
    (folder / "arrivals.csv").write_text(f"time,lines,file\n{text}")


def test_a_line_without_a_time_gets_the_one_of_its_arrival(tmp_path):
    (tmp_path / "run.log").write_text("a\nb\npanic\nthread 'main' panicked at 'x', a.rs:1\nc\n")
    _arrivals(tmp_path, (1, 2), (2.5, 4), (3, 5))
    placed = _placed(tmp_path)
    ends = placed.run.table("ends").filter(pl.col("what") == "panic")
    assert ends["time"].to_list() == [NOON + dt.timedelta(seconds=2.5)]
    log = next(n for n, source in enumerate(placed.run.sources) if source.path == "run.log")
    assert "arrive" in placed.notes[log]
    assert placed.uncertainty[log] == 0.1


def test_stamps_of_the_log_itself_come_first(tmp_path):
    late = NOON - dt.timedelta(minutes=10)  # the output waited for ten minutes in a buffer
    (tmp_path / "run.log").write_text(
        f"{late:%Y-%m-%dT%H:%M:%S}Z a\nthread 'main' panicked at 'x', a.rs:1\n{late:%Y-%m-%dT%H:%M:%S}Z c\n"
    )
    _arrivals(tmp_path, (1, 3))
    ends = _placed(tmp_path).run.table("ends").filter(pl.col("what") == "panic")
    assert ends["time"].to_list() == [late]


def test_among_prompt_stamps_an_arrival_is_nearer_than_the_line_before(tmp_path):
    stamp = f"{NOON:%Y-%m-%dT%H:%M:%S}Z"
    (tmp_path / "run.log").write_text(f"{stamp} a\nthread 'main' panicked at 'x', a.rs:1\n")
    _arrivals(tmp_path, (0.1, 1), (90, 2))
    ends = _placed(tmp_path).run.table("ends").filter(pl.col("what") == "panic")
    assert ends["time"].to_list() == [NOON + dt.timedelta(seconds=90)]


def test_answers_of_a_status_endpoint_are_dated_by_their_arrival(tmp_path):
    row = {"uptime_secs": 3, "memory": {"total_bytes": 1 << 30, "used_bytes": 5, "available_bytes": 7}, "pipelines": []}
    (tmp_path / "status.jsonl").write_text("".join(json.dumps(row | {"uptime_secs": n}) + "\n" for n in (3, 4)))
    _arrivals(tmp_path, (1, 1), (2, 2), file="status.jsonl")
    budget = _placed(tmp_path).run.table("budget")
    assert budget["time"].to_list() == [NOON + dt.timedelta(seconds=1), NOON + dt.timedelta(seconds=2)]


def test_arrivals_leave_no_marks_behind_and_date_no_file_of_another_folder(tmp_path):
    for name in ("attempt-1", "attempt-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.log").write_text("thread 'main' panicked at 'x', a.rs:1\n")
    _arrivals(tmp_path / "attempt-2", (1, 1))
    placed = _placed(tmp_path)
    assert "arrival" not in placed.run.table("marks")["what"]
    assert placed.run.table("ends")["time"].to_list() == [None, NOON + dt.timedelta(seconds=1)]


def test_a_cut_row_of_arrivals_is_reported(tmp_path):
    (tmp_path / "run.log").write_text("a\nb\n")
    _arrivals(tmp_path, (1, 1))
    with (tmp_path / "arrivals.csv").open("a") as file:
        file.write(f"{NOON.timestamp():.3f},12")
    source = reading.read(sources.find([tmp_path]), registry.load_parsers()[0], load()).sources[0]
    assert (source.unmatched, source.skipped) == (0, 1)
    assert source.skipped_examples[0][1] == "cut off: not a whole row"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A recording of a command that states its budget and dies by a signal."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "cuzk.toml").write_text('[memory]\ntotal_budget = "3GiB"\n')
    command = ["sh", "-c", "echo hello; sleep 1.3; kill -9 $$", "sh", "--config", str(folder / "cuzk.toml")]
    subprocess.run(
        [*RECORD, "-o", str(folder / "run"), "--", *command, "--budget=2GiB"],
        check=False,
        capture_output=True,
        timeout=60,
        env=os.environ | {"CUZK_MODE": "fast"},
    )
    return folder / "run"


def test_every_line_is_claimed_by_a_parser(run):
    found = postmortem.analyze(run)
    ours = [one for one in found.result.sources if one.path != "run.log"]
    assert {one.path: (one.unmatched, one.skipped) for one in ours} == {one.path: (0, 0) for one in ours}
    assert {one.path for one in ours} >= {
        *("arrivals.csv", "exit.txt", "host.csv", "host.txt", "processes.csv", "shares.csv", "start.json"),
    }


def test_the_starts_budgets_and_limit_are_evidence(run):
    marks = _placed(run).run.table("marks")
    budgets = marks.filter(pl.col("what") == "budget_stated")
    assert budgets["value"].to_list() == [3 << 30, 2 << 30]
    assert budgets["text"].to_list()[-1] == "budget = 2GiB (command)"
    assert marks.filter(pl.col("what") == "daemon_pid").height == 1


def test_the_budget_of_the_command_line_is_the_one_of_the_arithmetic(run):
    budget = postmortem.analyze(run).arithmetic.budget
    assert budget is not None
    assert budget.best == 2 << 30
    assert budget.lines == ("start.json:1",)


def test_every_table_of_samples_is_read_under_the_kernels_names(run):
    samples = _placed(run).run.table("samples")
    metrics = {(row["scope"], row["metric"]) for row in samples.select("scope", "metric").unique().to_dicts()}
    assert metrics >= {
        *(("process", name) for name in ("rss_process", "anon", "file", "shmem", "pagetables", "pss", "pss_anon")),
        *(("host", name) for name in ("host_total", "host_available", "anon", "shmem", "locked", "unevictable")),
    }
    pss = samples.filter((pl.col("metric") == "pss") & (pl.col("scope") == "process"))
    assert pss["value"].max() < 64 << 20  # kB were read as kB: a shell and a sleep
