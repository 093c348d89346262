"""Local paths and fsspec URLs behind one door: opening a file, listing what lies below a place."""

from __future__ import annotations

import glob
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from postmortem.errors import InputError, NotFoundError, UsageError

__all__ = ["files_below", "is_url", "open_file"]

_HINT = "needs fsspec: pip install 'oom-postmortem[objects]'"


def is_url(source: str) -> bool:
    """Whether `source` is for fsspec (`s3://…`, `gs://…`, `https://…`)."""
    return "://" in source


def open_file(source: str) -> BinaryIO:
    """The file's bytes. Raises OSError where the system or the store refuses, UsageError without fsspec."""
    if not is_url(source):
        return Path(source).open("rb")
    fsspec = _fsspec(source)
    try:
        return cast(BinaryIO, fsspec.open(source, "rb").open())
    except OSError:
        raise
    except Exception as error:  # each store has errors of its own, such as botocore's of missing credentials
        raise OSError(str(error)) from error


def files_below(source: str, skip: str | None = None) -> Iterator[tuple[str, str, str | None]]:
    """(place, path relative to the source's parent, why it is refused or None) of all files, in order of paths.

    `skip` is a directory or URL that is left out: the batch's own output. Raises NotFoundError where nothing is there.
    """
    if is_url(source):
        yield from _objects_below(source, skip)
        return
    path, left_out = Path(source), None if skip is None or is_url(skip) else Path(skip)
    if path.is_dir():
        yield from _local_below(path, left_out)
    elif path.is_file():
        yield source, path.name, None
    else:
        yield from _globbed(source, left_out)


def _globbed(pattern: str, skip: Path | None) -> Iterator[tuple[str, str, str | None]]:
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (absolute patterns too)
    if not found:
        msg = f"{pattern}: no such file or directory, and no glob that matches; check the path"
        raise NotFoundError(msg)
    whole: list[str] = []  # what a directory before it has given already
    for name in found:
        if any(Path(name).is_relative_to(folder) for folder in whole):
            continue
        if Path(name).is_dir():
            whole.append(name)
            yield from (
                (place, str(Path(name).parent / inner), why) for place, inner, why in _local_below(Path(name), skip)
            )
        else:
            yield name, name, None


def _local_below(root: Path, skip: Path | None) -> Iterator[tuple[str, str, str | None]]:
    inside, shown = root.resolve(), root.resolve().name or "root"
    for folder, folders, names in os.walk(root, onerror=_refuse_listing):
        folders[:] = sorted(n for n in folders if not n.startswith(".") and (Path(folder) / n).resolve() != skip)
        for name in sorted([*names, *(n for n in folders if (Path(folder) / n).is_symlink())]):
            path = Path(folder) / name
            relative = str(Path(shown) / path.relative_to(root))
            if name.startswith("."):
                continue
            yield str(path), relative, _why_not(path, inside)


def _refuse_listing(error: OSError) -> None:
    msg = f"{error.filename}: cannot be listed ({error.strerror or error}); run as its owner or copy it"
    raise InputError(msg) from error


def _why_not(path: Path, root: Path) -> str | None:
    """Links that leave the source would read what nobody named; folders behind links would be read twice."""
    if path.is_symlink():
        if path.is_dir():
            return "a link to a directory is not followed"
        if not path.resolve().is_relative_to(root):
            return "a link that leads out of the source is not followed"
    if not path.is_file():
        return "neither a file nor a directory"
    return None


def _objects_below(source: str, skip: str | None) -> Iterator[tuple[str, str, str | None]]:
    fsspec = _fsspec(source)
    try:
        store, path = fsspec.core.url_to_fs(source)
        listed = (
            [path] if source.startswith(("http://", "https://")) or store.isfile(path) else sorted(store.find(path))
        )
    except Exception as error:  # each store has errors of its own
        msg = f"{source}: cannot be listed ({error or type(error).__name__})"
        raise InputError(msg) from error
    if not listed:
        msg = f"{source}: nothing is there; check the URL and your credentials"
        raise NotFoundError(msg)
    parent = str(path).rstrip("/").rpartition("/")[0]
    own = None
    if skip is not None and skip.partition("://")[0] == source.partition("://")[0]:
        own = f"{str(fsspec.core.url_to_fs(skip)[1]).rstrip('/')}/"
    for name in map(str, listed):
        if own is None or not name.startswith(own):
            yield store.unstrip_protocol(name), name.removeprefix(parent).lstrip("/"), None


def _fsspec(source: str) -> Any:  # noqa: ANN401 (fsspec has no types)
    try:
        module = importlib.import_module("fsspec")
        importlib.import_module("fsspec.core")
    except ImportError as error:
        msg = f"{source}: {_HINT}"
        raise UsageError(msg) from error
    return module
