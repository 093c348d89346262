"""The arithmetic as a picture: provision above actual on one scale, and how each excess ate the slack."""

from dataclasses import dataclass

from markupsafe import Markup

from postmortem.result import Arithmetic, Part, Quantity
from postmortem.units import GIB
from postmortem_reports.chips import short
from postmortem_reports.format import gib
from postmortem_reports.labels import part_kind
from postmortem_reports.svg import element, gib_ticks, pct, text
from postmortem_reports.words import part_name, sentence

__all__ = ["arithmetic_svg"]

_BAR = 30
_TOP = 44  # room for the labels of budget and limit
_PITCH = 64
_EXCESS_PITCH = 46
_LABEL_ABOVE = 7


@dataclass(frozen=True)
class _Segment:
    """A piece of a stacked bar, in bytes."""

    size: int
    name: str
    kind: str


def arithmetic_svg(arithmetic: Arithmetic, description: str) -> Markup:
    """The picture, or nothing where no part is known."""
    if not arithmetic.parts:
        return Markup("")
    top = _top(arithmetic)
    excesses = [part for part in arithmetic.parts if abs(part.excess.best) >= GIB // 20]
    eaten = excesses if arithmetic.slack is not None and arithmetic.budget is not None else []
    bottom = _TOP + 2 * _PITCH + (len(eaten) + 1) * _EXCESS_PITCH * bool(eaten) - 6
    return element(
        "svg",
        element("title", description),
        *_axis(top, bottom),
        *_bar(_TOP, "Provided for", _provided(arithmetic), top),
        *_bar(_TOP + _PITCH, "In use", _actual(arithmetic), top),
        *_eaten(arithmetic, eaten, top),
        *_rules(arithmetic, top, bottom),
        class_="plot waterfall",
        width="100%",
        height=bottom + 24,
        role="img",
    )


def _top(arithmetic: Arithmetic) -> float:
    """Bytes at the right edge."""
    used = sum(max(0, part.actual.best) for part in arithmetic.parts)
    provided = sum(segment.size for segment in _provided(arithmetic))
    known = [quantity.best for quantity in (arithmetic.limit, arithmetic.budget) if quantity is not None]
    return max(used, provided, *known, GIB) * 1.004


def _provided(arithmetic: Arithmetic) -> list[_Segment]:
    """Reservations, then the slack, then the margin that was left for the overhead."""
    segments = [
        _Segment(part.provision.best, part_name(part.part), f"part-{part_kind(part.part)}")
        for part in arithmetic.parts
        if part.part != "overhead"
    ]
    if arithmetic.slack is not None:
        segments.append(_Segment(arithmetic.slack.best, "slack: believed free", "slack"))
    overhead = next((part for part in arithmetic.parts if part.part == "overhead"), None)
    margin = overhead.provision if overhead is not None else arithmetic.margin
    if margin is not None:
        segments.append(_Segment(margin.best, "margin", "margin"))
    return [segment for segment in segments if segment.size > 0]


def _actual(arithmetic: Arithmetic) -> list[_Segment]:
    return [
        _Segment(part.actual.best, part_name(part.part), f"part-{part_kind(part.part)}")
        for part in arithmetic.parts
        if part.actual.best > 0
    ]


def _bar(y: int, label: str, segments: list[_Segment], top: float) -> list[Markup]:
    total = sum(segment.size for segment in segments)
    drawn = [text(0, y - _LABEL_ABOVE, f"{label}: {gib(total)}", class_="row-label")]
    at = 0.0
    for segment in segments:
        width = segment.size / top
        tip = element("title", f"{segment.name}: {gib(segment.size)} ({segment.size:,} bytes)")
        rect = element("rect", tip, x=pct(at), width=pct(width), y=y, height=_BAR, class_=f"seg {segment.kind}")
        drawn += [rect, *_segment_label(segment, at, width, y)]
        at += width
    return drawn


def _segment_label(segment: _Segment, at: float, width: float, y: int) -> list[Markup]:
    """The figure inside the piece where it fits at 360 px, with the name where it fits on a wide page."""
    if width < 0.06:
        return []
    figure = f"{segment.size / GIB:.1f}"
    middle, base = pct(at + width / 2), y + 20
    css = f"seg-label on-{segment.kind}"
    names = (f"{segment.name} {figure}", f"{segment.name.split()[0].rstrip(',:')} {figure}", figure)
    named = next((name for name in names if width * 900 > 7.0 * len(name)), figure)
    narrow = " wide-only" if width < 0.1 else ""
    if named == figure:
        return [text(middle, base, figure, text_anchor="middle", class_=css + narrow)]
    return [
        text(middle, base, named, text_anchor="middle", class_=f"{css} wide-only"),
        *([] if narrow else [text(middle, base, figure, text_anchor="middle", class_=f"{css} narrow-only")]),
    ]


def _eaten(arithmetic: Arithmetic, parts: list[Part], top: float) -> list[Markup]:
    """Each excess as a bar that starts where the one before it ended, from the budget down to what was reserved."""
    if not parts or arithmetic.budget is None or arithmetic.slack is None:
        return []
    y = _TOP + 2 * _PITCH + 6
    cursor = float(arithmetic.budget.best)
    drawn: list[Markup] = []
    for part in parts:
        after = cursor - part.excess.best
        drawn += _excess_row(part, cursor, after, top, y)
        cursor = after
        y += _EXCESS_PITCH
    start = arithmetic.budget.best - arithmetic.slack.best
    edge = pct(start / top)
    drawn.append(element("line", x1=edge, x2=edge, y1=_TOP + _BAR, y2=y + 12, class_="guide"))
    left = f"Slack left: {gib(round(cursor - start), sign=True)}"
    drawn.append(text(edge, y + 4, left, dx=6, class_="row-label wide-only"))
    drawn.append(text(0, y + 4, left, class_="row-label narrow-only"))
    return drawn


def _excess_row(part: Part, cursor: float, after: float, top: float, y: int) -> list[Markup]:
    low, high = min(cursor, after), max(cursor, after)
    verb = "took" if part.excess.best > 0 else "gave back"
    label = f"{short(sentence(part_name(part.part)), 32)} {verb} {gib(abs(part.excess.best))}"
    gives = "" if part.excess.best > 0 else " gives"
    bar = element(
        "rect",
        element("title", f"{label}, between {gib(part.excess.low)} and {gib(part.excess.high)}"),
        x=pct(low / top),
        width=pct((high - low) / top),
        y=y,
        height=18,
        class_=f"seg part-{part_kind(part.part)}{gives}",
    )
    return [
        *_excess_label(label, low / top, y),
        bar,
        *_whisker(part.excess, cursor, top, y + 24),
    ]


def _excess_label(label: str, left: float, y: int) -> list[Markup]:
    """Beside the bar's left end where there is room on a wide page, else above the row."""
    above = "row-label narrow-only" if left > 0.35 else "row-label"
    labels = [text(0, y - 4, label, class_=above)]
    if left > 0.35:
        labels.append(text(pct(left), y + 13, label, dx=-8, text_anchor="end", class_="row-label wide-only"))
    return labels


def _whisker(excess: Quantity, cursor: float, top: float, y: int) -> list[Markup]:
    """The interval of the bar's far end."""
    if excess.high - excess.low < GIB // 20:
        return []
    left, right = pct((cursor - excess.high) / top), pct((cursor - excess.low) / top)
    ends = [element("line", x1=x, x2=x, y1=y - 3, y2=y + 3, class_="whisker") for x in (left, right)]
    return [element("line", x1=left, x2=right, y1=y, y2=y, class_="whisker"), *ends]


def _rules(arithmetic: Arithmetic, top: float, bottom: int) -> list[Markup]:
    """Budget and limit as lines through all rows."""
    drawn: list[Markup] = []
    for name, quantity, y in (("limit", arithmetic.limit, 11), ("budget", arithmetic.budget, 27)):
        if quantity is not None:
            x = pct(quantity.best / top)
            drawn.append(element("line", x1=x, x2=x, y1=y - 8, y2=bottom, class_=f"rule {name}"))
            anchor, shift = ("end", -6) if quantity.best / top > 0.3 else ("start", 6)
            label = f"{name} {gib(quantity.best)}"
            drawn.append(text(x, y, label, dx=shift, text_anchor=anchor, class_="line-label"))
    return drawn


def _axis(top: float, bottom: int) -> list[Markup]:
    drawn = [element("line", x1=0, x2="100%", y1=bottom, y2=bottom, class_="axis")]
    for size, label in gib_ticks(top, 5):
        x = pct(size / top)
        drawn.append(element("line", x1=x, x2=x, y1=_TOP - 4, y2=bottom, class_="grid"))
        anchor = "start" if size == 0 else "end" if size / top > 0.95 else "middle"
        drawn.append(text(x, bottom + 17, label if size else "0 GiB", text_anchor=anchor, class_="tick"))
    return drawn
