"""Analysing a recording in a process of its own, so that the recorder stays small and its answer does not mix with the command's output."""

import subprocess
import sys
from pathlib import Path

__all__ = ["ANALYZE", "write_report"]

ANALYZE = (sys.executable, "-m", "postmortem", "analyze")


def write_report(folder: Path) -> None:
    """Print the report on stderr and write the HTML page into the run directory."""
    page = folder / "report.postmortem.html"
    subprocess.run([*ANALYZE, str(folder), "-o", str(page)], stdout=sys.stderr, check=False)  # noqa: S603
