"""One rung of the recovery ladder as a bar: the peak against the limit, with its interval."""

from markupsafe import Markup

from postmortem.result import Ladder, Quantity
from postmortem_reports.svg import element, pct

__all__ = ["rung_bar"]


def rung_bar(rung: Ladder, limit: Quantity | None) -> Markup:
    """A picture for a table's cell; the figures stand in the cells beside it."""
    if rung.peak is None or limit is None:
        return Markup("")
    top = max(limit.best, rung.peak.high) * 1.15
    outcome = {True: "calm", False: "death", None: "open"}[rung.survives]
    middle = 8
    return element(
        "svg",
        element("rect", x=0, y=4, width=pct(rung.peak.best / top), height=8, class_=f"rung {outcome}"),
        element(
            "line", x1=pct(rung.peak.low / top), x2=pct(rung.peak.high / top), y1=middle, y2=middle, class_="whisker"
        ),
        element("line", x1=pct(limit.best / top), x2=pct(limit.best / top), y1=0, y2=16, class_="rule limit"),
        class_="rung-bar",
        width="100%",
        height=16,
        aria_hidden="true",
    )
