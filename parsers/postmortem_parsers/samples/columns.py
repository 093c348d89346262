"""Cutting delimited lines into cells, and finding which separator and header a stream has."""

from __future__ import annotations

import csv
import dataclasses
import re

import polars as pl

from postmortem_parsers.samples.clocks import DATED, STAMP, with_times
from postmortem_parsers.samples.names import lookup
from postmortem_parsers.samples.sizes import NO_VALUE, SIZE

__all__ = ["TIME_NAMES", "Layout", "find_layout", "rows_of", "split"]

TIME_NAMES = frozenset(
    [
        *(
            "time",
            "timestamp",
            "ts",
            "epoch",
            "date",
            "datetime",
            "@timestamp",
            "unix",
            "unixtime",
            "unix_time",
            "when",
        ),
        *("epoch_s", "time_s", "epoch_ms", "time_ms", "timestamp_ms", "timestamp_s", "time_unix", "time_utc", "t"),
    ]
)
SUBJECT_NAMES = frozenset(["pid", "name", "comm", "command", "container", "pod", "index", "gpu", "cgroup", "full path"])
_SEPARATORS = (",", ";", "\t", "|", "  ", " ")
_BLANKS = ("  ", " ")
_NUMBER_CELL = rf"^(?:{SIZE}|-?[0-9]+(?:[.][0-9]+)?\s?%?)$"
_SAMPLE_OF_LINES = 400
_HEADER_WITHIN = 30


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a stream's lines are cut."""

    separator: str
    """One character; two blanks: columns set apart by two blanks or more; one: by any."""
    width: int
    header: tuple[str, ...] | None
    time: tuple[int, ...]
    """The column of the time, or those of the date and the clock."""


def split(text: pl.Series, separator: str) -> pl.DataFrame:
    """Cells of each line: columns `cells` (list of text without blanks and quotes at the ends) and `width`."""
    body = text.str.strip_chars("\ufeff").str.strip_prefix("#").str.strip_chars(" " if separator == "\t" else " \t")
    if separator in _BLANKS:
        # A stamp or a unit behind a blank must not fall apart.
        body = body.str.replace(rf"^\[?({DATED})\]?[,:]?(\s|$)", "\u0001${1}\u0001${2}")
        stamp = body.str.extract("^\u0001([^\u0001]*)\u0001", 1)
        rest = body.str.replace("^\u0001[^\u0001]*\u0001", "").str.strip_chars()
        rest = rest.str.replace_all(r"([0-9])\s+([KMGT]i?B)(\s|$)", "${1}${2}${3}")
        pieces = rest.str.replace_all(r"\s{2,}" if separator == "  " else r"\s+", "\u0001").str.split("\u0001")
        cells = pl.select(
            pl.when(stamp.is_not_null()).then(pl.concat_list(stamp.fill_null(""), pieces)).otherwise(pieces)
        ).to_series()
    elif separator == ";":
        cells = body.str.replace_all(r"([0-9]),([0-9])", "${1}.${2}").str.split(separator)  # the decimal comma
    else:
        cells = body.str.split(separator)
    cells = cells.list.eval(pl.element().str.strip_chars(" \t\"'"))
    return pl.DataFrame({"cells": cells, "width": cells.list.len().cast(pl.Int64)})


def rows_of(parts: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """`stamp` (text of the time) and `data` (true where the line is a row of this layout) of split lines."""
    get = [pl.col("cells").list.get(i, null_on_oob=True) for i in layout.time]
    stamped = parts.select("cells", "width", stamp=pl.concat_str(get, separator=" "))
    timed = with_times(stamped, "stamp")["time"].is_not_null()
    numbers = stamped.select(
        pl.col("cells").list.eval(pl.element().str.contains(_NUMBER_CELL)).list.sum().cast(pl.Int64)
    ).to_series()
    time_is_number = stamped["stamp"].str.contains(r"^[0-9.]+$").fill_null(value=False).cast(pl.Int64)
    data = timed & (stamped["width"] == layout.width) & (numbers - time_is_number >= 1)
    return stamped.select("stamp").with_columns(data=data)


def find_layout(lines: list[str], *, small: bool = False) -> tuple[Layout, float] | None:
    """The layout that fits most of the first lines, with its share of them; None where none fits.

    Numbers without header and unit count only when they are as large as memory in bytes, or, with `small`, as any
    size in another unit (the file's name says that it is about memory).
    """
    text = pl.Series("text", [line for line in lines if line.strip()][:_SAMPLE_OF_LINES], dtype=pl.String)
    if text.len() < 2:
        return None
    found = [
        f
        for s in _SEPARATORS
        if (f := _with_header(text, s, small=small) or _without_header(text, s, small=small)) is not None
    ]
    return max(found, key=lambda f: (f[1], f[0].width)) if found else None


def _with_header(text: pl.Series, separator: str, *, small: bool) -> tuple[Layout, float] | None:
    for n, line in enumerate(text.head(_HEADER_WITHIN)):
        header = _header_cells(line, separator)
        times = [i for i, name in enumerate(header) if _bare(name) in TIME_NAMES]
        if not times or len(header) < 2:
            continue
        rows = split(text.slice(n + 1), separator)
        for time in _time_choices(header, times):
            layout = Layout(separator, len(header), tuple(header), time)
            data = rows_of(rows, layout)["data"]
            share = float(data.sum()) / data.len() if data.len() else 0.0
            if share >= 0.6 and (_names_memory(header) or small or _large(rows.filter(data)["cells"], time[-1])):
                return layout, min(1.0, share + 0.05)
    return None


def _header_cells(line: str, separator: str) -> list[str]:
    body = line.strip("\ufeff").strip().removeprefix("#").strip()
    if separator == "  ":
        return re.split(r"\s{2,}", body)
    if separator == " ":
        return body.split()
    try:
        return [cell.strip() for cell in next(csv.reader([body], delimiter=separator, skipinitialspace=True))]
    except (csv.Error, StopIteration):
        return []


def _bare(name: str) -> str:
    return name.strip().strip("\"'").lower()


def _names_memory(header: list[str]) -> bool:
    """Whether a column other than time and subject has a name that we know."""
    return any(lookup(name) for name in header if _bare(name) not in TIME_NAMES | SUBJECT_NAMES)


def _time_choices(header: list[str], times: list[int]) -> list[tuple[int, ...]]:
    """The columns to try as time: an epoch before a written time; a date joined with its clock."""
    bare = [_bare(name) for name in header]
    single: list[tuple[int, ...]] = [(i,) for i in sorted(times, key=lambda i: bare[i] in ("datetime", "date", "time"))]
    if "date" in bare and "time" in bare:
        return [(bare.index("date"), bare.index("time")), *single]
    return single


def _without_header(text: pl.Series, separator: str, *, small: bool) -> tuple[Layout, float] | None:
    parts = split(text, separator)
    width = parts["width"].mode().sort()[-1]
    if width < 2:
        return None
    stamps = parts.filter(pl.col("width") == width)["cells"]
    for time in range(min(width, 3)):
        layout = Layout(separator, width, None, (time,))
        if not stamps.list.get(time).str.contains(rf"^{STAMP}$").any():
            continue
        rows = rows_of(parts, layout)["data"]
        share = float(rows.sum()) / rows.len()
        cells = parts.filter(rows)["cells"]
        if share >= 0.8 and _all_numbers(cells, time) and (small or _large(cells, time)):
            return layout, share - 0.1
    return None


def _all_numbers(cells: pl.Series, time: int) -> bool:
    """Whether, the time aside, hardly any cell is a word: prose and logs have words."""
    others = pl.DataFrame({"cells": cells}).with_row_index("row").explode("cells")
    others = others.with_columns(column=pl.int_range(pl.len()).over("row")).filter(pl.col("column") != time)
    is_number = others["cells"].str.contains(_NUMBER_CELL) | others["cells"].str.to_lowercase().str.contains(NO_VALUE)
    return others.height > 0 and float(is_number.mean() or 0) >= 0.7  # pyright: ignore[reportArgumentType] (mean of booleans)


def _large(cells: pl.Series, time: int) -> bool:
    """Whether a column holds numbers that can only be memory: ten MiB in bytes, or a unit behind them."""
    values = cells.list.gather([i for i in range(cells.list.len().max() or 0) if i != time]).explode()  # pyright: ignore[reportArgumentType, reportOperatorIssue] (lengths are integers)
    with_unit = values.str.contains(r"^[0-9.]+\s?(?:[KMGT]i?B|[kKMGT])$").any()
    return bool(with_unit) or float(values.cast(pl.Float64, strict=False).max() or 0) >= 1e7  # pyright: ignore[reportArgumentType] (as above)
