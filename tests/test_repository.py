"""The repository's promises about itself."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import postmortem

ROOT = Path(__file__).parents[1]
SOURCES = [ROOT / "postmortem", ROOT / "parsers", ROOT / "reports"]
MODULES = sorted(path for folder in SOURCES for path in folder.rglob("*.py"))
MOST_LINES = 400

# Vendored or recorded text that is not ours to change, and what no reader opens.
NOT_OURS = re.compile(r"(^|/)(requirements/.*\.txt|.*\.min\.js|.*\.LICENSE)$|^fixtures/")
MACHINE_PATHS = re.compile(r"(?<![\w.~*<>-])/(?:work|tmp|root)/[\w.]")
# The one public index of Python packages may be named; the hosts of mirrors and private registries may not.
REGISTRY_HOSTS = re.compile(
    r"(?i)https?://[^\s\"'/)]*(?:pypi|artifactory|nexus|registry|mirror|devpi|proxy\.golang|npmjs)[^\s\"'/)]*"
)


def tracked() -> list[str]:
    """Files that git knows or would know: tracked, and new ones that nothing ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no git checkout: {done.stderr.strip()}")
    return sorted(name for name in done.stdout.split("\0") if name and (ROOT / name).is_file())


def texts() -> list[tuple[str, str]]:
    found = []
    for name in tracked():
        data = (ROOT / name).read_bytes()
        if b"\0" not in data[:8192] and not NOT_OURS.search(name):
            found.append((name, data.decode("utf-8", errors="replace")))
    return found


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_public_names_are_these():
    assert postmortem.__all__ == [
        "InputError",
        "NoEvidenceError",
        "NotFoundError",
        "Postmortem",
        "PostmortemError",
        "Quantity",
        "Result",
        "UsageError",
        "__version__",
        "analyze",
    ]
    assert all(getattr(postmortem, name) is not None for name in postmortem.__all__)


def loaded_by(code: str) -> set[str]:
    """Top-level modules that `code` loads in a fresh interpreter."""
    ask = f"import sys\n{code}\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    path = f"import sys; sys.path[:0] = {[str(ROOT / name) for name in ('', 'parsers', 'reports')]!r}\n"
    done = subprocess.run([sys.executable, "-c", path + ask], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stderr.split()}


def test_help_loads_nothing_heavy():
    loaded = loaded_by("from postmortem.cli import app\napp.run(['--help'])")
    assert not loaded & {"polars", "numpy", "scipy", "jinja2", "msgspec", "tsdownsample", "rich", "zstandard"}


def test_importing_the_library_loads_nothing_heavy():
    assert not loaded_by("import postmortem") & {"polars", "numpy", "scipy", "jinja2", "msgspec", "rich", "typer"}


def test_no_path_of_a_developers_machine_is_in_the_repository():
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts()
        if name != "tests/test_repository.py"
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert found == []


def test_no_registry_host_is_in_the_repository():
    found = [f"{name}: {host}" for name, text in texts() for host in REGISTRY_HOSTS.findall(text)]
    assert [line for line in found if "https://pypi.org" not in line and "registry.example.com" not in line] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_short_and_says_in_its_first_line_why_it_exists(path):
    text = path.read_text()
    assert text.count("\n") <= MOST_LINES
    assert not text.strip() or ast.get_docstring(ast.parse(text))


def test_the_packages_are_marked_as_typed():
    packages = (ROOT / "postmortem", ROOT / "parsers" / "postmortem_parsers", ROOT / "reports" / "postmortem_reports")
    assert all((package / "py.typed").is_file() for package in packages)


def test_the_versions_agree():
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert stated
    assert stated[1] == postmortem.__version__
    assert f"## {stated[1]}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_page_of_the_command_line_is_fresh():
    made = script("make_cli_docs").page()
    assert made == (ROOT / "docs" / "cli.md").read_text(), "run: python scripts/make_cli_docs.py"


def test_links_between_the_documents_lead_somewhere():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())]
    broken = [f"{page.name}: {link}" for page, link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []
