"""The page of a guarded command: its attempts, what each budget came to, and the budget to write into the configuration."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from postmortem.guarding.outcome import Attempt, Guarded
from postmortem.quantity import Quantity
from postmortem.result import Ladder
from postmortem.units import format_duration, format_fine
from postmortem_reports.chips import chips, plain
from postmortem_reports.pages import asset, environment
from postmortem_reports.policy import content_security_policy
from postmortem_reports.svg_ladder import rung_bar

__all__ = ["html"]

_OUTCOMES = {"memory": "death", "finished": "calm"}


def html(done: Guarded, version: str) -> str:
    """The page as text, made by this `version`: it loads nothing, and links each attempt's own report, which lies beside it."""
    css = "".join(asset(name) for name in ("page.css", "fleet.css"))
    return (
        _environment()
        .get_template("attempts.html.j2")
        .render(
            done=done,
            command=" ".join(done.command),
            outcomes=_OUTCOMES,
            bar=_bar,
            version=version,
            policy=content_security_policy([], [css]),
            css=Markup(css),  # noqa: S704 - our own
        )
    )


def _bar(one: Attempt) -> Markup:
    survives = {"memory": False, "finished": True}.get(one.ended)
    peak = None if one.peak is None else _exact(one.peak)
    limit = None if one.limit is None else _exact(one.limit)
    return rung_bar(Ladder(budget=one.budget, survives=survives, peak=peak), limit)


def _exact(size: int) -> Quantity:
    return Quantity(low=size, best=size, high=size, basis="measured", lines=())


@cache
def _environment() -> Environment:
    return environment(chips=chips, plain=plain, fine=format_fine, duration=format_duration)
