"""The fleet's static pictures: runs over time by how they ended, and the margin that each run needed."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from postmortem.fleet import Machines, Month
from postmortem_reports.svg import element, gib_ticks, nice_step, pct, text

__all__ = ["margins_svg", "months_svg", "tone"]

_TONES = {
    "untracked_pinned": "pinned",
    "overhead": "overhead",
    "limit_misdetected": "misdetected",
    "transient_spike": "transient",
    "leak": "leak",
    "working_set": "working",
    "neighbour": "neighbour",
    "inconclusive": "undecided",
    "host_oom": "host",
    "finished": "calm",
    "stopped": "calm",
    "running": "calm",
}
_LAST = ("other", "calm")
_HEIGHT = 240
_FOOT = 26
_LEFT = 0.055


def tone(kind: str) -> str:
    """The colour class of a cause or an ending."""
    return _TONES.get(kind, "other")


def months_svg(months: Sequence[Month], described: str) -> Markup:
    """Stacked bars, a period each; empty without times."""
    if not months:
        return Markup("")
    top = max(month.runs for month in months)
    order = sorted({tone(kind) for month in months for kind in month.causes}, key=lambda name: (name in _LAST, name))
    width = (1 - _LEFT) / len(months)
    bars: list[Markup] = []
    for number, month in enumerate(months):
        height = 0.0
        left = _LEFT + number * width
        bar = min(width * 0.8, 0.12)
        for name in order:
            if count := sum(runs for kind, runs in month.causes.items() if tone(kind) == name):
                part = count / top * (_HEIGHT - _FOOT - 14)
                y = _HEIGHT - _FOOT - height - part
                bars.append(
                    element(
                        "rect",
                        x=pct(left + width * 0.1),
                        y=y,
                        width=pct(bar),
                        height=max(part - 0.75, 0.5),
                        class_=f"kind {name}",
                    )
                )
                height += part
        if number % max(1, len(months) // 8) == 0:
            bars.append(text(pct(left + width * 0.1), _HEIGHT - 8, month.period))
    return _picture([*_counts_axis(top), *bars], _HEIGHT, described)


def _counts_axis(top: int) -> list[Markup]:
    step = max(1, round(nice_step(top, 4)))
    marks: list[Markup] = []
    for count in range(0, top + 1, step):
        y = _HEIGHT - _FOOT - count / top * (_HEIGHT - _FOOT - 14)
        marks += [
            element("line", x1=pct(_LEFT), x2="100%", y1=y, y2=y, class_="grid"),
            text(pct(_LEFT - 0.008), y + 4, f"{count:,}", text_anchor="end"),
        ]
    return marks


def margins_svg(machines: Sequence[Machines], described: str) -> Markup:
    """A column of dots for each memory limit: the margin that each run needed; empty where none is known."""
    shown = [machine for machine in machines if machine.points][-12:]
    if not shown:
        return Markup("")
    top = max(need for machine in shown for _, need, _ in machine.points) * 1.05 or 1
    height = 300

    def y(size: float) -> float:
        return height - _FOOT - max(0.0, size) / top * (height - _FOOT - 16)

    marks = [
        mark
        for size, label in gib_ticks(top, 5)
        for mark in (
            element("line", x1=pct(_LEFT), x2="100%", y1=y(size), y2=y(size), class_="grid"),
            text(pct(_LEFT - 0.008), y(size) + 4, label, text_anchor="end"),
        )
    ]
    width = (1 - _LEFT) / len(shown)
    for number, machine in enumerate(shown):
        left = _LEFT + number * width
        marks.append(text(pct(left + width / 2), height - 8, f"{machine.limit >> 30} GiB", text_anchor="middle"))
        for place, (_, need, died) in enumerate(machine.points):
            spread = (place * 0.618034 % 1 - 0.5) * min(
                0.7, 0.06 * len(machine.points)
            )  # apart, the same way each time
            marks.append(
                element(
                    "circle",
                    cx=pct(left + width * (0.5 + spread)),
                    cy=y(need),
                    r=4,
                    class_=f"run {'death' if died else 'alive'}",
                )
            )
        covering = machine.margins[0].as_it_ran
        if covering is not None and machine.measured > 1:
            at = y(covering)
            marks.append(
                element(
                    "line", x1=pct(left + width * 0.12), x2=pct(left + width * 0.88), y1=at, y2=at, class_="covering"
                )
            )
    return _picture(marks, height, described)


def _picture(marks: Sequence[Markup], height: int, described: str) -> Markup:
    return element("svg", *marks, width="100%", height=height, role="img", aria_label=described, class_="fleet-picture")
