"""Builds the wheel and checks what users would get: its contents, its command, an analysis from another directory.

    python scripts/check_wheel.py --uv .tools/bin/uv

The wheel goes into a folder of its own; what it needs is taken from the environment that runs this script.
"""

import argparse
import configparser
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "postmortem": ROOT / "postmortem",
    "postmortem_parsers": ROOT / "parsers" / "postmortem_parsers",
    "postmortem_reports": ROOT / "reports" / "postmortem_reports",
}
INCIDENT = ROOT / "fixtures" / "incident-342"


class CheckError(Exception):
    """What is wrong with the wheel."""


def build(uv: str, folder: Path) -> Path:
    """The wheel, built from the checkout."""
    run([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)])
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        msg = f"one wheel expected, found {[wheel.name for wheel in wheels]}"
        raise CheckError(msg)
    return wheels[0]


def run(command: list[str], **options: object) -> str:
    """A command's stdout; CheckError with its stderr where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        msg = f"{' '.join(command)} gave {done.returncode}:\n{done.stderr.strip()}"
        raise CheckError(msg)
    return done.stdout


def expected() -> Iterator[str]:
    """Every file of our packages, as the wheel must hold it."""
    for name, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{name}/{path.relative_to(folder).as_posix()}"


def contents(wheel: Path) -> list[str]:
    """What is missing in the wheel or does not belong there."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = next((archive.read(name).decode() for name in names if name.endswith("/entry_points.txt")), "")
    wanted = set(expected())
    faults = [f"missing: {name}" for name in sorted(wanted - names)]
    faults += [f"foreign: {name}" for name in sorted(names - wanted) if ".dist-info/" not in name]
    faults += [f"missing: {name}/py.typed" for name in PACKAGES if f"{name}/py.typed" not in names]
    if not any("LICENSE" in name for name in names if ".dist-info/" in name):
        faults.append("missing: LICENSE")
    for ending, what in (
        (".toml", "profile"),
        (".j2", "template"),
        (".min.js", "chart library"),
        (".LICENSE", "its licence"),
    ):
        if not any(name.endswith(ending) for name in names if ".dist-info/" not in name):
            faults.append(f"missing: no {what} ({ending})")
    return [*faults, *entry_point_faults(entry_points, names)]


def entry_point_faults(text: str, names: set[str]) -> list[str]:
    """Entry points that lead nowhere."""
    parser = configparser.ConfigParser()
    parser.read_string(text)
    if parser.get("console_scripts", "postmortem", fallback=None) is None:
        return ["missing: the command postmortem"]
    faults: list[str] = []
    for group in ("console_scripts", "postmortem.parsers"):
        for name, target in parser.items(group) if parser.has_section(group) else ():
            module = target.split(":")[0].replace(".", "/")
            if f"{module}.py" not in names and f"{module}/__init__.py" not in names:
                faults.append(f"entry point {name} = {target}: there is no such module")
    return faults


def behaviour(uv: str, wheel: Path, folder: Path) -> list[str]:
    """What the installed wheel does wrong, far from the checkout."""
    site, work = folder / "site", folder / "elsewhere"
    work.mkdir()
    run([uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable, "--target", str(site), str(wheel)])
    # The wheel's folder comes first, so that it wins over the editable checkout of this environment.
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    start = "import sys; from postmortem.cli.app import main; sys.argv[0] = 'postmortem'; main()"
    command = [sys.executable, "-c", start]
    home = run([sys.executable, "-c", "import postmortem; print(postmortem.__file__)"], cwd=work, env=environment)
    faults = (
        [] if Path(home.strip()).is_relative_to(site) else [f"the checkout was tested, not the wheel: {home.strip()}"]
    )
    if "analyze" not in run([*command, "--help"], cwd=work, env=environment):
        faults.append("postmortem --help does not name analyze")
    answer = json.loads(run([*command, "analyze", str(INCIDENT), "--format", "json"], cwd=work, env=environment))
    if answer["pool"]["buffers_alive"] != 24:
        faults.append(f"incident-342: 24 buffers expected, not {answer['pool']['buffers_alive']}")
    run([*command, "analyze", str(INCIDENT), "-o", "report.html"], cwd=work, env=environment)
    if (work / "report.html").stat().st_size < 100_000:
        faults.append("the HTML report is too small to hold its charts")
    return faults


def main() -> int:
    """Print what is wrong; exit code 1 when anything is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--uv", default="uv", help="the uv to build with")
    uv = parser.parse_args().uv
    uv = str(Path(uv).resolve()) if "/" in uv else uv
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            wheel = build(uv, folder / "dist")
            faults = contents(wheel) or behaviour(uv, wheel, folder)
        except CheckError as error:
            faults = [str(error)]
    for fault in faults:
        print(f"wheel: {fault}", file=sys.stderr)
    if not faults:
        print(f"wheel: {wheel.name} is complete and works")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
