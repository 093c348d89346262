"""Snapshots of cuzk-daemon's `GET /status`, one JSON object a line, as a polling loop collects them.

    {"uptime_secs":18.37,"memory":{"total_bytes":214748364800,"used_bytes":47395823628,"available_bytes":…},…}

The ledger's exact bytes and the resident tables are read; they carry no wall-clock time, only the daemon's uptime.
Not read: GPU workers, counters, the states of partitions (the log has them with their times).
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec
import polars as pl

from postmortem_parsers.interface import Context, Head, Skipped, Tables

__all__ = ["StatusParser"]

_SNAPSHOT = r'^\s*\{\s*"uptime_secs"\s*:'
_WIDTH = 300


class _Memory(msgspec.Struct):
    total_bytes: int
    used_bytes: int
    available_bytes: int | None = None


class _Allocation(msgspec.Struct):
    circuit_id: str
    bytes: int


class _Allocations(msgspec.Struct):
    srs: list[_Allocation] = []
    pce: list[_Allocation] = []


class _Status(msgspec.Struct):
    uptime_secs: float
    memory: _Memory
    allocations: _Allocations = msgspec.field(default_factory=_Allocations)


class StatusParser:
    """Status snapshots."""

    name: ClassVar[str] = "status"
    reads: ClassVar[str] = "cuzk-daemon's status snapshots (GET /status), one JSON object a line"
    example: ClassVar[str] = (
        '{"uptime_secs":18.37,"memory":{"total_bytes":214748364800,"used_bytes":47395823628,'
        '"available_bytes":167352541172},"allocations":{"srs":[],"pce":[]}}'
    )
    priority: ClassVar[int] = 14
    whole: ClassVar[bool] = False

    def sniff(self, head: Head) -> float:
        """They may begin anywhere in a captured file."""
        return 0.9 if head.share(re.compile(_SNAPSHOT)) > 0 else 0.1

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Objects that begin with the uptime."""
        del context
        return lines["text"].str.contains(_SNAPSHOT)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """`budget` check-points and `resident` snapshots, in exact bytes."""
        budget, resident = list[dict[str, Any]](), list[dict[str, Any]]()
        decoder = msgspec.json.Decoder(_Status)
        # One object a poll, seconds apart: few enough for a loop, which alone can tell which of them is broken.
        for line, text in lines.select("line", "text").iter_rows():
            try:
                status = decoder.decode(text)
            except msgspec.DecodeError as error:
                context.skipped.append(Skipped(line, f"no whole status snapshot ({error})", text[:_WIDTH]))
                continue
            place = {"source": context.source, "line": line, "uptime_s": status.uptime_secs}
            budget.append({**place, **_ledger(status.memory)})
            resident.extend({**place, **row} for row in _tables(status.allocations))
        tables = Tables()
        for name, rows in (("budget", budget), ("resident", resident)):
            if rows:
                tables.add(name, pl.DataFrame(rows, infer_schema_length=None))
        return tables


def _ledger(memory: _Memory) -> dict[str, Any]:
    exact = {"used_ulp": 0, "available_ulp": 0, "total_ulp": 0}
    sizes = {"used": memory.used_bytes, "available": memory.available_bytes, "total": memory.total_bytes}
    return {"op": "checkpoint", **sizes, **exact}


def _tables(allocations: _Allocations) -> list[dict[str, Any]]:
    kinds = (("srs", allocations.srs), ("pce", allocations.pce))
    return [
        {"op": "snapshot", "kind": kind, "circuit": held.circuit_id, "size": held.bytes, "size_ulp": 0}
        for kind, each in kinds
        for held in each
    ]
