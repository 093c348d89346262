"""A comparison of two runs for the terminal, as Markdown, and as a page with both timelines aligned."""

from __future__ import annotations

from functools import cache
from itertools import groupby

from jinja2 import Environment
from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from postmortem.compare import Comparison, Difference, Side
from postmortem.units import format_gib
from postmortem_reports import words
from postmortem_reports.chips import chips, plain
from postmortem_reports.pages import asset, environment
from postmortem_reports.policy import content_security_policy
from postmortem_reports.safe import table_cell, visible
from postmortem_reports.svg_comparison import aligned_svg

__all__ = ["html", "markdown", "terminal"]

_Value = tuple[float, float, float] | str | None
_WORDS: dict[str, str] = {**words.HOWS, **words.CAUSES}


def terminal(comparison: Comparison, console: Console) -> None:
    """One table; what differs by more than its interval is bold and marked."""
    console.print(Text(visible(f"{comparison.answer}.", 1000), style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", visible(comparison.a, 40), visible(comparison.b, 40), "change", ""):
        table.add_column(Text(heading), overflow="fold")
    for section, differences in _sections(comparison):
        table.add_row(Text(section.upper(), style="dim"))
        for one in differences:
            style = "bold" if one.beyond else ""
            table.add_row(*(Text(visible(cell, 200), style=style) for cell in _cells(one)))
    console.print(table)


def markdown(comparison: Comparison) -> str:
    """A comment for an issue."""
    lines = [f"**{table_cell(comparison.answer)}.**", ""]
    lines += [
        f"| | {table_cell(comparison.a)} | {table_cell(comparison.b)} | change | |",
        "| --- | --- | --- | --- | --- |",
    ]
    for section, differences in _sections(comparison):
        lines.append(f"| **{section}** | | | | |")
        lines += ["| " + " | ".join(table_cell(cell) for cell in _cells(one)) + " |" for one in differences]
    return "\n".join([*lines, "", f"Made by postmortem {comparison.postmortem_version}.", ""])


def html(comparison: Comparison, a: Side, b: Side) -> str:
    """The page as text; timelines are drawn where both runs were analysed here."""
    css = asset("page.css") + asset("fleet.css")
    pictures = [
        (title, picture)
        for title, at_kill in (("Aligned at the start", False), ("Aligned at the end", True))
        if (picture := aligned_svg(a, b, at_end=at_kill))
    ]
    return (
        _environment()
        .get_template("comparison.html.j2")
        .render(
            comparison=comparison,
            sections=[(section, [(one, _cells(one)) for one in ones]) for section, ones in _sections(comparison)],
            pictures=pictures,
            version=comparison.postmortem_version,
            policy=content_security_policy([], [css]),
            css=Markup(css),  # noqa: S704 - our own
        )
    )


def _sections(comparison: Comparison) -> list[tuple[str, list[Difference]]]:
    return [(key, list(ones)) for key, ones in groupby(comparison.differences, key=lambda one: one.section)]


def _cells(one: Difference) -> tuple[str, str, str, str, str]:
    name = words.part_name(one.what.removeprefix("part ")) if one.what.startswith("part ") else one.what
    mark = "known of one only" if one.beyond is None else "differs" if one.beyond else ""
    change = "" if not one.change else _figure(one.change, one.unit, sign=True)
    return name, _shown(one.a, one.unit), _shown(one.b, one.unit), change, mark


def _shown(value: _Value, unit: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return _WORDS.get(value, value)
    low, best, high = (_figure(each, unit) for each in value)
    if low == high:
        return best
    number, _, rest = low.partition(" ")
    return (
        f"{best} ({number}–{high})" if high.endswith(rest) and not low.startswith("-") else f"{best} ({low} to {high})"
    )


def _figure(value: float, unit: str, *, sign: bool = False) -> str:
    if unit in {"bytes", "bytes per unit"}:
        if unit == "bytes per unit" and abs(value) < 1 << 16:
            return f"{value:{'+' if sign else ''}.3g}"
        return format_gib(value, sign=sign)
    suffix = {"per hour": " per hour", "s": " s"}.get(unit, "")
    return f"{value:{'+' if sign else ''},.{0 if unit == 'count' else 1}f}{suffix}"


@cache
def _environment() -> Environment:
    return environment(chips=chips, plain=plain, sentence=words.sentence)
