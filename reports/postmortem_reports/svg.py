"""SVG elements as escaped markup, and the axes that all static figures share.

The figures have no fixed width: horizontal positions are percentages, so that text keeps its size from 360 px to 4K.
Curves stand in a nested `<svg>` whose view box is stretched. Colours are classes, so that theme and print set them.
"""

import datetime as dt
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from postmortem.units import GIB
from postmortem_reports.chips import plain, short
from postmortem_reports.format import utc

__all__ = ["WIDTH", "Scale", "element", "gib_ticks", "nice_step", "pct", "polyline", "stairs", "text", "time_ticks"]

WIDTH = 1000
"""Units of the stretched view box's width."""


def element(name: str, /, *children: str, **attributes: object) -> Markup:
    """`<name …>children</name>`, texts with what they hide shown and escaped; `class_` and `stroke_width` become `class` and `stroke-width`."""
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-") if key != "viewBox" else key, _value(value))
        for key, value in attributes.items()
        if value is not None
    )
    body = Markup("").join(child if isinstance(child, Markup) else plain(child, 2000) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, body)  # noqa: S704 - names are literals of ours


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def pct(fraction: float) -> str:
    """A horizontal position or width as a percentage, kept within the picture."""
    return f"{100 * min(1.0, max(0.0, fraction)):.2f}%"


def text(x: float | str, y: float, words: str, **attributes: object) -> Markup:
    """A label; hidden characters show themselves, long ones are cut."""
    return element("text", short(words, 60), x=x, y=y, **attributes)


class Scale:
    """From moments to fractions of the width."""

    def __init__(self, start: dt.datetime, end: dt.datetime) -> None:
        self.start, self.end = utc(start), utc(end)
        self.seconds = max(1e-3, (self.end - self.start).total_seconds())

    def __call__(self, time: dt.datetime) -> float:
        """0 at the start, 1 at the end, kept between."""
        return min(1.0, max(0.0, (utc(time) - self.start).total_seconds() / self.seconds))


def nice_step(span: float, about: int) -> float:
    """A step of 1, 2 or 5 times a power of ten that cuts `span` into about `about` pieces."""
    raw = max(span, 1e-9) / about
    power = 10.0 ** len(str(int(raw))) / 10 if raw >= 1 else 1.0
    return next((m * power for m in (1, 2, 5, 10) if m * power >= raw), 10 * power)


def gib_ticks(top: float, about: int = 6) -> list[tuple[float, str]]:
    """Sizes in bytes and their labels, from 0 up to `top` (bytes)."""
    step = nice_step(top / GIB, about)
    return [(number * step * GIB, f"{number * step:g}") for number in range(int(top / GIB / step) + 1)]


_TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


def time_ticks(scale: Scale, about: int = 6) -> list[tuple[float, str]]:
    """Fractions of the width and their labels at round times of day, UTC."""
    raw = scale.seconds / about
    step = next((step for step in _TIME_STEPS if step >= raw), 86400 * -(-raw // 86400))
    first = scale.start.timestamp()
    moments = _multiples(first, scale.seconds, step)
    style = "%H:%M:%S" if step < 60 else "%H:%M" if scale.seconds < 2 * 86400 else "%m-%d %H:%M"
    return [((at - first) / scale.seconds, dt.datetime.fromtimestamp(at, dt.UTC).strftime(style)) for at in moments]


def _multiples(first: float, span: float, step: float) -> Iterable[float]:
    begin = int(-(-first // step))
    return [number * step for number in range(begin, int((first + span) // step) + 1)]


def polyline(points: Sequence[tuple[float, float]]) -> str:
    """Path data that joins the points by straight lines."""
    return "".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(points))


def stairs(points: Sequence[tuple[float, float]], floor: float | None = None) -> str:
    """Path data that holds each value until the next one; closed down to `floor` where that is given."""
    if not points:
        return ""
    x0, y0 = points[0]
    steps = [f"M{x0:.1f} {y0:.1f}"]
    held = f"{y0:.1f}"
    for x, y in points[1:]:
        if f"{y:.1f}" != held:
            held = f"{y:.1f}"
            steps.append(f"H{x:.1f}V{held}")
    steps.append(f"H{points[-1][0]:.1f}")
    if floor is not None:
        steps.append(f"V{floor:.1f}H{x0:.1f}Z")
    return "".join(steps)
