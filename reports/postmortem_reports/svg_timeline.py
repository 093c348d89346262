"""The timeline as a static picture: shown where scripts are blocked and in print, in the same box as the live figure."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from markupsafe import Markup

from postmortem.units import GIB
from postmortem_reports.labels import STACK
from postmortem_reports.overlays import Band, Overlays
from postmortem_reports.svg import WIDTH, Scale, element, gib_ticks, nice_step, pct, polyline, stairs, text, time_ticks

__all__ = ["HEIGHT", "PANES", "PANE_TITLES", "Pane", "heights", "timeline_svg", "top_of"]


@dataclass(frozen=True)
class Pane:
    """A horizontal strip of the figure, in pixels from its top."""

    top: int
    height: int


PANES = {"lanes": Pane(0, 44), "memory": Pane(52, 320), "pool": Pane(404, 96), "work": Pane(532, 76)}
HEIGHT = 640

PANE_TITLES = {
    "pool": "Pool: alive, in use; line: free_remaining",
    "work": "Live partitions; line: proofs done",
}

_POOL = ("pool_total", "pool_in_use")


def timeline_svg(frame: pl.DataFrame, over: Overlays, description: str) -> Markup:
    """Two pictures side by side: the axis labels in a column of fixed width, the curves in what is left."""
    scale = Scale(over.start, over.end)
    picture = element(
        "svg",
        element("title", description),
        *_backgrounds(over, scale),
        *_memory(frame, scale),
        *_pool(frame, scale),
        *_work(frame, scale),
        *_foregrounds(over, scale),
        *_time_axis(scale),
        class_="plot",
        width="100%",
        height=HEIGHT,
        role="img",
    )
    return _axis_column(frame) + picture


def top_of(frame: pl.DataFrame) -> float:
    """Bytes at the upper edge of the memory pane: a little above the highest figure."""
    stack = frame.select(pl.sum_horizontal(pl.col(name).fill_null(0) for name in STACK).max()).item()
    highest = [frame[name].max() for name in ("limit", "charged", "budget", "reserved", "unreclaimable")]
    known = [float(value) for value in (*highest, stack) if isinstance(value, int | float)]
    return max([*known, GIB]) * 1.06


def heights(frame: pl.DataFrame, names: Sequence[str], least: float) -> float:
    """The upper edge of a strip that shows these columns."""
    values = [frame[name].max() for name in names]
    return max([float(value) for value in values if isinstance(value, int | float)] + [least]) * 1.12


def _x(frame: pl.DataFrame, scale: Scale) -> list[float]:
    return [WIDTH * scale(time) for time in frame["time"]]


def _curves(pane: Pane, *paths: Markup) -> Markup:
    return element(
        "svg",
        *paths,
        x=0,
        y=pane.top,
        width="100%",
        height=pane.height,
        viewBox=f"0 0 {WIDTH} {pane.height}",
        preserveAspectRatio="none",
    )


def _points(frame: pl.DataFrame, name: str, xs: list[float], pane: Pane, top: float) -> list[tuple[float, float]]:
    values = frame[name].to_list()
    return [(x, pane.height * (1 - value / top)) for x, value in zip(xs, values, strict=True) if value is not None]


def _memory(frame: pl.DataFrame, scale: Scale) -> list[Markup]:
    pane, top, xs = PANES["memory"], top_of(frame), _x(frame, scale)
    grid = [_grid(pane, size / top) for size, _ in gib_ticks(top)]
    sums = frame.select(
        pl.sum_horizontal(pl.col(lower).fill_null(0) for lower in list(STACK)[: number + 1]).alias(name)
        for number, name in enumerate(STACK)
    )
    areas = [
        element("path", d=stairs(_points(sums, name, xs, pane, top), float(pane.height)), class_=f"area part-{name}")
        for name in reversed(STACK)
        if frame[name].max()
    ]
    lines = [
        path
        for name in ("limit", "budget", "reserved", "charged")
        if frame[name].null_count() < frame.height
        for path in _haloed(_path(name, _points(frame, name, xs, pane, top)), name)
    ]
    return [*grid, _curves(pane, *areas, *lines), *_line_labels(frame, pane, top)]


def _path(name: str, points: list[tuple[float, float]]) -> str:
    """Samples are joined by straight lines; what the ledgers say holds until it changes."""
    return polyline(points) if name == "charged" else stairs(points)


def _haloed(path: str, name: str) -> list[Markup]:
    """A line with an edge of the page's colour, so that it shows on every part."""
    return [element("path", d=path, class_=f"line {css}") for css in ("halo", name)]


def _line_labels(frame: pl.DataFrame, pane: Pane, top: float) -> list[Markup]:
    """The names of limit and budget at the left end of their lines; below the line where two would collide."""
    known = {name: frame[name].drop_nulls() for name in ("limit", "budget")}
    labels: list[Markup] = []
    for name, column in known.items():
        if len(column):
            y = pane.top + pane.height * (1 - int(column[0]) / top)
            below = name == "budget"
            label = f"{name} {int(column[0]) / GIB:.1f} GiB"
            labels.append(text("0.6%", y + (13 if below else -5), label, class_="line-label"))
    return labels


def _pool(frame: pl.DataFrame, scale: Scale) -> list[Markup]:
    pane, xs = PANES["pool"], _x(frame, scale)
    top = heights(frame, _POOL, GIB)
    paths = [
        element(
            "path", d=stairs(_points(frame, "pool_total", xs, pane, top), float(pane.height)), class_="area pool-alive"
        ),
        element(
            "path", d=stairs(_points(frame, "pool_in_use", xs, pane, top), float(pane.height)), class_="area pool-used"
        ),
    ]
    free_top = heights(frame, ["free_remaining"], 1)
    free = _haloed(stairs(_points(frame, "free_remaining", xs, pane, free_top)), "free")
    grid = [_grid(pane, size / top) for size, _ in gib_ticks(top, 2)]
    return [*grid, _curves(pane, *paths, *free), _pane_title("pool")]


def _work(frame: pl.DataFrame, scale: Scale) -> list[Markup]:
    pane, xs = PANES["work"], _x(frame, scale)
    top = heights(frame, ["live_partitions", "jobs_done"], 1)
    live = _points(frame, "live_partitions", xs, pane, top)
    done = _points(frame, "jobs_done", xs, pane, top)
    paths = [
        element("path", d=stairs(live, float(pane.height)), class_="area partitions"),
        *_haloed(stairs(done), "done"),
    ]
    return [_grid(pane, 0), _curves(pane, *paths), _pane_title("work")]


def _pane_title(pane: str) -> Markup:
    return text(0, PANES[pane].top - 9, PANE_TITLES[pane], class_="pane-title")


def _grid(pane: Pane, fraction: float) -> Markup:
    y = pane.top + pane.height * (1 - fraction)
    return element("line", x1=0, x2="100%", y1=y, y2=y, class_="grid")


def _span(band: Band, scale: Scale) -> tuple[str, str]:
    start, end = scale(band.start), scale(band.end)
    return pct(start), pct(max(end - start, 0.001))


def _backgrounds(over: Overlays, scale: Scale) -> list[Markup]:
    bottom = PANES["work"].top + PANES["work"].height
    drawn: list[Markup] = []
    for lane, (bands, kind) in enumerate(((over.attempts, "attempt"), (over.phases, "phase"))):
        for number, band in enumerate(bands):
            x, width = _span(band, scale)
            y = lane * 22
            drawn.append(element("rect", x=x, width=width, y=y, height=20, class_=f"lane {kind} tone{number % 2}"))
            drawn.append(_inside(band, scale, y))
            if kind == "phase" or not over.phases:
                drawn.append(element("line", x1=x, x2=x, y1=y, y2=bottom, class_="phase-edge"))
    return drawn


def _inside(band: Band, scale: Scale, y: int) -> Markup:
    """The band's name, clipped to its rectangle by a nested picture."""
    x, width = _span(band, scale)
    return element("svg", text(6, 14, band.label, class_="lane-label"), x=x, width=width, y=y, height=20)


def _foregrounds(over: Overlays, scale: Scale) -> list[Markup]:
    memory, bottom = PANES["memory"], PANES["work"].top + PANES["work"].height
    drawn: list[Markup] = []
    for band in over.gaps:
        x, width = _span(band, scale)
        drawn.append(element("rect", x=x, width=width, y=memory.top, height=bottom - memory.top, class_="gap"))
    for band in over.loads:
        x, width = _span(band, scale)
        drawn.append(element("rect", x=x, width=width, y=memory.top + memory.height - 5, height=5, class_="load"))
    for mark in over.kills:
        at = scale(mark.time)
        drawn.append(element("line", x1=pct(at), x2=pct(at), y1=memory.top - 8, y2=bottom, class_="kill"))
        if not mark.label:
            continue
        anchor, shift = ("end", -6) if at > 0.5 else ("start", 6)
        label = text(
            pct(at), memory.top + memory.height - 12, mark.label, text_anchor=anchor, dx=shift, class_="kill-label"
        )
        drawn.append(label)
    return drawn


def _time_axis(scale: Scale) -> list[Markup]:
    bottom = PANES["work"].top + PANES["work"].height
    drawn = [element("line", x1=0, x2="100%", y1=bottom, y2=bottom, class_="axis")]
    for number, (fraction, label) in enumerate(time_ticks(scale)):
        anchor = "end" if fraction > 0.96 else "start" if fraction < 0.04 else "middle"
        wide_only = " wide-only" if number % 2 else ""
        drawn.append(element("line", x1=pct(fraction), x2=pct(fraction), y1=bottom, y2=bottom + 5, class_="axis"))
        drawn.append(text(pct(fraction), bottom + 20, label, text_anchor=anchor, class_=f"tick{wide_only}"))
    return drawn


def _axis_column(frame: pl.DataFrame) -> Markup:
    """Labels of the vertical axes, right-aligned to the plot's edge."""
    drawn: list[Markup] = []

    def ticks(pane: Pane, top: float, marks: list[tuple[float, str]]) -> None:
        for value, label in marks:
            y = pane.top + pane.height * (1 - value / top) + 4
            drawn.append(text("100%", y, label, dx=-8, text_anchor="end", class_="tick"))

    memory_top = top_of(frame)
    ticks(PANES["memory"], memory_top, gib_ticks(memory_top))
    pool_top = heights(frame, _POOL, GIB)
    ticks(PANES["pool"], pool_top, gib_ticks(pool_top, 2))
    work_top = heights(frame, ["live_partitions", "jobs_done"], 1)
    step = max(1, nice_step(work_top, 2))
    ticks(
        PANES["work"], work_top, [(step * number, f"{step * number:g}") for number in range(int(work_top / step) + 1)]
    )
    drawn.append(text("100%", PANES["memory"].top - 6, "GiB", dx=-8, text_anchor="end", class_="tick unit"))
    drawn.append(text("100%", PANES["pool"].top - 9, "GiB", dx=-8, text_anchor="end", class_="tick unit"))
    drawn.append(text("100%", PANES["work"].top - 9, "count", dx=-8, text_anchor="end", class_="tick unit"))
    drawn.append(text("100%", HEIGHT - 12, "UTC", dx=-8, text_anchor="end", class_="tick unit"))
    return element("svg", *drawn, class_="axis-column", width="52", height=HEIGHT, aria_hidden="true")
