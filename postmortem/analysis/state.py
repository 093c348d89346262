"""What was reconstructed of one attempt, and readings of it at moments."""

import dataclasses

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem.analysis.fit import Partitions
from postmortem.analysis.ledger import Ledger
from postmortem.analysis.memory import Memory
from postmortem.analysis.pool import PoolReplay
from postmortem.analysis.resident import Extraction, ResidentTable
from postmortem.model import MemoryModel
from postmortem.units import GIB

__all__ = ["NEVER", "Replays", "Stats", "partitions", "pool_at", "seconds"]

Floats = npt.NDArray[np.float64]
NEVER = 1e18
"""Epoch seconds of what has not happened."""


@dataclasses.dataclass(frozen=True)
class Replays:
    """Everything that was reconstructed of one attempt."""

    pool: PoolReplay
    ledger: Ledger
    tables: list[ResidentTable]
    extractions: list[Extraction]
    lives: pl.DataFrame
    memory: Memory
    model: MemoryModel


def seconds(column: pl.Series) -> Floats:
    """Epoch seconds; `NEVER` for null."""
    return np.asarray((column.dt.timestamp("us").cast(pl.Float64) / 1e6).fill_null(NEVER).to_numpy())


def partitions(lives: pl.DataFrame) -> Partitions:
    """Lives as arrays."""
    need = (lives["needs_abc"] + lives["needs_rest"]).cast(pl.Float64).to_numpy()
    # A circuit that the profile does not know: shares of a GiB, so that the fit still measures bytes.
    return Partitions(
        start=seconds(lives["synth_start"]),
        synth_end=seconds(lives["synth_end"]),
        returned=seconds(lives["prove_returned"]),
        end=seconds(lives["gpu_end"]),
        pinned=lives["pinned"].fill_null(value=False).to_numpy(),
        need=np.where(need > 0, need, float(GIB)),
    )


def pool_at(pool: PoolReplay, times: Floats, column: str = "total") -> Floats:
    """A column of the pool's steps at each moment (epoch seconds)."""
    steps = pool.steps.filter(pl.col("time").is_not_null())
    if steps.is_empty():
        return np.zeros(len(times))
    at = seconds(steps["time"])
    values = np.concatenate([[0.0], steps[column].cast(pl.Float64).to_numpy()])
    return values[np.searchsorted(np.maximum.accumulate(at), times, side="right")]


@dataclasses.dataclass(frozen=True)
class Stats:
    """A breakdown of the cgroup measured at (or close to) the moment. Bytes; None where not measured."""

    anon: int | None = None
    file: int | None = None
    shmem: int | None = None
    kernel: int | None = None
    pagetables: int | None = None
    mapped: int | None = None
    reclaimable: int | None = None
    usage: int | None = None
    at: tuple[int, int] | None = None
