"""The memory timeline as a small stacked chart of block characters, one string a row."""

import dataclasses
import datetime as dt

import polars as pl

from postmortem.units import format_gib
from postmortem_reports.words import clock

__all__ = ["LAYERS", "Chart", "memory_chart"]


@dataclasses.dataclass(frozen=True)
class Layer:
    """Columns of the timeline that are drawn as one, with what they look like."""

    label: str
    columns: tuple[str, ...]
    mark: str
    style: str


# Bottom up. The marks differ without colour; the styles are told apart by the colour-blind.
LAYERS = (
    Layer("resident tables", ("resident",), "░", "blue"),
    Layer("working set", ("working_set",), "▒", "cyan"),
    Layer("pool, uncovered", ("pinned_uncovered_in_use", "pool_idle"), "▓", "bold yellow"),
    Layer("overhead", ("transient", "overhead", "neighbour"), "█", "magenta"),
    Layer("cache", ("reclaimable",), "·", "dim"),
)
_ABOVE_LIMIT = 1.05
_UNSPLIT = Layer("charged", ("charged",), "█", "magenta")


@dataclasses.dataclass(frozen=True)
class Chart:
    """Rows from the top down: label of the axis, and its runs of (text, style)."""

    rows: list[tuple[str, list[tuple[str, str]]]]
    start: dt.datetime
    end: dt.datetime
    layers: list[Layer]

    def axis(self, width: int) -> str:
        """The line below: first and last time."""
        first, last = clock(self.start), f"{clock(self.end)} UTC"
        return first + last.rjust(max(0, width - len(first)))


def memory_chart(timeline: pl.DataFrame | None, width: int, height: int) -> Chart | None:
    """A chart of `width` × `height` cells; each column shows its highest moment. None without memory to show."""
    if timeline is None:
        return None
    known = timeline.filter(pl.col("time").is_not_null())
    layers = _layers(known)
    if known.height < 2 or not layers:
        return None
    columns = _columns(known, layers, width)
    highest, limit = _most(columns["height"]), _most(known["limit"])
    # A sum of estimates may pass the limit a little: the scale still ends there.
    limited = limit > 0 and highest <= limit * _ABOVE_LIMIT
    top = limit if limited else highest
    if top <= 0:
        return None
    stacks = columns.select(layer.label for layer in layers).rows()
    rows = [_row(stacks, layers, top * (level + 0.5) / height) for level in reversed(range(height))]
    labels = _labels(top, height, limited=limited)
    start, end = known["time"].min(), known["time"].max()
    assert isinstance(start, dt.datetime)
    assert isinstance(end, dt.datetime)
    return Chart(list(zip(labels, rows, strict=True)), start, end, layers)


def _most(sizes: pl.Series) -> int:
    most = sizes.max()
    return most if isinstance(most, int) else 0


def _layers(timeline: pl.DataFrame) -> list[Layer]:
    """The layers that ever have a height; one for all where only the charge is known."""
    heights = timeline.select(pl.sum_horizontal(layer.columns).max().alias(layer.label) for layer in LAYERS).row(0)
    shown = [layer for layer, height in zip(LAYERS, heights, strict=True) if height]
    charged = timeline["charged"].max()
    return shown or ([_UNSPLIT] if charged else [])


def _columns(timeline: pl.DataFrame, layers: list[Layer], width: int) -> pl.DataFrame:
    """One row a column of the chart: the stack at its highest moment; a column without rows keeps what was."""
    ticks = pl.col("time").dt.timestamp("us")
    span = (ticks.max() - ticks.min()).clip(lower_bound=1)
    known = (
        timeline.sort("time", maintain_order=True)
        .with_columns(pl.col(name).fill_null(strategy="forward") for layer in layers for name in layer.columns)
        .select(
            ((ticks - ticks.min()) * width // span).clip(0, width - 1).alias("column"),
            *(pl.sum_horizontal(layer.columns).alias(layer.label) for layer in layers),
        )
        .with_columns(pl.sum_horizontal(layer.label for layer in layers).alias("height"))
    )
    highest = known.sort("column", "height", maintain_order=True).group_by("column", maintain_order=True).last()
    every = pl.DataFrame({"column": pl.Series(range(width), dtype=pl.Int64)})
    return every.join(highest, on="column", how="left", maintain_order="left").fill_null(strategy="forward")


def _row(stacks: list[tuple[int | None, ...]], layers: list[Layer], level: float) -> list[tuple[str, str]]:
    runs: list[tuple[str, str]] = []
    for stack in stacks:
        mark, style = _cell(stack, layers, level)
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + mark, style)
        else:
            runs.append((mark, style))
    return runs


def _cell(stack: tuple[int | None, ...], layers: list[Layer], level: float) -> tuple[str, str]:
    reached = 0
    for layer, height in zip(layers, stack, strict=True):
        reached += height or 0
        if reached > level:
            return layer.mark, layer.style
    return " ", ""


def _labels(top: int, height: int, *, limited: bool) -> list[str]:
    """Labels of the axis: the top (the limit, where one is known), the middle and the bottom."""
    labels = [""] * height
    labels[0] = format_gib(top) + (" limit" if limited else "")
    labels[height // 2] = format_gib(top // 2)
    return labels
