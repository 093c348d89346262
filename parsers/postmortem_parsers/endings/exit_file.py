"""A wrapper's exit file: `key=value` lines about one command.

Sample: `cmd=cuzk-daemon --config c.toml`, `exit_status=137`, `signal=9`, `ended=2026-02-22T00:22:58.245827Z`.
A file that names the signal had the process's own wait status; one with a status alone can hold that of a pipe's
last command (`if ! daemon | tee log`), and so is the wrapper's word. Not read: `started`, `wall_s`.
"""

import polars as pl

from postmortem_parsers.endings.times import stamped_text

__all__ = ["EXIT_FILE_EVIDENCE", "EXIT_FILE_LINE", "read_exit_file"]

EXIT_FILE_EVIDENCE = r"^exit_(?:status|code)=-?\d+\s*$"
EXIT_FILE_LINE = r"^(?:cmd|command|exit_status|exit_code|signal|started|ended|finished|wall_s|pid|core_dumped)="


def _row(fields: dict[str, tuple[int, str]]) -> dict[str, object]:
    line, status = fields.get("exit_status") or fields["exit_code"]
    code = int(status) if status.lstrip("-").isdecimal() else None
    stated = fields.get("signal", (0, ""))[1]
    signal = int(stated) if stated.isdecimal() and stated != "0" else None
    ended = (fields.get("ended") or fields.get("finished") or (0, ""))[1]
    stamp = stamped_text(pl.DataFrame({"line": [line], "text": [ended]})).row(0, named=True)
    words = (fields.get("cmd") or fields.get("command") or (0, ""))[1].split()
    pid = fields.get("pid", (0, ""))[1]
    return {
        "time": stamp["time"],
        "line": line,
        "what": "exit_code",
        "by": "daemon" if "signal" in fields else "wrapper",
        "code": code,
        "signal": signal if signal is not None else (code - 128 if code is not None and 128 < code <= 192 else None),
        "name": words[0].rsplit("/", 1)[-1] if words else None,
        "pid": int(pid) if pid.isdecimal() else None,
        "text": " ".join(f"{key}={value}" for key, (_, value) in fields.items())[:500],
        "local_time": stamp["local_time"],
    }


def read_exit_file(lines: list[tuple[int, str]]) -> list[dict[str, object]]:
    """Rows of `ends`, one for each group of keys; a key given again begins the next group."""
    rows: list[dict[str, object]] = []
    fields: dict[str, tuple[int, str]] = {}
    for number, text in [*lines, (0, "cmd=")]:
        key, found, value = text.strip().partition("=")
        if not found or not key.replace("_", "").isalpha():
            continue
        if key in fields or number == 0:
            if "exit_status" in fields or "exit_code" in fields:
                rows.append(_row(fields))
            fields = {}
        fields[key] = (number, value.strip())
    return rows
