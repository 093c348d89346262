"""Which lines of a chunk are the kernel's: those in its dress, and the bare lines of a report.

A bare line counts when it begins with words that only a kernel prints (an anchor), or when it has the shape of what
follows such a line (a stats block, a task table, a call trace) and stands in the section that the anchor opened.
So a dump of memory.stat, a table of processes or a text about the OOM killer is left to others.
"""

import polars as pl

from postmortem_parsers.kernel_log.dress import undress
from postmortem_parsers.kernel_log.words import ANCHORS, ANY_ANCHOR, ROUGH, SECTIONS, SHAPES

__all__ = ["claimed_lines"]

_FACILITY = r"kern\s*:\s*(?:emerg|alert|crit|err|error|warn|warning|notice|info|debug)\s*:"
_OWN_DRESS = "|".join(
    (
        r"^\s*(?:<\d{1,3}>)?\s*\[\s*\d{1,9}\.\d{3,9}\]",
        r"^\s*\[\s*\+\d+\.\d+\] ",
        r"^\s*(?:<\d{1,3}>)?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d ",
        rf"^\s*(?:[\w.-]+:\s+)?{_FACILITY}",
        r"^\s*(?:<\d{1,3}>)?(?:\p{L}{3} )?(?:\p{L}{3,5}\.?\s+\d{1,2} \d\d:\d\d:\d\d(?:\.\d+)?|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*(?: UTC)?|\d{10}\.\d{6})\s+(?:[\w.%-]+\s+)?kernel:",
        r"^\s*(?:<\d{1,3}>)1 \S+ \S+ kernel ",
        r"^\S+ (?:stdout|stderr) [FP] (?:<\d+>)?\[\s*\d{1,9}\.\d{6}\]",
        r"^\s*[\w.-]{1,80}\s+\| \[\s*\d{1,9}\.\d{6}\]",
    )
)
_JSON_DRESS = (
    r'"(?:SYSLOG_IDENTIFIER|_TRANSPORT|ident|appname)"\s*:\s*"kernel"|'
    r'"(?:MESSAGE|log|message|msg)"\s*:\s*"(?:<\d+>)?(?:kernel: )?\[\s*\d{1,9}\.\d{6}\]'
)
_OTHER_PROGRAM = r"^\s*\[\s*\d+\.\d+\]\s+[\w.-]+\s+[\w@.-]+\[\d+\]:"
# Apache's error log wears dmesg -T's dress too: it counts only beside words of the kernel.
_SHARED_DRESS = r"^\s*(?:[^\[]{0,40})\[(?:\p{L}{2,6}\.?\s+\p{L}{2,6}\.?\s+\d{1,2}\s\d\d:\d\d:\d\d\s\d{4}|\p{L}{3,5}\.?\s*\d{1,2} \d\d:\d\d)\]"
_REACH = 5000
"""Lines that a section may be long; the longest task tables seen have about as many rows."""


def _anchor_kinds(lines: pl.DataFrame, own: pl.Series) -> pl.DataFrame:
    """Row numbers and kinds of the anchors, dressed or bare."""
    rough = lines.with_row_index("row").filter(pl.col("text").str.contains(ROUGH))
    if not rough.height:
        return pl.DataFrame(schema={"row": pl.UInt32, "kind": pl.String, "dressed": pl.Boolean})
    words = undress(rough.select(pl.col("row").cast(pl.Int64).alias("line"), "text"))
    words = words.filter(pl.col("message").str.contains(ANY_ANCHOR) & ~_foreign())
    kind = pl.coalesce(
        pl.when(pl.col("message").str.contains(pattern)).then(pl.lit(name)) for name, pattern in ANCHORS.items()
    )
    kinds = words.select(pl.col("line").cast(pl.UInt32).alias("row"), kind.alias("kind"))
    # Of an entry that holds a whole report, the last anchor says what may follow.
    kinds = kinds.unique("row", keep="last", maintain_order=True)
    return kinds.with_columns(own.gather(kinds["row"]).alias("dressed"))


def _foreign() -> pl.Expr:
    """Lines of another program that quotes the kernel (systemd, a monitor's tag)."""
    return pl.col("tag").is_not_null() & ~pl.col("tag").is_in(["kernel", "kmsg", "syslog", "dmesg"])


def _own_dress(text: pl.Series) -> pl.Series:
    """Lines in a dress that only the kernel's log wears; JSON is looked into only where it is JSON."""
    json = text.str.contains(r"^\s*\{")
    frame = pl.DataFrame({"text": text, "json": json})
    return frame.select(
        pl.when(pl.col("json"))
        .then(pl.when(pl.col("json")).then(pl.col("text")).str.contains(_JSON_DRESS))
        .otherwise(
            pl.when(~pl.col("json")).then(pl.col("text")).str.contains(_OWN_DRESS)
            & ~pl.col("text").str.contains(_OTHER_PROGRAM)
        )
        .fill_null(value=False)
        .alias("own")
    ).to_series()


def _in_sections(lines: pl.DataFrame, anchors: pl.DataFrame, own: pl.Series) -> pl.Series:
    """Bare lines whose shape fits the section that the last anchor opened."""
    sections = anchors.with_columns(
        pl.col("kind").replace_strict(SECTIONS, default="", return_dtype=pl.String).alias("section"),
        pl.col("row").alias("anchor"),
    )
    frame = lines.select("text").with_row_index("row").join(sections, on="row", how="left")
    frame = frame.with_columns(pl.col("section", "anchor").forward_fill())
    near = (pl.col("row").cast(pl.Int64) - pl.col("anchor").cast(pl.Int64) <= _REACH) & (pl.col("section") != "")
    candidates = frame.filter(near & pl.col("kind").is_null() & ~own)
    if not candidates.height:
        return pl.Series([], dtype=pl.UInt32)
    words = undress(candidates.select(pl.col("row").cast(pl.Int64).alias("line"), "text"))
    words = words.join(candidates.select(pl.col("row").cast(pl.Int64).alias("line"), "section"), on="line", how="left")
    fits = pl.lit(value=False)
    for section, pattern in SHAPES.items():
        fits = fits | ((pl.col("section") == section) & pl.col("message").str.contains(pattern))
    return words.filter(fits & ~_foreign())["line"].cast(pl.UInt32).unique()


def _lead(lines: pl.DataFrame, anchors: pl.DataFrame) -> int:
    """How many lines at the beginning continue a report that began before the file (or the chunk) did."""
    first = int(anchors["row"][0])
    kind = anchors["kind"][0]
    shape = {"tasks": SHAPES["stats"], "oom_kill": SHAPES["tasks"], "kill": SHAPES["tasks"]}.get(kind)
    if shape is None or not 0 < first <= _REACH:
        return 0
    words = undress(lines.head(first).select("line", "text"))
    return first if words["message"].str.contains(shape).all() else 0


def _export_entries(lines: pl.DataFrame) -> pl.Series | None:
    """Of journalctl -o export, all lines of the entries whose transport is the kernel."""
    begins = lines["text"].str.starts_with("__CURSOR=")
    if not begins.any():
        return None
    own = lines["text"].is_in(["_TRANSPORT=kernel", "SYSLOG_IDENTIFIER=kernel"])
    frame = pl.DataFrame({"entry": begins.cum_sum(), "own": own})
    return frame.select(pl.col("own").any().over("entry") & (pl.col("entry") > 0)).to_series()


def claimed_lines(lines: pl.DataFrame) -> pl.Series:
    """Which of `lines` (line, text) are the kernel's."""
    text = lines["text"]
    own = _own_dress(text)
    exported = _export_entries(lines)
    if exported is not None:
        own = own | exported
    anchors = _anchor_kinds(lines, own)
    if not anchors.height:
        return own
    claimed = own.to_frame("own").with_row_index("row")
    rows = pl.concat([anchors["row"], _in_sections(lines, anchors, own)])
    lead = _lead(lines, anchors)
    hit = pl.col("own") | pl.col("row").is_in(rows.implode()) | (pl.col("row") < lead)
    shared = text.str.contains(_SHARED_DRESS)
    if shared.gather(anchors["row"]).any():
        hit = hit | shared
    return claimed.select(hit.alias("claimed")).to_series()
