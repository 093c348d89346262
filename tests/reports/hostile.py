"""A result in which every free text holds what a report must not obey."""

from collections.abc import Callable
from typing import Any

import msgspec

from postmortem.result import Result

ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\x00\r\n\x7f"
DIRECTIONS = "\u202egnp.exe\u2066\u2069\u200f\u061c"
INVISIBLE = "\u200b\u2060\ufeff\u00ad\u3164\U000e0041\u034f"
RAW = set("\x1b\x07\x9b\x00\x7f\r" + "\u202e\u2066\u2069\u200f\u061c" + INVISIBLE)
MARKUP = "</script><b>x</b> ``` ````` `a` |c| **d** [e](javascript:f) ![g](http://h.example/i) @octocat #1 <!-- & &lt; ~~~ $$m$$ :bomb:"
ALL = f"{ESCAPES}{DIRECTIONS}{INVISIBLE} {MARKUP}"

_FIXED = {
    "schema",
    "postmortem_version",
    "sha256",
    "how",
    "certainty",
    "cause",
    "basis",
    "ended",
    "ending",
    "id",
    "part",
}
_FIXED |= {"constraint", "killer"}


def mapped(result: Result, change: Callable[[str], str]) -> Result:
    """`result` with every free text changed."""

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, msgspec.Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            free = {
                name: item for name, item in fields.items() if name not in _FIXED or isinstance(item, msgspec.Struct)
            }
            return msgspec.structs.replace(value, **{name: walk(item) for name, item in free.items()})
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        return type(value)(walk(item) for item in value) if isinstance(value, list | tuple) else value

    return walk(result)


def everywhere(result: Result, text: str = ALL) -> Result:
    """`result` with `text` in the middle of every free text, and as a part's circuit."""
    parts = [
        msgspec.structs.replace(result.arithmetic.parts[0], part=f"resident:srs:{text}"),
        *result.arithmetic.parts[1:],
    ]
    hostile = mapped(result, lambda old: old[: len(old) // 2] + text + old[len(old) // 2 :])
    return msgspec.structs.replace(hostile, arithmetic=msgspec.structs.replace(hostile.arithmetic, parts=parts))


def texts(value: Any) -> list[str]:
    """Every string inside JSON-like data."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in texts(part)]
    return [text for item in value for text in texts(item)] if isinstance(value, list | tuple) else []
