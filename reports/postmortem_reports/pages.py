"""What all pages are made of: the assets and the templates that lie beside this module."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["asset", "environment"]


@cache
def asset(name: str) -> str:
    """The text of a style sheet or script."""
    return (files("postmortem_reports") / "assets" / name).read_text(encoding="utf-8")


def environment(**filters: Callable[..., Any]) -> Environment:
    """Templates that escape all values and know no missing ones, with a page's own filters."""
    made = Environment(
        loader=PackageLoader("postmortem_reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(filters)  # pyright: ignore[reportUnknownMemberType] - jinja does not type its filters
    return made
