"""A fleet's figures as one HTML page: tables and pictures first, a script only sorts and filters the table of runs."""

from __future__ import annotations

import datetime as dt
import re
from functools import cache
from typing import Any

import polars as pl
from jinja2 import Environment
from markupsafe import Markup

from postmortem.fleet import Fleet, Machines
from postmortem.units import GIB
from postmortem_reports import format as figures_format
from postmortem_reports import labels, words
from postmortem_reports.chips import chips, plain
from postmortem_reports.embed import as_script_text
from postmortem_reports.pages import asset, environment
from postmortem_reports.policy import content_security_policy
from postmortem_reports.svg_fleet import margins_svg, months_svg, tone

__all__ = ["render"]

_STATIC_ROWS = 200
_KEY = re.compile(r"reports/(.*)-([0-9a-f]{12})\.postmortem\.html\Z")
_NAME_LONGEST = 80

KINDS: dict[str, str] = {**words.HOWS, **words.CAUSES, "inconclusive": "death by memory, cause undecided"}
"""What a run is counted as: the cause of a death by memory, else its ending."""

STATUSES = {
    "no_evidence": "holds no evidence",
    "unreadable": "cannot be read",
    "timed_out": "took too long",
    "out_of_memory": "took too much memory",
    "died": "its worker died",
    "failed": "our fault: please report it",
    "refused": "refused",
}


def render(fleet: Fleet, runs: pl.DataFrame) -> str:
    """The page as text. `runs` has the columns of `postmortem.batch.rows.RUNS`; the same arguments give the same text."""
    boot, app, css = asset("boot.js"), asset("fleet.js"), asset("page.css") + asset("fleet.css")
    table = _table(runs)
    return (
        _environment()
        .get_template("fleet.html.j2")
        .render(
            fleet=fleet,
            version=fleet.postmortem_version,
            headline=_headline(fleet),
            planner=[sentence for machine in fleet.machines if (sentence := _planner(machine))],
            months=months_svg(fleet.over_time, "Runs by how they ended, over time. The table below has the counts."),
            margins=margins_svg(fleet.machines, "Margin that each run needed, by memory limit."),
            kinds=_kinds(fleet),
            tone=tone,
            KINDS=KINDS,
            STATUSES=STATUSES,
            rows=table.head(_STATIC_ROWS).rows(named=True),
            data=Markup(as_script_text(_packed(table))),  # noqa: S704 - as_script_text escapes what could be markup
            policy=content_security_policy([boot, app], [css]),
            css=Markup(css),  # noqa: S704 - our own
            boot=Markup(boot),  # noqa: S704
            app=Markup(app),  # noqa: S704
        )
    )


def _headline(fleet: Fleet) -> str:
    if not fleet.analysed:
        return "No run could be analysed"
    if not fleet.memory_deaths:
        return f"None of {fleet.analysed:,} runs died of memory"
    cause, count = next(iter(fleet.causes.items()))
    if len(fleet.causes) == 1 and cause == "inconclusive":
        return f"{fleet.memory_deaths:,} of {fleet.analysed:,} runs died of memory; why, their evidence does not decide"
    most = f"most often: {KINDS[cause]} ({count:,})" if len(fleet.causes) > 1 else f"all of one cause: {KINDS[cause]}"
    return f"{fleet.memory_deaths:,} of {fleet.analysed:,} runs died of memory, {most}"


def _planner(machine: Machines) -> str | None:
    """The sentence that a planner came for."""
    margin = machine.margins[-1]
    if margin.as_it_ran is None and margin.pool_counted is None:
        return None
    size = figures_format.gib(machine.limit).replace(".0", "")
    as_it_ran = f"leave {margin.as_it_ran // GIB} GiB" if margin.as_it_ran is not None else "what to leave is not known"
    counted = (
        f"; {margin.pool_counted // GIB} GiB if the budget counted the pinned pool"
        if margin.pool_counted is not None
        else ""
    )
    few = (
        f" (only {machine.measured} run{'s' if machine.measured > 1 else ''} measured)" if machine.measured < 20 else ""
    )
    return figures_format.bound(f"On {size} machines, {as_it_ran}{counted}{few}.")


def _kinds(fleet: Fleet) -> list[str]:
    """All kinds of the fleet, the most frequent first."""
    counts: dict[str, int] = {}
    for month in fleet.versions.values():
        for kind, count in month.items():
            counts[kind] = counts.get(kind, 0) + count
    return sorted(counts, key=lambda kind: (-counts[kind], kind))


def _table(runs: pl.DataFrame) -> pl.DataFrame:
    """The table's columns; sizes in tenths of a GiB, as shown."""
    tenths = [
        (pl.col(name) / GIB * 10).round().cast(pl.Int64).alias(name)
        for name in ("limit", "budget", "margin_needed", "overhead", "uncovered")
    ]
    kind = pl.when(pl.col("status") != "done").then("status").when("died").then("cause").otherwise("ending")
    return runs.sort("run").select(
        pl.col("run").str.slice(0, 300),
        pl.col("name").str.slice(0, _NAME_LONGEST),
        kind.alias("kind"),
        *tenths,
        (pl.col("start").dt.epoch("s") // 60).alias("start"),
        "report",
        pl.when(pl.col("status") != "done").then(pl.col("error").str.slice(0, 160)).alias("error"),
    )


def _packed(table: pl.DataFrame) -> dict[str, Any]:
    """Columns for the script; paths share what they have in common with the row before."""
    kinds = table["kind"].unique().sort().to_list()
    position = {kind: number for number, kind in enumerate(kinds)}
    packed: dict[str, Any] = {
        "kinds": [[kind, _kind_words(kind), tone(kind)] for kind in kinds],
        "kind": [position[kind] for kind in table["kind"]],
        "run": _front_coded([plain(run, 300) for run in table["run"]]),
        "name": [
            0 if run.endswith("/" + name) else plain(name, _NAME_LONGEST)
            for run, name in table.select("run", "name").iter_rows()
        ],
        "report": [_report_code(report, name) for report, name in table.select("report", "name").iter_rows()],
        "error": {str(number): plain(error, 160) for number, error in enumerate(table["error"]) if error},
    }
    return packed | {
        name: table[name].to_list() for name in ("limit", "budget", "margin_needed", "overhead", "uncovered", "start")
    }


def _kind_words(kind: str) -> str:
    return KINDS.get(kind) or STATUSES.get(kind, kind)


def _front_coded(paths: list[str]) -> list[Any]:
    """Each path as how much it shares with the one before, and the rest; alternating in one flat list."""
    coded: list[Any] = []
    before = ""
    for path in paths:
        shared = 0
        for one, other in zip(path, before, strict=False):
            if one != other or ord(one) > 0xFFFF:  # JavaScript counts in UTF-16
                break
            shared += 1
        coded += [shared, path[shared:]]
        before = path
    return coded


def _report_code(report: str | None, name: str) -> str | int:
    """0 without a report, its key where the file is called like the run, else its whole stem."""
    match = _KEY.match(report or "")
    if match is None:
        return 0
    return match[2] if match[1] == name else f"{match[1]}-{match[2]}"


def _tenths(value: int | None) -> str:
    return "" if value is None else f"{value / 10:,.1f}"


def _whole_gib(size_bytes: int | None) -> str:
    return "–" if size_bytes is None else f"{size_bytes // GIB}"


def _when(minutes: int | None) -> str:
    return "" if minutes is None else f"{dt.datetime.fromtimestamp(minutes * 60, dt.UTC):%Y-%m-%d %H:%M}"


@cache
def _environment() -> Environment:
    return environment(
        chips=chips,
        plain=plain,
        size=figures_format.size,
        number=figures_format.number,
        sentence=words.sentence,
        part_name=words.part_name,
        kind=_kind_words,
        tenths=_tenths,
        when=_when,
        bound=figures_format.bound,
        gib=_whole_gib,
        severity=lambda how: labels.SEVERITY[how],  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    )
