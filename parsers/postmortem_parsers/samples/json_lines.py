"""JSON lines of samples: one object a moment, with a time and counters whose names we know.

Written by recording scripts, `docker stats --format json` (no time of its own), the Docker API's stats stream
(`read`, `memory_stats`), cgroup exporters. A sample:

    {"ts": 1773886571.5, "memory_current": 8352785044, "memory_max": 450971566080}

Not read: log records (objects with level, message or fields), status snapshots of the daemon (no time of day; their
`memory` is the budget's ledger, not measured memory), arrays.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, cast

import polars as pl

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import with_times
from postmortem_parsers.samples.columns import TIME_NAMES
from postmortem_parsers.samples.guess import unit_word
from postmortem_parsers.samples.inline import add_use_and_limit, four_digits
from postmortem_parsers.samples.names import COUNTS, Counter, for_container_total, lookup
from postmortem_parsers.samples.rows import add_samples, skip

__all__ = ["JsonLinesParser"]

_LOG_KEYS = frozenset(["level", "message", "msg", "fields", "log", "MESSAGE", "uptime_secs", "pipelines"])
_BRANCHES = frozenset(
    [
        *("memory", "mem", "cgroup", "memory_stats", "stats", "stat", "memory.stat", "memory_stat", "events"),
        *("memory.events", "gpu", "host", "process", "proc", "meminfo", "container"),
    ]
)
_TIME_KEYS = TIME_NAMES | {"read"}
_SUBJECT_KEYS = ("container", "name", "Name", "pod", "cgroup")
_SHOWN = 100


class JsonLinesParser:
    """One instance reads one stream: the keys found first hold for later chunks."""

    name: ClassVar[str] = "samples_jsonl"
    reads: ClassVar[str] = "JSON lines with a time and memory counters (recorders, docker stats as JSON)"
    example: ClassVar[str] = '{"ts": 1773886571.5, "memory_current": 8352785044, "memory_max": 450971566080}'
    priority: ClassVar[int] = 50
    whole: ClassVar[bool] = False

    def __init__(self) -> None:
        self._keys: _Keys | None = None

    def sniff(self, head: Head) -> float:
        """The share of the first lines that are objects with the same kind of counters."""
        lines = [line for line in head.lines if line.strip()]
        return self._find(lines[:_SHOWN])

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Lines that begin as an object does; cut ones are claimed and reported."""
        del context
        return lines["text"].str.contains(r"^\s*\{")

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples`."""
        tables = Tables()
        if self._keys is None:
            self._find(lines["text"].head(_SHOWN).to_list())
        keys = self._keys
        if keys is None:
            skip(context, lines, "no memory counter in this object")
            return tables
        closed = pl.col("text").str.contains(r"\}\s*,?\s*$")
        skip(context, lines.filter(~closed), "cut off: the object is not closed")
        whole = lines.filter(closed)
        if not keys.said:
            keys.said = True
            context.columns.extend(_sentence(path, counter) for path, counter in keys.counters.items())
        rows = whole.with_columns(
            stamp=_at(keys.time) if keys.time else pl.lit(None, pl.String),
            subject=_at(keys.subject) if keys.subject else pl.lit(None, pl.String),
        )
        rows = with_times(rows, "stamp")
        if keys.docker:
            rows = rows.with_columns(pair=_at(("MemUsage",)).str.split(" / "))
            rows = rows.with_columns(
                use=pl.col("pair").list.get(0, null_on_oob=True),
                limit=four_digits(pl.col("pair").list.get(1, null_on_oob=True)),
            )
            add_use_and_limit(tables, rows, context)
        if keys.counters:
            add_samples(tables, _cells(rows, keys.counters), context)
        return tables

    def _find(self, lines: list[str]) -> float:
        objects = [o for line in lines if (o := _object(line)) is not None]
        if not objects or len(objects) < 0.8 * len(lines) - 1:
            return 0.0
        keys = _Keys()
        for found in objects:
            keys.learn(found)
        usable = (keys.time and keys.counters) or keys.docker
        if not usable:
            return 0.0
        self._keys = keys
        return len(objects) / len(lines)


class _Keys:
    """Where in the objects the time, the subject and the counters are."""

    def __init__(self) -> None:
        self.time: tuple[str, ...] | None = None
        self.subject: tuple[str, ...] | None = None
        self.counters: dict[tuple[str, ...], Counter] = {}
        self.docker = False
        self.said = False

    def learn(self, found: dict[str, Any]) -> None:
        if _LOG_KEYS & found.keys():
            return
        self.docker = self.docker or isinstance(found.get("MemUsage"), str)
        times = (k for k, v in found.items() if k.lower() in _TIME_KEYS and isinstance(v, str | int | float))
        self.time = self.time or next(((key,) for key in times), None)
        self.subject = self.subject or next(((k,) for k in _SUBJECT_KEYS if isinstance(found.get(k), str)), None)
        fresh = {path: c for path, c in _counters(found, ()).items() if path not in self.counters}
        if fresh:
            every = {"\0".join(path): c for path, c in (self.counters | fresh).items()}
            kept = for_container_total({path.split("\0")[-1] + "\0" + path: c for path, c in every.items()})
            self.counters = {tuple(key.split("\0")[1:]): c for key, c in kept.items()}


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _counters(found: dict[str, Any], path: tuple[str, ...]) -> dict[tuple[str, ...], Counter]:
    """The known counters in an object and in those of its branches that hold memory."""
    counters: dict[tuple[str, ...], Counter] = {}
    for key, value in found.items():
        here = (*path, key)
        if isinstance(value, dict) and key.lower() in _BRANCHES and len(path) < 3:
            counters |= _counters(cast("dict[str, Any]", value), here)
        elif isinstance(value, int | float) and not isinstance(value, bool) and (counter := _counter(path, key)):
            counters[here] = counter
    return counters


def _counter(path: tuple[str, ...], key: str) -> Counter | None:
    """What `key` counts in the branch that `path` leads to."""
    if not path and key.lower() in _TIME_KEYS:
        return None
    branch = path[-1].lower() if path else ""
    if branch in ("events", "memory.events"):
        return lookup(f"events_{key}") or lookup(key)
    if branch == "gpu":
        return lookup(f"gpu_mem_{key.removeprefix('memory_').removeprefix('mem_')}")
    return lookup(key)


def _at(path: tuple[str, ...]) -> pl.Expr:
    return pl.col("text").str.json_path_match("$" + "".join(f"['{key}']" for key in path))


def _cells(rows: pl.DataFrame, counters: dict[tuple[str, ...], Counter]) -> pl.DataFrame:
    return pl.concat(
        rows.select(
            *("line", "text", "time", "local_time", "clock_only", "subject"),
            cell=_at(path),
            metric=pl.lit(counter.metric),
            scope=pl.lit(counter.scope),
            unit=pl.lit(counter.unit, pl.Int64),
            exact=pl.lit(counter.exact),
        )
        for path, counter in counters.items()
    ).filter(pl.col("cell").is_not_null())


def _sentence(path: tuple[str, ...], counter: Counter) -> str:
    unit = "a count" if counter.metric in COUNTS else f"in {unit_word(counter.unit)}"
    return f"{'.'.join(path)}: taken for {counter.metric} ({counter.scope}), {unit}"
