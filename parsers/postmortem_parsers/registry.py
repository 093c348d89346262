"""The parsers that are installed: ours and anybody's, found through the entry-point group `postmortem.parsers`."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from postmortem_parsers.interface import Parser

__all__ = ["GROUP", "load_parsers"]

GROUP = "postmortem.parsers"
_NEEDED = ("name", "reads", "example", "priority", "whole", "sniff", "claim", "parse")


def load_parsers() -> tuple[list[type[Parser]], list[str]]:
    """Parser classes in order of priority, and a warning for each that could not be loaded.

    One broken distribution must not take the analysis down with it.
    """
    found: dict[str, type[Parser]] = {}
    warnings: list[str] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            parser = _checked(point.load())
        except Exception as error:  # noqa: BLE001 (whatever a third party's import does)
            warnings.append(f"parser {point.name!r} ({point.value}) is not used: {type(error).__name__}: {error}")
            continue
        if found.setdefault(parser.name, parser) is not parser:
            warnings.append(f"parser {point.name!r} ({point.value}) is not used: a parser {parser.name!r} exists")
    return sorted(found.values(), key=lambda parser: (parser.priority, parser.name)), warnings


def _checked(parser: object) -> type[Parser]:
    missing = [name for name in _NEEDED if not hasattr(parser, name)]
    if not isinstance(parser, type) or missing:
        msg = f"it is no parser class: it has no {', '.join(missing) or 'class'}"
        raise TypeError(msg)
    return cast(type[Parser], parser)
