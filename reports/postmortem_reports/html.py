"""The result as one HTML file that needs nothing else: readable without scripts, live with them."""

from functools import cache, partial
from typing import Any, Literal

import polars as pl
from jinja2 import Environment
from markupsafe import Markup

from postmortem.result import Evidence, PartitionLife, Result
from postmortem_reports import format as figures_format
from postmortem_reports import labels, words
from postmortem_reports.chips import chips, plain
from postmortem_reports.embed import as_script_text, bounded_result
from postmortem_reports.figures import timeline_figure
from postmortem_reports.moments import COUNTS, TABLE, moment_rows, notable_moments
from postmortem_reports.overlays import Overlays, overlays
from postmortem_reports.pages import asset, environment
from postmortem_reports.policy import content_security_policy, digest
from postmortem_reports.series import in_order, pack, thin
from postmortem_reports.svg_arithmetic import arithmetic_svg
from postmortem_reports.svg_ladder import rung_bar
from postmortem_reports.svg_partitions import partition_name, partitions_svg, shown_partitions
from postmortem_reports.svg_timeline import timeline_svg

__all__ = ["PLOTLY_FILE", "PlotlyJs", "plotly_source", "render"]

PlotlyJs = Literal["inline", "cdn", "file"]

PLOTLY_FILE = "plotly-basic.min.js"
"""What `plotly_js="file"` expects beside the report: write `plotly_source()` there."""

_CDN = "https://cdn.plot.ly"
_STATIC_ROWS = 280
"""Rows of the static picture: more than pixels it has to spare on a phone, enough for peaks on a desk."""

_SCRIPT_NAMES = ("series.js", "timeline.js", "page.js")


def render(
    result: Result, timeline: pl.DataFrame, *, plotly_js: PlotlyJs = "inline", markdown: str | None = None
) -> str:
    """The report as HTML text; the same arguments give the same text.

    `timeline` has the columns of `postmortem.schema.TIMELINE`. `plotly_js`: `inline` puts the chart library into the
    page, `cdn` loads it from plotly's host, `file` from `PLOTLY_FILE` beside the page; without it the static pictures
    stay. `markdown` is offered for copying.
    """
    boot, app, css = asset("boot.js"), "\n".join(map(asset, _SCRIPT_NAMES)), asset("page.css")
    library = plotly_source() if plotly_js == "inline" else ""
    policy = content_security_policy(
        [text for text in (boot, library, app) if text],
        [css],
        script_host={"inline": "", "cdn": f"{_CDN}/", "file": "'self' file:"}[plotly_js],
    )
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            **_VOCABULARY,
            **_context(result, timeline),
            markdown=markdown,
            policy=policy,
            css=_ours(css),
            boot=_ours(boot),
            app=_ours(app),
            library=_ours(library),
            library_url=_library_url(plotly_js),
            library_digest=digest(plotly_source()),
        )
    )


def _ours(text: str) -> Markup:
    """Our own scripts and styles, and JSON in which `as_script_text` has escaped what could be markup."""
    return Markup(text)  # noqa: S704 - see above


@cache
def plotly_source() -> str:
    """The vendored basic bundle of plotly.js (MIT, licence beside it)."""
    return asset(PLOTLY_FILE)


def _library_url(plotly_js: PlotlyJs) -> str | None:
    if plotly_js == "inline":
        return None
    version = plotly_source()[:200].partition("(basic - minified) v")[2].split()[0]
    return PLOTLY_FILE if plotly_js == "file" else f"{_CDN}/plotly-basic-{version}.min.js"


_VOCABULARY: dict[str, Any] = {
    "duration": figures_format.duration,
    "partition_name": partition_name,
    "HOWS": words.HOWS,
    "CAUSES": words.CAUSES,
    "BASIS": words.BASIS,
    "CERTAINTY": labels.CERTAINTY,
    "SEVERITY": labels.SEVERITY,
    "STACK": labels.STACK,
}


@cache
def _environment() -> Environment:
    return environment(
        chips=chips,
        bound=figures_format.bound,
        plain=plain,
        size=figures_format.size,
        interval=figures_format.interval,
        number=figures_format.number,
        moment=figures_format.moment,
        iso=figures_format.iso,
        clock=words.clock,
        percent=words.percent,
        share=words.share_text,
        sentence=words.sentence,
        part_name=words.part_name,
        part_kind=labels.part_kind,
        confidence=labels.confidence,
    )


def _context(result: Result, timeline: pl.DataFrame) -> dict[str, Any]:
    embedded, cut = bounded_result(result)
    lives = shown_partitions(result.partitions)
    return {
        "r": result,
        "sums": words.sums(result.arithmetic),
        "unseen": words.unseen(result),
        "reading": words.reading(result),
        "waterfall": arithmetic_svg(result.arithmetic, _arithmetic_words(result)),
        "lives": lives,
        "partitions_picture": _partitions_picture(result, lives),
        "anchors": _anchors(result.evidence),
        "rung_bar": partial(rung_bar, limit=result.arithmetic.limit),
        "lines_of": _lines_of,
        "embedded": _ours(as_script_text(embedded)),
        "embedded_cut": cut,
        **_timeline_context(result, in_order(timeline)),
    }


def _timeline_context(result: Result, timeline: pl.DataFrame) -> dict[str, Any]:
    over = overlays(result, timeline)
    if over is None:
        return {"over": None, "live": None}
    keep = tuple(mark.time for mark in over.kills)
    frame = thin(timeline, keep=keep)
    still = thin(frame, _STATIC_ROWS, keep)
    described = _timeline_words(result, frame, over)
    return {
        "over": over,
        "rows_in_run": timeline.height,
        "rows_shown": frame.height,
        "rows_static": still.height,
        "timeline_picture": timeline_svg(still, over, described),
        "timeline_words": described,
        "stack_shown": [name for name in labels.STACK if frame[name].max()],
        "last_moment": moment_rows(frame),
        "notable": notable_moments(frame, over),
        "table_words": TABLE,
        "counts": COUNTS,
        "live": _ours(as_script_text({"series": pack(frame), "figure": timeline_figure(frame, over)})),
    }


def _anchors(evidence: list[Evidence]) -> dict[str, int]:
    """The excerpt's number of each citation (`run.log:12`)."""
    return {f"{one.source}:{one.line}": number for number, one in reversed(list(enumerate(evidence, 1)))}


def _lines_of(evidence: Evidence) -> list[tuple[int, str]]:
    """The cited line among the lines around it, in order."""
    return sorted({**dict(evidence.around[:40]), evidence.line: evidence.text}.items())


def _arithmetic_words(result: Result) -> str:
    parts = ", ".join(
        f"{words.part_name(part.part)} {figures_format.gib(part.actual.best)} of "
        f"{figures_format.gib(part.provision.best)} provided"
        for part in result.arithmetic.parts
    )
    return f"Provision against actual use, part by part: {plain(parts, 1000)}. The table below has all figures."


def _timeline_words(result: Result, frame: pl.DataFrame, over: Overlays) -> str:
    highest = frame["unreclaimable"].max()
    peak = f" Highest use that cannot be reclaimed: {figures_format.gib(highest)}." if isinstance(highest, int) else ""
    ending = f" It ended: {words.HOWS[result.ending.how]}." if over.kills else ""
    span = f"from {figures_format.moment(over.start)} to {figures_format.moment(over.end)}"
    return f"Memory by part over time, {span}, with the pool and the live partitions below.{peak}{ending}"


def _partitions_picture(result: Result, lives: list[PartitionLife]) -> Markup:
    killed = labels.SEVERITY[result.ending.how] != "calm"
    return partitions_svg(lives, result.ending.time, _partitions_words(result), killed=killed)


def _partitions_words(result: Result) -> str:
    alive = sum(life.alive_at_end for life in result.partitions)
    return f"Synthesis, wait and GPU time of partitions; {alive} of {len(result.partitions)} were alive at the end."
