"""Partitions: when each was queued, synthesised, waited, was on the GPU and ended; and what of it is still alive."""

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from postmortem.model import MemoryModel

__all__ = ["COLUMNS", "LIFE", "lives"]

_TIME = pl.Datetime("us", "UTC")
LIFE = pl.Schema(
    {
        "job": pl.String(),
        "partition": pl.Int64(),
        "circuit": pl.String(),
        "pinned": pl.Boolean(),
        "queued": _TIME,
        "synth_start": _TIME,
        "synth_end": _TIME,
        "gpu_queue": _TIME,
        "gpu_start": _TIME,
        "prove_returned": _TIME,
        "gpu_end": _TIME,
        "source": pl.Int32(),
        "line": pl.Int64(),
        "full": pl.Int64(),
        "abc": pl.Int64(),
        "needs_abc": pl.Int64(),
        "needs_rest": pl.Int64(),
    }
)
_KEY = ["job", "partition"]
_AT = ["time", "source", "line"]
COLUMNS = [*_AT, "op", *_KEY, "circuit", "proof_kind"]
"""What `lives` needs of the `work` table."""
_MODES = ["pinned_attempt", "synth_pinned", "synth_unpinned"]
_OPS = {
    "synth_start": "synth_start",
    "synth_end": "synth_end",
    "gpu_queue": "gpu_queue",
    "gpu_start": "gpu_start",
    "prove_start_returned": "prove_returned",
    "gpu_end": "gpu_end",
    "done": "gpu_end",
}
_STAGES = tuple(dict.fromkeys(_OPS.values()))


def lives(frames: Iterable[pl.DataFrame], model: MemoryModel) -> pl.DataFrame:
    """One row a partition that began its synthesis (schema `LIFE`), in order of its start.

    `frames`: the `work` table, whole or in several frames, in order of source and line. A job without partitions (a
    whole proof) has partition null. Times are null where the log does not say.
    """
    found, before = list[_Said](), None
    for rows in frames:
        attached, before = _attach_to_starts(rows.filter(pl.col("time").is_not_null()), before)
        found.append(_said(attached.select(COLUMNS).sort("time", "source", "line")))
    if not found:
        return pl.DataFrame(schema=LIFE)
    stages, kinds, modes = (list(pieces) for pieces in zip(*found, strict=True))
    found.clear()
    table = _partitions(stages)
    if table.is_empty():
        return pl.DataFrame(schema=LIFE)
    table = table.join(_put_together(kinds, ["job"]).drop("seen"), on="job", how="left", maintain_order="left").join(
        _put_together(modes, _KEY).drop("seen"), on=_KEY, how="left", nulls_equal=True, maintain_order="left"
    )
    table = table.with_columns(circuit=_circuit(model))
    needs = [_need(model, name) for name in ("full", "abc", "needs_abc", "needs_rest")]
    table = table.with_columns(needs).select(pl.col(name).cast(dtype) for name, dtype in LIFE.items())
    # The log ends in the middle of things: a stage that was reached implies the ones before it.
    return table.with_columns(
        synth_end=pl.coalesce("synth_end", "gpu_queue", "gpu_start"),
        prove_returned=pl.coalesce("prove_returned", "gpu_end"),
    )


class _Said(NamedTuple):
    """What some rows say, in a form in which parts of a long table can be put together.

    Each has the time at which it was `seen` first.
    """

    stages: pl.DataFrame
    """By job and partition: first time of each stage, and where its synthesis started."""
    kinds: pl.DataFrame
    """By job: proof kind, enqueue time and circuit."""
    modes: pl.DataFrame
    """By job and partition: whether it synthesised into pinned buffers."""


def _said(rows: pl.DataFrame) -> _Said:
    """Of rows in order of time."""
    op, start = pl.col("op"), pl.col("op") == "synth_start"
    seen = pl.col("time").first().alias("seen")
    known = rows.filter(op.is_in(list(_OPS)) & pl.col("job").is_not_null())
    stages = (
        known.select(
            *_KEY,
            "time",
            *(pl.when(op.is_in(_ops_of(name))).then("time").alias(name) for name in _STAGES),
            *(pl.when(start).then(name).alias(name) for name in ("source", "line")),
        )
        .group_by(_KEY, maintain_order=True)
        .agg(
            *(pl.col(name).min() for name in _STAGES),
            *(pl.col(name).first(ignore_nulls=True) for name in ("source", "line")),
            seen,
        )
    )
    named = rows.filter(pl.col("proof_kind").is_not_null() | pl.col("circuit").is_not_null() | (op == "enqueue"))
    kinds = (
        named.select("job", "proof_kind", "time", named="circuit", queued=pl.when(op == "enqueue").then("time"))
        .group_by("job", maintain_order=True)
        .agg(*(pl.col(name).first(ignore_nulls=True) for name in ("proof_kind", "named", "queued")), seen)
    )
    modes = rows.filter(op.is_in(_MODES) & pl.col("job").is_not_null())
    # The last word counts: a checkout can fail.
    last = (op != "synth_unpinned").last().alias("pinned")
    return _Said(stages, kinds, modes.group_by(_KEY, maintain_order=True).agg(last, seen))


def _ops_of(stage: str) -> list[str]:
    return [op for op, name in _OPS.items() if name == stage]


def _partitions(pieces: list[pl.DataFrame]) -> pl.DataFrame:
    """One row a partition whose start the log shows, in order of its start. Empties `pieces`."""
    started = pl.col("synth_start").is_not_null()
    # A job that was synthesised whole may be given `partition=0` by later lines: fold them onto its one row.
    whole = {job for piece in pieces for job in piece.filter(started & pl.col("partition").is_null())["job"].to_list()}
    if whole:
        folded = pl.col("job").is_in(list(whole))
        one = pl.when(folded).then(None).otherwise(pl.col("partition")).alias("partition")
        pieces = [piece.with_columns(one) for piece in pieces]
    merged = _put_together(pieces, _KEY, anew=bool(whole))
    return merged.filter(started).sort("synth_start", "seen", maintain_order=True).drop("seen")


def _put_together(pieces: list[pl.DataFrame], key: list[str], *, anew: bool = False) -> pl.DataFrame:
    """One row a key: of stages the first time, of modes the last word, of the rest the first that is known.

    Empties `pieces`. `anew`: a key may be in one piece more than once.
    """
    if len(pieces) == 1 and not anew:
        return pieces.pop()
    rows = pl.concat(pieces)
    pieces.clear()
    # Only what lies on a boundary between pieces is in two of them.
    several = rows.select(key).is_duplicated()
    again = rows.filter(several).sort("seen", maintain_order=True)
    how = {name: pl.col(name).min() for name in (*_STAGES, "seen")} | {"pinned": pl.col("pinned").last()}
    earliest = {name: pl.col(name).sort_by("synth_start", nulls_last=True).first() for name in ("source", "line")}
    how |= earliest if "synth_start" in rows.columns else {}
    others = [name for name in rows.columns if name not in key]
    merged = again.group_by(key, maintain_order=True).agg(
        how.get(name, pl.col(name).first(ignore_nulls=True)) for name in others
    )
    return pl.concat([rows.filter(~several), merged])


def _attach_to_starts(rows: pl.DataFrame, before: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lines of a synthesis that name no job belong to the synthesis that started last before them.

    `before`: each source's last start in earlier frames; the second frame that comes back is it after these.
    """
    start = pl.col("op") == "synth_start"
    earlier = rows.clear() if before is None else before
    latest = (
        pl.concat([earlier, rows.filter(start)]).group_by("source", maintain_order=True).last().select(rows.columns)
    )
    loose = pl.col("op").is_in(_MODES) & pl.col("job").is_null()
    if rows.filter(loose).is_empty():
        return rows, latest
    ordered = pl.concat([earlier, rows.sort("source", "line")]).sort("source", maintain_order=True)
    filled = ordered.with_columns(
        pl.when(start).then(pl.col(name)).forward_fill().over("source").alias(f"last_{name}") for name in _KEY
    )
    # A whole proof's start has no partition, which forward_fill would skip: fill only beside the same job.
    job_of = pl.when(start).then(pl.col("line")).forward_fill().over("source")
    part = pl.col("partition").first().over("source", job_of)
    attached = filled.with_columns(
        job=pl.when(loose).then(pl.col("last_job")).otherwise(pl.col("job")),
        partition=pl.when(loose).then(part).otherwise(pl.col("partition")),
    ).drop("last_job", "last_partition")
    return attached.join(
        earlier.select("source", "line"), on=["source", "line"], how="anti", maintain_order="left"
    ), latest


def _circuit(model: MemoryModel) -> pl.Expr:
    """The circuit a line named, else the one of the job's proof kind."""
    by_kind = pl.col("proof_kind").replace_strict(dict(model.proof_kinds), default=None, return_dtype=pl.String)
    return pl.coalesce("named", by_kind)


def _need(model: MemoryModel, field: str) -> pl.Expr:
    values = {name: getattr(circuit, field) for name, circuit in model.circuits.items()}
    return pl.col("circuit").replace_strict(values, default=None, return_dtype=pl.Int64).fill_null(0).alias(field)
