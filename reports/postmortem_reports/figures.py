"""The live timeline as a plotly specification: plain dictionaries that name columns of the packed series.

The page's script puts the unpacked columns in place of the names and the theme's colours in place of `--variables`.
Panes, margins and height are those of the static picture, so that nothing moves when it takes over.
"""

import datetime as dt
from typing import Any

import polars as pl

from postmortem.units import GIB
from postmortem_reports.chips import short
from postmortem_reports.format import iso
from postmortem_reports.labels import STACK
from postmortem_reports.overlays import Band, Mark, Overlays
from postmortem_reports.svg_timeline import HEIGHT, PANE_TITLES, PANES, Pane, heights, top_of

__all__ = ["AXIS_WIDTH", "timeline_figure"]

AXIS_WIDTH = 52
"""Pixels of the column of axis labels, as in the static picture."""

_LINES = {"limit": ("--limit", "solid", 2), "budget": ("--budget", "dash", 2), "reserved": ("--reserved", "dot", 1.8)}


def timeline_figure(frame: pl.DataFrame, over: Overlays) -> dict[str, Any]:
    """`{"data": […], "layout": {…}}`; `x` and `y` of a trace are column names, colours are CSS variables."""
    return {"data": _traces(frame), "layout": _layout(frame, over)}


def _known(frame: pl.DataFrame, name: str) -> bool:
    return frame[name].null_count() < frame.height


def _traces(frame: pl.DataFrame) -> list[dict[str, Any]]:
    stack = [
        _trace(name, label, "y", _line("--page", 0.5), fillcolor=f"--part-{name}", stackgroup="memory")
        for name, label in STACK.items()
        if frame[name].max()
    ]
    lines = [
        trace
        for name, (color, dash, width) in _LINES.items()
        for trace in _haloed(name, "y", {**_line(color, width), "dash": dash})
    ]
    lines.append(_trace("charged", "charged", "y", {"color": "--charged", "width": 1.2}, connectgaps=True))
    return [*stack, *(trace for trace in lines if _known(frame, trace["y"])), *_strips(frame)]


def _strips(frame: pl.DataFrame) -> list[dict[str, Any]]:
    def area(column: str, name: str, axis: str, color: str) -> dict[str, Any]:
        return _trace(column, name, axis, _line(color, 0), fill="tozeroy", fillcolor=color)

    wanted = [
        area("pool_total", "alive", "y2", "--pool-alive"),
        area("pool_in_use", "in use", "y2", "--pool-used"),
        *_haloed("free_remaining", "y4", _line("--ink", 1.4)),
        area("live_partitions", "live partitions", "y3", "--part-working_set"),
        *_haloed("jobs_done", "y3", _line("--ink", 1.6)),
    ]
    return [trace for trace in wanted if _known(frame, trace["y"])]


def _haloed(column: str, axis: str, line: dict[str, Any]) -> list[dict[str, Any]]:
    """A line with an edge of the page's colour, so that it shows on every part."""
    edge = _trace(column, "", axis, _line("--page", line["width"] + 1.8), opacity=0.75)
    return [edge, _trace(column, column, axis, line)]


def _line(color: str, width: float) -> dict[str, Any]:
    """A line that holds each value until the next row, as the ledgers do."""
    return {"color": color, "width": width, "shape": "hv"}


def _trace(column: str, name: str, axis: str, line: dict[str, Any], **more: object) -> dict[str, Any]:
    trace = {"type": "scatter", "mode": "lines", "x": "time", "y": column, "name": name, "yaxis": axis, "line": line}
    return {**trace, "hoverinfo": "none", **more}


def _layout(frame: pl.DataFrame, over: Overlays) -> dict[str, Any]:
    free = _counts(PANES["pool"], heights(frame, ["free_remaining"], 1))
    return {
        "height": HEIGHT,
        "margin": {"l": AXIS_WIDTH, "r": 0, "t": 0, "b": HEIGHT - _bottom(), "pad": 0},
        "showlegend": False,
        "hovermode": "x",
        "hoverdistance": -1,
        "spikedistance": -1,
        "dragmode": "zoom",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "--muted", "size": 12},
        "xaxis": _time_axis(over),
        "yaxis": _axis(PANES["memory"], top_of(frame) / GIB, 7),
        "yaxis2": _axis(PANES["pool"], heights(frame, ["pool_total", "pool_in_use"], GIB) / GIB, 3),
        "yaxis3": _counts(PANES["work"], heights(frame, ["live_partitions", "jobs_done"], 1)),
        "yaxis4": {**free, "overlaying": "y2", "showticklabels": False, "showgrid": False},
        "shapes": _shapes(over),
        "annotations": _annotations(frame, over),
    }


def _time_axis(over: Overlays) -> dict[str, Any]:
    limits = [_at(over.start), _at(over.end)]
    hours = "%H:%M" if (over.end - over.start) < dt.timedelta(days=2) else "%m-%d %H:%M"
    return {
        "type": "date",
        "range": limits,
        "minallowed": limits[0],
        "maxallowed": limits[1],
        "anchor": "y3",
        "domain": [0, 1],
        "showgrid": False,
        "zeroline": False,
        "showspikes": True,
        "spikemode": "across",
        "spikesnap": "cursor",
        "spikethickness": 1,
        "spikedash": "solid",
        "spikecolor": "--muted",
        "ticks": "outside",
        "ticklen": 5,
        "tickcolor": "--rule",
        "showline": True,
        "linecolor": "--rule",
        "nticks": 8,
        "tickformatstops": [
            {"dtickrange": [None, 1000], "value": "%H:%M:%S.%L"},
            {"dtickrange": [1000, 60000], "value": "%H:%M:%S"},
            {"dtickrange": [60000, None], "value": hours},
        ],
    }


def _at(time: dt.datetime) -> str:
    return iso(time)[:-1]  # plotly reads a time without a zone as UTC


def _bottom() -> int:
    return PANES["work"].top + PANES["work"].height


def _domain(pane: Pane) -> list[float]:
    """A pane's place as fractions of the plot's height, from the bottom."""
    return [1 - (pane.top + pane.height) / _bottom(), 1 - pane.top / _bottom()]


def _axis(pane: Pane, top: float, ticks: int) -> dict[str, Any]:
    look = {"gridcolor": "--grid", "zeroline": False, "ticks": "", "ticklabelstandoff": 4}
    return {"domain": _domain(pane), "range": [0, top], "fixedrange": True, "nticks": ticks, **look}


def _counts(pane: Pane, top: float) -> dict[str, Any]:
    return {**_axis(pane, top, 3), "tickformat": "d"}


def _shapes(over: Overlays) -> list[dict[str, Any]]:
    memory, work = _domain(PANES["memory"]), _domain(PANES["work"])
    lanes = [
        _rect(band, _lane(lane), f"--{kind}{number % 2}", "below")
        for lane, (kind, bands) in enumerate((("attempt", over.attempts), ("phase", over.phases)))
        for number, band in enumerate(bands)
    ]
    edge, kill = {"color": "--rule", "dash": "dot", "width": 1}, {"color": "--death", "width": 2}
    edges = [_vertical(band.start, (work[0], _lane(1)[1]), edge) for band in over.phases]
    gaps = [_rect(band, [work[0], memory[1]], "--gap", "above") for band in over.gaps]
    loads = [_rect(band, [memory[0], memory[0] + 0.008], "--part-transient", "above") for band in over.loads]
    kills = [_vertical(mark.time, (work[0], memory[1] + 0.01), kill) for mark in over.kills]
    return [*lanes, *edges, *gaps, *loads, *kills]


def _lane(number: int) -> list[float]:
    return _domain(Pane(22 * number, 20))


def _rect(band: Band, height: list[float], color: str, layer: str) -> dict[str, Any]:
    place = {"x0": _at(band.start), "x1": _at(band.end), "y0": height[0], "y1": height[1]}
    look = {"fillcolor": color, "line": {"width": 0}, "layer": layer}
    return {"type": "rect", "xref": "x", "yref": "paper", **place, **look}


def _vertical(time: dt.datetime, span: tuple[float, float], line: dict[str, Any]) -> dict[str, Any]:
    place = {"x0": _at(time), "x1": _at(time), "y0": span[0], "y1": span[1]}
    return {"type": "line", "xref": "x", "yref": "paper", **place, "line": line}


def _annotations(frame: pl.DataFrame, over: Overlays) -> list[dict[str, Any]]:
    lanes = [_lane_label(band, lane) for lane, bands in enumerate((over.attempts, over.phases)) for band in bands]
    titles = [_label(words, 0, _domain(PANES[pane])[1], "--muted") for pane, words in PANE_TITLES.items()]
    kills = [_kill_label(mark, over) for mark in over.kills if mark.label]
    return [*lanes, *titles, *kills, *_line_labels(frame)]


def _label(words: str, x: float, y: float, color: str) -> dict[str, Any]:
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return {"text": _text(words), **place, "showarrow": False, "font": {"color": color, "size": 12}}


def _lane_label(band: Band, lane: int) -> dict[str, Any]:
    """The band's end goes along as the annotation's name: the script fits the label into what is in view."""
    low, high = _lane(lane)
    label = _label(short(band.label, 40), 0, (low + high) / 2, "--ink")
    return {**label, "xref": "x", "x": _at(band.start), "yanchor": "middle", "xshift": 2, "name": _at(band.end)}


def _kill_label(mark: Mark, over: Overlays) -> dict[str, Any]:
    late = mark.time - over.start > (over.end - over.start) / 2
    label = _label(short(mark.label, 60), 0, _domain(PANES["memory"])[0] + 0.012, "--kill-ink")
    place = {"xref": "x", "x": _at(mark.time), "xanchor": "right" if late else "left", "xshift": -5 if late else 5}
    return {**label, **place, "bgcolor": "--kill-back", "borderpad": 3}


def _line_labels(frame: pl.DataFrame) -> list[dict[str, Any]]:
    labels: list[dict[str, Any]] = []
    for name, anchor in (("limit", "bottom"), ("budget", "top")):
        known = frame[name].drop_nulls()
        if len(known):
            label = _label(f"{name} {int(known[0]) / GIB:.1f} GiB", 0.006, int(known[0]) / GIB, "--ink")
            labels.append({**label, "yref": "y", "yanchor": anchor})
    return labels


def _text(words: str) -> str:
    """Plotly reads a few tags in texts; ours hold none."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
