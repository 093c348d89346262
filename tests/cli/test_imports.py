"""What a command loads: `--help` answers at once, and `analyze` loads what its run needs."""

import subprocess
import sys

import pytest

from benchmarks.generate import write

HELP_MAY_LOAD = {
    "postmortem",
    # typer and what it loads itself: its coloured tracebacks and help are switched off, its types come from pydantic
    "typer",
    "shellingham",
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
    "annotated_doc",
}
A_SMALL_RUN_MAY_NOT_LOAD = {
    "asyncio",
    "dask",
    "distributed",
    "fsspec",
    "isal",
    "jinja2",
    "pandas",
    "plotly",
    "psutil",
    "pyarrow",
    "rich",
    "tsdownsample",
    "zstandard",
}


def loaded(*arguments):
    """The top-level packages that one run of the command loads."""
    code = """
import sys
before = set(sys.modules)
from postmortem.cli.app import run
code = run(sys.argv[1:])
names = {name.partition(".")[0] for name in set(sys.modules) - before}
print(code, *sorted(names), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    code, *names = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(names)


@pytest.mark.parametrize("arguments", [("--help",), ("analyze", "--help"), ("batch", "--help"), ("record", "--help")])
def test_help_loads_typer_and_nothing_heavy(arguments):
    foreign = {name for name in loaded(*arguments) - sys.stdlib_module_names if not name.startswith("_sysconfigdata")}
    assert foreign <= HELP_MAY_LOAD


def test_an_answer_in_json_of_a_small_log_loads_nothing_that_makes_pages_or_reads_other_inputs(tmp_path):
    write(tmp_path / "run.log", 1 << 18)
    names = loaded("analyze", str(tmp_path / "run.log"), "--format", "json")
    assert names & A_SMALL_RUN_MAY_NOT_LOAD == set()


def test_a_small_log_without_samples_loads_no_scipy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.log", 1 << 18)
    assert "scipy" not in loaded("analyze", "run.log")
