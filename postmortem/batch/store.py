"""A batch's tables, and the journal of its runs that they are made of: written whole or not at all."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import msgspec
import polars as pl

from postmortem.batch.rows import PARTS, RUNS
from postmortem.batch.target import Target
from postmortem.batch.work import Outcome

__all__ = ["PARTS_FILE", "RUNS_FILE", "Store"]

RUNS_FILE, PARTS_FILE = "runs.parquet", "parts.parquet"
_FLUSH_ROWS = 2_000


class Store:
    """`runs.parquet`, `parts.parquet`, and the journal while a batch runs."""

    def __init__(self, target: Target) -> None:
        self._target = target
        target.prepare()
        self.merge()
        self._since_merge = 0

    def known(self) -> dict[str, tuple[str, str]]:
        """(content, analysis) of the runs that have a lasting row, by run."""
        data = self._target.read(RUNS_FILE)
        if data is None:
            return {}
        lasting = pl.col("status").is_in(["done", "no_evidence"]) & pl.col("content").is_not_null()
        columns = ["run", "content", "analysis", "status"]
        frame = pl.read_parquet(io.BytesIO(data), columns=columns).filter(lasting)
        return {run: (content, analysis) for run, content, analysis, _ in frame.iter_rows()}

    def add(self, outcome: Outcome) -> None:
        """Keep a run's rows, safe from our own death. Raises InputError when the disk is full."""
        self._target.append(msgspec.json.encode({"row": outcome.row, "parts": outcome.parts}) + b"\n")
        self._since_merge += 1
        if self._since_merge >= _FLUSH_ROWS:
            self.merge()
            self._since_merge = 0

    def merge(self) -> None:
        """Move the journal's rows into the tables; a run's newer rows replace its older ones."""
        newest = {entry["row"]["run"]: entry for entry in map(json.loads, self._target.journal())}
        if newest:
            runs = [_times(entry["row"]) for entry in newest.values()]
            parts = [part for entry in newest.values() for part in entry["parts"]]
            self._merge(PARTS_FILE, pl.DataFrame(parts, PARTS), list(newest))
            self._merge(RUNS_FILE, _frame(runs), list(newest))
        self._target.clear_journal()

    def close(self) -> None:
        """Merge and release the place."""
        try:
            self.merge()
        finally:
            self._target.release()

    def _merge(self, name: str, fresh: pl.DataFrame, runs: list[str]) -> None:
        frame, held = fresh, self._target.read(name)
        if held is not None:
            old = pl.read_parquet(io.BytesIO(held)).filter(~pl.col("run").is_in(runs))
            frame = pl.concat([old, fresh], how="diagonal")
        written = io.BytesIO()
        frame.sort("run", maintain_order=True).write_parquet(written)
        self._target.write(name, written.getvalue())


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, RUNS, orient="row")


def _times(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: dt.datetime.fromisoformat(row[name]) for name in ("ending_time", "start", "end") if row.get(name)}
    return dict.fromkeys(RUNS) | row | times
