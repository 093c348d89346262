"""The bundled runs, and runs elsewhere: their evidence without the answers that stand beside it."""

import functools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import postmortem

FIXTURES = Path(__file__).parents[2] / "fixtures"
INCIDENT = FIXTURES / "incident-342"
BUNDLED = {folder.name: folder for folder in [INCIDENT, *sorted((FIXTURES / "runs").iterdir())]}
ANSWERS = {"expected.json", "truth.json"}


def evidence(folder: Path) -> list[Path]:
    """The files that an engineer would have been left with."""
    return sorted(file for file in folder.iterdir() if file.is_file() and file.name not in ANSWERS)


def staged(folder: Path, into: Path) -> Path:
    """A copy of a run's folder without its answers."""
    target = into / folder.name
    target.mkdir(parents=True)
    for file in evidence(folder):
        shutil.copy(file, target)
    return target


@functools.cache
def analysed(folder: Path) -> postmortem.Postmortem:
    """The analysis of a run's folder, made once."""
    with tempfile.TemporaryDirectory() as place:
        return postmortem.analyze(staged(folder, Path(place)))


def answer(folder: Path) -> dict[str, Any]:
    """What is true of a run."""
    name = next(name for name in sorted(ANSWERS) if (folder / name).exists())
    return json.loads((folder / name).read_text())
