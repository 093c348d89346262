r"""What log shippers put around a whole kernel line: JSON, containerd's and compose's line dress, journal export.

Docker's json-file, fluent-bit/Loki/vector JSON, `journalctl -o json`, `journalctl -o export`, CRI log files
(`2026-03-03T14:02:11.1Z stderr F …`), `docker compose logs` (`svc-1  | …`), rsyslog's `#012` for line feeds,
mail quotes and grep's file and line markers. Not read: binary journal files.
Sample: `{"log":"[ 12.345678] Out of memory: Killed process 7 (x) …\n","stream":"stderr","time":"…"}`.
"""

import msgspec
import polars as pl

from postmortem_parsers.kernel_log.stamps import epoch_stamp, iso_stamp

__all__ = ["EXPORT_FIELD", "HEAD_START", "unwrap"]

HEAD_START = (
    r"<\d{1,3}>|\[\s*\d{1,9}\.\d{3,9}\]|\[\s*\+\d+\.\d+\]|\[\p{L}{2,5}\.?\s+\p{L}{2,5}\.?\s+\d{1,2}\s\d\d:\d\d:\d\d \d{4}\]"
    r"|\p{L}{3,5}\.?\s+\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|kern\s*:"
)
EXPORT_FIELD = r"^(_?_?[A-Z][A-Z0-9_]+)=(.*)$"

_CRI = r"^(\d{4}-\d\d-\d\dT\S+) (?:stdout|stderr) ([FP]) (.*)$"
_COMPOSE = r"^\s*[\w.-]{1,80}\s+\| (.*)$"
# The quote and grep marks are taken off only before something that begins like a log head.
_MARKS = rf"^[>|\s]*(?:[\w./~-]{{1,120}}[:-])??(?:\d{{1,8}}[:-])?\s*((?:{HEAD_START}).*)$"
_QUOTE = r"^(?:>\s?)+"
_TEXT_KEYS = ("MESSAGE", "log", "message", "msg", "Message")
_TIME_KEYS = ("time", "@timestamp", "timestamp", "ts", "_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP")
_HOST_KEYS = ("_HOSTNAME", "hostname", "host", "node_name")
_TAG_KEYS = ("SYSLOG_IDENTIFIER", "ident", "appname", "_COMM", "_TRANSPORT")
_UPTIME_KEYS = ("_SOURCE_BOOTTIME_TIMESTAMP", "_SOURCE_MONOTONIC_TIMESTAMP")

_WRAP = {
    "w_time": pl.Datetime("us", "UTC"),
    "w_local": pl.Boolean(),
    "w_uptime": pl.Float64(),
    "w_host": pl.String(),
    "w_tag": pl.String(),
}


def _first(entry: dict[str, object], keys: tuple[str, ...]) -> object:
    return next((entry[key] for key in keys if entry.get(key) not in (None, "")), None)


def _text(value: object) -> str | None:
    """A message; the journal writes one that is not UTF-8 as a list of byte values."""
    if isinstance(value, str):
        return value
    try:
        return bytes(msgspec.convert(value, list[int])).decode("utf-8", "replace")
    except (msgspec.ValidationError, ValueError):
        return None


def _decode(text: str) -> dict[str, object]:
    try:
        entry = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    uptime = _first(entry, _UPTIME_KEYS)
    host, tag = _first(entry, _HOST_KEYS), _first(entry, _TAG_KEYS)
    stamp = _first(entry, _TIME_KEYS)
    return {
        "inner": _text(_first(entry, _TEXT_KEYS)),
        "stamp": str(stamp) if isinstance(stamp, str | int | float) else None,
        "w_uptime": int(uptime) / 1e6 if isinstance(uptime, str) and uptime.isdecimal() else None,
        "w_host": host if isinstance(host, str) else None,
        "w_tag": tag if isinstance(tag, str) else None,
    }


_DECODED = pl.Struct(
    {"inner": pl.String, "stamp": pl.String, "w_uptime": pl.Float64, "w_host": pl.String, "w_tag": pl.String}
)


def _wrap_time(stamp: pl.Expr) -> pl.Expr:
    """Microseconds (16 digits) as the journal writes them, else ISO."""
    micros = stamp.str.contains(r"^\d{15,17}$")
    epoch = epoch_stamp((stamp.cast(pl.Int64, strict=False) / 1e6).cast(pl.String))
    return pl.when(micros).then(epoch).otherwise(iso_stamp(stamp))


def _from_json(frame: pl.DataFrame) -> pl.DataFrame:
    looks = pl.col("text").str.contains(r"^\s*\{.*\}\s*$") & pl.col("text").str.contains(
        r'"(?:MESSAGE|log|message|msg|Message)"'
    )
    if not frame.select(looks.any()).item():
        return frame
    decoded = pl.when(looks).then(pl.col("text")).map_elements(_decode, return_dtype=_DECODED, skip_nulls=True)
    frame = frame.with_columns(decoded.alias("json")).with_columns(
        pl.col("json").struct.field("inner").alias("inner"),
        _wrap_time(pl.col("json").struct.field("stamp")).alias("stamp"),
    )
    taken = pl.col("inner").is_not_null()
    return frame.with_columns(
        pl.when(taken).then(pl.col("inner").str.strip_chars_end()).otherwise(pl.col("text")).alias("text"),
        pl.when(taken).then(pl.col("stamp").struct.field("time")).otherwise(pl.col("w_time")).alias("w_time"),
        pl.when(taken).then(pl.col("stamp").struct.field("local_time")).otherwise(pl.col("w_local")).alias("w_local"),
        pl.coalesce(pl.col("json").struct.field("w_uptime"), "w_uptime").alias("w_uptime"),
        pl.coalesce(pl.col("json").struct.field("w_host"), "w_host").alias("w_host"),
        pl.coalesce(pl.col("json").struct.field("w_tag"), "w_tag").alias("w_tag"),
    ).select("line", "text", *_WRAP)


def _from_cri(frame: pl.DataFrame) -> pl.DataFrame:
    """CRI logs: containerd cuts lines at 16 KiB: parts marked P go before the next F."""
    parts = frame.with_columns(
        pl.col("text").str.extract(_CRI, 1).alias("stamp"),
        pl.col("text").str.extract(_CRI, 2).alias("flag"),
        pl.col("text").str.extract(_CRI, 3).alias("rest"),
    )
    if parts["flag"].null_count() == parts.height:
        return frame
    parts = parts.with_columns(
        pl.coalesce("rest", "text").alias("text"),
        pl.coalesce(iso_stamp(pl.col("stamp")).struct.field("time"), "w_time").alias("w_time"),
        pl.when(pl.col("stamp").is_not_null()).then(pl.lit(False)).otherwise(pl.col("w_local")).alias("w_local"),
        (pl.col("flag").shift(1).fill_null("F") != "P").cum_sum().alias("entry"),
    )
    joined = parts.group_by("entry", maintain_order=True).agg(
        pl.col("line").first(), pl.col("text").str.join(""), *(pl.col(name).first() for name in _WRAP)
    )
    return joined.select("line", "text", *_WRAP)


def _from_export(frame: pl.DataFrame) -> pl.DataFrame:
    """Entries of journalctl -o export: one `KEY=value` a line, entries begin with `__CURSOR=`."""
    if not frame["text"].str.starts_with("__CURSOR=").any():
        return frame
    keyed = frame.with_columns(
        pl.col("text").str.extract(EXPORT_FIELD, 1).alias("key"),
        pl.col("text").str.extract(EXPORT_FIELD, 2).alias("value"),
        pl.col("text").str.starts_with("__CURSOR=").cum_sum().alias("entry"),
    )
    other = keyed.filter((pl.col("entry") == 0) | pl.col("key").is_null() & (pl.col("text").str.len_bytes() > 0))

    def value(*keys: str) -> pl.Expr:
        return pl.coalesce(pl.col("value").filter(pl.col("key") == key).first() for key in keys)

    entries = (
        keyed.filter(pl.col("entry") > 0)
        .group_by("entry", maintain_order=True)
        .agg(
            pl.coalesce(pl.col("line").filter(pl.col("key") == "MESSAGE").first(), pl.col("line").first()),
            value("MESSAGE").alias("text"),
            epoch_stamp((value(*_TIME_KEYS[-2:]).cast(pl.Int64, strict=False) / 1e6).cast(pl.String))
            .struct.field("time")
            .alias("w_time"),
            pl.lit(False).alias("w_local"),
            (value(*_UPTIME_KEYS).cast(pl.Float64, strict=False) / 1e6).round(6).alias("w_uptime"),
            value("_HOSTNAME").alias("w_host"),
            value("SYSLOG_IDENTIFIER", "_TRANSPORT").alias("w_tag"),
        )
        .filter(pl.col("text").is_not_null())
    )
    columns = ["line", "text", *_WRAP]
    return pl.concat([other.select(columns), entries.select(columns)]).sort("line", maintain_order=True)


def unwrap(lines: pl.DataFrame) -> pl.DataFrame:
    """`lines` (line, text) with transports taken off; a folded entry becomes several rows of the same line.

    Columns: line, text, and what the transport knew: w_time, w_local, w_uptime (s), w_host, w_tag.
    """
    frame = lines.select("line", "text", *(pl.lit(None, dtype=dtype).alias(name) for name, dtype in _WRAP.items()))
    frame = _from_export(frame)
    frame = frame.with_columns(pl.coalesce(pl.col("text").str.extract(_COMPOSE, 1), "text").alias("text"))
    frame = _from_json(_from_cri(frame))
    folded = pl.col("text").str.replace_all("#012", "\n", literal=True).str.split("\n")
    frame = frame.with_columns(folded.alias("text")).explode("text", empty_as_null=True)
    bare = pl.col("text").str.extract(_MARKS, 1)
    unquoted = pl.col("text").str.replace(_QUOTE, "")
    return frame.with_columns(pl.coalesce(bare, unquoted).alias("text"))
