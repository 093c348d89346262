"""The tables that parsers fill and the analysis reads.

Every table has `time` (UTC, microseconds; null where the line has none), `source` (index into the
run's sources) and `line` (1-based). Sizes are whole bytes. A size that was read from a rounded
field has the size of one step in the column's `_ulp` twin: the true value lies in [v, v + ulp)
for fields that round down (0 = exact).
"""

import polars as pl

__all__ = ["KEYS", "TABLES", "conform", "empty"]

_TIME = pl.Datetime("us", "UTC")
KEYS: dict[str, pl.DataType] = {"time": _TIME, "source": pl.Int32(), "line": pl.Int64()}

_SIZE = pl.Int64()
_TEXT = pl.String()


def _table(**columns: pl.DataType) -> pl.Schema:
    return pl.Schema({**KEYS, **columns})


TABLES: dict[str, pl.Schema] = {
    # op = alloc (an allocation is a checkout in one), checkout, checkin, free, alloc_failed, checkout_failed
    "pool": _table(
        op=_TEXT,
        size=_SIZE,
        free_remaining=pl.Int64(),
        total=_SIZE,
        buffers=pl.Int64(),  # ever allocated, as the daemon counts
    ),
    # op = init, acquire, release, blocked, checkpoint, evicted
    "budget": _table(
        op=_TEXT,
        amount=_SIZE,
        amount_ulp=_SIZE,
        used=_SIZE,
        used_ulp=_SIZE,
        available=_SIZE,
        available_ulp=_SIZE,
        total=_SIZE,
        total_ulp=_SIZE,
        uptime_s=pl.Float64(),  # for snapshots that carry no wall-clock time
    ),
    # op = load_start, load_end, evict, extract_start, extract_end; kind = srs, pce
    "resident": _table(op=_TEXT, kind=_TEXT, circuit=_TEXT, size=_SIZE, size_ulp=_SIZE, uptime_s=pl.Float64()),
    # op = start (daemon), ready, stop, enqueue, dispatch, synth_start, synth_pinned, synth_unpinned, synth_end,
    #      gpu_queue, gpu_pickup, gpu_start, prove_start_returned, gpu_end, done (partition), job_done, failed
    "work": _table(
        op=_TEXT,
        job=_TEXT,
        partition=pl.Int64(),
        worker=pl.Int64(),
        circuit=_TEXT,
        proof_kind=_TEXT,
        ms=pl.Int64(),
        count=pl.Int64(),
        offset_ms=pl.Int64(),  # since engine start, where that is the line's only clock
    ),
    # metric = current, limit, peak, anon, file, inactive_file, active_file, shmem, file_mapped, kernel,
    #   kernel_stack, pagetables, slab, slab_unreclaimable, percpu, sock, rss (v1: anonymous), cache, swap, rss_process,
    #   pss, pss_anon, pss_file, pss_shmem, swap_pss, pinned, locked, host_total, host_available, host_free, vram_used, vram_total, pids,
    #   oom, oom_kill, failcnt (counts, not bytes), psi_some_avg10, psi_full_avg10 (hundredths of a percent), …
    # scope = cgroup, process, host, gpu; subject = path, `pid:name`, GPU index …
    # `local_time` is true while the clock's zone is not known; `clock_only` when the day is unknown too
    "samples": _table(
        metric=_TEXT,
        value=_SIZE,
        value_ulp=_SIZE,
        scope=_TEXT,
        subject=_TEXT,
        local_time=pl.Boolean(),
        clock_only=pl.Boolean(),
    ),
    # One kernel (or userland killer's) report a row. Sizes in bytes. `uptime_s`: seconds since boot.
    "kills": _table(
        report=pl.Int64(),  # joins `tasks`
        killer=_TEXT,  # kernel, systemd-oomd, earlyoom, oomd, kubelet, …
        constraint=_TEXT,  # memcg, global, cpuset, memory_policy, userspace, null = not stated
        oom_memcg=_TEXT,
        task_memcg=_TEXT,
        victim=_TEXT,
        pid=pl.Int64(),
        uid=pl.Int64(),
        trigger=_TEXT,
        trigger_pid=pl.Int64(),
        usage=_SIZE,
        limit=_SIZE,  # null = none or not stated
        failcnt=pl.Int64(),
        swap_usage=_SIZE,
        swap_limit=_SIZE,
        kmem_usage=_SIZE,
        kmem_limit=_SIZE,
        total_vm=_SIZE,
        anon_rss=_SIZE,
        file_rss=_SIZE,
        shmem_rss=_SIZE,
        pgtables=_SIZE,
        oom_score_adj=pl.Int64(),
        oom_group=pl.Boolean(),
        # the stats block, normalised to v2 names
        stat_anon=_SIZE,
        stat_file=_SIZE,
        stat_shmem=_SIZE,
        stat_kernel=_SIZE,
        stat_pagetables=_SIZE,
        stat_inactive_file=_SIZE,
        stat_active_file=_SIZE,
        stat_file_mapped=_SIZE,
        host_total=_SIZE,
        page_size=_SIZE,
        complete=pl.Boolean(),
        hostname=_TEXT,
        uptime_s=pl.Float64(),
        local_time=pl.Boolean(),
        no_year=pl.Boolean(),
        first_line=pl.Int64(),
        last_line=pl.Int64(),
    ),
    # The task tables of kernel reports, in bytes (the kernel prints pages).
    "tasks": _table(
        report=pl.Int64(),
        pid=pl.Int64(),
        tgid=pl.Int64(),
        uid=pl.Int64(),
        name=_TEXT,
        total_vm=_SIZE,
        rss=_SIZE,
        rss_anon=_SIZE,
        rss_file=_SIZE,
        rss_shmem=_SIZE,
        pgtables=_SIZE,
        swap=_SIZE,
        oom_score_adj=pl.Int64(),
    ),
    # what = exit_code, signal, panic, cuda_error, xid, no_space, stop_request, stopped, client_error, client_timeout,
    #   killed_message (a shell's `Killed`), segfault, abort, container_oom, container_exit, operator_kill, finished, …
    # by = daemon, client, wrapper, shell, kernel, runtime
    "ends": _table(
        what=_TEXT,
        by=_TEXT,
        code=pl.Int64(),
        signal=pl.Int64(),
        name=_TEXT,
        pid=pl.Int64(),
        text=_TEXT,
        local_time=pl.Boolean(),
    ),
    # op = start, end
    "phases": _table(
        op=_TEXT,
        name=_TEXT,
        count=pl.Int64(),
        concurrency=pl.Int64(),
        proof_kind=_TEXT,
        completed=pl.Int64(),
        failed=pl.Int64(),
        seconds=pl.Float64(),
        local_time=pl.Boolean(),
    ),
    # what = warning, error, probe, limit_stated, host_total_stated, budget_stated, daemon_pid, boot_time, proof_done,
    #   arrival (`text` = file, `value` = lines that it held then: taken out again when the rows are dated), command,
    #   kernel_log (`text` = readable, or why not),
    #   restart, …; `value` in bytes (or a count/pid, as `what` says)
    "marks": _table(
        what=_TEXT,
        text=_TEXT,
        value=pl.Int64(),
        value_ulp=pl.Int64(),
        local_time=pl.Boolean(),
    ),
}


def empty(table: str) -> pl.DataFrame:
    """An empty frame of a table."""
    return pl.DataFrame(schema=TABLES[table])


def conform(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` with exactly the table's columns, in order and type; what is missing is null.

    Raises polars' SchemaError when a column holds values that do not fit its type.
    """
    schema = TABLES[table]
    missing = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in schema.items() if name not in frame.columns]
    return frame.with_columns(missing).select(pl.col(name).cast(dtype) for name, dtype in schema.items())


# The memory timeline that the analysis makes and the reports draw: one row a moment, in order of time.
# Sizes in bytes, null where nothing is known. The stacked parts add up to `unreclaimable` where that is known;
# `reclaimable` lies on top of them, up to `charged`.
TIMELINE = pl.Schema(
    {
        "time": _TIME,
        "attempt": pl.Int32(),
        "resident": _SIZE,  # SRS and PCE tables
        "working_set": _SIZE,  # heap and covered pinned bytes of live partitions
        "pinned_uncovered_in_use": _SIZE,
        "pool_idle": _SIZE,
        "transient": _SIZE,
        "overhead": _SIZE,
        "neighbour": _SIZE,
        "reclaimable": _SIZE,
        "unreclaimable": _SIZE,
        "charged": _SIZE,  # measured; null between samples
        "limit": _SIZE,
        "budget": _SIZE,
        "reserved": _SIZE,
        "pool_total": _SIZE,
        "pool_in_use": _SIZE,
        "buffers_alive": pl.Int64(),
        "free_remaining": pl.Int64(),
        "live_partitions": pl.Int64(),
        "jobs_done": pl.Int64(),
    }
)
