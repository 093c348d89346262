"""Analysing a recording in a process of its own, so that the recorder stays small and its answer does not mix with the command's output."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["result_of", "write_report"]

_ANALYZE = (sys.executable, "-m", "postmortem", "analyze")


def write_report(folder: Path) -> Path | None:
    """Print the report on stderr and write the HTML page into the run directory; None where there was nothing to analyse."""
    page = folder / "report.postmortem.html"
    done = subprocess.run([*_ANALYZE, str(folder), "-o", str(page)], stdout=sys.stderr, check=False)  # noqa: S603
    return page if done.returncode == 0 else None


def result_of(folder: Path, *, budget: int | None = None) -> dict[str, Any] | None:
    """The analysis as plain values; None where it failed (its own message is on stderr). `budget` in bytes."""
    stated = ["--budget", str(budget)] if budget else []
    done = subprocess.run(  # noqa: S603
        [*_ANALYZE, str(folder), "--format", "json", *stated], stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found
