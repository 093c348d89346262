"""Which steps of a very long replay are kept: enough to draw every peak, and all that a measurement is compared with."""

import dataclasses

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["MOST", "Thinning"]

MOST = 1 << 18
"""Steps of a replay that are kept, about; a page shows a few thousand."""
_LAST = 10_000  # what is asked about is the end: nothing of it is left out
_PER_STRETCH = 6


@dataclasses.dataclass(frozen=True)
class Thinning:
    """A rule for a replay of `rows` steps whose state is compared with measurements at `moments`."""

    rows: int
    moments: pl.Series
    """Times of samples."""
    most: int = MOST

    def of(self, steps: pl.DataFrame) -> pl.DataFrame:
        """The steps of one part of the replay that are kept, in their order.

        Of each short stretch its first and last step and the extremes of `total` and `in_use`; steps that change
        `total`, unless most do; the step that each moment finds.
        """
        if self.rows <= self.most or steps.height <= _LAST:
            return steps
        length = -(-self.rows * _PER_STRETCH // self.most)
        number = pl.int_range(pl.len())
        indexed = steps.select("time", "total", "in_use", at=number, stretch=number // length)
        chosen = indexed.group_by("stretch").agg(
            pl.col("at").first().alias("first"),
            pl.col("at").last().alias("last"),
            *(
                pl.col("at").get(getattr(pl.col(name), extreme)()).alias(f"{name}_{extreme}")
                for name in ("total", "in_use")
                for extreme in ("arg_max", "arg_min")
            ),
        )
        keep = np.zeros(steps.height, dtype=bool)
        keep[chosen.drop("stretch").to_numpy().ravel()] = True
        keep[-_LAST:] = True
        changes = (steps["total"].diff().fill_null(1) != 0).to_numpy()
        if changes.sum() * self.rows <= self.most * steps.height:
            keep |= changes
        keep[self._found(steps["time"])] = True
        return steps.filter(pl.Series(keep))

    def _found(self, times: pl.Series) -> npt.NDArray[np.int64]:
        """The step that is the last before each moment, as `state.pool_at` finds it."""
        dated = times.is_not_null().to_numpy().nonzero()[0]
        if not len(dated):
            return dated
        ordered = np.maximum.accumulate(times.drop_nulls().dt.timestamp("us").to_numpy())
        moments = self.moments.drop_nulls().dt.timestamp("us").to_numpy()
        at = np.searchsorted(ordered, moments, side="right") - 1
        return dated[np.unique(at[at >= 0])]
