"""Sources as runs: every file below them is looked at once, archives are walked, and names are grouped."""

from __future__ import annotations

import dataclasses
import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from postmortem.archives.grouping import Entry, FoundRun, Refusal, group, is_evidence
from postmortem.archives.limits import Limits
from postmortem.archives.members import is_archive, walk
from postmortem.archives.places import files_below, is_url, open_file
from postmortem.archives.runtoml import NAME, RunToml, parse
from postmortem.errors import NoEvidenceError

__all__ = ["Found", "explain", "find"]

_HEAD = 1 << 16
_TOML_BYTES = 1 << 16


@dataclasses.dataclass(frozen=True)
class Found:
    """The runs of all sources and what was refused on the way."""

    runs: list[FoundRun]
    refused: list[Refusal]


def find(
    sources: Sequence[str], *, globs: Sequence[str] = (), limits: Limits | None = None, skip: str | None = None
) -> Found:
    """The runs in `sources` (directories, files, archives, globs, fsspec URLs), in a fixed order.

    Raises NotFoundError and InputError for sources that are not there or cannot be listed, NoEvidenceError where
    nothing was found at all. A damaged archive is a refusal, and what came before the damage is found.
    """
    limits = limits or Limits()
    entries: dict[str, Entry] = {}
    settings: dict[str, RunToml] = {}
    refused: list[Refusal] = []
    for source, prefix in _prefixes(sources).items():
        for item in _items(source, prefix, limits, skip):
            if isinstance(item, Refusal):
                refused.append(item)
            elif isinstance(item, Entry):
                entries.setdefault(item.path, item)
            else:
                settings[item[0]] = item[1]
    runs = group(entries.values(), settings, globs)
    if not runs and not refused:
        msg = f"{', '.join(sources[:3])}: no run in it; give folders with logs, logs, or archives of them"
        raise NoEvidenceError(msg)
    return Found(runs, refused)


_Item = Entry | Refusal | tuple[str, RunToml]


def _prefixes(sources: Sequence[str]) -> dict[str, str]:
    """What each source's paths begin with: nothing, or where it lies when another one has the same last name."""
    whole = {source: source if is_url(source) else str(Path(source).absolute()) for source in sources}
    last = Counter(posixpath.basename(path.rstrip("/")) for path in set(whole.values()))
    return {
        source: posixpath.dirname(path.rstrip("/")).replace("://", "/").lstrip("/")
        if last[posixpath.basename(path.rstrip("/"))] > 1
        else ""
        for source, path in whole.items()
    }


def _items(source: str, prefix: str, limits: Limits, skip: str | None) -> Iterator[_Item]:
    for place, relative, why in files_below(source, skip):
        path = posixpath.join(prefix, relative)
        if why:
            yield Refusal(path, why)
            continue
        try:
            with open_file(place) as file:
                head = file.read(_HEAD)
        except OSError as error:
            yield Refusal(path, f"cannot be read ({error.strerror or error})")
            continue
        if is_archive(head, path, limits):
            yield from _members(place, path, limits)
        elif posixpath.basename(path) == NAME:
            yield posixpath.dirname(path), parse(head)
        elif is_evidence(path) and head:
            yield Entry(path, place)


def _members(place: str, path: str, limits: Limits) -> Iterator[_Item]:
    with open_file(place) as file:
        for number, member in enumerate(walk(file, limits)):
            inside = posixpath.join(path, member.path)
            if member.open is None:
                yield Refusal(inside.rstrip("/"), member.refused or "not read")
            elif posixpath.basename(inside) == NAME:
                yield posixpath.dirname(inside), parse(member.open().read(_TOML_BYTES))
            elif is_evidence(inside) and member.size:
                yield Entry(inside, place, number, member.size)


def explain(found: Found) -> Iterator[str]:
    """What `--dry-run` prints: each run, why it is one, its files; then what was refused."""
    for run in found.runs:
        yield f"{run.run}: run {run.name!r}, {run.why}"
        yield from (f"    {run.shown(entry)}" for entry in run.entries)
        if run.settings.error:
            yield f"    {run.settings.error}"
    for refusal in found.refused:
        yield f"refused {refusal.path}: {refusal.reason}"
    count = len(found.runs)
    yield f"{count:,} run{'' if count == 1 else 's'}, {len(found.refused):,} refused"
