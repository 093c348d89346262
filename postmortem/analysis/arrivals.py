"""Times for lines that have none: when a recorder saw them arrive (marks `arrival`, beside the file that they are of).

A line cannot be written after it arrived. It can have waited in a buffer before: where a file's own stamps show that
its lines arrived late, its own neighbouring stamps are nearer to the truth.
"""

import dataclasses
from pathlib import PurePath

import polars as pl

from postmortem.run import Run

__all__ = ["NOTE", "dated_by_arrival"]

NOTE = "UTC, when the recorder saw each line arrive (± 0.1 s)"
_LATE_S = 2.0


def dated_by_arrival(run: Run) -> tuple[Run, set[int]]:
    """The run with arrival times among `lines_time` and without their marks, and the sources that they date."""
    marks = run.table("marks")
    arrivals = marks.filter(
        (pl.col("what") == "arrival") & pl.col("time").is_not_null() & pl.col("value").is_not_null()
    )
    if arrivals.is_empty():
        return run, set()
    pieces, dated = [run.lines_time], set[int]()
    for (beside, file), rows in arrivals.group_by("source", "text", maintain_order=True):
        assert isinstance(beside, int)
        log = _neighbour(run, beside, str(file))
        own = run.lines_time.filter(pl.col("source") == log)
        if log is None or _late(own, rows):
            continue
        if own.is_empty():
            dated.add(log)
        pieces.append(_first_lines(rows, log).join(own, on=["source", "line"], how="anti"))
    lines_time = pl.concat(pieces).sort("source", "line")
    left = run.with_tables({"marks": marks.filter(pl.col("what").ne_missing("arrival"))})
    return dataclasses.replace(left, lines_time=lines_time), dated


def _neighbour(run: Run, beside: int, file: str) -> int | None:
    """The source of that name in the same folder; a compressed one too."""
    folder = PurePath(run.sources[beside].path).parent
    for index, source in enumerate(run.sources):
        path = PurePath(source.path)
        if path.parent == folder and (path.name == file or path.name.startswith(f"{file}.")):
            return index
    return None


def _first_lines(rows: pl.DataFrame, log: int) -> pl.DataFrame:
    """The first line of each arrival: those after it, up to the next, came with it."""
    grown = rows.sort("line").with_columns(line=pl.col("value").shift(1, fill_value=0) + 1)
    return grown.select(source=pl.lit(log, pl.Int32), line=pl.col("line").cast(pl.Int64), time=pl.col("time"))


def _late(own: pl.DataFrame, rows: pl.DataFrame) -> bool:
    stamped = own.drop_nulls("time").sort("line")
    if stamped.is_empty():
        return False
    counts = rows.select(line=pl.col("value"), arrived="time").sort("line")
    met = stamped.join_asof(counts, on="line", strategy="forward").drop_nulls("arrived")
    late = (met["arrived"] - met["time"]).dt.total_microseconds().median()
    return isinstance(late, int | float) and abs(late) > _LATE_S * 1e6
