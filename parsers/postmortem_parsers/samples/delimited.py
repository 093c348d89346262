"""Tables of samples with one line a moment: CSV, TSV, semicolons, bars or blanks, with or without a header.

Written by sampling loops of all kinds (`echo "$(date +%s),$(cat memory.current)"`), `sadf -d`, `below dump -O csv`,
`nvidia-smi --query-gpu=… --format=csv`, DCGM exports, Grafana's and Prometheus' CSV. A sample:

    timestamp,memory_current,memory_max
    1773886570.520,8602018293,450971566080

Not read: columns whose names say nothing that we know (they are listed), quoted cells that hold the separator.
"""

from __future__ import annotations

import dataclasses
import re
from typing import ClassVar

import polars as pl

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import with_times
from postmortem_parsers.samples.columns import TIME_NAMES, Layout, find_layout, rows_of, split
from postmortem_parsers.samples.guess import by_values, unit_of, unit_word
from postmortem_parsers.samples.names import COUNTS, Counter, for_container_total, lookup
from postmortem_parsers.samples.rows import add_samples, skip

__all__ = ["DelimitedParser"]

_ONLY_NUMBERS = r"^[0-9TZ\s.,;:|+/-]+$"
_NVIDIA_STAMP = r"^[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:.]+$"
_MEMORY_FILE = re.compile(r"mem|cgroup|rss|usage", re.IGNORECASE)
_LABEL = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)\{(?P<labels>.*)\}$")


@dataclasses.dataclass
class _Meaning:
    """What the columns of a stream were found to be."""

    counters: dict[int, Counter]
    subjects: dict[int, str]
    """The subject that a column's own name states (a series' labels)."""
    subject_columns: list[int]


class DelimitedParser:
    """CSV and its relatives. One instance reads one stream: the header is kept from chunk to chunk."""

    name: ClassVar[str] = "samples_csv"
    reads: ClassVar[str] = (
        "memory samples as CSV, TSV or columns, with or without header (also sadf, below, nvidia-smi)"
    )
    example: ClassVar[str] = "timestamp,memory_current,memory_max\n1773886570.520,8602018293,450971566080"
    priority: ClassVar[int] = 50
    whole: ClassVar[bool] = False

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._meaning: _Meaning | None = None

    def sniff(self, head: Head) -> float:
        """The share of the lines that are rows of one layout, time first of all."""
        found = find_layout(head.lines, small=bool(_MEMORY_FILE.search(head.name)))
        if found is None:
            return 0.0
        self._layout = found[0]
        return found[1]

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """The rows, the header wherever it stands, and cut rows: lines of nothing but numbers and separators."""
        del context
        layout = self._known_layout(lines)
        if layout is None:
            return pl.repeat(value=False, n=lines.height, eager=True, dtype=pl.Boolean)
        parts = split(lines["text"], layout.separator)
        numbers = lines["text"].str.contains(_ONLY_NUMBERS) & lines["text"].str.contains("[0-9]")
        timed = rows_of(parts, dataclasses.replace(layout, width=-1))  # data is false: only the stamps are wanted
        is_timed = with_times(timed, "stamp")["time"].is_not_null() & (parts["width"] > 1)
        return (is_timed | numbers | self._is_header(parts)).fill_null(value=False)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples`; what each column was taken for goes to `context.columns`."""
        tables = Tables()
        layout = self._known_layout(lines)
        if layout is None or not lines.height:
            return tables
        parts = split(lines["text"], layout.separator)
        rows = pl.concat([lines.select("line", "text"), parts, rows_of(parts, layout)], how="horizontal")
        rows = rows.filter(~self._is_header(parts))
        broken = rows.filter(~pl.col("data"))
        skip(context, broken.filter(pl.col("width") < layout.width), f"cut off: fewer than {layout.width} columns")
        skip(context, broken.filter(pl.col("width") > layout.width), f"more than {layout.width} columns")
        skip(context, broken.filter(pl.col("width") == layout.width), "no time and number in their columns")
        data = with_times(rows.filter("data"), "stamp")
        if data.height:
            if self._meaning is None:
                self._meaning = _meaning(layout, data, context)
            add_samples(tables, _cells(data, self._meaning), context)
        return tables

    def _known_layout(self, lines: pl.DataFrame) -> Layout | None:
        if self._layout is None and (found := find_layout(lines["text"].head(1000).to_list())):
            self._layout = found[0]
        return self._layout

    def _is_header(self, parts: pl.DataFrame) -> pl.Series:
        assert self._layout is not None
        time = parts["cells"].list.get(self._layout.time[0], null_on_oob=True).str.to_lowercase()
        return time.is_in(list(TIME_NAMES)).fill_null(value=False)


def _meaning(layout: Layout, data: pl.DataFrame, context: Context) -> _Meaning:
    """What each column is, by its name, else by its values; and the sentences that say so."""
    names = layout.header or tuple(f"column {i + 1}" for i in range(layout.width))
    free = [i for i in range(layout.width) if i not in layout.time and names[i].lower() not in TIME_NAMES]
    meaning = _by_names(names, free) if layout.header else _Meaning({}, {}, [])
    guessed = "" if meaning.counters else " by its values"
    if not meaning.counters:
        _add_guesses(meaning, [i for i in free if i not in meaning.subject_columns], data)
    else:
        _guess_units(meaning, names, data)
    for i in free:
        if counter := meaning.counters.get(i):
            unit = "a count" if counter.metric in COUNTS else f"in {unit_word(counter.unit)}"
            context.columns.append(f"{names[i]}: taken for {counter.metric} ({counter.scope}){guessed}, {unit}")
        elif i not in meaning.subject_columns:
            context.columns.append(f"{names[i]}: not read")
    return meaning


def _by_names(names: tuple[str, ...], free: list[int]) -> _Meaning:
    known: dict[str, tuple[int, Counter]] = {}
    subjects: dict[int, str] = {}
    for i in free:
        name = names[i]
        if labelled := _LABEL.match(name.strip("\"'")):
            name, subjects[i] = labelled["name"], labelled["labels"].replace('"', "")
        if counter := lookup(name):
            known[f"{names[i]}\0{i}"] = (i, counter)
    low = [name.lower() for name in names]
    subject_columns = [i for i in free if low[i] in _subject_names(low)]
    resolved = for_container_total({key: counter for key, (_, counter) in known.items()})
    counters = {known[key][0]: counter for key, counter in resolved.items() if known[key][0] not in subject_columns}
    if "pid" in low:
        counters = {i: _of_process(counter) for i, counter in counters.items()}
    return _Meaning(counters, subjects, subject_columns)


def _subject_names(low: list[str]) -> tuple[str, ...]:
    """Which columns name the subject of a row, the first kind that there is."""
    for kind in (("pid", "name", "comm", "command", "process_name"), ("index", "gpu", "gpu_id", "uuid", "gpu_uuid")):
        if kind[0] in low or (kind[0] == "index" and any(name in low for name in kind)):
            return kind
    return ("container", "pod", "name", "cgroup", "full path", "container_name")


def _of_process(counter: Counter) -> Counter:
    """Beside a pid, `rss` is the process's."""
    metric = "rss_process" if counter.metric in ("rss", "current") else counter.metric
    return dataclasses.replace(counter, metric=metric, scope="gpu" if counter.scope == "gpu" else "process")


def _numbers(data: pl.DataFrame, column: int) -> pl.Series:
    return (
        data["cells"].list.get(column, null_on_oob=True).str.extract(r"^([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)", 1)
    )


def _has_units(data: pl.DataFrame, column: int) -> bool:
    return bool(data["cells"].list.get(column, null_on_oob=True).str.contains(r"^[0-9.]+\s?[KMGTkBb]").any())


def _add_guesses(meaning: _Meaning, free: list[int], data: pl.DataFrame) -> None:
    gpu = bool(data["stamp"].str.contains(_NVIDIA_STAMP).any())
    columns = {str(i): _numbers(data, i) for i in free}
    for key, metric in by_values({k: v for k, v in columns.items() if not gpu or _has_units(data, int(k))}).items():
        column = int(key)
        unit = 1 if _has_units(data, column) else unit_of(columns[key])
        if gpu:
            metric = {"current": "vram_used", "limit": "vram_total"}[metric]  # noqa: PLW2901 (the same thing, on the GPU)
        meaning.counters[column] = Counter(metric, "gpu" if gpu else "cgroup", unit, exact=unit == 1)


def _guess_units(meaning: _Meaning, names: tuple[str, ...], data: pl.DataFrame) -> None:
    """A use of 341.2 in a column called `used` is no 341 bytes: take the unit that fits the largest of the columns."""
    stated = re.compile(r"byte|_b\b|[kmg]i?b\b|\[|\(|\.", re.IGNORECASE)
    unsure = [
        i
        for i, c in meaning.counters.items()
        if c.unit == 1 and c.metric not in COUNTS and not stated.search(names[i]) and not _has_units(data, i)
    ]
    if not unsure:
        return
    largest = pl.concat([_numbers(data, i).cast(pl.Float64, strict=False) for i in unsure])
    unit = unit_of(largest)
    if unit <= 1 << 10:  # small groups exist in kB; only megabytes and gigabytes are plain from the size
        return
    for i in unsure:
        meaning.counters[i] = dataclasses.replace(meaning.counters[i], unit=unit, exact=False)


def _cells(data: pl.DataFrame, meaning: _Meaning) -> pl.DataFrame:
    """One row a cell of a known column."""
    subject = (
        pl.concat_str(
            [pl.col("cells").list.get(i, null_on_oob=True) for i in meaning.subject_columns],
            separator=":",
            ignore_nulls=True,
        )
        if meaning.subject_columns
        else pl.lit(None, pl.String)
    )
    base = data.with_columns(subject=subject)
    kept = ["line", "text", "time", "local_time", "clock_only"]
    return (
        pl.concat(
            base.select(
                *kept,
                cell=pl.col("cells").list.get(i, null_on_oob=True),
                metric=pl.lit(counter.metric),
                scope=pl.lit(counter.scope),
                subject=pl.lit(meaning.subjects[i]) if i in meaning.subjects else pl.col("subject"),
                unit=pl.lit(counter.unit, pl.Int64),
                exact=pl.lit(counter.exact),
            )
            for i, counter in meaning.counters.items()
        )
        if meaning.counters
        else pl.DataFrame(schema=dict.fromkeys((*kept, "cell", "metric", "scope", "subject"), pl.String))
    )
