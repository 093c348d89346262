import io

import msgspec
import polars as pl
import pytest
from reports.hostile import RAW, everywhere
from rich.console import Console
from rich.text import Text

from postmortem.schema import TIMELINE
from postmortem.units import GIB
from postmortem_reports import terminal
from postmortem_reports.chart import memory_chart
from reports import factory


def shown(result, timeline=None, *, width=80, written=(), **options) -> str:
    page = io.StringIO()
    terminal.render(result, timeline, Console(file=page, width=width, **options), written=list(written))
    return page.getvalue()


@pytest.fixture(scope="module")
def incident():
    return factory.incident(), factory.incident_timeline()


def test_the_sentence_the_ending_and_its_certainty_come_first(incident):
    head = shown(*incident).split("\n\n")[0:3]
    assert "Probably killed by the cgroup memory limit" in head[0]
    assert "2026-03-19 02:26:24 UTC ± 4 s, probable on this evidence" in head[0]
    assert "cuzk-daemon was probably killed" in head[1]
    assert [cell.strip() for cell in head[2].split("\n")[1].split("   ") if cell.strip()] == [
        *("342.0 GiB", "331.0 GiB", "160.2 GiB", "165.0 GiB")
    ]


def test_every_line_fits_80_columns(incident):
    for width in (80, 200):
        assert max(len(line.rstrip()) for line in shown(*incident, width=width).split("\n")) <= 80


def test_the_table_shows_each_part_and_the_sums(incident):
    lines = [line.split() for line in shown(*incident).split("\n")]
    assert ["SRS", "porep-32g", "44.0", "GiB", "44.0", "GiB", "0.0", "GiB"] in lines
    assert any(
        line[:9] == ["pinned", "pool,", "uncovered", "0.0", "GiB", "77.5", "GiB", "+77.5", "GiB"] for line in lines
    )
    sums = next(line for line in lines if line[:1] == ["sum"])
    # 44 + 26 + 112 + 0 + 11; 44 + 26 + 112 + 77.5 + 82.7; 77.5 + 71.7
    assert sums[1:7] == ["193.0", "GiB", "342.2", "GiB", "+149.2", "GiB"]


def test_the_three_strongest_findings_are_cited_in_order_of_weight(incident):
    result, _ = incident
    text = " ".join(shown(result).split())
    found = [*result.ending.evidence, *(finding for cause in result.verdict.causes for finding in cause.evidence)]
    ranked = sorted(found, key=lambda finding: -finding.weight)
    places = [text.index(f"{number}. {finding.text.split()[0]}") for number, finding in enumerate(ranked[:3], 1)]
    assert places == sorted(places)
    assert f"[{', '.join(ranked[0].lines)}]" in text
    assert " 4. " not in text


def test_evidence_against_stands_beside_evidence_for(incident):
    result, _ = incident
    text = " ".join(shown(result).split())
    assert f"Against: {result.verdict.causes[0].against[0].text}" in text


def test_missing_evidence_and_what_was_read_are_said(incident):
    text = " ".join(shown(incident[0]).split())
    assert "The kernel's report of the kill: It would prove the ending" in text
    assert "Read 2 sources, 1,362 lines: 1,331 understood, 31 of no known kind, 0 broken." in text


def test_the_files_written_are_named_whole(incident):
    path = "a-long-folder/" * 9 + "run.postmortem.html"
    assert f"Report: {path}\n" in shown(incident[0], written=[path])


def test_without_colour_no_escape_sequence_is_printed_and_with_it_the_text_is_the_same(incident):
    bare = shown(*incident)
    coloured = shown(*incident, force_terminal=True, color_system="truecolor")
    assert "\x1b" not in bare
    assert "\x1b[" in coloured
    page = io.StringIO()
    Console(file=page, width=1000).print(Text.from_ansi(coloured), soft_wrap=True)
    assert page.getvalue().split() == bare.split()


def test_no_color_is_respected(incident, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    out = shown(*incident, force_terminal=True)
    assert "\x1b[31m" not in out
    assert "\x1b[1;31m" not in out


@pytest.mark.parametrize("make", [factory.inconclusive, factory.finished])
def test_a_result_that_knows_little_is_still_shown(make):
    assert make().name in shown(make(), factory.no_timeline())


def test_hostile_text_shows_itself_and_is_not_obeyed(incident):
    result, timeline = incident
    for text in (shown(everywhere(result), timeline), terminal.render_text(everywhere(result), timeline)):
        assert not set(text) & RAW
        assert "\\x1b[2J" in text
        assert max(map(len, text.split("\n"))) <= 200


def test_huge_texts_are_clipped(incident):
    assert len(shown(everywhere(incident[0], "x" * 1_000_000))) < 40_000


def test_the_text_format_has_no_boxes_colour_or_trailing_blanks_and_ends_with_its_maker(incident):
    text = terminal.render_text(*incident)
    assert not set(text) & set("─│┌┐└┘━┃\x1b")
    assert all(line == line.rstrip() for line in text.split("\n"))
    assert text.endswith("\npostmortem 0.1.0 · postmortem/1\n")


def timeline(**columns) -> pl.DataFrame:
    rows = len(next(iter(columns.values())))
    times = pl.datetime_range(factory.START, factory.at(rows - 1), "1s", time_unit="us", time_zone="UTC", eager=True)
    frame = pl.DataFrame({"time": times, **columns})
    return frame.with_columns(
        pl.lit(None, dtype=kind).alias(name) for name, kind in TIMELINE.items() if name not in frame.columns
    ).select(pl.col(name).cast(kind) for name, kind in TIMELINE.items())


def drawn(frame, width, height):
    chart = memory_chart(frame, width, height)
    assert chart is not None
    return [(label.strip(), "".join(text for text, _ in runs)) for label, runs in chart.rows]


def test_the_chart_stacks_the_parts_up_to_the_limit():
    quarter = [GIB] * 4
    chart = drawn(
        timeline(resident=quarter, working_set=quarter, pool_idle=[0, 0, GIB, GIB], limit=[4 * GIB] * 4), 4, 4
    )
    assert chart == [("4.0 GiB limit", "    "), ("", "  ▓▓"), ("2.0 GiB", "▒▒▒▒"), ("", "░░░░")]


def test_a_peak_of_one_moment_is_seen_among_thousands():
    charged = [GIB] * 5_000
    charged[3_210] = 10 * GIB
    assert "█" in drawn(timeline(charged=charged), 40, 5)[0][1]


def test_a_timeline_without_memory_gives_no_chart():
    assert memory_chart(factory.no_timeline(), 40, 5) is None
    assert memory_chart(timeline(jobs_done=[1, 2]), 40, 5) is None
    assert memory_chart(None, 40, 5) is None


def test_more_phases_than_fit_are_counted(incident):
    result = msgspec.structs.replace(incident[0], phases=incident[0].phases * 5)
    assert "… and 6 more phases" in shown(result)
