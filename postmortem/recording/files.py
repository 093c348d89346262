"""Small kernel files, read whole; what is gone or not readable is empty, because processes and cgroups vanish at any time."""

import os
from pathlib import Path

__all__ = ["number", "pairs", "text"]

_MOST = 1 << 16


def text(path: Path) -> str:
    """The file's text; empty where it cannot be read."""
    # Bare system calls: a recorder reads some hundred of these a second, and a buffered file object costs it twice that.
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        data = found = os.read(file, _MOST)
        while len(found) == _MOST:
            found = os.read(file, _MOST)
            data += found
    except OSError:
        return ""
    finally:
        os.close(file)
    return data.decode("utf-8", "replace")


def number(path: Path) -> int | None:
    """The one number that a file holds; None for `max` and for files that cannot be read."""
    found = text(path).strip()
    return int(found) if found.isdecimal() else None


def pairs(path: Path) -> dict[str, int]:
    """`name value` lines, also with a colon and kB as /proc/meminfo has them (the number as it stands)."""
    rows = [line.split(None, 2) for line in text(path).splitlines()]
    return {words[0].removesuffix(":"): int(words[1]) for words in rows if len(words) >= 2 and words[1].isdecimal()}
