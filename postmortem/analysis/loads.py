"""Tables that load and PCEs that are extracted at a moment: what of them is in memory, and what they take beside."""

import datetime as dt

import numpy as np
import polars as pl

from postmortem.analysis.cite import Citations
from postmortem.analysis.memory import Memory
from postmortem.analysis.resident import Extraction, ResidentTable
from postmortem.analysis.state import Replays
from postmortem.quantity import Quantity
from postmortem.units import GIB

__all__ = ["extracting", "extraction", "loaded_shares", "transient"]


def loaded_shares(
    replays: Replays, loading: list[ResidentTable], moment: dt.datetime, limit: Quantity | None
) -> dict[str, Quantity]:
    """Bytes of each loading table that are in memory: by the samples' slope, else by the pace of finished loads."""
    shares: dict[str, Quantity] = {}
    for table in loading:
        elapsed = max(0.0, (moment - table.start).total_seconds())
        paces = [
            t.best / (t.end - t.start).total_seconds() for t in replays.tables if t.end and t.end > t.start and t.best
        ]
        slope = _slope(replays.memory, table.start, moment, limit.best if limit else None)
        if slope is not None and slope > 0 and len(loading) == 1:
            # While it loads the file is mapped and copied at once: memory grows by both.
            pace, basis = slope / 2, "derived"
        else:
            pace, basis = (float(np.median(paces)) if paces else float(GIB)), "modelled"
        best = min(float(table.best), pace * elapsed)
        shares[table.name] = Quantity(
            low=round(0.7 * best), best=round(best), high=round(min(1.25 * best, table.high)), basis=basis
        )
    return shares


def _slope(memory: Memory, start: dt.datetime, end: dt.datetime, limit: int | None) -> float | None:
    """Bytes a second between two moments, from samples below the limit; None with fewer than four."""
    rows = memory.samples.filter(pl.col("time").is_between(start, end))
    if limit is not None:
        rows = rows.filter(pl.col("current") < 0.99 * limit)
    if rows.height < 4:
        return None
    change = (rows["unreclaimable"][-1] - rows["unreclaimable"][0]) / (
        rows["time"][-1] - rows["time"][0]
    ).total_seconds()
    return float(change)


def transient(loading: list[ResidentTable], shares: dict[str, Quantity], cites: Citations) -> Quantity:
    """Bytes of mapped files that cannot be given back while they are being copied (cuzk-daemon.md, section 4)."""
    tables = [t for t in loading if t.kind == "srs"]
    low = best = high = 0
    for table in tables:
        share = shares[table.name]
        low, best, high = low + round(0.5 * share.low), best + share.best, high + share.high
    lines = cites.all(*(t.at[0] for t in tables))
    return Quantity(low=low, best=best, high=high, basis="modelled" if tables else "derived", lines=lines)


def extracting(replays: Replays, moment: dt.datetime) -> list[Extraction]:
    """Extractions in flight."""
    return [e for e in replays.extractions if e.start <= moment and (e.end is None or e.end > moment)]


def extraction(replays: Replays, moment: dt.datetime, cites: Citations) -> Quantity:
    """Heap of PCE extractions in flight: at least the table that grows, at most it and its working copy."""
    running = extracting(replays, moment)
    low = best = high = 0
    for extraction in running:
        circuit = replays.model.circuit(extraction.circuit)
        size = circuit.pce if circuit else 0
        age = (moment - extraction.start).total_seconds()
        done = min(1.0, age / _typical_extraction(replays))
        best += round(size * done)
        high += round((size + replays.model.pce_extraction) * min(1.0, 2 * done))
    return Quantity(low=low, best=best, high=high, basis="modelled", lines=cites.all(*(e.at for e in running)))


def _typical_extraction(replays: Replays) -> float:
    """Median seconds of finished extractions; half a minute where none finished."""
    spans = [(e.end - e.start).total_seconds() for e in replays.extractions if e.end]
    return max(1.0, float(np.median(spans))) if spans else 30.0
