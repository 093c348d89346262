"""The result as JSON (`--format json`), and the JSON Schema that describes it (`postmortem schema`)."""

import re
from typing import Any, cast

import msgspec

from postmortem.result import Result

__all__ = ["render", "schema"]

_SURROGATES = re.compile("[\ud800-\udfff]")


def render(result: Result) -> bytes:
    """The result as UTF-8 JSON, indented, with a line end. The same result gives the same bytes."""
    try:
        text = msgspec.json.encode(result)
    except UnicodeEncodeError:  # a file name that is no UTF-8 carries surrogates, which JSON cannot
        text = msgspec.json.encode(_encodable(msgspec.to_builtins(result)))
    return msgspec.json.format(text, indent=2) + b"\n"


def _encodable(value: Any) -> Any:  # noqa: ANN401 (any JSON value)
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in cast("list[Any]", value)]
    return value


def schema() -> bytes:
    """JSON Schema (2020-12) of what `render` gives, as indented UTF-8 JSON with a line end."""
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Result)}
    return msgspec.json.format(msgspec.json.encode(described), indent=2) + b"\n"
