"""Writes docs/cli.md from the commands themselves; a test fails when the page is stale.

python scripts/make_cli_docs.py
"""

import contextlib
import io
import os
from pathlib import Path

from postmortem.cli import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"

HEAD = """\
# The command line

This page is made by `scripts/make_cli_docs.py` from the commands' own help.

Answers go to standard output, messages to standard error. Exit codes: 0 done, 1 done and `--fail-on` met,
2 wrong use or unreadable input (one line says what, and how to mend it; `--debug` adds the traceback).

Sizes are written like `342GiB`, `512MiB` or a number of bytes; K, M and G are powers of 1024. Times are ISO 8601.
"""

EXAMPLES = {
    "analyze": [
        ("One folder is one run: print the answer, write the report", "postmortem analyze run-2026-03-19/"),
        (
            "Several files of one run, and a limit that no file states",
            "postmortem analyze run.log mem.csv --limit 342GiB",
        ),
        ("A log from another machine, straight from ssh", "ssh gpu7 cat run.log.zst | postmortem analyze -"),
        (
            "A comment for the issue, with nothing that names people or machines",
            "postmortem analyze run/ --format md --redact",
        ),
        (
            "For scripts: one JSON object, and exit code 1 for a death by memory",
            "postmortem analyze run/ --format json --fail-on memory",
        ),
        ("A trace for the Perfetto UI, beside the report", "postmortem analyze run/ --format html,perfetto"),
    ],
}


def help_of(*words: str) -> str:
    """The help text of a command, without trailing blanks."""
    page = io.StringIO()
    os.environ["COLUMNS"] = "80"  # the page is the same on every terminal
    with contextlib.redirect_stdout(page):
        app.run([*words, "--help"])
    return "\n".join(line.rstrip() for line in page.getvalue().strip().split("\n"))


def page() -> str:
    """The whole page."""
    blocks = [HEAD, f"```text\n{help_of()}\n```\n"]
    for command in ("analyze", "demo", "formats", "schema"):
        blocks.append(f"## postmortem {command}\n\n```text\n{help_of(command)}\n```\n")
        blocks += [f"{what}:\n\n```sh\n{line}\n```\n" for what, line in EXAMPLES.get(command, [])]
    return "\n".join(blocks)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
