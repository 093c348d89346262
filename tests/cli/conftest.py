import dataclasses
import datetime as dt
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import postmortem
from postmortem.cli import app
from reports import factory


@dataclasses.dataclass
class Fake:
    """Stands in for `postmortem.api`: remembers what it was asked, and answers with a made result."""

    result: Any = dataclasses.field(default_factory=factory.incident)
    timeline: Any = dataclasses.field(default_factory=factory.incident_timeline)
    error: BaseException | None = None
    asked: list[tuple[Any, dict[str, Any]]] = dataclasses.field(default_factory=list)

    def analyze(self, paths: Any, **options: Any) -> "Fake":
        self.asked.append((paths, options))
        if self.error is not None:
            raise self.error
        return self

    @property
    def options(self) -> dict[str, Any]:
        return self.asked[-1][1]


@pytest.fixture
def fake(monkeypatch, tmp_path) -> Fake:
    """The command line with a made analysis, in an empty current directory."""
    made = Fake()
    module = types.ModuleType("postmortem.api")
    module.analyze = made.analyze  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "postmortem.api", module)
    monkeypatch.setattr(postmortem, "api", module, raising=False)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def run(capfdbinary):
    """Runs the command and gives (exit code, stdout, stderr)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = app.run(arguments)
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return call


@pytest.fixture
def utc():
    return lambda *parts: dt.datetime(*parts, tzinfo=dt.UTC)


@pytest.fixture
def repository() -> Path:
    return Path(__file__).parents[2]
