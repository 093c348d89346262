"""Logs to measure with: a daemon's run in tracing's formats, reproducible from a seed.

The pool and the budget in them are consistent, so that the analysis replays them as it would a real run's.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import zstandard

__all__ = ["FORMATS", "small_runs", "write"]

_GIB_3_88 = "3.882612854242325"
_START = dt.datetime(2026, 3, 13, 14, 2, 11, tzinfo=dt.UTC)
_ALIVE = 16
_BATCH = 4096


class Field(NamedTuple):
    """`name=value`; `quoted` as Debug prints strings."""

    name: str
    value: str
    quoted: bool = False


class Record(NamedTuple):
    """One record without its time."""

    level: str
    target: str
    message: str
    fields: tuple[Field, ...] = ()
    spans: tuple[tuple[str, tuple[Field, ...]], ...] = ()


def plain(stamp: str, record: Record) -> str:
    """Tracing's full format."""
    spans = "".join(f"{name}{{{_plain_fields(fields)}}}:" for name, fields in record.spans)
    fields = " " + _plain_fields(record.fields) if record.fields else ""
    lead = spans + " " if spans else ""
    return f"{stamp} {record.level:>5} {lead}{record.target}: {record.message}{fields}\n"


def _plain_fields(fields: tuple[Field, ...]) -> str:
    return " ".join(f'{f.name}="{f.value}"' if f.quoted else f"{f.name}={f.value}" for f in fields)


_COLOURS = {"TRACE": 35, "DEBUG": 34, "INFO": 32, "WARN": 33, "ERROR": 31}


def ansi(stamp: str, record: Record) -> str:
    """The same with colours."""
    spans = "".join(
        f"\x1b[1m{name}\x1b[0m\x1b[1m{{\x1b[0m{_ansi_fields(fields)}\x1b[1m}}\x1b[0m\x1b[2m:\x1b[0m"
        for name, fields in record.spans
    )
    fields = " " + _ansi_fields(record.fields) if record.fields else ""
    lead = spans + " " if spans else ""
    level = f"\x1b[{_COLOURS[record.level]}m{record.level:>5}\x1b[0m"
    target = f"\x1b[2m{record.target}\x1b[0m\x1b[2m:\x1b[0m"
    return f"\x1b[2m{stamp}\x1b[0m {level} {lead}{target} {record.message}{fields}\n"


def _ansi_fields(fields: tuple[Field, ...]) -> str:
    return " ".join(
        f"\x1b[3m{f.name}\x1b[0m\x1b[2m=\x1b[0m" + (f'"{f.value}"' if f.quoted else f.value) for f in fields
    )


def as_json(stamp: str, record: Record) -> str:
    """Tracing's JSON format."""
    spans = [{**_members(fields), "name": name} for name, fields in record.spans]
    members = {"message": record.message, **_members(record.fields)}
    whole = {"timestamp": stamp, "level": record.level, "fields": members, "target": record.target}
    return json.dumps({**whole, **({"span": spans[-1], "spans": spans} if spans else {})}, separators=(",", ":")) + "\n"


def _members(fields: tuple[Field, ...]) -> dict[str, str | int | float]:
    return {f.name: _member(f.value) for f in fields}


def _member(value: str) -> str | int | float:
    if value.isdigit():
        return int(value)
    return float(value) if value.replace(".", "").isdigit() else value


FORMATS: dict[str, Callable[[str, Record], str]] = {"plain": plain, "ansi": ansi, "json": as_json}


class _Daemon:
    """Partitions that take buffers, prove and give them back, without end."""

    def __init__(self, random: random.Random) -> None:
        self._random = random
        self._idle = self._owned = self._jobs = 0
        self._used = 70

    def partition(self) -> Iterator[Record]:
        """One partition's life."""
        self._jobs += 1
        job, part, worker = f"{self._jobs * 2654435761 % 2**32:08x}", str(self._jobs % 10), str(self._jobs % 4)
        synthesis = (("synthesize_partition", (Field("job_id", job, quoted=True), Field("partition", part))),)
        some = f"Some({part})"
        gpu_fields = (Field("worker_id", worker), Field("gpu", "0"), Field("job_id", job))
        gpu_fields += (Field("proof_kind", "porep-c2"), Field("batch_size", "1"), Field("partition", some))
        gpu = (("gpu_worker", gpu_fields),)
        prove = (*gpu, ("gpu_prove", (Field("circuit_id", "porep-32g"), Field("partition", some))))
        own = (Field("job_id", job), Field("partition", part))
        yield Record(
            "INFO",
            "cuzk_core::scheduler",
            "job enqueued",
            (Field("job_id", job), Field("proof_kind", "porep-c2"), Field("priority", "Normal")),
        )
        self._used += 14
        yield self._acquired()
        yield Record(
            "INFO",
            "cuzk_core::pipeline",
            "attempting pinned memory synthesis",
            (
                Field("circuit_id", "porep-32g"),
                Field("num_constraints", "130278869"),
                Field("scalar_size", "32"),
                Field("buf_gib", _GIB_3_88),
            ),
            synthesis,
        )
        for _ in range(3):
            yield self._buffer(synthesis)
        yield Record("INFO", "cuzk_core::pipeline", "pinned prover created for partition synthesis", (), synthesis)
        took = str(self._random.randrange(25000, 60000))
        yield Record(
            "INFO",
            "cuzk_core::engine",
            "partition synthesis complete, pushing to GPU queue",
            (*own, Field("synth_ms", took)),
        )
        yield Record(
            "INFO",
            "cuzk_core::engine",
            "GPU_TIMING prove_start returned",
            (
                Field("worker_id", worker),
                Field("partition", some),
                Field("total_pre_prove_ms", "2409"),
                Field("spawn_blocking_wall_ms", "2409"),
            ),
            gpu,
        )
        for _ in range(3):
            self._idle += 1
            yield Record("INFO", "cuzk_core::pinned_pool", "pinned pool: checkin", (Field("size_gib", _GIB_3_88),), gpu)
        self._used -= 13
        yield Record(
            "DEBUG",
            "cuzk_core::memory",
            "partial reservation release",
            (Field("released_gib", "13"), Field("remaining_gib", "1")),
        )
        took = str(self._random.randrange(3000, 6000))
        yield Record(
            "INFO",
            "cuzk_core::pipeline",
            "GPU prove complete (split)",
            (Field("proof_count", "1"), Field("proof_bytes", "192"), Field("gpu_ms", took)),
            prove,
        )
        self._used -= 1
        yield Record(
            "INFO",
            "cuzk_core::engine",
            "partition GPU prove complete",
            (*own, Field("gpu_ms", took), Field("filled", "0")),
        )

    def _acquired(self) -> Record:
        fields = (Field("amount_gib", "14"), Field("used_gib", str(self._used)), Field("total_gib", "331"))
        return Record("DEBUG", "cuzk_core::memory", "budget acquired", fields)

    def _buffer(self, spans: tuple[tuple[str, tuple[Field, ...]], ...]) -> Record:
        size, target = Field("size_gib", _GIB_3_88), "cuzk_core::pinned_pool"
        if self._idle:
            self._idle -= 1
            free = Field("free_remaining", str(self._idle))
            return Record("INFO", target, "pinned pool: checkout (reuse)", (size, free), spans)
        self._owned += 1
        fields = (size, Field("total_buffers", str(self._owned)))
        fields += (Field("total_gib", repr(self._owned * float(_GIB_3_88))),)
        return Record("INFO", target, "pinned pool: allocated new buffer", fields, spans)

    def noise(self) -> Record:
        """A line that no profile knows."""
        number = self._random.randrange(1 << 16)
        match number % 6:
            case 0:
                frame = f"received frame=Headers {{ stream_id: StreamId({number}), flags: (0x4: END_HEADERS) }}"
                return Record("DEBUG", "h2::codec::framed_read", frame)
            case 1:
                fields = (Field("queued", str(number % 40)), Field("in_flight", str(number % 7)))
                return Record("DEBUG", "cuzk_core::scheduler", "scheduler tick: nothing to dispatch", fields)
            case 2:
                fields = (Field("log_n", "27"), Field("elapsed_us", str(number)))
                return Record("TRACE", "bellperson::groth16::prover", "fft finished", fields)
            case 3:
                fields = (Field("peer", "10.0.0.7:51234"), Field("status", "OK"), Field("took_us", str(number)))
                return Record("DEBUG", "tonic::transport::server", "GetStatus answered", fields)
            case 4:
                fields = (Field("gpu", "0"), Field("kernel", "msm_bucket_sum"), Field("us", str(number)))
                return Record("DEBUG", "cuzk_core::gpu", "kernel launched", fields)
            case _:
                fields = (Field("bytes", str(number * 4096)), Field("took_us", str(number)))
                return Record("DEBUG", "cuzk_core::prefetch", "read ahead of parameter file", fields)


def _records(share: float, random: random.Random) -> Iterator[Record]:
    daemon = _Daemon(random)
    yield Record("INFO", "cuzk_daemon", "cuzk-daemon starting")
    yield Record("INFO", "cuzk_core::engine", "memory budget initialized", (Field("total_budget_gib", "331"),))
    yield Record("INFO", "cuzk_core::engine", "starting cuzk engine", (Field("pipeline_enabled", "true"),))
    lives = [daemon.partition() for _ in range(_ALIVE)]
    while True:
        if random.random() >= share:
            yield daemon.noise()
            continue
        turn = random.randrange(_ALIVE)
        record = next(lives[turn], None)
        if record is None:
            lives[turn] = daemon.partition()
            record = next(lives[turn])
        yield record


def write(path: Path, size: int, *, share: float = 0.35, form: str = "plain", seed: int = 1) -> None:
    """About `size` bytes of log, `share` of whose lines a profile knows; the suffixes gz and zst compress it."""
    rng = random.Random(seed)
    dress, moment, length = FORMATS[form], _START, 0
    records = _records(share, rng)
    with _opened(path) as file:
        while length < size:
            lines: list[str] = []
            for _ in range(_BATCH):
                moment += dt.timedelta(microseconds=rng.randrange(1, 160_000))
                # Not isoformat: it leaves out a fraction of zero.
                lines.append(dress(f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}", next(records)))
            data = "".join(lines).encode()
            length += len(data)
            file.write(data)


def _opened(path: Path):  # noqa: ANN202 (three types of binary file with one method in common)
    if path.suffix == ".gz":
        return gzip.open(path, "wb", compresslevel=6)
    if path.suffix == ".zst":
        return zstandard.open(path, "wb")
    return path.open("wb")


def small_runs(folder: Path, count: int, size: int, *, seed: int = 1) -> None:
    """Many runs of `size` bytes, one folder each."""
    for number in range(count):
        run = folder / f"run-{number:04d}"
        run.mkdir(parents=True)
        write(run / "run.log", size, seed=seed + number)
