"""How things ended, in the words of shells, wrappers, programs, clients, systemd, container runtimes and OOM daemons.

Reads bash/dash/zsh job messages, exit codes of wrapper scripts and `key=value` exit files, panics and tracebacks
(Rust, Go, Python, Java, C++), CUDA's errors, gRPC clients' errors, systemd 2xx, docker 1.x–28, containerd,
Kubernetes 1.x, systemd-oomd, earlyoom, oomd, nohang. Samples stand beside each pattern in `endings`.
Not read: guesses of watchdogs, and mentions of an ending inside a longer message.
"""

import re
from typing import ClassVar

import polars as pl

from postmortem.schema import TABLES, conform
from postmortem_parsers.endings.containers import BLOCK_EVIDENCE, BLOCK_LINE, read_blocks
from postmortem_parsers.endings.exit_file import EXIT_FILE_EVIDENCE, EXIT_FILE_LINE, read_exit_file
from postmortem_parsers.endings.killers import KILLER_RULES
from postmortem_parsers.endings.rules import RULES, SIGNALS, Rule
from postmortem_parsers.endings.times import stamped_text
from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.kernel_log.dedupe import dedupe_kills
from postmortem_parsers.kernel_log.dress import undress

__all__ = ["ExitsParser"]

Row = dict[str, object]
_MOST_TEXT = 500
# One scan over all lines: every rule's line holds one of these.
_ROUGH = (
    r"Killed|killed|Segmentation|segmentation|Aborted|aborted|[Bb]us error|Illegal inst|illegal inst|Terminated|terminated|kill |pkill|killall|"
    r"exit|EXIT|Exit|^rc\b|panic|memory allocation of|fatal|SIG|Traceback|Exception in thread|^# |Terminating|terminate called|libc\+\+|"
    r"Assertion|free\(\)|malloc\(\)|corrupt|munmap_chunk|smashing|AddressSanitizer|CUDA|cuda|out of memory|No space left|MEMLOCK|memlock|mlock|"
    r"io_uring|ibv_reg|transport error|ipe|onnection|h2 protocol|stream closed|Unavailable|DeadlineExceeded|imeout|timed out|deadline|RPC failed|"
    r"died|preempt|evicted|interruption|spot |OOM|oom|Result=|Stopping |container |victim|low on resource|Process with highest|[Ff]ailed"
)
_BARE = [f"(?:{re.sub(r'[?]P<[a-z]+>', '', rule.pattern.pattern)})" for rule in (*RULES, *KILLER_RULES)]
# In portions, because Rust's regex bounds the size of one.
_ANY_RULE = pl.any_horizontal(
    pl.col("message").str.contains("|".join(_BARE[start : start + 6])) for start in range(0, len(_BARE), 6)
)
_BLANK_AFTER = r"^(?:Caused by:|note: run with `RUST_BACKTRACE)"
_CLIENT_REACH = 4
_FEW, _SHORT = 100, 500  # messages, bytes


def _ruled(messages: pl.Series) -> pl.Series:
    """Which messages some rule matches."""
    lengths = messages.str.len_bytes().max()
    if len(messages) <= _FEW and isinstance(lengths, int) and lengths <= _SHORT:
        # Rust would compile all rules anew for them, which takes far longer than Python's way with a few lines.
        rules = [rule.pattern for rule in (*RULES, *KILLER_RULES)]
        return pl.Series([any(rule.search(text) for rule in rules) for text in messages], dtype=pl.Boolean)
    return messages.to_frame("message").select(_ANY_RULE).to_series()


def _hits(lines: pl.DataFrame) -> pl.DataFrame:
    """Undressed rows that some rule matches: line, message and the head's fields."""
    rough = lines.filter(pl.col("text").str.contains(_ROUGH) & (pl.col("text").str.len_bytes() < 20_000))
    plain = stamped_text(rough)
    # Heads and shippers' dress come off; a tracing line's level and target stay, and so it matches nothing.
    dressed = undress(rough).filter(pl.col("dress").is_in(["syslog", "stamped", "dmesg"]) | pl.col("dress").is_null())
    both = pl.concat([plain, dressed.select(plain.columns)])
    hit = both.filter(_ruled(both["message"]))
    # Where both readings match, the one that knows the time says more.
    ranked = hit.with_columns(pl.col("time").is_not_null().alias("timed")).sort("line", "timed", maintain_order=True)
    return ranked.unique("line", keep="last", maintain_order=True).drop("timed")


class ExitsParser:
    """Table `ends`, and `kills` by userland killers that name a victim."""

    name: ClassVar[str] = "exits"
    reads: ClassVar[str] = (
        "endings: shells, wrappers, panics, CUDA and client errors, systemd, docker, Kubernetes, OOM daemons"
    )
    example: ClassVar[str] = (
        "./benchmark.sh: line 212:  1877 Killed                  cuzk-daemon --config /etc/cuzk.toml"
    )
    priority: ClassVar[int] = 60
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """Low for every stream: an ending can stand at the end of any."""
        del head
        return 0.2

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Lines that a rule matches, and the blocks of container states and exit files."""
        del context
        text = lines["text"]
        claimed = lines["line"].is_in(_hits(lines)["line"].implode())
        claimed = claimed | text.str.contains(_BLANK_AFTER)
        if text.str.contains(BLOCK_EVIDENCE).any():
            claimed = claimed | text.str.contains(BLOCK_LINE) | text.str.contains(BLOCK_EVIDENCE)
        if text.str.contains(EXIT_FILE_EVIDENCE).any():
            claimed = claimed | text.str.contains(EXIT_FILE_LINE)
        return claimed

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Reads all endings of the stream."""
        tables = Tables()
        hits = _hits(lines)
        pairs = [(int(line), str(text)) for line, text in lines.select("line", "text").iter_rows()]
        ends = _rule_rows(hits)
        if lines["text"].str.contains(EXIT_FILE_EVIDENCE).any():
            exit_rows = read_exit_file(pairs)
            taken = {number for number, text in pairs if re.match(EXIT_FILE_LINE, text)}
            ends = [row for row in ends if row["line"] not in taken] + exit_rows
        if lines["text"].str.contains(BLOCK_EVIDENCE).any():
            ends = ends + _container_rows(pairs)
        _add(tables, "ends", ends, context)
        kills = _killer_rows(hits)
        if kills:
            schema = {name: dtype for name, dtype in TABLES["kills"].items() if name in kills[0]}
            frame = conform(
                "kills", pl.DataFrame(kills, schema=schema, orient="row").with_columns(source=context.source)
            )
            base = context.source << 32
            numbered = (
                dedupe_kills(frame)
                .with_row_index("n", offset=1)
                .with_columns(report=-(base + pl.col("n").cast(pl.Int64)))
            )
            tables.add("kills", numbered.drop("n"))
        return tables


def _add(tables: Tables, table: str, rows: list[Row], context: Context) -> None:
    if rows:
        rows = sorted(rows, key=lambda row: int(str(row["line"])))
        schema = {name: dtype for name, dtype in TABLES[table].items() if name in rows[0]}
        tables.add(table, pl.DataFrame(rows, schema=schema, orient="row").with_columns(source=context.source))


def end_row(
    *,
    line: int,
    what: str,
    by: str,
    text: str,
    time: object = None,
    local_time: bool = False,
    code: int | None = None,
    signal: int | None = None,
    name: str | None = None,
    pid: int | None = None,
) -> Row:
    """A row of `ends`; a shell's exit code above 128 names the signal."""
    if signal is None and code is not None and 128 < code <= 192 and what.endswith(("exit_code", "exit", "oom")):
        signal = code - 128
    return {
        "time": time,
        "line": line,
        "what": what,
        "by": by,
        "code": code,
        "signal": signal,
        "name": name,
        "pid": pid,
        "text": text[:_MOST_TEXT],
        "local_time": local_time,
    }


def _signal(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if text.isdecimal() else SIGNALS.get(text.removeprefix("SIG"))


def _command_name(command: str | None) -> str | None:
    """The program in a command line, without its folder."""
    words = [word for word in (command or "").split() if "=" not in word and not word.startswith("(")]
    return words[0].rsplit("/", 1)[-1] if words else None


def _match(message: str) -> tuple[Rule, re.Match[str]] | None:
    return next(((rule, match) for rule in RULES if (match := rule.pattern.search(message))), None)


def _rule_rows(hits: pl.DataFrame) -> list[Row]:
    rows: list[Row] = []
    last_client = -_CLIENT_REACH
    for hit in hits.iter_rows(named=True):
        found = _match(hit["message"])
        if found is None:
            continue
        rule, match = found
        groups = match.groupdict()
        if rule.by == "client" and rule.what.startswith("client"):
            # An error with its chain of causes is one error; the most telling of its lines stands for it.
            if hit["line"] - last_client < _CLIENT_REACH and rows and rows[-1]["by"] == "client":
                last_client = hit["line"]
                _tell_more(rows[-1], rule.what, hit["message"])
                continue
            last_client = hit["line"]
        pid, code = groups.get("pid"), groups.get("code")
        rows.append(
            end_row(
                line=hit["line"],
                what=rule.what,
                by=rule.by,
                text=hit["message"],
                time=hit["time"],
                local_time=hit["local_time"],
                code=int(code) if code else None,
                signal=rule.signal if rule.signal is not None else _signal(groups.get("signal")),
                name=groups.get("name") or _command_name(groups.get("cmd")),
                pid=int(pid) if pid else None,
            )
        )
    return rows


def _tell_more(row: Row, what: str, message: str) -> None:
    if what == "client_timeout":
        row["what"] = what
    if "message:" in message and "message:" not in str(row["text"]):
        row["text"] = message[:_MOST_TEXT]


def _killer_rows(hits: pl.DataFrame) -> list[Row]:
    rows: list[Row] = []
    for hit in hits.iter_rows(named=True):
        for rule in KILLER_RULES:
            match = rule.pattern.match(hit["message"])
            if match is None:
                continue
            groups = match.groupdict()
            pid, uid, killed = groups.get("pid"), groups.get("uid"), groups.get("killed")
            rows.append(
                {
                    "time": hit["time"],
                    "line": hit["line"],
                    "killer": rule.killer,
                    "constraint": "userspace",
                    "oom_memcg": groups.get("pressed"),
                    "task_memcg": killed,
                    "victim": groups.get("victim") or (killed.rsplit("/", 1)[-1] if killed else None),
                    "pid": int(pid) if pid else None,
                    "uid": int(uid) if uid else None,
                    "oom_group": killed is not None,
                    "complete": True,
                    "hostname": hit["hostname"],
                    "uptime_s": hit["uptime_s"],
                    "local_time": hit["local_time"],
                    "no_year": hit["no_year"],
                    "first_line": hit["line"],
                    "last_line": hit["line"],
                }
            )
            break
    return rows


def _container_rows(pairs: list[tuple[int, str]]) -> list[Row]:
    rows: list[Row] = []
    for end in read_blocks(pairs):
        stamp = stamped_text(pl.DataFrame({"line": [end.line], "text": [f"{end.finished or ''} x"]})).row(0, named=True)
        rows.append(
            end_row(
                line=end.line,
                what=end.what or "container_exit",
                by="runtime",
                text=end.text if end.reason is None else f"{end.text} (reason {end.reason})",
                time=stamp["time"],
                local_time=stamp["local_time"],
                code=end.code,
                signal=end.signal or None,
                name=end.name,
            )
        )
    return rows
