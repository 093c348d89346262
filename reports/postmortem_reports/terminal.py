"""The answer on a terminal of 80 columns: readable without colour, nothing from a log obeyed.

`render` prints for people; `render_text` gives the same as plain lines for logs, without colour or boxes.
"""

import io
from collections.abc import Iterable

import polars as pl
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from postmortem.result import Cause, Finding, Result, Share
from postmortem.units import format_duration
from postmortem_reports import labels, words
from postmortem_reports.chart import Chart, memory_chart
from postmortem_reports.safe import visible

__all__ = ["render", "render_text"]

WIDTH = 80
_HEIGHT = 9
_AXIS = 17  # columns for the chart's labels
_LONGEST = 400
"""Characters of one text from the result that the terminal shows."""

_SEVERITY = {"death": "bold red", "failure": "bold yellow", "calm": "bold green"}


def render(result: Result, timeline: pl.DataFrame | None, console: Console, *, written: list[str]) -> None:
    """Print the report; `written` are the files that hold more of it."""
    _print(result, timeline, console, rule="─")
    if written:
        console.print()
        for path in written:
            console.print(Text.assemble("Report: ", (visible(path), "bold")), soft_wrap=True, highlight=False)


def render_text(result: Result, timeline: pl.DataFrame | None) -> str:
    """The report as plain text, 80 columns, without colour or boxes, ending in a line end."""
    page = io.StringIO()
    console = Console(file=page, width=WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    _print(result, timeline, console, rule="")
    console.print()
    console.print(Text(f"postmortem {visible(result.postmortem_version)} · {result.schema}"))
    return "\n".join(line.rstrip() for line in page.getvalue().split("\n"))


def _print(result: Result, timeline: pl.DataFrame | None, console: Console, *, rule: str) -> None:
    width = min(console.width, WIDTH)
    blocks = [
        _head(result),
        _arithmetic(result, rule),
        _causes(result),
        _chart(result, timeline, width),
        _evidence(result),
        _missing(result),
        _quality(result),
    ]
    shown = [block for block in blocks if block is not None]
    for number, block in enumerate(shown):
        if number:
            console.print()
        console.print(block, width=width, highlight=False)


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text, _LONGEST), style=style)


def _section(title: str, *body: RenderableType) -> RenderableType:
    return Group(Text(title, style="bold"), *(Padding(part, (0, 0, 0, 2)) for part in body))


# The head: how it ended, the sentence, the four numbers.


def _head(result: Result) -> RenderableType:
    ending = result.ending
    how = Text(words.sentence(words.HOWS[ending.how]), style=_SEVERITY[labels.SEVERITY[ending.how]])
    when = f"{words.moment(ending.time, ending.time_uncertainty_s)}, {labels.CERTAINTY[ending.certainty]}"
    facts = [when, *_ending_facts(result)]
    return Group(
        Text.assemble(visible(result.name, 60), style="dim"),
        how,
        _text("; ".join(facts), "dim"),
        Text(),
        _text(result.verdict.summary, "bold"),
        Text(),
        _numbers(result),
    )


def _ending_facts(result: Result) -> Iterable[str]:
    ending = result.ending
    if ending.exit_code is not None:
        yield f"exit code {ending.exit_code}"
    if ending.signal is not None:
        yield f"signal {ending.signal}"
    if ending.victim is not None:
        pid = f" (pid {ending.victim.pid})" if ending.victim.pid is not None else ""
        yield f"victim {ending.victim.name or 'not named'}{pid}"


def _numbers(result: Result) -> RenderableType:
    """Limit, budget, what the budget never saw, safe budget: four columns of two lines."""
    arithmetic = result.arithmetic
    table = Table.grid(padding=(0, 3))
    for _ in range(4):
        table.add_column(no_wrap=True)
    table.add_row("limit", "budget", "budget never saw", "safe budget", style="dim")
    table.add_row(
        words.figure(arithmetic.limit),
        words.figure(arithmetic.budget),
        words.figure(words.unseen(result)),
        words.figure(result.survival.safe_budget),
        style="bold",
    )
    return table


# The arithmetic: a table with its sums and the identity under it.


def _arithmetic(result: Result, rule: str) -> RenderableType | None:
    arithmetic = result.arithmetic
    totals = words.sums(arithmetic)
    if totals is None:
        return None
    line = box.Box("    \n    \n ── \n    \n    \n ── \n    \n    \n") if rule else None
    table = Table(box=line, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), show_footer=True, expand=True)
    provision, actual, excess = totals
    table.add_column("part", footer="sum", overflow="fold", ratio=1, header_style="dim", footer_style="bold")
    for head, total, signed in (("set aside", provision, False), ("actual", actual, False), ("excess", excess, True)):
        footer = words.figure(total, sign=signed)
        table.add_column(head, footer=footer, justify="right", no_wrap=True, header_style="dim", footer_style="bold")
    table.add_column(
        "excess between", footer=words.interval(excess), justify="right", no_wrap=True, style="dim", header_style="dim"
    )
    for part in arithmetic.parts:
        style = "red" if part.excess.best > 0 else ""
        table.add_row(
            _text(words.part_name(part.part)),
            words.figure(part.provision),
            words.figure(part.actual),
            Text(words.figure(part.excess, sign=True), style=style),
            words.interval(part.excess),
        )
    check = words.check(arithmetic)
    return _section(f"Memory at {words.moment(arithmetic.at)}", table, *([_text(check, "dim")] if check else []))


def _causes(result: Result) -> RenderableType | None:
    causes = result.verdict.causes
    verdict = result.verdict
    if not causes:
        return None
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for cause in causes:
        table.add_row(words.CAUSES[cause.cause], words.share_text(cause.share), Text(_bar(cause.share), style="red"))
    title = f"Causes ({labels.confidence(verdict.confidence)}, {words.percent(verdict.confidence)})"
    return _section(title, table, *_advice(causes))


def _bar(share: Share | None) -> str:
    """Solid up to what is certain, light up to what is possible; 20 cells are the whole."""
    if share is None:
        return ""
    certain, possible = round(20 * share.low), round(20 * share.high)
    return "█" * certain + "░" * (possible - certain)


def _advice(causes: list[Cause]) -> Iterable[Text]:
    if causes[0].advice:
        yield Text.assemble(("What helps: ", "bold"), visible(causes[0].advice, _LONGEST))


# The chart and the phases under it.


def _chart(result: Result, timeline: pl.DataFrame | None, width: int) -> RenderableType | None:
    chart = memory_chart(timeline, width - _AXIS - 2, _HEIGHT)
    phases = [_phase_line(result, number) for number in range(min(4, len(result.phases)))]
    if len(result.phases) > len(phases):
        phases.append(f"… and {len(result.phases) - len(phases)} more phases")
    if chart is None and not phases:
        return None
    drawn = _chart_lines(chart, width - _AXIS - 2) if chart else ()
    return _section("Memory over time", *drawn, *(_text(line) for line in phases))


def _chart_lines(chart: Chart, width: int) -> Iterable[Text]:
    for label, runs in chart.rows:
        yield Text.assemble((f"{label:>{_AXIS - 1}} ", "dim"), *runs)
    yield Text(" " * _AXIS + chart.axis(width), style="dim")
    legend = Text()
    for layer in chart.layers:
        legend.append(f"{layer.mark} ", style=layer.style)
        legend.append(f"{layer.label}  ")
    yield legend


def _phase_line(result: Result, number: int) -> str:
    phase = result.phases[number]
    span = f"{words.clock(phase.start)}–{words.clock(phase.end) if phase.end else ''}"
    took = f", {format_duration((phase.end - phase.start).total_seconds())}" if phase.start and phase.end else ""
    peak = f", peak {words.figure(phase.peak)}" if phase.peak else ""
    of = f" of {phase.count}" if phase.count is not None else ""
    state = "" if phase.ended == "complete" else ", cut off"
    return f"{phase.name}: {span}{took}, {phase.jobs_done}{of} jobs{peak}{state}"


# Evidence for and against, what is missing, what was read.


def _evidence(result: Result) -> RenderableType | None:
    found = words.strongest(result, 3)
    first = result.verdict.causes[0].against if result.verdict.causes else []
    against = sorted([*result.ending.against, *first], key=lambda finding: -finding.weight)
    if not found and not against:
        return None
    table = Table.grid(padding=(0, 1, 0, 0))
    for number, finding in enumerate(found, start=1):
        table.add_row(f"{number}.", _finding(finding))
    for finding in against[:2]:
        table.add_row(Text("−", style="yellow"), Text.assemble(("Against: ", "yellow"), _finding(finding)))
    return _section("Evidence", table)


def _finding(finding: Finding) -> Text:
    where = ", ".join(finding.lines[:3]) + (", …" if len(finding.lines) > 3 else "")
    text = _text(words.sentence(finding.text))
    if where:
        text.append(f" [{visible(where, 160)}]", style="dim")
    return text


def _missing(result: Result) -> RenderableType | None:
    if not result.missing:
        return None
    lines = [_text(f"{words.sentence(missing.what)}: {missing.why_it_matters}") for missing in result.missing[:3]]
    if len(result.missing) > 3:
        lines.append(_text(f"… and {len(result.missing) - 3} more, in the HTML report with how to record them"))
    table = Table.grid(padding=(0, 1, 0, 0))
    for line in lines:
        table.add_row("·", line)
    return _section("Missing evidence", table)


def _quality(result: Result) -> RenderableType:
    warnings = [*result.warnings, *(f"{source.path}: {text}" for source in result.sources for text in source.warnings)]
    lines = [_text(f"Read {words.reading(result)}", "dim")]
    lines += [_text(f"Warning: {warning}", "yellow") for warning in warnings[:3]]
    if len(warnings) > 3:
        lines.append(_text(f"… and {len(warnings) - 3} more warnings", "yellow"))
    return Group(*lines)
