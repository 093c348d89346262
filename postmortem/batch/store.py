"""The batch's folder: a journal that grows by a line a run, and the tables made of it, written whole or not at all."""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import polars as pl

from postmortem.batch.rows import PARTS, RUNS
from postmortem.batch.work import Outcome
from postmortem.errors import InputError, UsageError

__all__ = ["Store", "replace"]

_FLUSH_ROWS = 2_000


class Store:
    """`DIR/runs.parquet`, `DIR/parts.parquet`, and `DIR/.batch/journal.jsonl` while a batch runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs, self.parts = folder / "runs.parquet", folder / "parts.parquet"
        work = folder / ".batch"
        try:
            work.mkdir(parents=True, exist_ok=True)
            self._lock = (work / "lock").open("w")
        except OSError as error:
            msg = f"{folder}: cannot be written ({error.strerror or error})"
            raise InputError(msg) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            msg = f"{folder}: another batch is writing there; wait for it or give another --out"
            raise UsageError(msg) from error
        for part in folder.glob(".*.part"):  # of an earlier call that was killed within a write
            part.unlink()
        self._journal_path = work / "journal.jsonl"
        self.merge()
        self._journal: BinaryIO = self._journal_path.open("ab")
        self._since_merge = 0

    def known(self) -> dict[str, tuple[str, str]]:
        """(content, analysis) of the runs that have a lasting row, by run."""
        if not self.runs.exists():
            return {}
        lasting = pl.col("status").is_in(["done", "no_evidence"]) & pl.col("content").is_not_null()
        frame = pl.scan_parquet(self.runs).filter(lasting).select("run", "content", "analysis").collect()
        return {run: (content, analysis) for run, content, analysis in frame.iter_rows()}

    def add(self, outcome: Outcome) -> None:
        """Keep a run's rows, safe from our own death. Raises InputError when the disk is full."""
        line = msgspec.json.encode({"row": outcome.row, "parts": outcome.parts}) + b"\n"
        try:
            self._journal.write(line)
            self._journal.flush()
        except OSError as error:
            msg = f"{self.folder}: cannot be written ({error.strerror or error}); what is done is kept, call again"
            raise InputError(msg) from error
        self._since_merge += 1
        if self._since_merge >= _FLUSH_ROWS:
            self.merge()
            self._since_merge = 0

    def merge(self) -> None:
        """Move the journal's rows into the tables; a run's newer rows replace its older ones."""
        if not self._journal_path.exists():
            return
        entries = list(_entries(self._journal_path))
        if entries:
            newest = {entry["row"]["run"]: entry for entry in entries}
            runs = [_times(entry["row"]) for entry in newest.values()]
            parts = [part for entry in newest.values() for part in entry["parts"]]
            _merge(self.parts, pl.DataFrame(parts, PARTS), list(newest))
            _merge(self.runs, _frame(runs), list(newest))
        with self._journal_path.open("r+b") as journal:
            journal.truncate(0)

    def close(self) -> None:
        """Merge and release the folder."""
        self.merge()
        self._journal.close()
        self._lock.close()


def replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a part file, then put it in place of `path`. Raises InputError where the disk refuses."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(part)
        part.replace(path)
    except (OSError, pl.exceptions.PolarsError) as error:  # polars wraps what its writer met
        msg = (
            f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}); what is done is kept, call again"
        )
        raise InputError(msg) from error
    finally:
        part.unlink(missing_ok=True)


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, RUNS, orient="row")


def _times(row: dict[str, Any]) -> dict[str, Any]:

    times = {name: dt.datetime.fromisoformat(row[name]) for name in ("ending_time", "start", "end") if row.get(name)}
    return dict.fromkeys(RUNS) | row | times


def _entries(journal: Path) -> Iterator[dict[str, Any]]:
    with journal.open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):  # cut by the death of an earlier call
                return
            yield json.loads(line)


def _merge(path: Path, fresh: pl.DataFrame, runs: list[str]) -> None:
    frame = fresh
    if path.exists():
        old = pl.read_parquet(path).filter(~pl.col("run").is_in(runs))
        frame = pl.concat([old, fresh], how="diagonal")
    replace(path, frame.sort("run", maintain_order=True).write_parquet)
