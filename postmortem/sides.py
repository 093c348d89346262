"""One side of a comparison: a run or one attempt of it that is analysed now, or a result that was written before."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import msgspec

from postmortem import api
from postmortem.analysis.attempts import LEAD
from postmortem.compare import Side
from postmortem.errors import InputError, NotFoundError
from postmortem.result import Result

__all__ = ["load"]

_RESULT_HEAD = 4096


def load(path: str) -> Side:
    """A run (directory, log, …) analysed, one attempt of it (`run.log#2`), or a result that `--format json` wrote.

    Raises InputError as `analyze` does.
    """
    named = re.fullmatch(r"(.+)#(\d+)", path)
    if named and not Path(path).exists() and Path(named[1]).exists():
        return _attempt(named[1], int(named[2]))
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
    return _side(api.analyze([path]))


def _attempt(path: str, number: int) -> Side:
    """The run as if its evidence were that of one attempt: from the daemon's start to the next one."""
    attempts = api.analyze([path]).result.attempts
    if not 1 <= number <= len(attempts):
        msg = f"{path}#{number}: the run has {len(attempts)} attempt{'s' * (len(attempts) != 1)}, numbered from 1"
        raise InputError(msg)
    starts = [one.start for one in attempts]
    since = None if number == 1 else _before(starts[number - 1])
    until = None if number == len(attempts) else _before(starts[number])
    return _side(api.analyze([path], since=since, until=until), f", attempt {number}")


def _before(start: dt.datetime | None) -> dt.datetime | None:
    """What a wrapper says just before the daemon's first line belongs to the attempt."""
    return None if start is None else start - LEAD


def _side(found: api.Postmortem, which: str = "") -> Side:
    result = msgspec.structs.replace(found.result, name=found.result.name + which)
    return Side(name=result.name, result=result, timeline=found.timeline)
