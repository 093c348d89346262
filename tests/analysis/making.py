"""Tables of small runs, written by hand: what the parsers would have read, without any text. Only for tests."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import polars as pl

from postmortem.analysis import analyse
from postmortem.model import Circuit, MemoryModel
from postmortem.reading import SourceInfo
from postmortem.result import Result
from postmortem.run import Options, Run
from postmortem.schema import KEYS, TABLES, conform, empty
from postmortem.units import GIB

START = dt.datetime(2026, 3, 19, 2, 0, tzinfo=dt.UTC)

# The daemon of these tests: one circuit whose partitions reserve 14 GiB, 13 of which they give back when the GPU has them.
MODEL = MemoryModel(
    circuits={
        "porep": Circuit(
            srs=44 * GIB,
            pce=26 * GIB,
            full=14 * GIB,
            abc=13 * GIB,
            partitions=10,
            needs_abc=round(11.6 * GIB),
            needs_rest=round(1.1 * GIB),
        )
    },
    proof_kinds={"porep-c2": "porep"},
    buffers_per_partition=3,
    pce_extraction=14 * GIB,
    processes=("cuzk-daemon",),
)


def at(seconds: float) -> dt.datetime:
    """A moment of the run, to the microsecond."""
    return START + dt.timedelta(microseconds=round(seconds * 1e6))


def table(name: str, rows: Sequence[dict[str, Any]], source: int = 0) -> pl.DataFrame:
    """A table from rows whose `time` may be given in seconds of the run; lines are numbered in order."""
    if not rows:
        return empty(name)
    numbered = [{"source": source, "line": number, **row} for number, row in enumerate(rows, 1)]
    for row in numbered:
        if isinstance(row.get("time"), (int, float)):
            row["time"] = at(row["time"])
    schema = {column: TABLES[name][column] for column in numbered[0] | {c: None for row in numbered for c in row}}
    return conform(name, pl.DataFrame(numbered, schema=schema))


def lines_time(*seconds: float | dt.datetime, source: int = 0) -> pl.DataFrame:
    """Dated lines of a log, numbered from 1."""
    times = [s if isinstance(s, dt.datetime) else at(s) for s in seconds]
    rows = {"time": times, "source": [source] * len(times), "line": list(range(1, len(times) + 1))}
    return pl.DataFrame(rows, schema=KEYS).select("source", "line", "time")


def run(
    tables: dict[str, pl.DataFrame],
    dated: pl.DataFrame | None = None,
    *,
    model: MemoryModel = MODEL,
    sources: Sequence[str] = ("run.log", "mem.csv", "dmesg.txt", "exit.txt"),
    **options: Any,
) -> Run:
    """A run of these tables, as reading would have made it."""
    return Run(
        name="hand-made",
        tables=tables,
        sources=[SourceInfo(path) for path in sources],
        lines_time=lines_time() if dated is None else dated,
        model=model,
        profile="test",
        options=Options(**options),
    )


def result_of(made: Run) -> Result:
    """The analysis of a hand-made run; its lines have no text."""
    return analyse(made, lambda _wanted, _around: {}, "0")[0]
