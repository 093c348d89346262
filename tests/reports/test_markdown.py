import re

import msgspec
import pytest
from markdown_it import MarkdownIt
from reports.hostile import MARKUP, RAW, everywhere

from postmortem_reports import markdown
from reports import factory


@pytest.fixture(scope="module")
def incident():
    return factory.incident()


def tokens(text):
    return MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(text)


def inline(text):
    return [child for token in tokens(text) for child in token.children or []]


def tables(text):
    """Each table as rows of its cells' plain text."""
    found, cell = [], None
    for token in tokens(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in {"th_open", "td_open"}:
            cell = found[-1][-1]
        elif token.type == "inline" and cell is not None:
            cell.append("".join(child.content for child in token.children))
        elif token.type == "table_close":
            cell = None
    return found


def test_it_begins_with_the_verdict_and_the_four_numbers(incident):
    text = markdown.render(incident)
    title, verdict, ending = text.split("\n\n")[:3]
    assert title == "## Post-mortem: incident-342"
    assert verdict == f"**{incident.verdict.summary}**"
    assert ending.startswith(
        "Probably killed by the cgroup memory limit (probable on this evidence), 2026-03-19 02:26:24"
    )
    assert tables(text)[0] == [
        ["Limit", "Budget", "Budget never saw", "Safe budget"],
        ["342.0 GiB", "331.0 GiB", "160.2 GiB", "165.0 GiB"],
    ]


def test_the_arithmetic_is_a_table_with_its_sums(incident):
    table = tables(markdown.render(incident))[1]
    assert table[0] == ["Part", "Set aside", "Actual", "Excess", "Excess between", "Basis"]
    assert [row[0] for row in table[1:]] == [
        *("SRS porep-32g", "PCE porep-32g", "working set", "pinned pool, uncovered", "overhead", "sum")
    ]
    assert table[-1][1:4] == ["193.0 GiB", "342.2 GiB", "+149.2 GiB"]


def test_the_tables_are_aligned_for_readers_of_the_source(incident):
    for block in markdown.render(incident).split("\n\n"):
        if block.startswith("|"):
            assert len({len(line) for line in block.split("\n")}) == 1


def test_each_excerpt_marks_the_cited_line_among_its_neighbours(incident):
    text = markdown.render(incident)
    fences = [token.content for token in tokens(text) if token.type == "fence"]
    assert len(fences) == len(incident.evidence)
    for evidence, fence in zip(incident.evidence, fences, strict=True):
        marked = [line for line in fence.split("\n") if line.startswith("> ")]
        assert marked == [f"> {evidence.line}  {evidence.text}"]


def test_evidence_against_and_missing_evidence_are_there(incident):
    text = markdown.render(incident)
    assert "_Against:_ " in text
    missing = text.partition("### Missing evidence")[2].partition("###")[0]
    assert (
        "- The kernel's report of the kill: It would prove the ending and split the memory by kind. Record" in missing
    )
    assert missing.count("\n- ") == len(incident.missing)


def test_hostile_text_is_shown_and_does_nothing(incident):
    text = markdown.render(everywhere(incident))
    assert not set(text) & RAW
    kinds = {token.type for token in tokens(text)} | {child.type for child in inline(text)}
    assert not kinds & {
        "html_block",
        "html_inline",
        "link_open",
        "image",
        "s_open",
        "code_block",
        "blockquote_open",
        "hr",
    }
    words = "".join(child.content for child in inline(text) if child.type == "text")
    assert not re.search(r"[@#<>&\[\]]|javascript|:bomb:|\$\$|http", words)
    assert [len(row) for table in tables(text) for row in table] == [
        len(row) for table in tables(markdown.render(incident)) for row in table
    ]


def test_backticks_in_a_log_line_do_not_end_its_fence(incident):
    evidence = [msgspec.structs.replace(incident.evidence[0], text="``` " + MARKUP, around=[(1, "`" * 70)])]
    text = markdown.render(msgspec.structs.replace(incident, evidence=evidence))
    fences = [token for token in tokens(text) if token.type == "fence"]
    assert len(fences) == 1
    assert MARKUP in fences[0].content


def test_it_fits_a_comment_whatever_the_result_holds(incident):
    huge = msgspec.structs.replace(
        everywhere(incident, "𝔵" * 200_000),
        warnings=["w" * 5_000] * 500,
        phases=incident.phases * 500,
        missing=incident.missing * 500,
    )
    text = markdown.render(huge)
    assert len(text) <= 65_536
    assert text.rstrip().split("\n")[-1].startswith("Made by postmortem ")


def test_the_inconclusive_and_the_finished_are_rendered():
    assert "## Post-mortem" in markdown.render(factory.inconclusive())
    assert "finished" in markdown.render(factory.finished())
