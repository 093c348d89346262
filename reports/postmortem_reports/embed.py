"""The machine-readable result inside the page: JSON that no browser takes for markup, bounded for any run."""

import json
import math
from typing import Any, TypeAlias, cast

from postmortem.result import Result

__all__ = ["as_script_text", "bounded_result"]

Json: TypeAlias = "dict[str, Json] | list[Json] | tuple[Json, ...] | str | int | float | bool | None"

_LONGEST_LIST = 300
_LONGEST_TEXT = 2000


def bounded_result(result: Result) -> tuple[dict[str, Any], list[str]]:
    """The result as plain values with long lists and texts cut, and where something was cut (`partitions`, …)."""
    cut: dict[str, None] = {}
    return cast("dict[str, Any]", _bounded(cast("Json", result.to_dict()), "", cut)), list(cut)


def _bounded(value: Json, path: str, cut: dict[str, None]) -> Json:
    if isinstance(value, dict):
        return {key: _bounded(inner, f"{path}.{key}".lstrip("."), cut) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > _LONGEST_LIST:
            cut[path] = None
        return [_bounded(inner, path, cut) for inner in value[-_LONGEST_LIST:]]
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        cut[path] = None
        return f"{value[:_LONGEST_TEXT]}… [cut, {len(value)} characters in all]"
    if isinstance(value, float) and not math.isfinite(value):
        return None  # as the JSON report writes it
    return value


def as_script_text(value: dict[str, Any]) -> str:
    """JSON in ASCII in which `<`, `>` and `&` are escaped: nothing in it can end a script element or be seen raw."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
