"""The page as text: what it holds, that it adds up, that hostile text only shows itself, that it stays small."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import polars as pl
import pytest

from postmortem.result import Result
from postmortem.units import GIB
from postmortem_reports.html import render
from reports import factory

MARKDOWN = "## Post-mortem\n\n`</textarea>` stays text.\n"


@pytest.fixture(scope="module")
def page() -> str:
    return render(factory.incident(), factory.incident_timeline(), markdown=MARKDOWN)


class _Reader(HTMLParser):
    """Collects elements, ids, fragment links and script and style texts as a browser would."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.table_cells: list[list[dict[str, str | None]]] = []
        self.shown: list[str] = []
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self._inside = tag if tag in self.texts else None
        if self._inside and attributes.get("type") != "application/json" and "src" not in attributes:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            self.shown.append(data)
        elif self.elements[-1][0] == self._inside and self.elements[-1][1].get("type") != "application/json":
            self.texts[self._inside][-1] += data


def embedded(page: str, name: str = "result-data") -> Any:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_normal_run_stays_within_1_6_megabytes(page: str) -> None:
    assert len(page.encode()) <= 1_600_000


def test_the_same_arguments_give_the_same_bytes(page: str) -> None:
    assert render(factory.incident(), factory.incident_timeline(), markdown=MARKDOWN) == page


def test_a_million_moments_stay_bounded_and_keep_their_peaks() -> None:
    count = 1_000_000
    spike = 333_333
    row = factory.incident_timeline(step=100).slice(2, 1)
    wave = pl.int_range(count) % 97 * GIB
    long = (
        pl.select(time=factory.START + pl.duration(milliseconds=pl.int_range(count)))
        .join(row.drop("time", "unreclaimable"), how="cross")
        .with_columns(
            pool_in_use=wave, unreclaimable=pl.when(pl.int_range(count) == spike).then(999 * GIB).otherwise(wave)
        )
        .select(row.columns)
        .cast(dict(row.schema))
    )
    page = render(factory.incident(), long)
    series = embedded(page, "timeline-data")["series"]
    packed = base64.b64decode(series["columns"]["unreclaimable"])
    pages = [int.from_bytes(packed[at : at + 4], "little", signed=True) for at in range(0, len(packed), 4)]
    assert len(page.encode()) <= 5_000_000
    assert max(pages) * series["page"] == 999 * GIB
    assert "1,000,000 moments are known" in page


def test_the_policy_allows_nothing_but_the_scripts_and_styles_of_the_page(page: str) -> None:
    reader = _Reader(page)
    policy = next(a["content"] for tag, a in reader.elements if tag == "meta" and a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for text in (*reader.texts["script"], *reader.texts["style"]):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy


def test_no_element_names_another_place_and_none_carries_code(page: str) -> None:
    for tag, attributes in _Reader(page).elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert "src" not in attributes
        if "href" in attributes:
            assert (attributes["href"] or "").startswith("#")


def test_every_fragment_link_leads_to_an_element(page: str) -> None:
    elements = _Reader(page).elements
    names = [attributes["id"] for _, attributes in elements if "id" in attributes]
    links = {(attributes["href"] or "")[1:] for tag, attributes in elements if tag == "a"}
    assert len(names) == len(set(names))
    assert links <= set(names)


def test_the_arithmetic_on_the_page_sums_to_the_byte(page: str) -> None:
    table = page[page.index('id="arithmetic-table"') :]
    body, foot = table[: table.index("</tbody>")], table[table.index("<tfoot>") : table.index("</tfoot>")]
    rows = [
        re.findall(r'<data value="(-?\d+)"', row)
        for row in body.split("<tr ")
        if "part-" in row and "of" not in row[:12]
    ]
    parts = [tuple(map(int, row)) for row in rows if len(row) == 3]
    sums, slack, total = (
        [int(value) for value in re.findall(r'<data value="(-?\d+)"', row)] for row in foot.split("<tr")[1:4]
    )
    assert len(parts) == 5
    assert [sum(column) for column in zip(*parts, strict=True)] == sums
    assert sums[0] + slack[0] == total[0]
    assert sums[2] - slack[1] == total[2]
    assert [round(value / GIB, 1) for value in sums] == [193.0, 342.2, 149.2]


def test_the_embedded_result_is_the_result(page: str) -> None:
    assert embedded(page) == json.loads(msgspec.json.encode(factory.incident()))


def test_claims_link_to_their_excerpts_and_excerpts_have_the_lines_around(page: str) -> None:
    assert '<a class="cite" href="#ev-5" data-note="5"><bdi>run.log:1233</bdi></a>' in page
    excerpt = page[page.index('<li id="ev-5"') :]
    assert re.findall(r'<span class="no">(\d+)</span>', excerpt[: excerpt.index("</li>")]) == ["1231", "1232", "1233"]


def test_missing_evidence_comes_with_the_command_that_records_it(page: str) -> None:
    assert "journalctl -k --since &#39;2026-03-19 02:20&#39; &gt; kernel.log" in page


def test_an_inconclusive_result_without_a_timeline_makes_a_page() -> None:
    page = render(factory.inconclusive(), factory.no_timeline())
    assert "There is no timeline" in page
    assert "The evidence does not allow the arithmetic" in page
    assert "copy-markdown" not in page.partition("<body>")[2].partition('<script type="application/json"')[0]


def test_a_finish_is_not_shown_as_a_death() -> None:
    page = render(factory.finished(), factory.incident_timeline().filter(pl.col("time") < factory.at(556)))
    assert '<span class="flag calm">Finished</span>' in page
    assert 'class="kill"' not in page


HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)> javascript:alert(3) &lt; {{7*7}} \u202eevil\u202c zero\u200bwidth \x1b[31m \ud800 --></style>"


def hostile(result: Result) -> Result:
    """Every free text of the result with the hostile one behind it."""
    free = {
        "name",
        "summary",
        "text",
        "what",
        "why_it_matters",
        "how_to_record",
        "job",
        "circuit",
        "advice",
        "note",
        "victim",
        "source",
        "path",
        "clock",
        "meaning",
        "unit",
        "sha256",
        "profile",
        "postmortem_version",
        "part",
    }
    lists = {"warnings", "unmatched_examples", "columns", "parsers", "from"}

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name if name != "page tables" else HOSTILE: walk(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner, key) for inner in value]
        return value + HOSTILE if isinstance(value, str) and key in free | lists else value

    return msgspec.convert(walk(result.to_dict()), Result)


def test_hostile_text_adds_no_element_and_shows_what_it_hides() -> None:
    clean = _Reader(render(factory.incident(), factory.incident_timeline(), markdown="x"))
    page = render(hostile(factory.incident()), factory.incident_timeline(), markdown=HOSTILE.replace("\ud800", ""))
    reader = _Reader(page)
    wanted = {"script", "style", "img", "iframe", "meta", "link", "base", "form", "object", "textarea"}
    assert [tag for tag, _ in reader.elements if tag in wanted] == [tag for tag, _ in clean.elements if tag in wanted]
    outside = re.sub(r"<textarea.*?</textarea>", "", page, flags=re.DOTALL)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\ufeff\x1b\ud800-\udfff]", outside)
    assert 'title="right-to-left override">U+202E</span>' in page
    assert 'title="zero width space">U+200B</span>' in page
    assert "{{7*7}}" in "".join(reader.shown)


def test_a_line_of_ten_megabytes_is_cut_with_a_note() -> None:
    whole = factory.incident()
    long = msgspec.structs.replace(whole.evidence[0], text="x" * 10_000_000, around=[(4, "y" * 10_000_000)])
    page = render(msgspec.structs.replace(whole, evidence=[long]), factory.incident_timeline())
    assert len(page.encode()) <= 1_600_000
    assert "cut, 10,000,000 characters in all" in page


def test_thousands_of_findings_partitions_and_sources_stay_bounded() -> None:
    whole = factory.incident()
    many = msgspec.structs.replace(
        whole,
        partitions=whole.partitions * 2000,
        warnings=["a warning"] * 50_000,
        evidence=whole.evidence * 2000,
        phases=whole.phases * 2000,
        sources=whole.sources * 500,
    )
    page = render(many, factory.incident_timeline())
    assert len(page.encode()) <= 5_000_000
    assert len(embedded(page)["partitions"]) == 300
    assert "more are in the machine-readable result" in page


@pytest.mark.parametrize("place", ["cdn", "file"])
def test_a_page_without_the_library_is_small_and_says_where_it_loads_it(place: str) -> None:
    page = render(factory.incident(), factory.incident_timeline(), plotly_js=place)  # type: ignore[arg-type]
    assert len(page.encode()) < 400_000
    assert re.search(r'<script src="(https://cdn\.plot\.ly/)?plotly-basic[-.0-9a-z]*\.min\.js"', page)
