"""Checks a value against the part of JSON Schema that msgspec writes: enough to see that both describe one thing."""

from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, where: str = "$") -> list[str]:
    """What does not fit, in words; empty when all does."""
    root = root or schema
    if "$ref" in schema:
        return faults(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, where)
    if "anyOf" in schema:
        tried = [faults(value, choice, root, where) for choice in schema["anyOf"]]
        return [] if any(not found for found in tried) else min(tried, key=len)
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{where}: {value!r} is not one of {schema['enum']}"]
    kind = schema.get("type")
    if kind and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [f"{where}: {value!r} is no {kind}"]
    return [*_object(value, schema, root, where), *_array(value, schema, root, where)]


def _object(value: Any, schema: dict[str, Any], root: dict[str, Any], where: str) -> list[str]:
    if not isinstance(value, dict):
        return []
    known = schema.get("properties", {})
    found = [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value]
    rest = schema.get("additionalProperties", {})
    for name, item in value.items():
        if name in known or isinstance(rest, dict):
            found += faults(item, known.get(name, rest or {}), root, f"{where}.{name}")
    return found


def _array(value: Any, schema: dict[str, Any], root: dict[str, Any], where: str) -> list[str]:
    if not isinstance(value, list):
        return []
    heads = schema.get("prefixItems", [])
    rest = schema.get("items", {})
    items = [*heads, *[rest] * (len(value) - len(heads))]
    return [
        fault
        for number, (item, described) in enumerate(zip(value, items, strict=False))
        for fault in faults(item, described if isinstance(described, dict) else {}, root, f"{where}[{number}]")
    ]
