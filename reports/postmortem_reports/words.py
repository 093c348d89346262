"""The words that all reports share: what endings, causes and parts are called, and how figures are written."""

import datetime as dt
import functools
import operator

from postmortem.result import Arithmetic, Basis, CauseName, Finding, How, Quantity, Result, Share
from postmortem.units import format_gib

__all__ = [
    "BASIS",
    "CAUSES",
    "HOWS",
    "check",
    "clock",
    "figure",
    "interval",
    "moment",
    "part_name",
    "percent",
    "reading",
    "sentence",
    "share_text",
    "strongest",
    "sums",
    "unseen",
]

HOWS: dict[How, str] = {
    "cgroup_limit": "killed by the cgroup memory limit",
    "cgroup_limit_probable": "probably killed by the cgroup memory limit",
    "host_oom": "killed because the host was out of memory",
    "userland_oom": "killed by a userland out-of-memory daemon",
    "sigkill_unexplained": "killed by SIGKILL, with no sign of memory",
    "crashed": "crashed",
    "stopped": "stopped in an orderly way",
    "finished": "finished",
    "running": "still running when the log ends",
    "unknown": "ending unknown",
}

CAUSES: dict[CauseName, str] = {
    "untracked_pinned": "pinned pool that the budget does not count",
    "overhead": "overhead larger than the margin",
    "limit_misdetected": "memory limit not detected",
    "transient_spike": "short spike while a table loads",
    "leak": "memory that grows with completed work",
    "working_set": "working set larger than its reservation",
    "neighbour": "other processes in the same cgroup",
    "host_oom": "host overcommitted",
    "not_memory": "not memory",
    "inconclusive": "inconclusive",
}

BASIS: dict[Basis, str] = {
    "measured": "a log field or a counter",
    "derived": "exact from measured figures",
    "modelled": "from the profile's rules",
    "assumed": "a constant of the profile",
}

_PARTS = {
    "working_set": "working set",
    "pinned_uncovered": "pinned pool, uncovered",
    "transient": "transient load",
    "overhead": "overhead",
    "neighbour": "other processes",
}


def part_name(part: str) -> str:
    """A part's name for people: `resident:srs:porep-32g` is `SRS porep-32g`."""
    if part.startswith("resident:"):
        kind, _, circuit = part.removeprefix("resident:").partition(":")
        return f"{kind.upper()} {circuit}".strip()
    return _PARTS.get(part, part.replace("_", " "))


def sentence(text: str) -> str:
    """`text` with a capital first letter, where it begins with a word and not with an identifier."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].rstrip(",:").isalpha() else text


def figure(quantity: Quantity | None, *, sign: bool = False) -> str:
    """The best value, or `not known`."""
    return "not known" if quantity is None else format_gib(quantity.best, sign=sign)


def interval(quantity: Quantity | None) -> str:
    """`70.1–84.0 GiB`; empty where the figure is exact, rounds to one value, or is not known."""
    if quantity is None:
        return ""
    low, high = format_gib(quantity.low), format_gib(quantity.high)
    if low == high:
        return ""
    number, unit = low.split()
    if not high.endswith(f" {unit}"):
        return f"{low} to {high}"
    return f"{number}–{high}" if quantity.low >= 0 else f"{number} to {high}"


def percent(share: float) -> str:
    """`49 %`."""
    return f"{round(100 * share)} %"


def share_text(share: Share | None) -> str:
    """`49 % (40–58)`, or nothing."""
    if share is None:
        return ""
    low, best, high = percent(share.low), percent(share.best), percent(share.high)
    return best if low == high else f"{best} ({low.removesuffix(' %')}–{high.removesuffix(' %')})"


def moment(time: dt.datetime | None, uncertainty_s: float | None = None) -> str:
    """`2026-03-19 02:25:38 UTC ± 5 s`, or `time not known`."""
    if time is None:
        return "time not known"
    text = f"{_utc(time):%Y-%m-%d %H:%M:%S} UTC"
    return f"{text} ± {uncertainty_s:.0f} s" if uncertainty_s and uncertainty_s >= 1 else text


def clock(time: dt.datetime | None) -> str:
    """`02:25:38`, the time of day in UTC, or `?`."""
    return "?" if time is None else f"{_utc(time):%H:%M:%S}"


def _utc(time: dt.datetime) -> dt.datetime:
    return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)


def unseen(result: Result) -> Quantity | None:
    """Memory that cannot be given back and that no reservation of the budget stands for."""
    used, reserved = result.arithmetic.unreclaimable, result.arithmetic.reserved
    if used is None or reserved is None:
        return result.pool.uncovered if result.pool is not None else None
    return used - reserved


def sums(arithmetic: Arithmetic) -> tuple[Quantity, Quantity, Quantity] | None:
    """Sums of provision, actual and excess over the parts; None without parts.

    What one part may have more another has less, so the sums' intervals are the result's own, not sums of intervals.
    """
    if not arithmetic.parts:
        return None
    provision, actual, excess = (
        functools.reduce(operator.add, column)
        for column in zip(*((part.provision, part.actual, part.excess) for part in arithmetic.parts), strict=True)
    )
    return provision, _with_interval(actual, arithmetic.unreclaimable), _with_interval(excess, arithmetic.excess_sum)


def _with_interval(quantity: Quantity, known: Quantity | None) -> Quantity:
    """The sum with an interval that was computed for it as a whole."""
    if known is None:
        return quantity
    low, high = min(known.low, quantity.best), max(known.high, quantity.best)
    return Quantity(low=low, best=quantity.best, high=high, basis=quantity.basis, lines=quantity.lines)


def check(arithmetic: Arithmetic) -> str | None:
    """The identity of the arithmetic with its figures: what the excesses ate, and how far the two sides differ."""
    if arithmetic.slack is None or arithmetic.excess_sum is None:
        return None
    text = (
        f"The excesses sum to {figure(arithmetic.excess_sum, sign=True)}; the slack that the budget believed free "
        f"was {figure(arithmetic.slack)}"
    )
    if arithmetic.budget and arithmetic.reserved:
        text += f" (budget {figure(arithmetic.budget)} − reserved {figure(arithmetic.reserved)})"
    if arithmetic.discrepancy is None:
        return f"{text}."
    spread = interval(arithmetic.discrepancy)
    return f"{text}. The two differ by {figure(arithmetic.discrepancy)}{f' ({spread})' if spread else ''}."


def strongest(result: Result, most: int) -> list[Finding]:
    """The weightiest findings for the ending and the causes, each text once, in order of weight."""
    found = [*result.ending.evidence, *(finding for cause in result.verdict.causes for finding in cause.evidence)]
    once = {finding.text: finding for finding in sorted(found, key=lambda finding: finding.weight)}
    return sorted(once.values(), key=lambda finding: -finding.weight)[:most]


def reading(result: Result) -> str:
    """How much of the inputs was understood, in one sentence."""
    lines = sum(source.lines for source in result.sources)
    skipped = sum(source.skipped for source in result.sources)
    unmatched = sum(source.unmatched for source in result.sources)
    files = len(result.sources)
    return (
        f"{files} source{'s' if files != 1 else ''}, {lines:,} lines: {lines - skipped - unmatched:,} understood, "
        f"{unmatched:,} of no known kind, {skipped:,} broken."
    )
