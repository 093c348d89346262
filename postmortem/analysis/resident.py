"""Resident tables (SRS, PCE): when each was loaded, how large it is, whether it was still loading or extracted at a moment."""

import dataclasses
import datetime as dt

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem.model import MemoryModel
from postmortem.result import Basis, Quantity

__all__ = ["Extraction", "ResidentTable", "extractions", "loading_at", "resident_at", "tables"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class ResidentTable:
    """One table of one circuit, for one stay in memory."""

    kind: str
    circuit: str
    start: dt.datetime
    """Load began (equals `end` where the log only says that it is there)."""
    end: dt.datetime | None
    """Load ended; None = still loading when the evidence ends."""
    gone: dt.datetime | None
    low: int
    best: int
    high: int
    basis: Basis
    at: tuple[tuple[int, int], ...]
    """(source, line) pairs that say so."""

    @property
    def name(self) -> str:
        """`srs:porep-32g`, as arithmetic and eviction lines name it."""
        return f"{self.kind}:{self.circuit}"

    def quantity(self, lines: tuple[str, ...]) -> Quantity:
        """Its size."""
        return Quantity(low=self.low, best=self.best, high=self.high, basis=self.basis, lines=lines)


@dataclasses.dataclass(frozen=True)
class Extraction:
    """A PCE being extracted: heap beside the partitions for a while."""

    circuit: str | None
    start: dt.datetime
    end: dt.datetime | None
    at: tuple[int, int]


def tables(rows: pl.DataFrame, model: MemoryModel) -> list[ResidentTable]:
    """The tables of one attempt, in order of their loads."""
    found: list[ResidentTable] = []
    columns = ("op", "kind", "circuit", "size", "size_ulp", "time", "source", "line")
    for op, kind, circuit, size, ulp, time, source, line in (
        rows.filter(pl.col("time").is_not_null()).sort("time", "line").select(columns).iter_rows()
    ):
        open_at = next((i for i in reversed(range(len(found))) if _same(found[i], kind, circuit)), None)
        at = (source, line)
        match op:
            case "load_start":
                found.append(_new(kind, circuit, time, None, size, ulp, at, model))
            case "load_end" if open_at is not None and found[open_at].end is None:
                found[open_at] = _finish(found[open_at], time, size, ulp, at)
            case "load_end" | "snapshot" if open_at is None:
                found.append(_new(kind, circuit, time, time, size, ulp, at, model))
            case "load_end" | "snapshot" if open_at is not None and size is not None:
                found[open_at] = _finish(found[open_at], found[open_at].end or time, size, ulp, at)
            case "evict" if open_at is not None:
                found[open_at] = dataclasses.replace(found[open_at], gone=time, at=(*found[open_at].at, at))
            case _:
                pass
    return found


def _same(table: ResidentTable, kind: str | None, circuit: str | None) -> bool:
    return table.gone is None and table.kind == kind and table.circuit == (circuit or "unknown")


def _new(
    kind: str,
    circuit: str | None,
    start: dt.datetime,
    end: dt.datetime | None,
    size: int | None,
    ulp: int | None,
    at: tuple[int, int],
    model: MemoryModel,
) -> ResidentTable:
    basis: Basis = "measured"
    if size is None:
        constants = model.circuit(circuit)
        size = (constants.srs if kind == "srs" else constants.pce) if constants else 0
        basis, ulp = "assumed", size // 20
    high = size + max(0, (ulp or 0) - 1)
    return ResidentTable(kind, circuit or "unknown", start, end, None, size, size, high, basis, (at,))


def _finish(
    table: ResidentTable, end: dt.datetime, size: int | None, ulp: int | None, at: tuple[int, int]
) -> ResidentTable:
    """A load that ended; a size stated then is taken if it is finer than the one known."""
    changes: dict[str, object] = {"end": end, "at": (*table.at, at)[:4]}
    if size is not None and (ulp or 0) < table.high - table.low + 1:
        changes |= {"low": size, "best": size, "high": size + max(0, (ulp or 0) - 1), "basis": "measured"}
    return dataclasses.replace(table, **changes)  # pyright: ignore[reportArgumentType] (the keys are its own fields)


def extractions(rows: pl.DataFrame) -> list[Extraction]:
    """PCE extractions of one attempt: start lines paired with the completions of the same circuit."""
    found: list[Extraction] = []
    for op, circuit, time, source, line in (
        rows.filter(pl.col("op").is_in(["extract_start", "extract_end"]) & pl.col("time").is_not_null())
        .sort("time", "line")
        .select("op", "circuit", "time", "source", "line")
        .iter_rows()
    ):
        if op == "extract_start":
            found.append(Extraction(circuit, time, None, (source, line)))
            continue
        running = next((i for i, e in enumerate(found) if e.end is None and e.circuit in (circuit, None)), None)
        if running is not None:
            found[running] = dataclasses.replace(found[running], end=time)
    return found


def resident_at(found: list[ResidentTable], times: Floats) -> Floats:
    """Bytes of tables in memory at each moment (epoch seconds); a table that is loading grows evenly."""
    total = np.zeros(len(times))
    for table in found:
        start = table.start.timestamp()
        end = table.end.timestamp() if table.end else None
        if end is None:
            # Still loading when the evidence ends: the pace of the finished loads tells how far it is.
            end = start + max(1.0, table.best / _pace(found))
        share = np.clip((times - start) / max(end - start, 1e-6), 0.0, 1.0) if end > start else (times >= start) * 1.0
        if table.gone is not None:
            share = share * (times < table.gone.timestamp())
        total += share * table.best
    return total


def _pace(found: list[ResidentTable]) -> float:
    """Bytes a second of finished loads; a GiB a second where none finished."""
    paces = [
        t.best / (t.end - t.start).total_seconds() for t in found if t.end is not None and t.end > t.start and t.best
    ]
    return float(np.median(paces)) if paces else float(1 << 30)


def loading_at(found: list[ResidentTable], moment: dt.datetime) -> list[ResidentTable]:
    """Tables whose load has begun and not ended at a moment."""
    return [t for t in found if t.start <= moment and (t.end is None or t.end > moment) and t.start != t.end]
