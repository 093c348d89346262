"""Small kernel files, read whole; what is gone or not readable is empty, because processes and cgroups vanish at any time."""

from pathlib import Path

__all__ = ["number", "pairs", "text"]


def text(path: Path) -> str:
    """The file's text; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def number(path: Path) -> int | None:
    """The one number that a file holds; None for `max` and for files that cannot be read."""
    found = text(path).strip()
    return int(found) if found.isdecimal() else None


def pairs(path: Path) -> dict[str, int]:
    """`name value` lines, also with a colon and kB as /proc/meminfo has them (the number as it stands)."""
    rows = (line.replace(":", " ", 1).split() for line in text(path).splitlines())
    return {words[0]: int(words[1]) for words in rows if len(words) >= 2 and words[1].isdecimal()}
