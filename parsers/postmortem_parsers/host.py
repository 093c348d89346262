"""Descriptions of the machine: the transcript of a few commands, `$ command` lines with what they printed.

Reads uname -a, `date -u; cat /proc/uptime; grep btime /proc/stat`, the head of /proc/meminfo, memory.max or
memory.limit_in_bytes, nvidia-smi --query-gpu=name,driver_version,memory.total. Sample: `MemTotal:  1056441344 kB`.
Not read: sample loops of the same files (a time before each), which are samples.
"""

import datetime as dt
import re
from typing import ClassVar

import polars as pl

from postmortem.schema import TABLES
from postmortem_parsers.interface import Context, Head, Skipped, Tables

__all__ = ["HostParser"]

Row = dict[str, object]
_UNAME = re.compile(r"^Linux (?P<host>\S+) (?P<release>\d\S*) .*(?:GNU/Linux|x86_64|aarch64)\s*$")
_BTIME = re.compile(r"^btime (?P<seconds>\d{9,11})$")
_UPTIME = re.compile(r"^(?P<seconds>\d+\.\d\d) \d+\.\d\d$")
_DATE = re.compile(
    r"^(?:\w{3} (?P<month>\w{3})\s+(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d) UTC (?P<year>\d{4})"
    r"|\w{3} (?P<day2>\d{1,2}) (?P<month2>\w{3}) (?P<year2>\d{4}) (?P<clock2>\d\d:\d\d:\d\d(?: [AP]M)?) UTC)$"
)
_MEMORY = re.compile(r"^(?P<key>MemTotal|MemFree|MemAvailable):\s+(?P<kb>\d+) kB$")
_NUMBER = re.compile(r"^\d{1,20}$")
_GPU = re.compile(
    r"^(?P<name>(?:NVIDIA|Tesla|Quadro|GeForce|AMD)\b[^,]*),\s*(?P<driver>\d[\d.]*),\s*(?P<size>\d+) MiB$"
)
_COMMAND = re.compile(
    r"^\$ (?P<command>.*(?:uname|nproc|/proc/uptime|btime|meminfo|memory\.max|limit_in_bytes|nvidia-smi|date|free|lscpu).*)$"
)
_LIMIT_FILE = re.compile(r"memory\.max\b|memory\.limit_in_bytes")
_NO_LIMIT = 1 << 60
_PATTERNS = (_UNAME, _BTIME, _UPTIME, _DATE, _MEMORY, _GPU, _COMMAND)
_ANY = "|".join(f"(?:{re.sub(r'[?]P<[a-z0-9]+>', '', pattern.pattern)})" for pattern in _PATTERNS)
_ANSWER_REACH = 2


class HostParser:
    """Table `marks`: host_total_stated, limit_stated, boot_time, kernel_version, gpu."""

    name: ClassVar[str] = "host"
    reads: ClassVar[str] = "host descriptions: uname, date, uptime, btime, MemTotal, the cgroup's limit, nvidia-smi"
    example: ClassVar[str] = "$ uname -a\nLinux gpu-01 6.8.0-45-generic #45-Ubuntu SMP PREEMPT_DYNAMIC x86_64 GNU/Linux"
    priority: ClassVar[int] = 55
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """Sure of a file with commands and their answers; one MemTotal among many is a sample loop."""
        commands = sum(bool(_COMMAND.match(line)) for line in head.lines)
        described = any(_UNAME.match(line) or _BTIME.match(line) for line in head.lines) or _uptime_only(head.lines)
        totals = sum(line.startswith("MemTotal:") for line in head.lines)
        if totals > 1 or not (described or commands >= 2):
            return 0.0
        return 0.9 if commands else 0.6

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Known commands, their known answers, and a bare number right after a limit file was printed."""
        del context
        text = lines["text"].str.strip_chars_end()
        known = text.str.contains(_ANY)
        command = text.str.contains(r"^\$ .*(?:memory\.max|limit_in_bytes|nproc)")
        return known | (command.shift(1, fill_value=False) & text.str.contains(r"^(?:\d{1,20}|max)$"))

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Reads the description."""
        tables = Tables()
        rows: list[Row] = []
        command = ""
        clock: tuple[int, dt.datetime] | None = None
        uptime: tuple[int, float] | None = None
        for number, raw in lines.select("line", "text").iter_rows():
            text = raw.rstrip()
            if match := _COMMAND.match(text):
                command = match["command"]
            elif match := _DATE.match(text):
                clock = _clock(number, match)
            elif match := _UPTIME.match(text):
                uptime = (number, float(match["seconds"]))
            elif row := _row(number, text, command):
                rows.append(row)
            elif not _MEMORY.match(text) and not _NUMBER.match(text) and text != "max":
                context.skipped.append(
                    Skipped(number, "a host description's line that holds no known value", text[:200])
                )
        if clock and uptime and not any(row["what"] == "boot_time" for row in rows):
            booted = clock[1] - dt.timedelta(seconds=uptime[1])
            rows.append(_mark(uptime[0], "boot_time", f"uptime {uptime[1]} s", time=booted))
        if rows:
            schema = {name: TABLES["marks"][name] for name in rows[0]}
            tables.add("marks", pl.DataFrame(rows, schema=schema, orient="row").with_columns(source=context.source))
        return tables


def _uptime_only(lines: list[str]) -> bool:
    """What `date -u; cat /proc/uptime` prints, and nothing else: our own warning asks for it."""
    said = [line.rstrip() for line in lines if line.strip()]
    return len(said) == 2 and bool(_DATE.match(said[0])) and bool(_UPTIME.match(said[1]))


def _clock(number: int, match: re.Match[str]) -> tuple[int, dt.datetime] | None:
    month, day = match["month"] or match["month2"], match["day"] or match["day2"]
    stamp = f"{match['year'] or match['year2']} {month} {day} {match['clock'] or match['clock2']}"
    form = "%Y %b %d %I:%M:%S %p" if stamp.endswith("M") else "%Y %b %d %H:%M:%S"
    try:
        return number, dt.datetime.strptime(stamp, form).replace(tzinfo=dt.UTC)
    except ValueError:
        return None


def _mark(number: int, what: str, text: str, *, value: int | None = None, time: dt.datetime | None = None) -> Row:
    return {"time": time, "line": number, "what": what, "text": text, "value": value, "local_time": False}


def _row(number: int, text: str, command: str) -> Row | None:
    if match := _UNAME.match(text):
        return _mark(number, "kernel_version", match["release"])
    if match := _BTIME.match(text):
        return _mark(number, "boot_time", text, time=dt.datetime.fromtimestamp(int(match["seconds"]), dt.UTC))
    if match := _MEMORY.match(text):
        return (
            _mark(number, "host_total_stated", text, value=int(match["kb"]) * 1024)
            if match["key"] == "MemTotal"
            else None
        )
    if match := _GPU.match(text):
        return _mark(number, "gpu", text)
    if _NUMBER.match(text) and _LIMIT_FILE.search(command) and int(text) < _NO_LIMIT:
        return _mark(number, "limit_stated", f"{command}: {text}", value=int(text))
    return None
