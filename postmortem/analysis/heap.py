"""The fit of fit.py on one attempt's samples."""

import datetime as dt

import numpy as np
import polars as pl

from postmortem.analysis.fit import FitInput, HeapFit, fit, thin
from postmortem.analysis.resident import resident_at
from postmortem.analysis.state import Replays, partitions, pool_at, seconds

__all__ = ["fit_heap"]


def fit_heap(replays: Replays, limit: int | None, until: dt.datetime | None) -> HeapFit | None:
    """The fit of fit.py over the attempt's samples up to the end."""
    samples = replays.memory.upto(until)
    if samples.height < 8 or replays.lives.is_empty() or replays.memory.scope is None:
        return None
    times = seconds(samples["time"]) + replays.memory.stamp_s / 2
    keep = thin(times)
    times = times[keep]
    charged = samples["current"].cast(pl.Float64).to_numpy()[keep]
    unreclaimable = samples["unreclaimable"].cast(pl.Float64).to_numpy()[keep]
    known = resident_at(replays.tables, times) + pool_at(replays.pool, times)
    changed = replays.pool.steps.filter(pl.col("total").diff().fill_null(1) != 0)
    return fit(
        FitInput(
            times=times,
            rest=unreclaimable - known,
            saturated=np.asarray(charged >= 0.995 * limit) if limit else np.zeros(len(times), dtype=bool),
            stamp_s=replays.memory.stamp_s,
            pool_changes=seconds(changed.drop_nulls("time")["time"]),
            load_windows=_load_windows(replays, float(times[-1])),
            step=replays.memory.step,
            partitions=partitions(replays.lives),
        )
    )


def _load_windows(replays: Replays, end: float) -> tuple[tuple[float, float], ...]:
    """Spans in which tables load or are extracted: memory moves for other reasons than partitions."""
    windows = [(t.start.timestamp() - 8, (t.end.timestamp() if t.end else end) + 1.5) for t in replays.tables]
    windows += [(e.start.timestamp() - 1, (e.end.timestamp() if e.end else end) + 4) for e in replays.extractions]
    return tuple(windows)
