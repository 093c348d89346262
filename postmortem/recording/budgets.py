"""Which memory budgets a command is started with: on its command line, in its environment, in its configuration file.

Only names that speak of a budget or a memory limit are looked at, and only values that are sizes; so nothing else of a
configuration file gets into the recording.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from postmortem.units import GIB, KIB, MIB, parse_size

__all__ = ["Budget", "stated"]

_NAME = re.compile(r"budget|max[-_.]?memory|memory[-_.]?(?:limit|max)|mem[-_.]?(?:limit|max)", re.IGNORECASE)
_NO_SIZE = re.compile(r"margin|reserve|file|path|mode|auto", re.IGNORECASE)
_CONFIG = re.compile(r"\.(?:toml|ya?ml|json|conf|cfg|ini)$", re.IGNORECASE)
_LINE = re.compile(
    r"""^[\s,{]*["']?(?P<name>[\w.-]{1,80})["']?\s*[:=]\s*["']?(?P<value>[0-9][0-9._]*\s?[A-Za-z]{0,5})\b"""
)
_SUFFIX = re.compile(r"[-_.](?P<unit>bytes|b|kb|kib|mb|mib|gb|gib)$", re.IGNORECASE)
_UNITS = {"b": 1, "bytes": 1, "kb": KIB, "kib": KIB, "mb": MIB, "mib": MIB, "gb": GIB, "gib": GIB}
_LARGEST_CONFIG = 1 << 20


@dataclasses.dataclass(frozen=True)
class Budget:
    """One statement of a budget. `size` in bytes."""

    name: str
    text: str
    size: int
    where: str
    """`command`, `environment`, or the configuration file's path."""


def stated(command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> list[Budget]:
    """All budgets that are stated, what overrides last: configuration file, environment, command line.

    `folder`: what relative paths of configuration files are relative to, if not the present directory.
    """
    found = [budget for word in _words(command) for budget in _of_file((folder or Path()) / word, word)]
    found += _sizes(environment.items(), "environment")
    return found + list(_sizes(_options(command), "command"))


def _words(command: Sequence[str]) -> Iterator[str]:
    for word in command[1:]:
        value = word.partition("=")[2] if word.startswith("-") else word
        if _CONFIG.search(value):
            yield value


def _options(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word, after in itertools.pairwise([*command[1:], ""]):
        name, equals, value = word.partition("=")
        yield name, value if equals else after


def _of_file(path: Path, shown: str) -> Iterator[Budget]:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_CONFIG:
            return
        lines = path.read_text(errors="replace").splitlines()
    except (OSError, ValueError):
        return
    matches = (match for line in lines if (match := _LINE.match(line)))
    yield from _sizes(((match["name"], match["value"]) for match in matches), shown)


def _sizes(pairs: Iterable[tuple[str, str]], where: str) -> Iterator[Budget]:
    for name, text in pairs:
        if _NAME.search(name) and not _NO_SIZE.search(name) and (size := _size(name, text)):
            yield Budget(name.lstrip("-"), text.strip(), size, where)


def _size(name: str, text: str) -> int | None:
    """Bytes; None for what is no size. A bare number below a MiB has a unit that nobody stated."""
    unit = _SUFFIX.search(name)
    try:
        if unit and re.fullmatch(r"[0-9.]+", text.strip()):
            return round(float(text) * _UNITS[unit["unit"].lower()])
        size = parse_size(text.replace("_", ""))
    except ValueError:
        return None
    return size if size >= MIB else None
