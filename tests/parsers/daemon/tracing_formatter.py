"""Writes one record in each of tracing-subscriber's formats, as its formatters do (0.3.x). Only for tests."""

import dataclasses
import json
from typing import Any


@dataclasses.dataclass
class Span:
    """An open span; its fields in the order in which they were recorded."""

    name: str
    fields: dict[str, Any]
    module: str = "cuzk_core::pipeline"


@dataclasses.dataclass
class Record:
    """One event. Values are texts as `Display`/`Debug` print them, or numbers."""

    message: str
    fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    target: str = "cuzk_core::pinned_pool"
    level: str = "INFO"
    time: str = "2026-03-19T02:16:07.519502Z"
    spans: list[Span] = dataclasses.field(default_factory=list)


COLOURS = {"INFO": "32", "DEBUG": "34", "WARN": "33", "ERROR": "31", "TRACE": "35"}


def dim(text: str, colour: bool) -> str:
    return f"\x1b[2m{text}\x1b[0m" if colour else text


def bold(text: str, colour: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colour else text


def pairs(fields: dict[str, Any], colour: bool) -> str:
    name = (lambda text: f"\x1b[3m{text}\x1b[0m") if colour else str
    return " ".join(f"{name(key)}{dim('=', colour)}{value}" for key, value in fields.items())


def level_of(record: Record, colour: bool) -> str:
    text = f"{record.level:>5}"
    return f"\x1b[{COLOURS[record.level]}m{text}\x1b[0m" if colour else text


def full(record: Record, colour: bool = False) -> str:
    spans = "".join(
        bold(span.name, colour) + bold("{", colour) + pairs(span.fields, colour) + bold("}", colour) + dim(":", colour)
        for span in record.spans
    )
    head = f"{dim(record.time, colour)} {level_of(record, colour)} {spans}{' ' if spans else ''}"
    body = f"{dim(record.target, colour)}{dim(':', colour)} {record.message}"
    return f"{head}{body}{' ' if record.fields else ''}{pairs(record.fields, colour)}\n"


def compact(record: Record, colour: bool = False) -> str:
    spans = ":".join(bold(span.name, colour) for span in record.spans)
    head = f"{dim(record.time, colour)} {level_of(record, colour)} {spans}{': ' if spans else ''}"
    behind = " ".join(pairs(span.fields, colour) for span in record.spans)
    body = f"{bold(record.target, colour)}{dim(':', colour)} {record.message}"
    own = f"{' ' if record.fields else ''}{pairs(record.fields, colour)}"
    return f"{head}{body}{own}{' ' if behind else ''}{dim(behind, colour) if behind else ''}\n"


def pretty(record: Record, colour: bool = False) -> str:
    name = (lambda text: f"\x1b[1;32m{text}\x1b[0m\x1b[32m") if colour else str
    fields = "".join(f", {name(key)}: {value}" for key, value in record.fields.items())
    target = f"\x1b[1;32m{record.target}\x1b[0m\x1b[32m" if colour else record.target
    lines = [f"  {dim(record.time, colour)} {level_of(record, colour)} {target}: {record.message}{fields}"]
    lines.append(f"    {dim('at', colour)} src/engine.rs:87")
    for span in reversed(record.spans):
        inside = ", ".join(f"{bold(key, colour)}: {value}" for key, value in span.fields.items())
        lines.append(
            f"    {dim('in', colour)} {span.module}::{bold(span.name, colour)}"
            + (f" {dim('with', colour)} {inside}" if inside else "")
        )
    return "\n".join(lines) + "\n\n"


def as_json(record: Record, colour: bool = False) -> str:
    """JSON never has colours. Durations in ms are 128-bit: strings."""
    del colour

    def value(key: str, given: Any) -> Any:
        if key.endswith("_ms") and not isinstance(given, str):
            return str(given)
        if isinstance(given, str) and given.startswith('"'):
            return json.loads(given)
        return given

    def of(fields: dict[str, Any]) -> dict[str, Any]:
        return {key: value(key, given) for key, given in fields.items()}

    row: dict[str, Any] = {
        "timestamp": record.time,
        "level": record.level,
        "fields": {"message": record.message, **of(record.fields)},
        "target": record.target,
    }
    if record.spans:
        spans = [{**of(span.fields), "name": span.name} for span in record.spans]
        row |= {"span": spans[-1], "spans": spans}
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n"


FORMATS = {"full": full, "compact": compact, "pretty": pretty, "json": as_json}
