"""What `postmortem record` costs: share of a core and its own memory, beside a process that does what the row says.

    python benchmarks/record.py [SECONDS]

All threads of the recorder count (/proc/PID/stat), less the interpreter's start, measured with an empty recording.
The last row is the dense pace shortly before a kill, which lasts seconds.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MIB = 1 << 20
SECONDS = 60.0

IDLE = "import time; time.sleep({seconds})"
CHATTY = """
import time
for n in range(int({seconds} * 100)):
    print("line", n, "of a daemon that logs a hundred lines a second", flush=True)
    time.sleep(0.01)
"""
MANY = """
import subprocess, time
children = [subprocess.Popen(["sleep", str({seconds})]) for _ in range(30)]
time.sleep({seconds})
"""
GROWING = """
import time
kept = []
for _ in range(int({seconds} * 10)):
    kept.append(bytearray(b"x" * (1 << 20)))
    time.sleep(0.1)
"""
ROWS = [
    ("an idle process", IDLE, ()),
    ("logs 100 lines a second", CHATTY, ()),
    ("30 child processes", MANY, ()),
    ("grows by 10 MiB a second", GROWING, ()),
    ("idle, --interval 0.1", IDLE, ("--interval", "0.1")),
    ("idle, --interval 0.02 (the pace before a kill)", IDLE, ("--interval", "0.02")),
]


def measure(program: str, options: tuple[str, ...], seconds: float) -> tuple[float, float, float]:
    """Seconds of CPU, largest resident MiB, wall seconds, of the recorder without its child."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "postmortem", "record", "--no-report", "-o", f"{folder}/run", *options, "--"]
        child = [sys.executable, "-S", "-c", program.format(seconds=seconds)]
        began = time.monotonic()
        running = subprocess.Popen([*command, *child], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert running.stderr is not None
        used = _watch(running.pid)
        said = running.stderr.read().decode()
        running.wait()
        wall = time.monotonic() - began
    rss = float(said.rpartition("the recorder used ")[2].partition(" ")[0])
    return used, rss, wall


def _watch(pid: int) -> float:
    """CPU seconds of the recorder's own threads: those of its children are counted elsewhere in its stat."""
    ticks, used = os.sysconf("SC_CLK_TCK"), 0.0
    while True:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return used
        if fields[0] == "Z":
            return used
        used = (int(fields[11]) + int(fields[12])) / ticks
        time.sleep(0.05)


def main() -> None:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    start = min(measure(IDLE, (), 0.0)[0] for _ in range(3))
    print(f"{seconds:.0f} s each; the start ({start:.2f} s of CPU) is taken off; default interval 1 s unless said")
    print(f"{'beside':<48}{'of a core':>10}{'memory':>10}")
    for name, program, options in ROWS:
        used, rss, wall = measure(program, options, seconds)
        print(f"{name:<48}{max(0.0, used - start) / wall:>9.2%}{rss:>6.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
