"""Figures for the page in one style: GiB with one decimal, exact bytes on hover, times in UTC."""

import datetime as dt
import math
import re

from markupsafe import Markup

from postmortem.result import Quantity
from postmortem.units import format_duration, format_gib
from postmortem_reports import words

__all__ = ["bound", "duration", "exact", "gib", "interval", "iso", "moment", "number", "size", "utc"]

_NBSP = "\u00a0"  # a number and its unit stay on one line
_NUMBER_AND_UNIT = re.compile(r"(\d) (GiB|MiB|%|s|min|h|UTC)\b")
_MINUS = "\u2212"


def size(value: float | Quantity | None, *, sign: bool = False) -> Markup:
    """A size (bytes) as `<data>` with the exact bytes as value and on hover; `not known` for None."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return Markup('<span class="unknown">not known</span>')
    size_bytes = value.best if isinstance(value, Quantity) else round(value)
    return Markup('<data value="{}" title="{} bytes">{}</data>').format(
        size_bytes, exact(size_bytes), gib(size_bytes, sign=sign)
    )


def bound(text: str) -> str:
    """A sentence in which a number stays on one line with its unit."""
    return _NUMBER_AND_UNIT.sub(f"\\1{_NBSP}\\2", text)


def gib(size_bytes: float, *, sign: bool = False) -> str:
    """`342.0 GiB` with a space that does not break and a real minus."""
    return format_gib(size_bytes, sign=sign).replace(" ", _NBSP).replace("-", _MINUS)


def exact(size_bytes: int) -> str:
    """`367,219,703,808`."""
    return f"{size_bytes:,}".replace("-", _MINUS)


def interval(value: Quantity | None) -> Markup:
    """`75.1–79.9 GiB` with the bytes on hover, or `exact` where both ends agree."""
    if value is None:
        return Markup("")
    shown = words.interval(value).replace(" ", _NBSP).replace("-", _MINUS)
    if value.low == value.high:
        return Markup('<span title="{} bytes">exact</span>').format(exact(value.best))
    bounds = f"{exact(value.low)} to {exact(value.high)} bytes"
    return Markup('<span title="{}">{}</span>').format(bounds, shown or f"±{_NBSP}0.1{_NBSP}GiB")


def number(value: float | None) -> str:
    """A count with separators of thousands; fractions with one decimal."""
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def moment(time: dt.datetime | None, *, milliseconds: bool = False) -> str:
    """`2026-03-19 02:26:24 UTC`, or with milliseconds."""
    if time is None:
        return "time not known"
    text = utc(time).isoformat(sep=" ", timespec="milliseconds" if milliseconds else "seconds")
    return text.removesuffix("+00:00") + f"{_NBSP}UTC"


def iso(time: dt.datetime | None) -> str:
    """ISO 8601 UTC for `<time datetime>` and fragments; empty for None."""
    return "" if time is None else utc(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration(start: dt.datetime | None, end: dt.datetime | None) -> str:
    """How long from `start` to `end`; empty where either is unknown."""
    if start is None or end is None:
        return ""
    return format_duration(max(0.0, (utc(end) - utc(start)).total_seconds())).replace(" ", _NBSP)


def utc(time: dt.datetime) -> dt.datetime:
    """The same moment in UTC; a time without a zone is taken as UTC."""
    return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)
