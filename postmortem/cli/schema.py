"""`postmortem schema`: the JSON Schema of `analyze --format json`."""

from postmortem.cli.output import emit

__all__ = ["schema"]


def schema() -> None:
    """Print the JSON Schema of the result."""
    from postmortem_reports import json  # noqa: PLC0415 (msgspec loads only when it is needed)

    emit(json.schema())
