"""The same rows by a loop of Python's `re`, as one would write it first: what the tables are measured against."""

from __future__ import annotations

import collections
import datetime as dt
import re
import sys
from pathlib import Path

from postmortem_parsers.profiles import Event, load

__all__ = ["rows"]

_LINE = re.compile(r"^(\S+Z) +(?:TRACE|DEBUG|INFO|WARN|ERROR) (.*)$")
_FIELD = re.compile(r'([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|[^ }]*)')
_BARE = re.compile(r"(?:Some\()?([^)]*)\)?")


def _value(text: str) -> str | float:
    bare = _BARE.fullmatch(text.strip('"'))
    inner = bare[1] if bare else text
    try:
        return float(inner)
    except ValueError:
        return inner


def rows(path: Path) -> dict[str, list[dict[str, object]]]:
    """Rows by table of a log in tracing's full format."""
    events: dict[str, Event] = {f"{e.target or ''}: {e.message}": e for e in load("cuzk").event if e.message}
    search = re.compile("|".join(re.escape(p) for p in sorted(events, key=len, reverse=True)))
    found: dict[str, list[dict[str, object]]] = collections.defaultdict(list)
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            hit = search.search(line)
            whole = _LINE.match(line) if hit else None
            if hit is None or whole is None:
                continue
            values = dict(reversed(_FIELD.findall(line)))
            time = dt.datetime.fromisoformat(whole[1])
            for row in events[hit[0]].rows:
                made: dict[str, object] = {"time": time, "line": number, **row.constants()}
                for column, source in row.fields.items():
                    text = values.get(source.rpartition(":")[0])
                    made[column] = None if text is None else _value(text)
                found[row.table].append(made)
    return found


if __name__ == "__main__":
    print({table: len(made) for table, made in rows(Path(sys.argv[1])).items()})
