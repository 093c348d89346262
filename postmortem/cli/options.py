"""Values of options, read from what people type."""

import datetime as dt
import re
from pathlib import Path

from postmortem.cli.output import FORMATS
from postmortem.errors import UsageError
from postmortem.units import parse_size

__all__ = ["check_interval", "chosen_formats", "moment", "profile", "size", "zone"]

_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)")


def chosen_formats(values: list[str]) -> list[str]:
    """Formats without repetition from values such as `json` and `html,md`. Raises UsageError on others."""
    formats = [word.strip().lower() for value in values for word in value.split(",") if word.strip()]
    for word in formats:
        if word not in FORMATS:
            msg = f"--format: {word!r} is not one of {', '.join(FORMATS)}"
            raise UsageError(msg)
    return list(dict.fromkeys(formats))


def size(option: str, text: str | None) -> int | None:
    """Bytes of a size option. Raises UsageError where it is no size above zero."""
    if text is None:
        return None
    try:
        value = parse_size(text)
    except ValueError as error:
        msg = f"{option}: {error}"
        raise UsageError(msg) from None
    if value <= 0:
        msg = f"{option}: a size above zero is needed, not {text!r}"
        raise UsageError(msg)
    return value


def check_interval(seconds: float) -> None:
    """Raise UsageError where samples cannot be that far apart."""
    if not 0.02 <= seconds <= 3600:
        msg = f"--interval {seconds}: between 0.02 and 3600 seconds"
        raise UsageError(msg)


def zone(text: str | None) -> str | None:
    """An offset from UTC as `+HH:MM`. Raises UsageError on anything else."""
    if text is None:
        return None
    if text.upper() in {"Z", "UTC"}:
        return "+00:00"
    match = _ZONE.fullmatch(text)
    if match is None or int(match[2]) > 14 or int(match[3]) > 59:
        msg = f"--tz: {text!r} is no offset from UTC (write it like +02:00 or -05:30)"
        raise UsageError(msg)
    return f"{match[1]}{match[2]}:{match[3]}"


def moment(option: str, text: str | None, tz: str | None) -> dt.datetime | None:
    """A moment in UTC; without an offset of its own it is in the zone of --tz, else in UTC. Raises UsageError."""
    if text is None:
        return None
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        msg = f"{option}: {text!r} is no time (write it like 2026-03-19T02:16:07Z or '2026-03-19 02:16')"
        raise UsageError(msg) from None
    if time.tzinfo is None:
        time = dt.datetime.fromisoformat(f"{time.isoformat()}{tz or '+00:00'}")
    return time.astimezone(dt.UTC)


def profile(text: str | None) -> str | Path | None:
    """A profile's name, or its file where the text is one."""
    if text is None:
        return None
    return Path(text) if "/" in text or text.endswith(".toml") else text
