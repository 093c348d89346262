"""Which shipped profiles a run's texts call for, when the user named none.

A profile is chosen when one of its patterns matches a line of any stream's beginning. The order is that of `names`,
so that the same run always gets the same profiles.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from postmortem_parsers.plain_lines import expressions, unstamped
from postmortem_parsers.profiles import Profile, combined, load, names
from postmortem_parsers.tracing import DRESSES

__all__ = ["choose", "knows"]


def choose(heads: Sequence[pl.DataFrame]) -> Profile:
    """The profiles that know a line of `heads` (columns `line`, `text`), as one; cuzk's when none does."""
    shipped = [load(name) for name in names()]
    chosen = [profile for profile in shipped if any(knows(profile, head) for head in heads)]
    return combined(chosen or shipped[:1])


def knows(profile: Profile, lines: pl.DataFrame) -> bool:
    """Whether one of the profile's patterns matches one of the lines."""
    return _by_event(profile, lines) or _by_expression(profile, lines) or _by_prefix(profile, lines)


def _by_event(profile: Profile, lines: pl.DataFrame) -> bool:
    for dress in DRESSES:
        patterns = [pattern for event in profile.event for pattern in dress.patterns(event)]
        records = dress.records(lines) if patterns else lines.clear()
        if records.height and records["text"].str.contains_any(patterns).any():
            return True
    return False


def _by_expression(profile: Profile, lines: pl.DataFrame) -> bool:
    any_of = "|".join(f"(?:{expression})" for expression in expressions(profile))
    return bool(any_of) and bool(unstamped(lines["text"]).str.contains(any_of).any())


def _by_prefix(profile: Profile, lines: pl.DataFrame) -> bool:
    return profile.timeline is not None and bool(lines["text"].str.starts_with(f"{profile.timeline.prefix},").any())
