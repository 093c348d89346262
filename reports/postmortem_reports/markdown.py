"""The result as Markdown for an issue comment: reads well in GitHub and Jira, and as plain text in Slack.

Tables are padded, so that they are readable where they are not rendered. Text from logs stands in code
spans and fences only, so that it can be neither markup, nor a link, nor a mention.
"""

from collections.abc import Iterable, Sequence

from postmortem.result import Cause, Evidence, Finding, Result
from postmortem.units import format_duration, format_gib
from postmortem_reports import labels, words
from postmortem_reports.safe import clip, code_fence, code_span, prose, table_cell

__all__ = ["MARK", "MOST", "render"]

MOST = 65_536
"""Characters of a comment that GitHub takes."""

MARK = "Made by postmortem "
"""How the last line begins; a file that ends so is one of ours."""

_LONGEST_TEXT = 1_000
_LONGEST_LINE = 400
_LONGEST_CITATION = 120
_MOST_ROWS = 40
_MOST_EXCERPTS = 12
_MOST_FINDINGS = 6


def render(result: Result) -> str:
    """The comment, at most `MOST` characters, ending in a line end."""
    foot = f"{MARK}{result.postmortem_version} · {words.reading(result)}\n"
    blocks = [_head(result), _arithmetic(result), _causes(result), _course(result), _survival(result)]
    blocks += [*_excerpts(result.evidence), _missing(result), _warnings(result)]
    return _fitted([block for block in blocks if block], foot)


def _fitted(blocks: list[str], foot: str) -> str:
    """As many whole blocks as a comment takes; what is left out is said."""
    note = "_The rest did not fit into a comment; the HTML report has it._\n\n"
    room = MOST - len(foot) - len(note)
    page = ""
    for block in blocks:
        if len(page) + len(block) + 2 > room:
            return f"{page}{note}{foot}"
        page += f"{block}\n\n"
    return page + foot


def _prose(text: str) -> str:
    return prose(clip(text, _LONGEST_TEXT))


# How it ended, the sentence, the four numbers.


def _head(result: Result) -> str:
    ending, arithmetic = result.ending, result.arithmetic
    sure = f"{labels.confidence(result.verdict.confidence)}, {words.percent(result.verdict.confidence)}"
    figures = [
        ("Limit", words.figure(arithmetic.limit)),
        ("Budget", words.figure(arithmetic.budget)),
        ("Budget never saw", words.figure(words.unseen(result))),
        ("Safe budget", words.figure(result.survival.safe_budget)),
    ]
    when = words.moment(ending.time, ending.time_uncertainty_s)
    how = f"{words.sentence(words.HOWS[ending.how])} ({labels.CERTAINTY[ending.certainty]}), {when}."
    return "\n\n".join(
        [
            f"## Post-mortem: {_prose(clip(result.name, 100))}",
            f"**{_prose(result.verdict.summary)}**",
            f"{how} Cause: {words.CAUSES[result.verdict.cause]} ({sure}).",
            _table([name for name, _ in figures], [[value for _, value in figures]], right=range(4)),
        ]
    )


# The arithmetic and the causes.


def _arithmetic(result: Result) -> str | None:
    arithmetic = result.arithmetic
    totals = words.sums(arithmetic)
    if totals is None:
        return None
    rows = [
        [
            _prose(words.part_name(part.part)),
            words.figure(part.provision),
            words.figure(part.actual),
            words.figure(part.excess, sign=True),
            words.interval(part.excess),
            part.excess.basis,
        ]
        for part in arithmetic.parts[:_MOST_ROWS]
    ]
    provision, actual, excess = totals
    rows.append(
        [
            "**sum**",
            words.figure(provision),
            words.figure(actual),
            words.figure(excess, sign=True),
            words.interval(excess),
            excess.basis,
        ]
    )
    heads = ["Part", "Set aside", "Actual", "Excess", "Excess between", "Basis"]
    lines = [f"### Memory at {words.moment(arithmetic.at)}", _table(heads, rows, right=range(1, 5))]
    check = words.check(arithmetic)
    return "\n\n".join([*lines, *([check] if check else [])])


def _causes(result: Result) -> str | None:
    findings = [*result.ending.evidence], [*result.ending.against]
    blocks = ["### Why", *(_cause(number, cause) for number, cause in enumerate(result.verdict.causes, start=1))]
    blocks.append("\n".join([f"**How it ended: {words.HOWS[result.ending.how]}**", "", *_findings(*findings)]))
    return "\n\n".join(blocks)


def _cause(number: int, cause: Cause) -> str:
    facts = [words.share_text(cause.share), words.figure(cause.excess, sign=True) if cause.excess else ""]
    title = f"**{number}. {words.sentence(words.CAUSES[cause.cause])}**"
    known = ", ".join(fact for fact in facts if fact)
    lines = [f"{title}: {known}" if known else title, "", *_findings(cause.evidence, cause.against)]
    if cause.advice:
        lines += ["", f"What helps: {_prose(cause.advice)}"]
    return "\n".join(lines).rstrip()


def _findings(found: Sequence[Finding], against: Sequence[Finding]) -> Iterable[str]:
    for word, findings in (("", found), ("_Against:_ ", against)):
        ranked = sorted(findings, key=lambda finding: -finding.weight)
        for finding in ranked[:_MOST_FINDINGS]:
            cited = ", ".join(code_span(clip(line, _LONGEST_CITATION)) for line in finding.lines[:3])
            yield f"- {word}{_prose(words.sentence(finding.text))}{f' ({cited})' if cited else ''}"
        if len(ranked) > _MOST_FINDINGS:
            yield f"- {word}… and {len(ranked) - _MOST_FINDINGS} more"


# Attempts, phases, what would have survived.


def _course(result: Result) -> str | None:
    tables: list[str] = []
    if len(result.attempts) > 1:
        rows = [
            [
                str(attempt.number),
                words.figure(attempt.budget),
                words.figure(attempt.peak),
                str(attempt.jobs_done),
                words.HOWS[attempt.ending],
            ]
            for attempt in result.attempts[-_MOST_ROWS:]
        ]
        tables.append(_table(["Attempt", "Budget", "Peak", "Jobs done", "Ending"], rows, right=range(4)))
    if result.phases:
        rows = [
            [
                _prose(clip(phase.name, 80)),
                words.clock(phase.start),
                _took(phase.start and phase.end and (phase.end - phase.start).total_seconds()),
                words.figure(phase.peak),
                f"{phase.jobs_done}" + (f" of {phase.count}" if phase.count is not None else ""),
                phase.ended,
            ]
            for phase in result.phases[-_MOST_ROWS:]
        ]
        tables.append(_table(["Phase", "Start (UTC)", "Took", "Peak", "Jobs done", "Ended"], rows, right=range(1, 5)))
    return "\n\n".join(["### Course", *tables]) if tables else None


def _took(seconds: float | None) -> str:
    return format_duration(seconds) if seconds is not None else "–"


def _survival(result: Result) -> str | None:
    survival = result.survival
    if not survival.ladder and survival.note is None:
        return None
    fates = {True: "survives", False: "dies", None: "not known"}
    rows = [
        [format_gib(rung.budget), words.figure(rung.peak), fates[rung.survives]]
        for rung in survival.ladder[:_MOST_ROWS]
    ]
    blocks = ["### What would have survived"]
    if rows:
        blocks.append(_table(["Budget", "Peak", "Outcome"], rows, right=range(2)))
    if survival.note:
        blocks.append(_prose(survival.note))
    return "\n\n".join(blocks)


# Excerpts, missing evidence, warnings.


def _excerpts(evidence: list[Evidence]) -> Iterable[str]:
    if evidence:
        yield "### Evidence"
    for item in evidence[:_MOST_EXCERPTS]:
        lines = sorted([(item.line, item.text), *item.around])
        width = len(str(lines[-1][0]))
        marked = [
            f"{'>' if number == item.line else ' '} {number:>{width}}  {clip(text, _LONGEST_LINE)}"
            for number, text in dict(lines).items()
        ]
        where = code_span(clip(f"{item.source}:{item.line}", _LONGEST_CITATION))
        yield f"{where}\n\n{code_fence(marked)}"
    if len(evidence) > _MOST_EXCERPTS:
        yield f"… and {len(evidence) - _MOST_EXCERPTS} more excerpts in the HTML report"


def _missing(result: Result) -> str | None:
    if not result.missing:
        return None
    lines = ["### Missing evidence", ""]
    for missing in result.missing[:_MOST_ROWS]:
        how = code_span(clip(missing.how_to_record, _LONGEST_LINE))
        lines.append(
            f"- {_prose(words.sentence(missing.what))}: {_prose(missing.why_it_matters.rstrip('.'))}. Record it with {how}"
        )
    return "\n".join(lines)


def _warnings(result: Result) -> str | None:
    warnings = list(result.warnings)
    warnings += [f"{source.path}: {text}" for source in result.sources for text in source.warnings]
    if not warnings:
        return None
    more = [f"- … and {len(warnings) - _MOST_ROWS} more"] if len(warnings) > _MOST_ROWS else []
    return "\n".join(["### Warnings", "", *(f"- {_prose(text)}" for text in warnings[:_MOST_ROWS]), *more])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """A GFM table, padded so that its source is readable as well."""
    cells = [[table_cell(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(heads))]
    ends = set(right)

    def line(row: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if column in ends else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (width - 1) + (":" if column in ends else "-") for column, width in enumerate(widths)]
    return "\n".join([line(cells[0]), line(rule), *(line(row) for row in cells[1:])])
