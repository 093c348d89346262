import json
import os
import stat

import msgspec
import pytest

from postmortem.errors import NoEvidenceError
from postmortem.units import GIB
from reports import factory

PAGE = "incident-342.postmortem.html"

pytestmark = pytest.mark.usefixtures("fake")


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_without_a_format_the_answer_is_printed_and_the_page_written(run, tmp_path):
    code, out, err = run("analyze", "run.log")
    assert code == 0
    assert "Probably killed by the cgroup memory limit" in out
    assert PAGE in out
    assert err == ""
    assert (tmp_path / PAGE).read_text().startswith("<!doctype html>")
    assert files(tmp_path) == [PAGE]


def test_json_alone_prints_one_object_and_writes_nothing(run, tmp_path):
    code, out, err = run("analyze", "run.log", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["verdict"]["cause"] == "untracked_pinned"
    assert files(tmp_path) == []


@pytest.mark.parametrize(("kind", "begins"), [("md", "## Post-mortem"), ("text", "incident-342\n")])
def test_markdown_and_text_alone_go_to_stdout(run, tmp_path, kind, begins):
    code, out, _ = run("analyze", "run.log", "--format", kind)
    assert code == 0
    assert out.startswith(begins)
    assert files(tmp_path) == []


def test_several_formats_become_files_beside_the_page(run, tmp_path):
    code, out, err = run("analyze", "run.log", "--format", "html,json", "--format", "md,text", "-f", "perfetto")
    assert (code, out) == (0, "")
    names = files(tmp_path)
    assert names == [f"incident-342.postmortem.{end}" for end in ("html", "json", "md", "trace.json", "txt")]
    assert all(f"wrote {name}" in err for name in names)


def test_an_output_file_takes_the_only_format_and_names_its_neighbours(run, tmp_path):
    assert run("analyze", "run.log", "--format", "json", "-o", "answer.json")[:2] == (0, "")
    assert json.loads((tmp_path / "answer.json").read_text())["schema"] == "postmortem/1"
    assert run("analyze", "run.log", "--format", "html,md", "-o", "a.html")[:2] == (0, "")
    assert (tmp_path / "a.md").read_text().startswith("## Post-mortem")


def test_a_dash_as_output_prints_the_page(run, tmp_path):
    code, out, _ = run("analyze", "run.log", "--format", "html", "-o", "-")
    assert code == 0
    assert out.startswith("<!doctype html>")
    assert files(tmp_path) == []


def test_options_reach_the_analysis_as_values_with_units(fake, run, utc):
    code, *_ = run(
        *("analyze", "run.log", "mem.csv", "--format", "json", "--limit", "342GiB", "--budget", "331 G"),
        *(
            "--profile",
            "cuzk",
            "--tz",
            "-05:30",
            "--redact",
            "--since",
            "2026-03-19T02:00",
            "--until",
            "2026-03-19T09:00Z",
        ),
    )
    assert code == 0
    assert fake.asked == [
        (
            ["run.log", "mem.csv"],
            {
                "limit": 342 * GIB,
                "budget": 331 * GIB,
                "profile": "cuzk",
                "tz": "-05:30",
                "since": utc(2026, 3, 19, 7, 30),
                "until": utc(2026, 3, 19, 9, 0),
                "redact": True,
            },
        )
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "pdf"], "'pdf' is not one of html, json, md, text, perfetto"),
        (["--limit", "much"], "--limit: not a size: 'much'"),
        (["--budget", "0"], "--budget: a size above zero is needed"),
        (["--tz", "CET"], "--tz: 'CET' is no offset from UTC"),
        (["--since", "yesterday"], "--since: 'yesterday' is no time"),
        (["--since", "2026-03-20", "--until", "2026-03-19"], "--since 2026-03-20 is not before --until 2026-03-19"),
        (["--fail-on", "fire"], "--fail-on: 'fire' is not known"),
        (["--plotly-js", "npm"], "--plotly-js: 'npm' is not one of inline, cdn, file"),
        (["--open", "--format", "json"], "--open needs the HTML report"),
        (["-o", "-"], "-o - needs one --format"),
        (["-o", "no/such/folder.html"], "the directory no/such does not exist"),
        (["--colour"], "No such option: --colour"),
    ],
)
def test_wrong_use_is_one_line_on_stderr_and_exit_code_2_before_anything_is_read(fake, run, arguments, says):
    code, out, err = run("analyze", "run.log", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("postmortem: ")
    assert says in err
    assert err.count("\n") == 1
    assert fake.asked == []


def test_an_input_without_evidence_is_one_line_and_exit_code_2(fake, run):
    fake.error = NoEvidenceError("photo.png holds no evidence that any parser knows\nsecond \x1b[31mline")
    assert run("analyze", "photo.png") == (
        2,
        "",
        "postmortem: photo.png holds no evidence that any parser knows second \\x1b[31mline\n",
    )


def test_a_fault_of_ours_is_one_line_unless_debug_is_asked_for(fake, run):
    fake.error = ZeroDivisionError("division by zero")
    code, out, err = run("analyze", "run.log")
    assert (code, out) == (2, "")
    assert err.startswith("postmortem: internal error: ZeroDivisionError: division by zero")
    assert "Traceback" not in err
    with pytest.raises(ZeroDivisionError):
        run("analyze", "run.log", "--debug")


def test_an_interrupt_is_quiet(fake, run):
    fake.error = KeyboardInterrupt()
    assert run("analyze", "run.log") == (130, "", "")


@pytest.mark.parametrize(
    ("how", "expected"),
    [("cgroup_limit", 1), ("host_oom", 1), ("userland_oom", 1), ("sigkill_unexplained", 0), ("finished", 0)],
)
def test_fail_on_memory_gives_1_for_a_death_by_memory_only(fake, run, how, expected):
    ending = msgspec.structs.replace(fake.result.ending, how=how)
    fake.result = msgspec.structs.replace(fake.result, ending=ending)
    assert run("analyze", "run.log", "--format", "json", "--fail-on", "memory")[0] == expected


def test_a_report_of_ours_is_overwritten_and_anything_else_is_not(run, tmp_path):
    kinds = "html,json,md,text,perfetto"
    assert run("analyze", "run.log", "--format", kinds)[0] == 0
    assert run("analyze", "run.log", "--format", kinds)[0] == 0
    diary = tmp_path / "incident-342.postmortem.md"
    diary.write_text("Dear diary")
    code, out, err = run("analyze", "run.log", "--format", kinds)
    assert (code, out) == (2, "")
    assert "incident-342.postmortem.md exists and is no report of ours" in err
    assert diary.read_text() == "Dear diary"
    assert run("analyze", "run.log", "--format", kinds, "--force")[0] == 0
    assert diary.read_text().startswith("## Post-mortem")


def test_a_file_that_is_not_ours_stops_the_run_before_the_analysis(fake, run, tmp_path):
    (tmp_path / "notes.html").write_text("<html>mine</html>")
    assert run("analyze", "run.log", "-o", "notes.html")[0] == 2
    assert fake.asked == []


def test_a_report_that_cannot_be_made_leaves_the_old_one_whole(run, tmp_path, monkeypatch):
    run("analyze", "run.log")
    before = (tmp_path / PAGE).read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    code, _, err = run("analyze", "run.log")
    assert code == 2
    assert err == f"postmortem: cannot write {PAGE}: No space left on device\n"
    assert (tmp_path / PAGE).read_bytes() == before
    assert files(tmp_path) == [PAGE]


def test_a_report_has_the_permissions_that_the_umask_gives(run, tmp_path):
    run("analyze", "run.log")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / PAGE).stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize(
    ("name", "file"), [("a/../b c", "a_.._b_c"), ("\x1b[2J", "2J"), ("", "run"), ("…", "run"), ("прогон", "прогон")]
)
def test_the_default_file_name_is_harmless_whatever_the_run_is_called(fake, run, tmp_path, name, file):
    fake.result = msgspec.structs.replace(factory.finished(), name=name)
    assert run("analyze", "x")[0] == 0
    assert files(tmp_path) == [f"{file}.postmortem.html"]


def test_plotly_as_a_file_is_written_beside_the_page(run, tmp_path):
    run("analyze", "run.log", "--plotly-js", "file")
    assert files(tmp_path) == [PAGE, "plotly-basic.min.js"]


def test_no_colour_reaches_a_pipe(run):
    assert "\x1b" not in run("analyze", "run.log")[1]
