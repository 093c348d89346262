"""Partitions: when each was queued, synthesised, waited, was on the GPU and ended; and what of it is still alive."""

import polars as pl

from postmortem.model import MemoryModel

__all__ = ["LIFE", "lives"]

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


def lives(work: pl.DataFrame, model: MemoryModel) -> pl.DataFrame:
    """One row a partition that began its synthesis (schema `LIFE`), in order of its start.

    A job without partitions (a whole proof) has partition null. Times are null where the log does not say.
    """
    rows = work.filter(pl.col("time").is_not_null()).sort("time", "source", "line")
    rows = _attach_to_starts(rows)
    known = rows.filter(pl.col("op").is_in(list(_OPS)) & pl.col("job").is_not_null())
    if known.filter(pl.col("op") == "synth_start").is_empty():
        return pl.DataFrame(schema=LIFE)
    known = _whole_proofs(known.with_columns(stage=pl.col("op").replace_strict(_OPS)))
    firsts = known.group_by([*_KEY, "stage"], maintain_order=True).agg(pl.col("time").min())
    table = firsts.pivot("stage", index=_KEY, values="time", aggregate_function="first", maintain_order=True)
    starts = (
        known.filter(pl.col("op") == "synth_start")
        .group_by(_KEY, maintain_order=True)
        .agg(pl.col("source").first(), pl.col("line").first())
    )
    table = (
        table.join(starts, on=_KEY, how="inner", nulls_equal=True)
        .join(_kinds(rows), on="job", how="left", maintain_order="left")
        .join(_modes(rows), on=_KEY, how="left", nulls_equal=True, maintain_order="left")
    )
    absent = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in LIFE.items() if name not in table.columns]
    table = table.with_columns(absent).with_columns(circuit=_circuit(model))
    needs = [_need(model, name) for name in ("full", "abc", "needs_abc", "needs_rest")]
    table = table.with_columns(needs).select(pl.col(name).cast(dtype) for name, dtype in LIFE.items())
    # The log ends in the middle of things: a stage that was reached implies the ones before it.
    return table.with_columns(
        synth_end=pl.coalesce("synth_end", "gpu_queue", "gpu_start"),
        prove_returned=pl.coalesce("prove_returned", "gpu_end"),
    ).sort("synth_start", maintain_order=True)


def _attach_to_starts(rows: pl.DataFrame) -> pl.DataFrame:
    """Lines of a synthesis that name no job belong to the synthesis that started last before them."""
    loose = pl.col("op").is_in(_MODES) & pl.col("job").is_null()
    if rows.filter(loose).is_empty():
        return rows
    start = pl.col("op") == "synth_start"
    ordered = rows.sort("source", "line")
    filled = ordered.with_columns(
        pl.when(start).then(pl.col(name)).forward_fill().over("source").alias(f"last_{name}") for name in _KEY
    )
    # A whole proof's start has no partition, which forward_fill would skip: fill only beside the same job.
    job_of = pl.when(start).then(pl.col("line")).forward_fill().over("source")
    part = pl.col("partition").first().over("source", job_of)
    return filled.with_columns(
        job=pl.when(loose).then(pl.col("last_job")).otherwise(pl.col("job")),
        partition=pl.when(loose).then(part).otherwise(pl.col("partition")),
    ).drop("last_job", "last_partition")


def _whole_proofs(known: pl.DataFrame) -> pl.DataFrame:
    """A job that was synthesised whole may be given `partition=0` by later lines: fold them onto its one row."""
    whole = known.filter((pl.col("op") == "synth_start") & pl.col("partition").is_null())["job"].unique()
    return known.with_columns(
        partition=pl.when(pl.col("job").is_in(whole.to_list())).then(None).otherwise(pl.col("partition"))
    )


def _kinds(rows: pl.DataFrame) -> pl.DataFrame:
    """Proof kind, enqueue time and the circuit that any line names, by job."""
    return rows.group_by("job", maintain_order=True).agg(
        pl.col("proof_kind").drop_nulls().first(),
        pl.col("circuit").drop_nulls().first().alias("named"),
        pl.col("time").filter(pl.col("op") == "enqueue").first().alias("queued"),
    )


def _modes(rows: pl.DataFrame) -> pl.DataFrame:
    """Whether a partition synthesised into pinned buffers: its last word counts (a checkout can fail)."""
    said = rows.filter(pl.col("op").is_in(_MODES) & pl.col("job").is_not_null())
    return said.group_by(_KEY, maintain_order=True).agg(pinned=(pl.col("op") != "synth_unpinned").last())


def _circuit(model: MemoryModel) -> pl.Expr:
    """The circuit a line named, else the one of the job's proof kind."""
    by_kind = pl.col("proof_kind").replace_strict(dict(model.proof_kinds), default=None, return_dtype=pl.String)
    return pl.coalesce("named", by_kind)


def _need(model: MemoryModel, field: str) -> pl.Expr:
    values = {name: getattr(circuit, field) for name, circuit in model.circuits.items()}
    return pl.col("circuit").replace_strict(values, default=None, return_dtype=pl.Int64).fill_null(0).alias(field)
