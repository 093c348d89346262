"""`postmortem demo`: the bundled incident, analysed."""

from pathlib import Path

from postmortem.cli.analyze import analyze
from postmortem.errors import NotFoundError

__all__ = ["demo"]

_INCIDENT = Path("fixtures") / "incident-342"


def demo() -> int:
    """Analyse the bundled incident and write its report."""
    return analyze([str(incident())])


def incident() -> Path:
    """The incident's folder in the checkout that this package runs from. Raises NotFoundError in an installed wheel."""
    for folder in Path(__file__).resolve().parents:
        if (folder / _INCIDENT).is_dir() and (folder / "pyproject.toml").is_file():
            return folder / _INCIDENT
    msg = (
        "the demo's incident is not part of the installed package: clone the repository and run `make demo` there, "
        "or run `postmortem analyze` on a log of your own"
    )
    raise NotFoundError(msg)
