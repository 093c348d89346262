"""`run.toml`: what a person knows of a run beside it, which overrides what is found.

name = "night shift 12"
limit = "342GiB"
budget = "331GiB"
clock = "+02:00"          # zone of clocks that state none
tags = { version = "0.5.1", rack = "b7" }    # or a list of words
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from postmortem.units import parse_size

__all__ = ["NAME", "RunToml", "parse"]

NAME = "run.toml"
_KEYS = {"name", "limit", "budget", "clock", "tags"}


class RunToml(msgspec.Struct, frozen=True, kw_only=True):
    """A run's own settings; sizes in bytes."""

    name: str | None = None
    limit: int | None = None
    budget: int | None = None
    clock: str | None = None
    tags: tuple[str, ...] = ()
    """`key=value`, or words."""
    error: str | None = None
    """Why the file could not be used; the run is then a failed row."""


def parse(data: bytes) -> RunToml:
    """The settings in a file's bytes; never raises: a broken file is a `RunToml` with its error."""
    try:
        values: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
        unknown = sorted(set(values) - _KEYS)
        if unknown:
            return RunToml(error=f"{NAME}: unknown key {unknown[0]!r} (known: {', '.join(sorted(_KEYS))})")
        return RunToml(
            name=_text(values, "name"),
            limit=_size(values, "limit"),
            budget=_size(values, "budget"),
            clock=_text(values, "clock"),
            tags=_tags(values.get("tags", [])),
        )
    except (ValueError, TypeError) as error:
        return RunToml(error=f"{NAME}: {error}")


def _text(values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    if value is not None and not isinstance(value, str):
        msg = f"{key} must be a text"
        raise TypeError(msg)
    return value


def _size(values: Mapping[str, Any], key: str) -> int | None:
    value = values.get(key)
    if value is None:
        return None
    size = parse_size(str(value))
    if size <= 0:
        msg = f"{key} must be above zero"
        raise ValueError(msg)
    return size


def _tags(value: object) -> tuple[str, ...]:
    if isinstance(value, dict):
        return tuple(f"{key}={inner}" for key, inner in cast("dict[str, object]", value).items())
    if isinstance(value, list):
        return tuple(str(inner) for inner in cast("list[object]", value))
    msg = "tags must be a list of words or a table"
    raise TypeError(msg)
