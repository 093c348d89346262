"""Two runs' memory over time in one picture, aligned at their starts or at their ends."""

from __future__ import annotations

import polars as pl
from markupsafe import Markup

from postmortem.compare import Side
from postmortem_reports.format import utc
from postmortem_reports.series import in_order, thin
from postmortem_reports.svg import WIDTH, element, gib_ticks, nice_step, pct, stairs, text

__all__ = ["aligned_svg"]

_HEIGHT = 300
_FOOT = 28
_LEFT = 0.055
_POINTS = 280


def aligned_svg(a: Side, b: Side, *, at_end: bool) -> Markup | None:
    """Unreclaimable memory (GiB) over minutes from the start, or up to the end; None without both timelines."""
    curves = [_curve(side, at_end=at_end) for side in (a, b)]
    if curves[0] is None or curves[1] is None:
        return None
    known = [curve for curve in curves if curve]
    first = min(curve[0][0] for curve in known)
    last = max(*(curve[-1][0] for curve in known), first + 1e-3)
    limits = [side.result.arithmetic.limit.best for side in (a, b) if side.result.arithmetic.limit]
    top = max([size for curve in known for _, size in curve] + limits) * 1.04 or 1

    def y(size: float) -> float:
        return _HEIGHT - _FOOT - size / top * (_HEIGHT - _FOOT - 12)

    marks = [
        mark
        for size, label in gib_ticks(top, 5)
        for mark in (
            element("line", x1=pct(_LEFT), x2="100%", y1=y(size), y2=y(size), class_="grid"),
            text(pct(_LEFT - 0.008), y(size) + 4, label, text_anchor="end"),
        )
    ]
    step = max(1, nice_step((last - first) / 60, 6))
    number = -(-first // (60 * step))
    while (at := number * step * 60) <= last:
        marks.append(
            text(
                pct(_LEFT + (1 - _LEFT) * (at - first) / (last - first)),
                _HEIGHT - 8,
                f"{at / 60:+g} min" if at_end else f"{at / 60:g} min",
            )
        )
        number += 1
    lines = [
        element(
            "path",
            d=stairs([((at - first) / (last - first) * WIDTH, y(size)) for at, size in curve]),
            class_=f"line side-{name}",
        )
        for name, curve in zip("ab", known, strict=True)
    ]
    lines += [element("path", d=f"M0 {y(size):.1f}H{WIDTH}", class_="line budget") for size in sorted(set(limits))]
    plot = element(
        "svg",
        *lines,
        x=pct(_LEFT),
        width=pct(1 - _LEFT),
        height=_HEIGHT,
        viewBox=f"0 0 {WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
    )
    words = f"Memory that cannot be reclaimed, both runs, aligned at the {'end' if at_end else 'start'}."
    return element(
        "svg", *marks, plot, width="100%", height=_HEIGHT, role="img", aria_label=words, class_="fleet-picture"
    )


def _curve(side: Side, *, at_end: bool) -> list[tuple[float, float]] | None:
    """(seconds from the alignment, bytes)."""
    if side.timeline is None:
        return None
    frame = in_order(side.timeline).filter(pl.col("unreclaimable").is_not_null())
    if not frame.height:
        return None
    frame = thin(frame, _POINTS)
    times, sizes = frame["time"].to_list(), frame["unreclaimable"].to_list()
    start = times[-1] if at_end else times[0]
    if at_end and side.result.ending.time is not None:
        start = side.result.ending.time
    return [((utc(time) - utc(start)).total_seconds(), float(size)) for time, size in zip(times, sizes, strict=True)]
