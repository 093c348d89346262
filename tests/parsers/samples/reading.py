"""Reading a sample file as the reader does, for tests: decompressed, decoded, colour codes and CRs removed."""

import gzip
import re
from pathlib import Path

import polars as pl

from postmortem.schema import empty
from postmortem_parsers.interface import Context, Head, Tables

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def lines_of(text):
    """DataFrame(line, text) of a text."""
    parts = _ANSI.sub("", text.replace("\r", "")).split("\n")
    if parts and parts[-1] == "":
        parts.pop()
    return pl.DataFrame({"line": range(1, len(parts) + 1), "text": parts}, schema={"line": pl.Int64, "text": pl.String})


def bytes_of(path):
    """A file's content, unpacked."""
    raw = Path(path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    return raw


def read_file(path):
    """DataFrame(line, text) of a file, packed or not."""
    return lines_of(bytes_of(path).decode("utf-8", "replace"))


class Read:
    """What a parser made of a stream."""

    def __init__(self, parser, lines, name="x", chunk=None, cut=False):
        self.context = Context(source=0, name=name, profile=None, cut_line=lines.height if cut else None)
        self.sure = parser.sniff(Head(lines["text"].to_list()[:1000], name))
        self.tables = Tables()
        self.claimed = 0
        step = chunk or max(lines.height, 1)
        held = []
        for start in range(0, lines.height if self.sure else 0, step):
            part = lines.slice(start, step)
            mine = part.filter(parser.claim(part, self.context))
            self.claimed += mine.height
            if parser.whole:
                held.append(mine)
            else:
                self.tables.update(parser.parse(mine, self.context))
        if held:
            self.tables.update(parser.parse(pl.concat(held), self.context))
        self.unmatched = lines.filter(pl.col("text").str.strip_chars() != "").height - self.claimed

    @property
    def samples(self):
        found = self.tables.get("samples")
        return empty("samples") if found is None else found

    @property
    def marks(self):
        found = self.tables.get("marks")
        return empty("marks") if found is None else found

    def values(self, metric, **where):
        rows = self.samples.filter(pl.col("metric") == metric)
        for column, value in where.items():
            rows = rows.filter(pl.col(column) == value)
        return rows["value"].to_list()


def read_text(parser, text, **options):
    """`Read` of a text."""
    return Read(parser, lines_of(text), cut=not text.endswith("\n"), **options)
