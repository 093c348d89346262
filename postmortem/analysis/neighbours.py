"""What processes other than the daemon held in its cgroup: from a kernel report's task table, else from samples."""

import dataclasses

import polars as pl

from postmortem.analysis.cite import Citations
from postmortem.analysis.examine import Examined
from postmortem.result import Quantity
from postmortem.run import Run

__all__ = ["Others", "neighbour", "others_in"]


@dataclasses.dataclass(frozen=True)
class Others:
    """What processes other than the daemon held, from a kernel report's task table. Bytes."""

    anon: int
    shmem: int
    count: int
    own_shmem: int | None
    """Shared memory that the daemon's own processes map; None where the table does not say."""
    largest: str
    lines: tuple[str, ...]

    @property
    def total(self) -> int:
        """What is theirs alone."""
        return self.anon + self.shmem


def neighbour(run: Run, chosen: Examined, cites: Citations) -> Quantity | None:
    """Memory of other processes in the cgroup: from the kill report's task table, else from per-process samples."""
    others = others_in(run, chosen, cites)
    if others is not None:
        return Quantity(low=others.total, best=others.total, high=others.total, basis="measured", lines=others.lines)
    return _from_processes(run, chosen, cites)


def _from_processes(run: Run, chosen: Examined, cites: Citations) -> Quantity | None:
    rows = chosen.run.table("samples").filter((pl.col("metric") == "rss_process") & (pl.col("scope") == "process"))
    if rows.is_empty() or not run.model.processes:
        return None
    last = rows.filter(pl.col("time") == pl.col("time").max())
    name = pl.col("subject").str.split_exact(":", 1).struct.field("field_1")
    others = last.filter(~name.map_elements(run.model.is_daemon, return_dtype=pl.Boolean).fill_null(value=False))
    if others.height == last.height:  # The daemon is not among them under a name that is known: any of them may be it.
        return None
    value = int(others["value"].sum())
    lines = cites.all(*zip(others["source"][:1], others["line"][:1], strict=True))
    return Quantity(low=0, best=value, high=value, basis="measured", lines=lines)


def others_in(run: Run, chosen: Examined, cites: Citations) -> Others | None:
    """Processes of the last kill report that are not the daemon's; where its name is not known, not the victim's.

    A daemon's workers bear its name; a page that two processes map is counted in both, so that what the daemon
    maps as well is not taken for others' own.
    """
    reports = chosen.kills.filter(pl.col("constraint") == "memcg") if chosen.kills.height else chosen.kills
    if reports.is_empty():
        return None
    kill = reports.row(-1, named=True)
    tasks = run.table("tasks").filter((pl.col("report") == kill["report"]) & (pl.col("source") == kill["source"]))
    if tasks.is_empty():
        return None
    tasks = tasks.with_columns(
        anon=pl.coalesce("rss_anon", "rss").fill_null(0), shmem=pl.col("rss_shmem").fill_null(0)
    ).sort("anon", descending=True)
    tasks = tasks.unique(pl.coalesce("tgid", "pid"), keep="first", maintain_order=True)
    named = pl.col("name").map_elements(run.model.is_daemon, return_dtype=pl.Boolean)
    own = tasks.filter(named)
    if own.is_empty():  # The victim may be the neighbour: only a daemon that nobody knows is taken for the victim.
        own = tasks.filter((pl.col("name") == kill["victim"]) | (pl.col("pid") == kill["pid"]))
    rest = tasks.join(own.select("pid"), on="pid", how="anti").sort(pl.col("anon") + pl.col("shmem"), descending=True)
    own_shmem = int(own["shmem"].max() or 0) if own["rss_shmem"].null_count() < own.height else None  # pyright: ignore[reportArgumentType] (an integer column)
    spare = max(0, (kill["stat_shmem"] or 0) - (own_shmem or 0))
    return Others(
        anon=int(rest["anon"].sum()),
        shmem=min(int(rest["shmem"].sum()), spare),
        count=rest.height,
        own_shmem=own_shmem,
        largest=str(rest["name"][0]) if rest.height else "",
        lines=cites.all(*zip(rest["source"][:1], rest["line"][:1], strict=True)),
    )
