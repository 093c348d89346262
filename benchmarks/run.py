"""`make bench`: whole processes beside public tools, in one session, as a table of ratios.

Inputs are made from a seed below `.bench/`. Each command runs several times, in turn with all others, so that a slow
moment of the machine hits all alike; the table gives the median of wall and processor time and the largest peak of
resident memory (Linux: `ru_maxrss` of the child, through wait4).
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.generate import write
from postmortem_parsers.full_format import PLAIN
from postmortem_parsers.profiles import load
from postmortem_parsers.tracing_text import TextFormat

__all__ = ["Figures", "main", "table"]

MIB = 1 << 20
_READ = """
import sys
from postmortem import reading, sources
from postmortem_parsers import profiles, registry
read = reading.read(sources.find(sys.argv[1:]), registry.load_parsers()[0], profiles.load("cuzk"))
print({name: frame.height for name, frame in read.tables.items() if frame.height})
"""
_DUCKDB = """
import sys, duckdb
duckdb.sql("SET threads = 2")
lines = f"read_csv('{sys.argv[1]}', columns={{'t': 'VARCHAR'}}, delim='\\x01', quote='', escape='', header=false)"
pattern = open(sys.argv[2]).read().strip()
print(duckdb.sql(f"SELECT count(*) FROM {lines} WHERE regexp_matches(t, '{pattern}')").fetchall())
"""


@dataclasses.dataclass
class Figures:
    """What was measured of one command."""

    name: str
    wall_s: list[float] = dataclasses.field(default_factory=list)
    cpu_s: list[float] = dataclasses.field(default_factory=list)
    peak_mib: list[float] = dataclasses.field(default_factory=list)

    def median(self) -> float:
        """Median wall time in seconds."""
        return statistics.median(self.wall_s)


def _once(figures: Figures, command: list[str]) -> None:
    began = time.perf_counter()
    # To a real file: grep stops at the first hit when nobody can read the count.
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: grep found nothing, analyze found a death
        sys.exit(f"{figures.name}: exit {process.returncode}: {said.decode(errors='replace')[-400:]}")
    figures.wall_s.append(time.perf_counter() - began)
    figures.cpu_s.append(used.ru_utime + used.ru_stime)
    figures.peak_mib.append(used.ru_maxrss / 1024)


def measure(commands: dict[str, list[str]], runs: int) -> list[Figures]:
    """Run each command `runs` times, in turn."""
    found = {name: Figures(name) for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            _once(found[name], command)
    return list(found.values())


def table(title: str, figures: list[Figures]) -> str:
    """A Markdown table; the ratio is to the first row."""
    lines = [f"**{title}**", "", "| what | wall s | × first | CPU s | peak MiB |", "| --- | --- | --- | --- | --- |"]
    for row in figures:
        ratio = row.median() / figures[0].median()
        peak, spent = max(row.peak_mib), statistics.median(row.cpu_s)
        lines.append(f"| {row.name} | {row.median():.2f} | {ratio:.2f} | {spent:.2f} | {peak:.0f} |")
    return "\n".join(lines) + "\n"


def _input(folder: Path, name: str, mib: int, *, share: float = 0.35, form: str = "plain") -> Path:
    path = folder / name
    if not path.exists():
        part = path.with_name(f"part-{name}")
        write(part, mib * MIB, share=share, form=form)
        part.replace(path)
    return path


def _analyze(path: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "postmortem", "analyze", str(path), "--force", *more]


def _tools(folder: Path, log: Path) -> dict[str, list[str]]:
    """Public tools that search for the same literals, as far as they are installed."""
    events = [pattern for event in load("cuzk").event for pattern in TextFormat().patterns(event)]
    screens = [PLAIN.screen(pattern) for pattern in events]
    literals = folder / "literals.txt"
    literals.write_text("\n".join(screens) + "\n")
    expression = folder / "expression.txt"
    expression.write_text("|".join(p.replace("(", "\\(").replace(")", "\\)").replace("'", ".") for p in screens))
    tools: dict[str, list[str]] = {}
    if rg := shutil.which("rg"):
        version = subprocess.run([rg, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        tools[f"ripgrep {version}, counting lines with the literals"] = [rg, "-c", "-F", "-f", str(literals), str(log)]
        tools[f"ripgrep {version}, writing them out"] = [rg, "-n", "-F", "-f", str(literals), str(log)]
    if grep := shutil.which("grep"):
        tools["grep -c, the same"] = [grep, "-c", "-F", "-f", str(literals), str(log)]
    if lnav := shutil.which("lnav"):
        tools["lnav, index and count"] = [lnav, "-n", "-c", ";SELECT count(*) FROM all_logs", str(log)]
    try:
        import duckdb  # noqa: F401, PLC0415 (installed for benchmarks only)
    except ImportError:
        print("DuckDB is not installed: left out", file=sys.stderr)
    else:
        tools["DuckDB, count of a regular expression"] = [sys.executable, "-c", _DUCKDB, str(log), str(expression)]
    return tools


def _groups(folder: Path, mib: int) -> dict[str, dict[str, list[str]]]:
    log = _input(folder, f"plain-{mib}.log", mib)
    page, answer = str(folder / "page.html"), str(folder / "answer.json")
    read = [sys.executable, "-c", _READ]
    whole = _analyze(log, "--format", "html", "-o", page)
    reading = _tools(folder, log)
    loop = [sys.executable, str(Path(__file__).with_name("python_loop.py")), str(log)]
    reading |= {"Python `re` loop into the same rows": loop, "reading into tables": [*read, str(log)]}
    reading |= {"analyze with its page": whole}
    cores = {"two cores": [*read, str(log)], "one core": ["taskset", "-c", "0", *read, str(log)]}
    dressed = {"plain": [*read, str(log)]}
    dressed["coloured"] = [*read, str(_input(folder, f"ansi-{mib}.log", mib, form="ansi"))]
    packed = {"plain": _analyze(log, "--format", "json", "-o", answer)}
    for suffix in ("gz", "zst"):
        stored = _input(folder, f"plain-{mib}.log.{suffix}", mib)
        packed[f".{suffix}"] = _analyze(stored, "--format", "json", "-o", answer)
    shares = {f"{s:.0%} of interest": [*read, str(_input(folder, f"s{s}-{mib}.log", mib, share=s))] for s in (0.1, 0.6)}
    small = _input(folder, "plain-1.log", 1)
    starts = {"import polars, numpy": [sys.executable, "-c", "import polars, numpy; polars.DataFrame"]}
    starts["analyze of 1 MB"] = _analyze(small, "--format", "json", "-o", answer)
    starts["postmortem --help"] = [sys.executable, "-m", "postmortem", "--help"]
    sizes = {
        f"analyze of {n} MiB": _analyze(_input(folder, f"plain-{n}.log", n), "--format", "html", "-o", page)
        for n in (mib // 8, mib, 4 * mib, 8 * mib)
    }
    return {
        f"Reading, {mib} MiB plain, 35 % of interest": reading,
        "Share of interest": shares,
        "Colours": dressed,
        "Compressed": packed,
        "Cores": cores,
        "Growth": sizes,
        "Small runs": starts,
    }


def main() -> None:
    """Measure, print the tables, and keep the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size of the main input")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="groups whose title contains this")
    parser.add_argument("--dir", type=Path, default=Path(".bench"))
    chosen = parser.parse_args()
    chosen.dir.mkdir(exist_ok=True)
    if not shutil.which("taskset"):
        sys.exit("taskset is missing: install util-linux")
    print(f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}, "
          f"Python {platform.python_version()}\n")  # fmt: skip
    kept: dict[str, list[dict[str, object]]] = {}
    for title, commands in _groups(chosen.dir, chosen.mib).items():
        if chosen.only.lower() in title.lower():
            figures = measure(commands, chosen.runs)
            kept[title] = [dataclasses.asdict(row) for row in figures]
            print(table(title, figures), flush=True)
    (chosen.dir / "figures.json").write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
