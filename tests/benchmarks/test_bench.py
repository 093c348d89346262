"""The benchmarks' own parts: the loop that we are measured against gives the same rows, and the table says what was measured."""

import polars as pl

from benchmarks.generate import write
from benchmarks.python_loop import rows
from benchmarks.run import Figures, table
from postmortem.reading import read
from postmortem.sources import find
from postmortem_parsers.profiles import load
from postmortem_parsers.registry import load_parsers


def test_the_python_loop_gives_the_rows_that_the_reader_gives(tmp_path):
    write(tmp_path / "run.log", 1 << 19)
    ours = read(find([str(tmp_path / "run.log")]), load_parsers()[0], load("cuzk")).tables
    theirs = rows(tmp_path / "run.log")
    assert {name: len(made) for name, made in theirs.items()} == {n: f.height for n, f in ours.items() if f.height}
    pool = ours["pool"].select("time", "line", "op", "free_remaining")
    assert pool.to_dicts() == [
        {
            "time": row["time"],
            "line": row["line"],
            "op": row["op"],
            "free_remaining": None if row.get("free_remaining") is None else int(row["free_remaining"]),
        }
        for row in theirs["pool"]
    ]
    assert pool["op"].n_unique() >= 3
    assert pool["time"].dtype == pl.Datetime("us", "UTC")


def test_a_generated_log_is_the_same_for_the_same_seed(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / name, 1 << 16, seed=7)
    write(tmp_path / "c", 1 << 16, seed=8)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


def test_ratios_are_of_medians_to_the_first_row():
    figures = [Figures("a", [1.0, 9.0, 2.0], [1.0], [10.0]), Figures("b", [5.0, 5.0, 5.0], [4.0], [20.0, 30.0])]
    made = table("Reading", figures)
    assert "| a | 2.00 | 1.00 | 1.00 | 10 |" in made
    assert "| b | 5.00 | 2.50 | 4.00 | 30 |" in made
