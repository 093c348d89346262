"""Which files are one run: rules over names alone, each with the words that `--dry-run` shows.

1. A folder with a `run.toml`: everything in and below it is one run.
2. `--run-glob`: each folder or file whose last names match is one run (`*` stays within a name).
3. Otherwise a folder's own files are one run, unless it holds several main logs of different names: then each of them is
   a run, with the files beside it whose names begin like its name.
4. A folder without a main log of its own belongs to the run of the nearest folder above it, if that is one run.

A main log is a text file whose name says nothing of kernel, samples, clients or exits (`run.log`, `cuzk.log.2.gz`).
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from postmortem.archives.runtoml import NAME, RunToml

__all__ = ["Entry", "FoundRun", "Refusal", "group", "is_evidence", "stripped"]

_COMPRESSED = re.compile(r"\.(gz|zst|zstd|xz|bz2)$", re.IGNORECASE)
_ROTATED = re.compile(r"[.-](\d{1,3}|\d{8})$")
_ARCHIVE = re.compile(r"\.(tar(\.(gz|zst|zstd|xz|bz2))?|tgz|tbz2?|txz|tzst|zip)$", re.IGNORECASE)
_TEXT = re.compile(r"\.(log|txt|out|err|jsonl)$", re.IGNORECASE)
_BESIDE = re.compile(
    r"(?:^|[._-])(?:dmesg|kern|syslog|messages|journal|mem|rss|cgroup|docker|container|stats|smi|gpu|vram|sample|metric|prom|sar|atop|"
    r"top|ps\b|free|exit|status|client|bench|stderr|timeline|truth|expected|host|limit)",
    re.IGNORECASE,
)
_NO_EVIDENCE = re.compile(
    r"\.postmortem\.|^readme|\.(md|html?|css|js|py|rs|png|jpe?g|gif|svg|pdf|parquet|so|bin|core|whl|exe|params|pyc)$",
    re.IGNORECASE,
)


_NO_SETTINGS = RunToml()


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file that may be evidence, and where to find it again."""

    path: str
    """Within all sources; archives are folders of it."""
    place: str
    """The file on disk or in the store: the evidence itself, or the outermost archive."""
    number: int = -1
    """Its number in the archive's walk; -1 for a file of its own."""
    size: int = 0


@dataclasses.dataclass(frozen=True)
class Refusal:
    """What was not read, and why."""

    path: str
    reason: str


@dataclasses.dataclass(frozen=True)
class FoundRun:
    """One run's files."""

    run: str
    """Identity: the folder or the log in all sources. Two runs with one name differ in it."""
    name: str
    entries: tuple[Entry, ...]
    why: str
    settings: RunToml = _NO_SETTINGS

    def shown(self, entry: Entry) -> str:
        """The entry's name within the run, as a report of the folder alone would show it."""
        inside = entry.path.removeprefix(f"{self.run}/")
        return inside if inside != entry.path else posixpath.basename(entry.path)


def is_evidence(path: str) -> bool:
    """Whether a file may be evidence, by its name."""
    name = posixpath.basename(path)
    return not name.startswith(".") and name != NAME and not _NO_EVIDENCE.search(name)


def stripped(name: str) -> str:
    """A name without the suffixes of archives, compression, rotation and text."""
    return _TEXT.sub("", _ROTATED.sub("", _COMPRESSED.sub("", _ARCHIVE.sub("", name)))) or name


def group(entries: Iterable[Entry], settings: Mapping[str, RunToml], globs: Sequence[str] = ()) -> list[FoundRun]:
    """The runs among `entries`, in order of their identities; `settings` by the folder of their `run.toml`."""
    fixed: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    folders: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        claim = _claimed(entry.path, settings, globs)
        if claim:
            fixed[claim].append(entry)
        else:
            folders[posixpath.dirname(entry.path)].append(entry)
    runs = [_run(path, files, why, settings) for (path, why), files in fixed.items()]
    runs += [_run(path, [], "has a run.toml", settings) for path in settings if (path, "has a run.toml") not in fixed]
    runs += [_run(path, files, why, settings) for path, files, why in _by_folder(folders)]
    return sorted(runs, key=lambda found: found.run)


def _claimed(path: str, settings: Mapping[str, RunToml], globs: Sequence[str]) -> tuple[str, str] | None:
    above = path
    while above := posixpath.dirname(above):
        if above in settings:
            return above, "has a run.toml"
    for pattern in globs:
        above = path
        while above:
            if PurePosixPath(above).match(pattern):
                return above, f"matches --run-glob {pattern}"
            above = posixpath.dirname(above)
    return None


def _by_folder(folders: Mapping[str, list[Entry]]) -> list[tuple[str, list[Entry], str]]:
    whole: dict[str, list[Entry]] = {}
    found: list[tuple[str, list[Entry], str]] = []
    for folder in sorted(folders):
        files = folders[folder]
        mains = _mains(files)
        home = next((above for above in _above(folder) if above in whole), None)
        if not mains and home is not None:
            whole[home].extend(files)
        elif len(mains) < 2:
            whole[folder] = list(files)
        else:
            found += _split(files, mains)
    for folder, files in whole.items():
        lone = len(files) == 1
        why = "a lone log" if lone else f"one folder, {len(files)} files"
        found.append((folder or files[0].path, files, why))
    return found


def _above(folder: str) -> Iterable[str]:
    while folder := posixpath.dirname(folder):
        yield folder


def _mains(files: Iterable[Entry]) -> dict[str, list[Entry]]:
    mains: dict[str, list[Entry]] = defaultdict(list)
    for file in files:
        name = posixpath.basename(file.path)
        bare = _ROTATED.sub("", _COMPRESSED.sub("", name))
        if _TEXT.search(bare) and not _BESIDE.search(bare):
            mains[stripped(name)].append(file)
    return mains


def _split(files: list[Entry], mains: Mapping[str, list[Entry]]) -> list[tuple[str, list[Entry], str]]:
    own: dict[str, list[Entry]] = {stem: list(logs) for stem, logs in mains.items()}
    placed = {file for logs in mains.values() for file in logs}
    rest: list[Entry] = []
    for file in files:
        if file in placed:
            continue
        name = posixpath.basename(file.path)
        stem = max((s for s in own if re.match(rf"{re.escape(s)}(?![0-9A-Za-z])", name)), key=len, default=None)
        (own[stem] if stem else rest).append(file)
    why = f"one of {len(own)} logs in its folder"
    runs = [
        (logs[0].path, logs, why if len(logs) == 1 else f"{why}, with {len(logs) - 1} beside it")
        for logs in own.values()
    ]
    return [*runs, *((file.path, [file], f"belongs to none of {len(own)} logs in its folder") for file in rest)]


def _run(path: str, files: Sequence[Entry], why: str, settings: Mapping[str, RunToml]) -> FoundRun:
    own = settings.get(path, _NO_SETTINGS)
    name = own.name or stripped(posixpath.basename(path)) or path
    return FoundRun(path, name, tuple(sorted(files, key=lambda file: file.path)), why, own)
