import json
import os
import subprocess
import sys

import jsonschema_lite
import pytest

import postmortem
from postmortem.cli import demo
from postmortem.errors import NotFoundError


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_help_and_version_are_answers_on_stdout(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert all(command in out for command in ("analyze", "demo", "formats", "schema"))
    assert run("--version") == (0, f"postmortem {postmortem.__version__}\n", "")


def test_no_command_is_wrong_use_and_shows_the_help_on_stderr(run):
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: postmortem")


def test_a_wrong_command_is_one_line(run):
    code, out, err = run("analyse")
    assert (code, out) == (2, "")
    assert err.startswith("postmortem: No such command 'analyse'")
    assert err.count("\n") == 1


@pytest.mark.usefixtures("fake")
def test_the_schema_command_prints_the_schema_that_the_json_report_obeys(run):
    schema = json.loads(run("schema")[1])
    answer = json.loads(run("analyze", "x", "--format", "json")[1])
    assert jsonschema_lite.faults(answer, schema) == []


def test_formats_lists_parsers_and_profiles_with_an_example_each(run):
    code, out, _ = run("formats")
    assert code == 0
    assert "pinned pool: checkin size_gib=" in out
    assert "Killed process" in out
    parsers, profiles = out.split("Profiles")
    assert "cuzk: " in profiles
    entries = [block for block in parsers.split("\n\n")[1:] if block.strip()]
    assert all("      | " in entry for entry in entries)


def test_demo_analyses_the_incident_of_the_checkout(fake, run, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "incident", lambda: tmp_path / "fixtures" / "incident-342")
    assert run("demo")[0] == 0
    assert fake.asked[0][0] == [str(tmp_path / "fixtures" / "incident-342")]
    assert files(tmp_path) == ["incident-342.postmortem.html"]


def test_demo_in_an_installed_wheel_says_how_to_get_the_incident(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "__file__", str(tmp_path / "site-packages" / "postmortem" / "cli" / "demo.py"))
    with pytest.raises(NotFoundError, match="clone the repository and run `make demo`"):
        demo.incident()


@pytest.mark.parametrize("command", ["formats", "schema"])
def test_a_reader_who_goes_away_is_no_error(command, repository):
    code = (
        f"import sys; sys.path[:0] = {[str(repository / folder) for folder in ('', 'parsers', 'reports')]};"
        "from postmortem.cli.app import main; sys.argv = ['postmortem', *sys.argv[1:]]; main()"
    )
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", code, command], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    noise = [line for line in done.stderr.decode().splitlines() if "is not used" not in line]
    assert (done.returncode, noise) == (141, [])
