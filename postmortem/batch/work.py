"""One run in a worker process: read, analysed, its report written, and only its rows given back."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
from typing import BinaryIO, Literal

import msgspec

import postmortem
from postmortem.archives.cursor import read_run
from postmortem.archives.grouping import FoundRun
from postmortem.archives.limits import Limits
from postmortem.batch.rows import Row, failed_row, parts_rows, run_row
from postmortem.batch.target import target_of
from postmortem.batch.watch import watched
from postmortem.errors import NoEvidenceError, PostmortemError

__all__ = ["Outcome", "Reports", "Settings", "Task", "base_row", "work"]

Reports = Literal["none", "failed", "all"]

_READ_BYTES = 4 << 20
_MEMORY_DEATHS = frozenset({"cgroup_limit", "cgroup_limit_probable", "host_oom", "userland_oom"})


@dataclasses.dataclass(frozen=True)
class Settings:
    """What holds for all runs of a batch. Sizes in bytes."""

    out: str
    limit: int | None = None
    budget: int | None = None
    profile: str | None = None
    tz: str | None = None
    redact: bool = False
    reports: Reports = "failed"
    timeout_s: float | None = 900.0
    memory_bytes: int | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)

    @property
    def analysis(self) -> str:
        """What a row was made by: another version or other options make it anew."""
        options = (self.limit, self.budget, self.profile, self.tz, self.redact, self.reports)
        return f"{postmortem.__version__}+{hashlib.sha256(repr(options).encode()).hexdigest()[:8]}"


@dataclasses.dataclass(frozen=True)
class Task:
    """One run to analyse, and the content that its row was made of before, if any."""

    run: FoundRun
    settings: Settings
    known: str | None = None

    @property
    def key(self) -> str:
        """A name for files of this run: two runs with one name differ in it."""
        return hashlib.sha256(self.run.run.encode("utf-8", "replace")).hexdigest()[:12]

    @property
    def note(self) -> str:
        """The file beside the results in which a worker that has to end says why."""
        return f".batch/{self.key}.note"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A run's rows; `row` is None where its content is the known one."""

    run: str
    row: Row | None
    parts: list[Row] = dataclasses.field(default_factory=list[Row])


def base_row(task: Task) -> Row:
    """The columns that hold for every run."""
    run = task.run
    return {
        "run": run.run,
        "name": run.name,
        "tags": list(run.settings.tags),
        "analysis": task.settings.analysis,
        "status": "done",
    }


def work(task: Task) -> Outcome:
    """Analyse one run. Gives a row whatever happens, unless the process itself dies."""
    settings = task.settings

    def leave(reason: str) -> None:
        target_of(settings.out).write(task.note, reason.encode())

    with watched(leave, settings.timeout_s, settings.memory_bytes), contextlib.ExitStack() as files:
        row = base_row(task)
        try:
            streams = [files.enter_context(file) for file in read_run(task.run, settings.limits)]
            row["content"] = _content(task.run, streams)
            if row["content"] == task.known:
                return Outcome(task.run.run, None)
            return _analysed(task, row, streams)
        except NoEvidenceError:
            row |= failed_row(
                "no_evidence", "no evidence in it that any parser knows (`postmortem formats` lists what is read)"
            )
        except PostmortemError as error:
            row |= failed_row("unreadable", str(error))
        except OSError as error:
            row |= failed_row("unreadable", str(error.strerror or error))
        except MemoryError:
            row |= failed_row("out_of_memory", "no memory left in the worker")
        except Exception as error:  # noqa: BLE001 (one run's fault, ours or its archive's, is never the batch's end)
            row |= failed_row("failed", f"{type(error).__name__}: {error}")
        return Outcome(task.run.run, row)


def _content(run: FoundRun, files: list[BinaryIO]) -> str:
    """SHA-256 over the files' names and bytes and the run's own settings."""
    whole = hashlib.sha256(repr(run.settings).encode())
    for file in sorted(files, key=lambda file: str(file.name)):
        one = hashlib.sha256()
        while piece := file.read(_READ_BYTES):
            one.update(piece)
        file.seek(0)
        whole.update(f"{file.name}\0{one.hexdigest()}\0".encode("utf-8", "replace"))
    return whole.hexdigest()


def _analysed(task: Task, row: Row, streams: list[BinaryIO]) -> Outcome:
    from postmortem import api  # noqa: PLC0415 (a client of a cluster never loads the analysis)

    own, settings = task.run.settings, task.settings
    if own.error:
        return Outcome(task.run.run, row | failed_row("unreadable", own.error))
    found = api.analyze(
        streams,
        limit=own.limit or settings.limit,
        budget=own.budget or settings.budget,
        profile=settings.profile,
        tz=own.clock or settings.tz,
        redact=settings.redact,
    )
    found.result = msgspec.structs.replace(found.result, name=task.run.name)
    row |= run_row(found.result, found.timeline)
    damaged = [
        f"{file.name}: {damage}, read up to there" for file in streams if (damage := getattr(file, "damage", None))
    ]
    row["error"] = "; ".join(damaged)[:1000] or None
    if settings.reports == "all" or (settings.reports == "failed" and row["ending"] in _MEMORY_DEATHS):
        row["report"] = _write_report(task, found)
    return Outcome(task.run.run, row, parts_rows(task.run.run, found.result))


def _write_report(task: Task, found: postmortem.Postmortem) -> str:
    """The run's page, written whole or not at all; the chart code stands once beside all of them."""
    from postmortem_reports import html, markdown  # noqa: PLC0415

    target = target_of(task.settings.out)
    if not target.exists(f"reports/{html.PLOTLY_FILE}"):
        target.write(f"reports/{html.PLOTLY_FILE}", html.plotly_source().encode())
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", task.run.name).strip("-.")[:60] or "run"
    page = f"reports/{slug}-{task.key}.postmortem.html"
    text = html.render(found.result, found.timeline, plotly_js="file", markdown=markdown.render(found.result))
    target.write(page, text.encode(errors="replace"))
    return page
