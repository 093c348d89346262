"""One side of a comparison: a run that is analysed now, or a result that was written before."""

from __future__ import annotations

from pathlib import Path

import msgspec

from postmortem import api
from postmortem.compare import Side
from postmortem.errors import InputError, NotFoundError
from postmortem.result import Result

__all__ = ["load"]

_RESULT_HEAD = 4096


def load(path: str) -> Side:
    """A run (directory, log, …) analysed, or a result that `--format json` wrote. Raises InputError as `analyze` does."""
    where = Path(path)
    try:
        head = where.open("rb").read(_RESULT_HEAD) if where.is_file() else b""
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise InputError(msg) from error
    if b'"postmortem/1"' in head and head.lstrip().startswith(b"{"):
        try:
            result = msgspec.json.decode(where.read_bytes(), type=Result)
        except (msgspec.MsgspecError, OSError) as error:
            msg = f"{path}: a damaged result file ({error}); write it again with analyze --format json"
            raise InputError(msg) from error
        return Side(name=result.name, result=result)
    if not where.exists():
        msg = f"{path}: no such file or directory; check the path"
        raise NotFoundError(msg)
    found = api.analyze([path])
    return Side(name=found.result.name, result=found.result, timeline=found.timeline)
