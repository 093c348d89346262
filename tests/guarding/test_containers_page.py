"""docs/containers.md: what it shows parses, names options that exist, and its start-ups really run and pass codes on."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from kills import lab

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "containers.md"
POSTMORTEM = "/opt/postmortem/bin/postmortem"
CONFIG = "/etc/cuzk/cuzk.toml"
DAEMON = """\
#!/bin/sh
echo "$@"
cat {config}
exit 3
"""
INSTRUCTIONS = {"FROM", "RUN", "COPY", "VOLUME", "WORKDIR", "ENTRYPOINT"}


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def _block(language: str) -> str:
    (one,) = _blocks(language)
    return one


def _exec_start() -> list[str]:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read_string(_block("ini"))
    return shlex.split(unit["Service"]["ExecStart"])


def test_the_shell_scripts_parse():
    assert len(_blocks("sh")) == 2
    for script in _blocks("sh"):
        for shell in filter(shutil.which, ("sh", "dash", "bash")):
            subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=10)


def test_the_configuration_and_the_unit_parse():
    assert tomllib.loads(_block("toml"))["memory"]["total_budget"] == "auto"
    assert _exec_start()[:2] == [POSTMORTEM, "guard"]


def test_the_manifest_parses_and_mounts_what_it_claims():
    yaml = pytest.importorskip("yaml")
    spec = yaml.safe_load(_block("yaml"))["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    claims = [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]]
    assert [mount["name"] for mount in container["volumeMounts"]] == claims
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert container["resources"]["limits"]["memory"] == "342Gi"


def test_the_dockerfile_has_instructions_only_and_the_entry_point_that_it_copies():
    lines = _block("dockerfile").splitlines()
    assert {line.split()[0] for line in lines} == INSTRUCTIONS
    assert json.loads(lines[-1].removeprefix("ENTRYPOINT ")) == ["/entrypoint.sh"]
    assert "COPY --chmod=0755 entrypoint.sh /" in lines


def test_every_option_that_it_names_exists():
    text = PAGE.read_text()
    for command in ("guard", "probe", "record"):
        known = subprocess.run(
            [sys.executable, "-m", "postmortem", command, "--help"], check=True, capture_output=True, text=True
        ).stdout
        uses = re.findall(rf"postmortem {command}((?:\\\n|[^\n`)|])*)", text)
        options = {word for use in uses for word in re.findall(r"(?<![\w'=-])--[a-z-]+", use.partition(" -- ")[0])}
        own = {"--total-budget"}  # the daemon's
        assert all(option in known for option in options - own), (command, options)


@pytest.fixture
def container(tmp_path):
    """Runs a start-up of the page, in a cgroup of 512 MiB, with a daemon that shows what it was told and exits with 3."""
    (tmp_path / "evidence").mkdir()
    config, daemon = tmp_path / "cuzk.toml", tmp_path / "cuzk-daemon"
    config.write_text(_block("toml"))
    daemon.write_text(DAEMON.format(config=config))
    daemon.chmod(0o755)
    places = {
        POSTMORTEM: f"{sys.executable} -m postmortem",
        CONFIG: str(config),
        "/usr/local/bin/cuzk-daemon": "cuzk-daemon",
        "/evidence": str(tmp_path / "evidence"),
    }

    def run(script: str) -> subprocess.CompletedProcess[str]:
        for there, here in places.items():
            script = script.replace(there, here)
        script = re.sub(r"(?<!\S)cuzk-daemon(?= )", str(daemon), script)
        with lab.group(512 * lab.MIB) as group:
            script = f"echo $$ > {group.path}/cgroup.procs\n{script}"
            command = ["sh", "-c", script]
            folder = tmp_path / "evidence"
            return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=folder)

    try:
        with lab.alone():
            lab.parent()
            yield run
    except lab.NoLabError as reason:
        pytest.skip(str(reason))


@pytest.mark.cgroup
def test_the_entry_point_measures_sets_the_key_and_passes_the_exit_code(container, tmp_path):
    done = container(_blocks("sh")[0])
    assert done.returncode == 3, done.stderr
    told = re.search(r'^total_budget = "(\d+)MiB"  # set at each start$', done.stdout, re.MULTILINE)
    assert told, done.stdout
    assert 400 <= int(told[1]) <= 512 * 0.95
    (folder,) = (tmp_path / "evidence").iterdir()
    assert (folder / "guard.postmortem.html").is_file()
    assert (folder / "attempt-1" / "probe.json").is_file()


@pytest.mark.cgroup
def test_the_probe_alone_tells_the_budget(container, tmp_path):
    if shutil.which("jq") is None:
        pytest.skip("no jq")
    done = container(_blocks("sh")[1])
    assert done.returncode == 3, done.stderr
    budget = json.loads((tmp_path / "evidence" / "probe.json").read_bytes())["budget"]
    assert f"--total-budget {budget}" in done.stdout


@pytest.mark.cgroup
def test_the_units_command_runs(container):
    done = container(shlex.join(_exec_start()))
    assert done.returncode == 3, done.stderr
    assert re.search(r"--total-budget=\d{9}$", done.stdout, re.MULTILINE)
