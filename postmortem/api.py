"""The library's face: `analyze` and what it returns."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

import postmortem
from postmortem.analysis import analyse
from postmortem.errors import NoEvidenceError, UsageError
from postmortem.model import Circuit, MemoryModel
from postmortem.reading import Reading, beginning, read
from postmortem.result import Arithmetic, Ending, Result, Verdict
from postmortem.run import Options, Run
from postmortem.sources import find
from postmortem_parsers import registry
from postmortem_parsers.profiles import Profile, load
from postmortem_parsers.profiles.choose import choose

__all__ = ["Postmortem", "analyze"]


class Postmortem:
    """What is known of one run: the result, its timeline, and the reports made of them."""

    def __init__(self, result: Result, timeline: pl.DataFrame) -> None:
        self.result = result
        self.timeline = timeline
        """One row a moment (schema.TIMELINE); sizes in bytes."""

    @property
    def ending(self) -> Ending:
        """How it ended."""
        return self.result.ending

    @property
    def verdict(self) -> Verdict:
        """Why."""
        return self.result.verdict

    @property
    def arithmetic(self) -> Arithmetic:
        """The figures that prove it."""
        return self.result.arithmetic

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values, as the JSON has them."""
        return self.result.to_dict()

    def to_json(self) -> str:
        """The result as JSON."""
        from postmortem_reports import json  # noqa: PLC0415 (reports load when one is asked for)

        return json.render(self.result).decode()

    def to_markdown(self) -> str:
        """A comment for an issue."""
        from postmortem_reports import markdown  # noqa: PLC0415

        return markdown.render(self.result)

    def to_html(self) -> str:
        """The page to attach to the incident."""
        from postmortem_reports import html, markdown  # noqa: PLC0415

        return html.render(self.result, self.timeline, markdown=markdown.render(self.result))

    def _repr_html_(self) -> str:
        """A notebook shows the page in a frame of its own, so that its style stays inside."""
        import html as escape  # noqa: PLC0415

        return f'<iframe srcdoc="{escape.escape(self.to_html())}" style="width:100%;height:640px;border:0"></iframe>'

    def __repr__(self) -> str:
        return f"<Postmortem {self.verdict.cause} ({self.verdict.confidence:.2f}): {self.verdict.summary}>"


def analyze(
    paths: Sequence[str | Path | BinaryIO] | str | Path,
    *,
    limit: int | None = None,
    budget: int | None = None,
    profile: str | Path | None = None,
    tz: str | None = None,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    redact: bool = False,
) -> Postmortem:
    """Analyse one run's evidence: files, a directory, `-` for standard input.

    `limit` and `budget` (bytes) override what the evidence says; `profile` is a shipped profile's name or a TOML file
    (without it, the shipped profiles that know a line of the logs' beginnings are used together); `tz` (`+02:00`) is
    the zone of clocks without one;
    `since` and `until` leave out evidence outside of them. Raises `InputError` for what cannot be read,
    `NoEvidenceError` where no parser knows anything in it, `UsageError` for wrong arguments.
    """
    paths = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if not paths:
        raise UsageError("nothing to analyse: give files, a directory, or - for standard input")
    named = load(str(profile)) if profile is not None else None
    parsers, broken = registry.load_parsers()
    streams = find(paths)
    chosen = named or choose([beginning(stream) for stream in streams if not stream.binary])
    reading = read(streams, parsers, chosen)
    if not any(frame.height for frame in reading.tables.values()):
        raise NoEvidenceError(_no_evidence(paths))
    run = Run(
        name=_name(paths, reading),
        tables=reading.tables,
        sources=reading.sources,
        lines_time=reading.lines_time,
        model=memory_model(chosen) if _used(reading) else MemoryModel(processes=tuple(chosen.processes)),
        profile=chosen.name if _used(reading) else None,
        options=Options(limit=limit, budget=budget, tz_minutes=_zone(tz), since=since, until=until),
    )
    result, timeline = analyse(run, reading.excerpts, postmortem.__version__)
    if broken:
        import msgspec  # noqa: PLC0415

        result = msgspec.structs.replace(result, warnings=[*broken, *result.warnings])
    if redact:
        from postmortem.redact import redact_result  # noqa: PLC0415

        result = redact_result(result)
    return Postmortem(result, timeline)


def memory_model(profile: Profile) -> MemoryModel:
    """A profile's constants as the analysis uses them."""
    model = profile.model
    circuits = {
        name: Circuit(
            srs=c.srs,
            pce=c.pce,
            full=c.reservation,
            abc=c.abc,
            partitions=c.partitions,
            needs_abc=max(0, c.needs - c.rest),
            needs_rest=c.rest,
        )
        for name, c in model.circuits.items()
    }
    return MemoryModel(
        circuits=circuits,
        proof_kinds={**model.aliases, **model.proof_kinds},
        buffers_per_partition=model.buffers_per_partition or 3,
        pce_extraction=model.pce_extraction,
        processes=tuple(profile.processes),
    )


def _used(reading: Reading) -> bool:
    """Whether any of the daemon's own lines were found."""
    return any(reading.tables[name].height for name in ("pool", "budget", "resident", "work"))


def _name(paths: Sequence[str | Path | BinaryIO], reading: Reading) -> str:
    """The folder's or file's name; of several, the file that most was read of, so that their order does not matter."""
    first = paths[0]
    if len(paths) == 1 and isinstance(first, (str, Path)) and Path(first).is_dir():
        return Path(first).resolve().name
    fullest = max(reading.sources, key=lambda source: sum(source.parsers.values()))
    return "stdin" if fullest.path == "-" else re.sub(r"\.(gz|zst|xz|bz2)$", "", Path(fullest.path).name)


def _no_evidence(paths: Sequence[object]) -> str:
    names = ", ".join(str(p) for p in paths[:3]) + (", …" if len(paths) > 3 else "")
    return f"{names}: no evidence in it that any parser knows (`postmortem formats` lists what is read)"


def _zone(tz: str | None) -> int | None:
    """Minutes east of UTC of `+02:00`, `-0530`, `Z`."""
    if tz is None:
        return None
    if tz.upper() in ("Z", "UTC"):
        return 0
    match = re.fullmatch(r"([+-])(\d{1,2}):?(\d{2})?", tz)
    if match is None:
        message = f"--tz {tz}: write it like +02:00 or Z"
        raise UsageError(message)
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    return minutes if match[1] == "+" else -minutes
