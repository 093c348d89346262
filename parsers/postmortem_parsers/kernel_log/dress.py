"""Takes the head off log lines: what stands before the kernel's (or a unit's) own words.

Reads dmesg (plain, -T, -H, -x, --time-format iso, any locale), syslog (RFC 3164, RFC 5424, rsyslog ISO),
journalctl -o short/short-iso/short-precise/short-full/short-unix/short-monotonic, Talos, CONFIG_PRINTK_CALLER's
`[T14021]`, and through `wrappers` what shippers put around them.
Sample: `kern  :warn  : [812432.250520][T14021] Out of memory: Killed process 7 (x) total-vm:…`.
Not read: syslog lines whose program is neither the kernel nor marked by `[pid]` or known by name.
"""

import dataclasses

import polars as pl

from postmortem_parsers.kernel_log.stamps import ctime_stamp, epoch_stamp, iso_stamp, yearless_stamp
from postmortem_parsers.kernel_log.wrappers import unwrap

__all__ = ["KERNEL_DRESSES", "undress"]

_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\s?UTC|[+-]\d\d:?\d\d)?"
_YEARLESS = r"\p{L}{3,5}\.?\s+\d{1,2} \d\d:\d\d:\d\d(?:\.\d+)?"
_FACILITY = r"(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d)\s*:\s*(?:emerg|alert|crit|err|error|warn|warning|notice|info|debug)\s*:\s*"
_PRIORITY = rf"^\s*(?:<\d{{1,3}}>)?\s*(?:[\w.-]+:\s+)?(?:{_FACILITY})?"
_NAMED = r"earlyoom|nohang|oomd|systemd-oomd|kubelet|containerd|dockerd|docker|systemd|sudo|crio"
_TAG = rf"(?P<tag>kernel|[\w@./()-]+\[\d+\]|{_NAMED})"
_CALLER = r"(?:\s*\[\s*(?P<caller>[TC]\d+)\])?"


@dataclasses.dataclass(frozen=True)
class _Head:
    """One way to begin a line; the pattern's groups say what it holds."""

    dress: str
    pattern: str


_DMESG = _Head("dmesg", rf"{_PRIORITY}\[\s*(?P<uptime>\d{{1,9}}\.\d{{3,9}})\]{_CALLER}\s?(?P<message>.*)$")
_HEADS = (
    _Head(
        "rfc5424",
        rf"^\s*(?:<\d{{1,3}}>)?1 (?P<iso>{_ISO}) (?P<host>\S+) (?P<tag>\S+) \S+ \S+ (?:-|\[.*?\])\s(?P<message>.*)$",
    ),
    _Head(
        "monotonic",
        r"^\s*\[\s*(?P<uptime>\d{1,9}\.\d{6})\] (?P<host>[\w.-]+) (?P<tag>kernel|[\w@.-]+\[\d+\]): (?P<message>.*)$",
    ),
    _DMESG,
    _Head("dmesg", rf"{_PRIORITY}\[\s*(?P<caller>[TC]\d+)\]\s?(?P<message>.*)$"),
    _Head("dmesg", rf"{_PRIORITY}(?P<iso>\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{{6}}[+-]\d\d:\d\d)\s(?P<message>.*)$"),
    _Head("talos", rf"{_PRIORITY}\[(?P<iso>{_ISO})\]:\s?(?P<message>.*)$"),
    _Head(
        "ctime",
        rf"{_PRIORITY}\[(?P<ctime>\p{{L}}{{2,6}}\.?\s+\p{{L}}{{2,6}}\.?\s+\d{{1,2}}\s\d\d:\d\d:\d\d\s\d{{4}})\]{_CALLER}\s?(?P<message>.*)$",
    ),
    _Head("human", rf"{_PRIORITY}\[(?P<human>\p{{L}}{{3,5}}\.?\s*\d{{1,2}} \d\d:\d\d)\]\s?(?P<message>.*)$"),
    _Head("human", rf"{_PRIORITY}\[\s*\+\s*(?P<delta>\d+\.\d+)\]\s?(?P<message>.*)$"),
    _Head("syslog", rf"{_PRIORITY}(?P<yearless>{_YEARLESS})\s+(?:(?P<host>[\w.%-]+)\s+)??{_TAG}:\s?(?P<message>.*)$"),
    _Head(
        "syslog",
        rf"{_PRIORITY}(?:\p{{L}}{{3}} )?(?P<iso>{_ISO})\s+(?:(?P<host>[\w.%-]+)\s+)??{_TAG}:\s?(?P<message>.*)$",
    ),
    _Head("syslog", rf"^(?P<unix>\d{{10}}\.\d{{6}}) (?P<host>[\w.%-]+) {_TAG}: (?P<message>.*)$"),
    _Head("stamped", rf"{_PRIORITY}(?P<iso>{_ISO})\s+(?P<message>.*)$"),
    _Head("stamped", rf"{_PRIORITY}(?P<yearless>{_YEARLESS})\s+(?P<message>.*)$"),
    _Head(
        "dmesg", rf"^.{{1,200}}?\s\[\s*(?P<uptime>\d{{1,9}}\.\d{{6}})\]{_CALLER}\s(?P<message>.*)$"
    ),  # a hypervisor's log of its guest
    _Head("tagged", r"^(?:<\d{1,3}>)?(?P<tag>kernel): (?P<message>.*)$"),
    _Head("priority", r"^<\d{1,3}>(?P<message>.*)$"),
)
_FIELDS = ("uptime", "iso", "yearless", "ctime", "human", "delta", "unix", "host", "tag", "caller", "message")

KERNEL_DRESSES = ("dmesg", "monotonic", "talos", "ctime", "human", "tagged", "priority")
"""Heads that only a kernel log wears (`ctime` and `human` nearly so)."""


def _try(head: _Head, frame: pl.DataFrame, pending: pl.Expr) -> pl.DataFrame:
    # Most heads are on no line at all, and to find that out is far cheaper than to take one off.
    wears = pl.col("message").str.contains(head.pattern)
    if not frame.select((pending & wears).any()).item():
        return frame
    groups = pl.when(pending).then(pl.col("message")).str.extract_groups(head.pattern).struct
    named = {name for name in _FIELDS if f"?P<{name}>" in head.pattern}
    frame = frame.with_columns(
        (groups.field(name) if name in named else pl.lit(None, pl.String)).alias(f"new_{name}") for name in _FIELDS
    )
    hit = pl.col("new_message").is_not_null()
    return frame.with_columns(
        pl.when(hit).then(pl.lit(head.dress)).otherwise(pl.col("dress")).alias("dress"),
        hit.or_(pl.col("done")).alias("done"),
        *(pl.coalesce(f"new_{name}", name).alias(name) for name in _FIELDS),
    )


def _heads(frame: pl.DataFrame) -> pl.DataFrame:
    """Takes one head off, then the kernel's own stamp behind it (`host kernel: [12.345678][T7] …`)."""
    columns = [pl.lit(None, pl.String).alias(name) for name in _FIELDS if name != "message"]
    frame = frame.with_columns(
        *columns, pl.col("text").alias("message"), pl.lit(None, pl.String).alias("dress"), pl.lit(False).alias("done")
    )
    for head in _HEADS:
        frame = _try(head, frame, ~pl.col("done"))
    outer = pl.col("dress").is_in(["rfc5424", "syslog", "stamped", "monotonic", "tagged", "priority"])
    inner = dataclasses.replace(_DMESG, dress="dmesg")
    return _try(inner, frame, outer).with_columns(
        pl.when(pl.col("tag").is_not_null()).then(pl.lit("syslog")).otherwise(pl.col("dress")).alias("dress")
    )


def _human_time(frame: pl.DataFrame) -> pl.DataFrame:
    """Times of dmesg -H: `[Mar 3 14:02]` to the minute, then `[  +0.000003]` after the line before."""
    if frame["delta"].null_count() == frame.height:
        return frame.with_columns(pl.lit(None, pl.Datetime("us", "UTC")).alias("human_time"))
    entry = pl.col("human").is_not_null().cum_sum()
    micros = (pl.col("delta").cast(pl.Float64, strict=False) * 1e6).round().cast(pl.Int64).fill_null(0)
    frame = frame.with_columns(
        yearless_stamp(pl.col("human")).struct.field("time").forward_fill().alias("base"), entry.alias("entry")
    )
    since = pl.duration(microseconds=micros.cum_sum().over("entry"))
    return frame.with_columns(pl.when(pl.col("delta").is_not_null()).then(pl.col("base") + since).alias("human_time"))


def _timed(frame: pl.DataFrame) -> pl.DataFrame:
    frame = _human_time(frame)
    stamps = [iso_stamp(pl.col("iso")), yearless_stamp(pl.coalesce("yearless", "human")), ctime_stamp(pl.col("ctime"))]
    stamps.append(epoch_stamp(pl.col("unix")))
    frame = frame.with_columns(stamp.alias(f"stamp_{number}") for number, stamp in enumerate(stamps))
    flags = {"local_time": pl.col("w_local"), "no_year": pl.lit(None, pl.Boolean)}
    human = pl.col("human_time").is_not_null()
    picked: dict[str, pl.Expr] = {}
    for name, fallback in flags.items():
        chain = pl.when(human).then(pl.lit(True))
        for number in range(len(stamps)):
            stamp = pl.col(f"stamp_{number}").struct
            chain = chain.when(stamp.field("time").is_not_null()).then(stamp.field(name))
        picked[name] = chain.otherwise(fallback).fill_null(False)
    times = [pl.col(f"stamp_{number}").struct.field("time") for number in range(len(stamps))]
    own = pl.coalesce("human_time", *times)
    # A shipper's clock names its zone; it is better than a syslog stamp without one, later by at most the shipping.
    vague = own.is_null() | picked["local_time"] & pl.col("w_time").is_not_null() & ~pl.col("w_local").fill_null(True)
    return frame.with_columns(
        pl.when(vague).then(pl.col("w_time")).otherwise(own).alias("time"),
        pl.when(vague).then(pl.col("w_local").fill_null(False)).otherwise(picked["local_time"]).alias("local_time"),
        pl.when(vague).then(pl.lit(False)).otherwise(picked["no_year"]).alias("no_year"),
        pl.coalesce(pl.col("uptime").cast(pl.Float64, strict=False), "w_uptime").alias("uptime_s"),
        pl.coalesce("host", "w_host").alias("hostname"),
        pl.coalesce(pl.col("tag").str.replace(r"\[\d+\]$", ""), "w_tag").alias("tag"),
    )


def undress(lines: pl.DataFrame) -> pl.DataFrame:
    """What each line of `lines` (line, text) says, and when, where and by whom, as its head has it.

    Columns: line, message (stripped), time (UTC), local_time, no_year, uptime_s (s), hostname, tag (program),
    caller (`T14021`, `C3`), dress (null: none). A folded line gives several rows.
    """
    frame = _timed(_heads(unwrap(lines)))
    return frame.select(
        "line",
        pl.col("message").fill_null("").str.strip_chars(),
        "time",
        "local_time",
        "no_year",
        "uptime_s",
        "hostname",
        "tag",
        "caller",
        pl.when((pl.col("tag") == "kernel") & pl.col("dress").is_null())
        .then(pl.lit("syslog"))
        .otherwise(pl.col("dress"))
        .alias("dress"),
    )
