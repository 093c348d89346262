"""Answers of Prometheus' HTTP API: instant vectors and range vectors, whole, pretty-printed or cut.

Written by `curl …/api/v1/query_range`, promtool, Thanos, VictoriaMetrics (also its export lines with separate
`values` and `timestamps`). A sample:

    {"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"container_memory_usage_bytes",
    "pod":"cuzk-0"},"values":[[1773886571,"8352785044"],[1773886601,"9817342040"]]}]}}

Not read: scalars, native histograms. A series that lost its name in an expression is known by its values only.
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.samples.clocks import with_times
from postmortem_parsers.samples.guess import by_values
from postmortem_parsers.samples.names import Counter, lookup
from postmortem_parsers.samples.prometheus_text import counter_of, subject_of
from postmortem_parsers.samples.rows import add_samples, skip

__all__ = ["PrometheusJsonParser"]

# Read by its parts, not as one document: an export that was cut still holds its samples.
_METRIC = re.compile(r'"metric"\s*:\s*(\{[^{}]*\})')
_PAIR = r'\[\s*[0-9.]+\s*,\s*"[^"]*"\s*\]'
_NAME = re.compile(r'"__name__"\s*:\s*"([^"]*)"')
_ANSWER = re.compile(r'"resultType"\s*:|"metric"\s*:\s*\{[^{}]*\}\s*,\s*"values?"\s*:')
_EXPORT = re.compile(r'"values"\s*:\s*\[([^\]"]*)\]\s*,\s*"timestamps"\s*:\s*\[([0-9,\s]*)\]?')
_ROWS = {"stamp": pl.String, "cell": pl.String}


class PrometheusJsonParser:
    """Range and instant vectors."""

    name: ClassVar[str] = "samples_prometheus_json"
    reads: ClassVar[str] = "Prometheus API answers (query, query_range) and VictoriaMetrics export lines"
    example: ClassVar[str] = '{"metric":{"__name__":"container_memory_rss"},"values":[[1773886571,"8352785044"]]}'
    priority: ClassVar[int] = 48  # before JSON lines
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """Whether the stream begins as JSON and holds vectors."""
        text = "\n".join(head.lines)
        begins = text.lstrip("\ufeff \n\t")[:1] in ("{", "[")
        return 0.95 if begins and (_ANSWER.search(text) or _EXPORT.search(text)) else 0.0

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Everything: a document has no lines of its own."""
        del context
        return pl.repeat(value=True, n=lines.height, eager=True, dtype=pl.Boolean)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `samples`; a sample's line is that of its series' beginning."""
        tables = Tables()
        text = "\n".join(lines["text"].to_list())
        numbers = lines["line"].to_list()
        heads = list(_METRIC.finditer(text))
        ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
        parts = [(head.start(), head[1], _pairs(text[head.end() : end])) for head, end in zip(heads, ends, strict=True)]
        read = [(numbers[text.count("\n", 0, at)], labels, pairs) for at, labels, pairs in parts if pairs.height]
        if not read:
            skip(context, lines.head(1), "no samples in this answer")
            return tables
        for (line, labels, pairs), counter in zip(read, _counters(read, context), strict=True):
            if counter is None:
                continue
            cells = with_times(pairs, "stamp").with_columns(
                line=pl.lit(line, pl.Int64),
                text=pl.lit(labels),
                metric=pl.lit(counter.metric),
                scope=pl.lit(counter.scope),
                subject=pl.lit(subject_of(labels), pl.String),
                unit=pl.lit(counter.unit, pl.Int64),
                exact=pl.lit(counter.exact),
            )
            add_samples(tables, cells, context)
        return tables


def _pairs(text: str) -> pl.DataFrame:
    """Stamps and values behind a series' labels, as pairs or (VictoriaMetrics' export) as two arrays."""
    if arrays := _EXPORT.search(text):
        values, stamps = (array.replace(" ", "").split(",") for array in arrays.groups())
        length = min(len(values), len(stamps))
        return pl.DataFrame({"stamp": stamps[:length], "cell": values[:length]}, schema=_ROWS)
    pairs = pl.Series([text]).str.extract_all(_PAIR).explode().drop_nulls()
    cells = {"stamp": pairs.str.extract(r"([0-9.]+)", 1), "cell": pairs.str.extract(r'"([^"]*)"', 1)}
    return pl.DataFrame(cells, schema=_ROWS)


def _counters(read: list[tuple[int, str, pl.DataFrame]], context: Context) -> list[Counter | None]:
    """What each series is: by its name, by the file's name, else by its values."""
    names = [found[1] if (found := _NAME.search(labels)) else None for _, labels, _ in read]
    file_counter = lookup(re.sub(r"\.\w+$", "", context.name))
    nameless = {str(i): read[i][2]["cell"] for i, name in enumerate(names) if name is None}
    guessed = by_values(nameless) if nameless and file_counter is None else {}
    counters: list[Counter | None] = []
    for i, name in enumerate(names):
        if name is not None:
            counters.append(counter_of(name, read[i][1]))
        else:
            counters.append(file_counter or (Counter(guessed[str(i)]) if str(i) in guessed else None))
        found = counters[-1]
        how = "" if name or file_counter else " by its values"
        meaning = f"taken for {found.metric} ({found.scope}){how}" if found else "not read"
        sentence = f"{name or 'a series without name'}: {meaning}"
        if sentence not in context.columns:
            context.columns.append(sentence)
    return counters
