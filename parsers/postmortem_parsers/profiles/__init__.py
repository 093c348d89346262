"""Profiles: what one daemon's log lines mean and how its memory is accounted for, as a TOML file.

A daemon that differs only in its texts needs no code. Every pattern carries sample lines beside it; they are its
tests. Sizes are written in GiB (2^30 bytes) here and given out in bytes.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec
import polars as pl

from postmortem.errors import UsageError
from postmortem.schema import KEYS, TABLES
from postmortem.units import GIB
from postmortem_parsers.values import UNITS, Unit, circuit_unit

__all__ = ["Block", "Circuit", "Event", "Line", "Model", "Profile", "Row", "Timeline", "combined", "load", "names"]

Constant = str | int | float | bool
_FIRST = "cuzk"


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A misspelt key is an error, never silently ignored."""


class Row(_Strict, frozen=True, kw_only=True):
    """One row that a line gives: constants, and columns from the line's fields (`column = "field:unit"`)."""

    table: str
    op: str | None = None
    what: str | None = None
    fields: dict[str, str] = {}
    set: dict[str, Constant] = {}
    needs: list[str] = []
    """Columns without which the row says nothing: the line is then skipped with that reason."""

    def constants(self) -> dict[str, Constant]:
        """All constant columns."""
        named = {"op": self.op, "what": self.what}
        return {**{name: value for name, value in named.items() if value is not None}, **self.set}


class Event(_Strict, frozen=True, kw_only=True):
    """A structured log record, known by the beginning of its message or, whatever it says, by a field that it has."""

    message: str = ""
    field: str | None = None
    target: str | None = None
    """Module path; only for events known by their message."""
    rows: list[Row] = []
    sample: list[str]


class Line(_Strict, frozen=True, kw_only=True):
    """Any other line, known by a regular expression (Rust syntax) whose named groups are its fields.

    A wrapper's stamp (`[2026-02-22 00:21:35] `) has been taken off before.
    """

    regex: str
    rows: list[Row] = []
    sample: list[str]


class Block(_Strict, frozen=True, kw_only=True):
    """A heading and the `name: value` lines below it, which make one row together."""

    begins: str
    row: Row
    lines: dict[str, str]
    """Field name to the regular expression of its line; the first group is the value."""
    sample: list[str]


class Timeline(_Strict, frozen=True, kw_only=True):
    """CSV events with milliseconds since the daemon's start: `PREFIX,{ms},{event},{job},{detail}`."""

    prefix: str
    events: dict[str, str]
    """Event name to the `op` of the work table."""
    other: list[str] = []
    """Beginnings of further diagnostic lines that are known and of no interest here."""
    sample: list[str]


class Circuit(_Strict, frozen=True, kw_only=True):
    """What one kind of proof takes, in GiB."""

    srs_gib: float
    pce_gib: float
    reservation_gib: float
    """What one partition reserves in the budget from its acquire to the end of its proof."""
    abc_gib: float
    """The part of it that is released when the GPU has taken the partition's buffers."""
    partitions: int
    needs_gib: float
    """What a partition really needs, buffers included."""
    rest_gib: float
    """The part of that which is heap even when a/b/c are in pinned buffers."""
    buffer_gib: float | None = None
    """One pinned buffer: constraints × 32 bytes."""

    @property
    def srs(self) -> int:
        """SRS in bytes (pinned, permanent)."""
        return round(self.srs_gib * GIB)

    @property
    def pce(self) -> int:
        """PCE in bytes (heap, permanent)."""
        return round(self.pce_gib * GIB)

    @property
    def reservation(self) -> int:
        """A partition's full reservation in bytes."""
        return round(self.reservation_gib * GIB)

    @property
    def abc(self) -> int:
        """The a/b/c share of the reservation in bytes."""
        return round(self.abc_gib * GIB)

    @property
    def needs(self) -> int:
        """A partition's real need in bytes."""
        return round(self.needs_gib * GIB)

    @property
    def rest(self) -> int:
        """Its heap beside the buffers in bytes."""
        return round(self.rest_gib * GIB)

    @property
    def buffer(self) -> int | None:
        """One pinned buffer in bytes."""
        return None if self.buffer_gib is None else round(self.buffer_gib * GIB)


class Model(_Strict, frozen=True, kw_only=True):
    """Constants of the daemon's memory accounting."""

    circuits: dict[str, Circuit] = {}
    proof_kinds: dict[str, str] = {}
    """What jobs call their kind, to the circuit that they use."""
    aliases: dict[str, str] = {}
    """Other names of circuits, as they stand in messages."""
    buffers_per_partition: int = 0
    first_synthesis_unpinned: bool = False
    """The first synthesis of a circuit grows heap vectors instead of taking pinned buffers."""
    pce_extraction_gib: float = 0.0
    """Held beside the PCE while it is extracted (first run, nothing on disk)."""
    whole_proof_gib: float = 0.0
    """Reservation of a whole proof in one batch."""
    whole_proof_abc_gib: float = 0.0
    transient_load_factor: float = 1.0
    """What an SRS is charged at most while it loads, as a multiple of its size (mapped file and pinned copy)."""
    safety_margin_gib: float = 0.0
    """What an automatic budget leaves of the detected memory."""
    retry_factor: float = 1.0
    """By what a wrapper multiplies the budget after a kill."""
    retries: int = 0

    @property
    def pce_extraction(self) -> int:
        """Bytes held beside the PCE while it is extracted."""
        return round(self.pce_extraction_gib * GIB)

    @property
    def whole_proof(self) -> int:
        """Reservation of a whole proof in bytes."""
        return round(self.whole_proof_gib * GIB)

    @property
    def whole_proof_abc(self) -> int:
        """The a/b/c share of it in bytes."""
        return round(self.whole_proof_abc_gib * GIB)

    @property
    def safety_margin(self) -> int:
        """The automatic budget's margin in bytes."""
        return round(self.safety_margin_gib * GIB)

    def circuit_of(self, name: str | None) -> str | None:
        """The circuit that a proof kind, circuit name or alias means; None when it is not known."""
        if name is None or name in self.circuits:
            return name
        return self.proof_kinds.get(name) or self.aliases.get(name.lower())


class Profile(_Strict, frozen=True, kw_only=True):
    """One daemon."""

    name: str
    about: str = ""
    processes: list[str] = []
    """Names of its process, as kernel reports and shells print them (the kernel cuts at 15 characters)."""
    event: list[Event] = []
    line: list[Line] = []
    block: list[Block] = []
    timeline: Timeline | None = None
    model: Model = Model()

    def unit(self, name: str) -> Unit:
        """A unit by its name in `column = "field:unit"`."""
        return circuit_unit({**self.model.aliases, **self.model.proof_kinds}) if name == "circuit" else UNITS[name]


@functools.cache
def names() -> tuple[str, ...]:
    """The profiles that are shipped, the project's own daemon first."""
    found = sorted(file.name.removesuffix(".toml") for file in _shipped() if file.name.endswith(".toml"))
    return tuple(sorted(found, key=lambda name: name != _FIRST))


def load(name_or_path: str = "cuzk") -> Profile:
    """A shipped profile by its name, or one of the user's own by its file.

    Raises UsageError that names the file, the key and what to write instead.
    """
    if name_or_path in names():
        return _shipped_profile(name_or_path)
    return _checked(_parsed(_read(name_or_path), name_or_path), name_or_path)


@functools.cache
def _shipped_profile(name: str) -> Profile:
    text = (resources.files(__name__) / f"{name}.toml").read_text("utf-8")
    return _checked(_parsed(text, name), name)


def combined(profiles: Sequence[Profile]) -> Profile:
    """One profile that reads what all of them read; where two know a line, or both have a model, the first one counts."""
    if len(profiles) == 1:
        return profiles[0]
    with_model = next((p for p in profiles if p.model.circuits), profiles[0])
    return Profile(
        name=", ".join(p.name for p in profiles),
        about="; ".join(p.about for p in profiles),
        processes=list(dict.fromkeys(process for p in profiles for process in p.processes)),
        event=[event for p in profiles for event in p.event],
        line=[line for p in profiles for line in p.line],
        block=[block for p in profiles for block in p.block],
        timeline=next((p.timeline for p in profiles if p.timeline), None),
        model=with_model.model,
    )


def _shipped() -> list[Traversable]:
    return list(resources.files(__name__).iterdir())


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except FileNotFoundError as error:
        msg = f"no profile {path!r}: give a TOML file or one of {', '.join(names())}"
        raise UsageError(msg) from error
    except (OSError, UnicodeDecodeError, ValueError) as error:
        msg = f"profile {path}: cannot be read as UTF-8 text ({error})"
        raise UsageError(msg) from error


def _parsed(text: str, shown: str) -> Profile:
    try:
        return msgspec.convert(tomllib.loads(text), Profile)
    except tomllib.TOMLDecodeError as error:
        msg = f"profile {shown}: no valid TOML: {error}"
        raise UsageError(msg) from error
    except msgspec.ValidationError as error:
        msg = f"profile {shown}: {error}"
        raise UsageError(msg) from error


def _checked(profile: Profile, shown: str) -> Profile:
    """The profile, when tables, columns, units and expressions in it exist."""
    for kind, entries in (("event", profile.event), ("line", profile.line)):
        for number, entry in enumerate(entries):
            for row in entry.rows:
                _check_row(row, f"profile {shown}: {kind}[{number}]")
    for number, event in enumerate(profile.event):
        if bool(event.message) == bool(event.field):
            msg = f"profile {shown}: event[{number}] needs either a message (how it begins) or a field (a key that it has)"
            raise UsageError(msg)
    for number, block in enumerate(profile.block):
        _check_row(block.row, f"profile {shown}: block[{number}]")
        for expression in (block.begins, *block.lines.values()):
            _check_regex(expression, f"profile {shown}: block[{number}]")
    for number, line in enumerate(profile.line):
        _check_regex(line.regex, f"profile {shown}: line[{number}].regex")
    return profile


def _check_row(row: Row, where: str) -> None:
    if row.table not in TABLES:
        msg = f"{where}: table {row.table!r} does not exist; use one of {', '.join(TABLES)}"
        raise UsageError(msg)
    columns = [name for name in TABLES[row.table] if name not in KEYS]
    for column in (*row.fields, *row.constants(), *row.needs):
        if column not in columns:
            msg = f"{where}: table {row.table} has no column {column!r}; it has {', '.join(columns)}"
            raise UsageError(msg)
    for column, source in row.fields.items():
        field, _, unit = source.rpartition(":")
        if not field or (unit not in UNITS and unit != "circuit"):
            units = ", ".join((*UNITS, "circuit"))
            msg = f'{where}: {column} = {source!r}; write "field:unit" with a unit of {units}'
            raise UsageError(msg)


def _check_regex(expression: str, where: str) -> None:
    try:
        pl.Series([""]).str.contains(expression)
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[-1]
        msg = f"{where}: {expression!r} is no regular expression ({reason})"
        raise UsageError(msg) from error
