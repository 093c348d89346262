"""Metrics pages in Prometheus' text format: one page, or a loop over `curl …/metrics` under time lines.

Written by cAdvisor, kubelet, node_exporter, kube-state-metrics, DCGM exporter, `below dump -O openmetrics`, client
libraries. A sample:

    # TYPE container_memory_usage_bytes gauge
    container_memory_usage_bytes{container="cuzk",pod="cuzk-0"} 3.66360710349e+11 1773886571000

Not read: series whose names we do not know, OpenMetrics' exemplars.
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import DATED, EPOCH, with_times
from postmortem_parsers.samples.names import COUNTS, Counter, lookup
from postmortem_parsers.samples.rows import add_samples, skip

__all__ = ["PrometheusTextParser", "counter_of", "subject_of"]

_TIME_LINE = rf"^(?:[-=#*]+ *|\[)?({DATED}|{EPOCH})\]?:?(?: *[-=#*]+)?$"
_SERIES = r"^([A-Za-z_:][A-Za-z0-9_:]*)(\{.*\})? +([0-9.eE+-]+|NaN|[+-]Inf)(?: +([0-9]{10,13}(?:\.[0-9]+)?))?$"
_CUT = r"^[A-Za-z_:][A-Za-z0-9_:]*\{[^}]*$|^[A-Za-z_:][A-Za-z0-9_:]*(?:\{.*\})? *$"
_COMMENT = r"^# (?:HELP|TYPE|UNIT|EOF)"
_SHAPES = f"(?:{_TIME_LINE})|(?:{_SERIES})|(?:{_COMMENT})"
# What tells a page from any other `name value` lines, a memory.stat for example.
_EXPORTER = re.compile(r"^(?:container|node|process|kube|DCGM|machine)_|^\w+\{.*=")
_MEMORY = re.compile(r"memory|oom|fb_used|DCGM_FI_DEV_FB", re.IGNORECASE)


class PrometheusTextParser:
    """Series whose names are counters of memory."""

    name: ClassVar[str] = "samples_prometheus_text"
    reads: ClassVar[str] = "Prometheus text pages (cAdvisor, kubelet, node_exporter, DCGM), also in a loop"
    example: ClassVar[str] = 'container_memory_usage_bytes{container="cuzk"} 3.66360710349e+11 1773886571000'
    priority: ClassVar[int] = 50
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """The share of lines of the format, where at least one series is a counter that we know."""
        text = [line.strip() for line in head.lines if line.strip()]
        fits = [re.match(_SERIES, line) for line in text]
        known = any(m and _EXPORTER.match(m[0]) and _MEMORY.search(m[1]) and lookup(m[1]) for m in fits)
        comments = sum(bool(re.match(_COMMENT, line) or re.match(_TIME_LINE, line)) for line in text)
        share = (sum(m is not None for m in fits) + comments) / len(text) if text else 0.0
        return share if known and share >= 0.8 else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Series, comments, time lines, and a series that was cut."""
        del context
        return lines["text"].str.strip_chars().str.contains(f"{_SHAPES}|(?:{_CUT})")

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples`; a series' own time stamp goes before the time line above it."""
        tables = Tables()
        text = pl.col("text")
        rows = lines.with_columns(text.str.strip_chars())
        rows = with_times(rows.with_columns(above=text.str.extract(_TIME_LINE, 1).forward_fill()), "above")
        skip(context, rows.filter(text.str.contains(_CUT) & ~text.str.contains(_SHAPES)), "cut off: no value")
        series = rows.with_columns(
            name=text.str.extract(_SERIES, 1),
            labels=text.str.extract(_SERIES, 2).fill_null("{}"),
            cell=text.str.extract(_SERIES, 3),
            own=text.str.extract(_SERIES, 4),
        ).filter(pl.col("name").is_not_null())
        kinds = series.select("name", "labels").unique(maintain_order=True)
        known = [(n, lab, c) for n, lab in kinds.iter_rows() if (c := counter_of(n, lab)) is not None]
        for name in dict.fromkeys(n for n, _, _ in known):
            counter = next(c for n, _, c in known if n == name)
            unit = "a count" if counter.metric in COUNTS else "in bytes"
            context.columns.append(f"{name}: taken for {counter.metric} ({counter.scope}), {unit}")
        meanings = pl.DataFrame(
            [(n, lab, c.metric, c.scope, subject_of(lab), c.unit, c.exact) for n, lab, c in known],
            schema={
                **dict.fromkeys(("name", "labels", "metric", "scope", "subject"), pl.String),
                "unit": pl.Int64,
                "exact": pl.Boolean,
            },
            orient="row",
        )
        cells = series.join(meanings, on=["name", "labels"], how="inner", maintain_order="left")
        stamped = with_times(cells.filter(pl.col("own").is_not_null()), "own")
        add_samples(tables, cells.filter(pl.col("own").is_null()), context)
        add_samples(tables, stamped, context)
        return tables


def counter_of(name: str, labels: str) -> Counter | None:
    """The counter of a series; kube-state-metrics keeps limits of all resources under one name."""
    if name == "kube_pod_container_resource_limits" and not re.search(r'resource["\s]*[=:]\s*"memory"', labels):
        return None
    return lookup(name) if _MEMORY.search(name) or name.startswith("kube_pod_container_resource") else None


def subject_of(labels: str) -> str | None:
    """Who a series is about: pod and container, else the first label that names something."""
    pairs = dict(re.findall(r'"?([A-Za-z_]\w*)"?\s*[=:]\s*"([^"]*)"', labels))
    pod = "/".join(pairs[key] for key in ("namespace", "pod", "container") if pairs.get(key))
    if pod:
        return pod
    return next((pairs[key] for key in ("name", "gpu", "UUID", "id", "cgroup", "instance") if pairs.get(key)), None)
