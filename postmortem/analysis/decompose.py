"""What memory consisted of at the end, for runs whose daemon has no known memory model: counters and task tables only.

The classes are the kernel's: anonymous, shared memory, kernel memory (page tables apart), page cache, and what other
processes in the cgroup held. With a budget and a ledger they are compared with margin and reservations, else nothing
is set aside for them. Facts: the kernel's cgroup-v2.rst and cgroup-v1/memory.rst (`shmem` lies inside `file`/`cache`).
"""

import dataclasses

import polars as pl

from postmortem.analysis.account import Account
from postmortem.analysis.cite import Citations
from postmortem.analysis.examine import Examined
from postmortem.analysis.neighbours import Others, others_in
from postmortem.analysis.state import Stats
from postmortem.result import Arithmetic, Basis, Part, Quantity
from postmortem.run import Run
from postmortem.units import MIB, format_gib

__all__ = ["Decomposition", "decompose", "fill", "folded", "without_model"]

_ZERO = Quantity(low=0, best=0, high=0, basis="derived")
_CLASSES = ("anonymous", "shared_memory", "kernel", "unaccounted")
_FALL = 10  # samples in which a dead process's memory may still be seen to go
_SMALLEST = MIB
"""Remainders below it are the kernel's per-CPU charge batches."""


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """The classes of memory at the moment. Bytes; None where the evidence does not tell."""

    parts: list[Part]
    account: Account
    """The account with what this run knows of its ledger."""
    unmapped: int
    """Shared memory that no process maps: files in tmpfs."""
    mapped: int
    """Shared memory beside pool and tables that processes do map."""
    kernel: int
    anonymous: int
    neighbour: int
    uncovered: int
    """Pool bytes that no reservation covers."""
    beyond: int | None
    """What lies beyond tables, ledger and pool, less the margin; None without a ledger."""

    @property
    def unprovided(self) -> int:
        """Sum of the positive excesses."""
        return sum(max(0, part.excess.best) for part in self.parts)


def without_model(run: Run) -> bool:
    """Whether the run's profile has no memory model, so that nothing can be said of live partitions."""
    return not run.model.circuits


def decompose(run: Run, chosen: Examined, account: Account, cites: Citations) -> Decomposition | None:
    """The parts at the account's moment; None where nothing was measured."""
    stats = _stats(chosen)
    if stats is None and account.charged is None:
        return None
    account = _with_ledger(run, chosen, account)
    return _Split(stats or Stats(), others_in(run, chosen, cites), account).build()


def fill(table: Arithmetic, found: Decomposition) -> Arithmetic:
    """The arithmetic with these parts, and its identity where margin and ledger are known."""
    import msgspec  # noqa: PLC0415 (as the rest of the analysis)

    account = found.account
    slack = account.budget - account.reserved if account.budget and account.reserved else None
    total = sum((part.excess for part in found.parts[1:]), found.parts[0].excess) if found.parts else None
    discrepancy = total - slack if total is not None and slack is not None and account.killed else None
    return msgspec.structs.replace(
        table, parts=found.parts, reserved=account.reserved, slack=slack, excess_sum=total, discrepancy=discrepancy
    )


def folded(parts: list[Part]) -> list[Part]:
    """The parts as the timeline stacks them: classes of memory are overhead there, page cache lies on top."""
    classes = [part for part in parts if part.part in _CLASSES]
    kept = [part for part in parts if part.part not in (*_CLASSES, "page_cache")]
    if not classes:
        return kept
    total = sum((part.actual for part in classes[1:]), classes[0].actual)
    return [*kept, Part(part="overhead", provision=_ZERO, actual=total, excess=total)]


def _stats(chosen: Examined) -> Stats | None:
    """The breakdown at the end: the kill report's, else the last high sample's, else the victim's own figures."""
    if chosen.stats.anon is not None or chosen.stats.shmem is not None:
        return chosen.stats
    samples = chosen.replays.memory.upto(chosen.end)
    told = samples.filter(pl.col("anon").is_not_null() | pl.col("shmem").is_not_null())
    if told.height:
        # After a kill the sampler sees memory fall: then the highest of the last samples is meant.
        near = told.tail(_FALL).sort("unreclaimable") if chosen.died_of_memory else told
        row = near.row(-1, named=True)
        return Stats(
            anon=row["anon"],
            file=row["file"],
            shmem=row["shmem"],
            kernel=row["kernel"],
            pagetables=row["pagetables"] or None,
            mapped=row["file_mapped"],
            at=(row["source"], row["line"]),
        )
    victims = chosen.kills.filter(pl.col("anon_rss").is_not_null())
    if victims.is_empty():
        return None
    row = victims.row(-1, named=True)
    at = (row["source"], row["line"])
    return Stats(anon=row["anon_rss"], shmem=row["shmem_rss"], pagetables=row["pgtables"], at=at)


def _with_ledger(run: Run, chosen: Examined, account: Account) -> Account:
    """Reservations only where the log states them: without a model, none can be inferred."""
    row = chosen.run.last("budget", pl.col("used").is_not_null())
    if row is None or not without_model(run):
        return account if row else dataclasses.replace(account, reserved=None)
    step = max(0, (row["used_ulp"] or 0) - 1)
    at = (run.cite(row["source"], row["line"]),)
    reserved = Quantity(low=row["used"], best=row["used"], high=row["used"] + step, basis="measured", lines=at)
    return dataclasses.replace(account, reserved=reserved)


class _Split:
    """One run's classes, and the rows made of them."""

    def __init__(self, stats: Stats, others: Others | None, account: Account) -> None:
        self.stats, self.others, self.account = stats, others, account
        self.lines = (account.unreclaimable or account.charged or _ZERO).lines
        self.pool = account.pool_total.best
        self.tables = sum(table.actual.best for table in account.tables)
        self.neighbour = others.total if others else (account.neighbour.best if account.neighbour else 0)
        self.ledger = max(0, account.reserved.best - account.permanent) if account.reserved else 0

    def build(self) -> Decomposition:
        """All rows, in the order in which the table shows them."""
        account = self.account
        self.anonymous, self.heap = self._anonymous()
        unmapped, mapped = self._shared()
        kernel = self.stats.kernel if self.stats.kernel is not None else (self.stats.pagetables or 0)
        covered = min(account.pool_in_use, max(0, self.ledger - self.heap))
        rows = self._known(covered)
        compared = account.reserved is not None and account.budget is not None and account.limit is not None
        classes = self._classes(unmapped, mapped, kernel)
        beyond = None
        if compared:
            overhead = self._overhead(rows, classes)
            beyond = overhead.excess.best
            rows.append(overhead)
        else:
            rows += classes
            rows += [*self._rest(rows), *self._cache()]
        return Decomposition(
            parts=rows,
            account=account,
            unmapped=unmapped,
            mapped=mapped,
            kernel=kernel,
            anonymous=self.anonymous,
            neighbour=self.neighbour,
            uncovered=max(0, self.pool - covered),
            beyond=beyond,
        )

    def _anonymous(self) -> tuple[int, int]:
        """(anonymous memory that no table and no reservation explains, what of the reservations it holds)."""
        theirs = self.others.anon if self.others else 0
        own = max(0, (self.stats.anon or 0) - theirs - self.account.heap_tables)
        # A reservation covers heap first, pinned buffers with what is left of it (arithmetic.md, section 1).
        heap = min(own, self.ledger)
        return own - heap, heap

    def _shared(self) -> tuple[int, int]:
        """(mapped by no process, mapped) shared memory beside the pool and the pinned tables."""
        theirs = self.others.shmem if self.others else 0
        rest = max(0, (self.stats.shmem or 0) - self.pool - self.account.pinned_tables - theirs)
        unmapped = min(rest, self.account.shmem_unmapped or 0)
        if unmapped < _SMALLEST:
            unmapped = 0
        return unmapped, rest - unmapped

    def _known(self, covered: int) -> list[Part]:
        """Tables, ledger, pool and neighbours."""
        account = self.account
        rows = [
            Part(part=f"resident:{t.name}", provision=t.provision, actual=t.actual, excess=t.actual - t.provision)
            for t in account.tables
        ]
        if account.reserved is not None and self.ledger:
            provision = _exact(self.ledger, account.reserved.basis, account.reserved.lines)
            # Less may be in use than was reserved; the counters bound it from above.
            actual = Quantity(low=0, best=self.heap + covered, high=self.ledger, basis="assumed", lines=self.lines)
            note = "taken at the ledger's word: no profile says what a reservation really takes"
            rows.append(
                Part(part="working_set", provision=provision, actual=actual, excess=actual - provision, note=note)
            )
        if self.pool:
            uncovered = _exact(max(0, self.pool - covered), "derived", account.pool_total.lines)
            idle = self.pool - account.pool_in_use
            note = f"pool {format_gib(self.pool)}: in use {format_gib(account.pool_in_use)}, idle {format_gib(idle)}"
            rows.append(_unprovided("pinned_uncovered", uncovered, note))
        if self.others is not None or account.neighbour is not None:
            quantity = _exact(self.neighbour, "measured", self.others.lines if self.others else ())
            note = (
                f"{self.others.count} other processes, the largest {self.others.largest}"
                if self.neighbour and self.others
                else None
            )
            rows.append(_unprovided("neighbour", quantity, note))
        return rows

    def _classes(self, unmapped: int, mapped: int, kernel: int) -> list[Part]:
        """One row a class of memory that no ledger explains."""
        rows = [_unprovided("anonymous", self._counted(self.anonymous))] if self.stats.anon is not None else []
        if self.stats.shmem is not None:
            split = {"files in tmpfs, mapped by no process": self._counted(unmapped)} if unmapped else {}
            if unmapped and mapped:
                split["mapped by processes"] = self._counted(mapped)
            rows.append(_unprovided("shared_memory", self._counted(unmapped + mapped), split=split))
        if self.stats.kernel is not None or self.stats.pagetables is not None:
            tables = self.stats.pagetables
            split = {"page tables": self._counted(tables)} if tables is not None else {}
            if self.stats.kernel is not None:
                split["other kernel memory"] = self._counted(max(0, kernel - (tables or 0)))
            rows.append(_unprovided("kernel", self._counted(kernel), split=split))
        return rows

    def _counted(self, size: int) -> Quantity:
        return _exact(size, "measured", self.lines)

    def _overhead(self, rows: list[Part], classes: list[Part]) -> Part:
        """All that is in no ledger, against the margin, split by class."""
        account = self.account
        assert account.limit is not None
        assert account.budget is not None
        margin = account.limit - account.budget
        held = account.unreclaimable or account.charged or _ZERO
        known = sum((row.actual for row in rows[1:]), rows[0].actual) if rows else _ZERO
        actual = held - known
        split: dict[str, Quantity] = {}
        for row in classes:
            split |= row.split or {row.part.replace("_", " "): row.actual}
        return Part(part="overhead", provision=margin, actual=actual, excess=actual - margin, split=split)

    def _rest(self, rows: list[Part]) -> list[Part]:
        """What no counter named; the whole, where there are no counters."""
        held = self.account.unreclaimable
        if held is None:
            return []
        known = sum(row.actual.best for row in rows)
        if held.best - known < _SMALLEST:
            return []
        low, high = max(0, held.low - known), max(0, held.high - known)
        rest = Quantity(low=low, best=max(low, held.best - known), high=high, basis="derived", lines=held.lines)
        return [_unprovided("unaccounted", rest, "charged, and in no counter that the evidence holds")]

    def _cache(self) -> list[Part]:
        """Reclaimable page cache: given back before anything is killed, so never an excess."""
        cache = self.account.reclaimable
        if cache is None or cache.basis != "measured" or cache.best < _SMALLEST:
            return []
        nothing = Quantity(low=0, best=0, high=0, basis=cache.basis, lines=cache.lines)
        return [Part(part="page_cache", provision=cache, actual=cache, excess=nothing, note="given back before a kill")]


def _exact(size: int, basis: Basis, lines: tuple[str, ...]) -> Quantity:
    return Quantity(low=size, best=size, high=size, basis=basis, lines=lines)


def _unprovided(name: str, actual: Quantity, note: str | None = None, split: dict[str, Quantity] | None = None) -> Part:
    return Part(part=name, provision=_ZERO, actual=actual, excess=actual, note=note, split=split or {})
