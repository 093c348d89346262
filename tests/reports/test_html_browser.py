"""The page in a real browser: silent, alone, alive, reachable by keyboard, readable without scripts, on a phone, on paper."""

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from playwright.sync_api import Browser, Page
from reports.browser import browser
from reports.test_html_page import HOSTILE, hostile

from postmortem_reports.html import PLOTLY_FILE, plotly_source, render
from reports import factory

pytestmark = pytest.mark.browser

AXE = Path(__file__).parent / "assets" / "axe.min.js"
MARKDOWN = "## Post-mortem\n\nA line.\n"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The incident's report as a file's URL."""
    path = tmp_path_factory.mktemp("report") / "incident.html"
    path.write_text(render(factory.incident(), factory.incident_timeline(), markdown=MARKDOWN), encoding="utf-8")
    return path.as_uri()


class Opened:
    """A page with what it said and what it asked for."""

    def __init__(self, running: Browser, url: str, **options: Any) -> None:
        self.context = running.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def moment(page: Page) -> str:
    return page.locator("#moment-time").inner_text()


def shown_range(page: Page) -> list[float]:
    return page.evaluate(
        "document.getElementById('timeline-live')._fullLayout.xaxis.range.map(t => Date.parse(t.replace(' ', 'T') + 'Z'))"
    )


def test_the_page_draws_its_figure_says_nothing_and_asks_for_nothing(chromium: Browser, report: str) -> None:
    with Opened(chromium, report) as opened:
        page = opened.page
        page.wait_for_selector("#timeline-box.drawn")
        traces = page.locator("#timeline-live .scatterlayer .trace").count()
        ready = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        page.get_by_role("button", name="Use dark colours").click()
        page.wait_for_timeout(100)
        assert traces >= 15
        assert ready < 5000  # the aim is one second; a loaded test machine gets more
        assert opened.said == []
        assert opened.asked == [report]


def test_the_policy_is_in_force(chromium: Browser, report: str) -> None:
    with Opened(chromium, report) as opened:
        ran = opened.page.evaluate(
            """() => new Promise((done) => {
                document.addEventListener("securitypolicyviolation", (event) => done([event.effectiveDirective, window.ran === true]));
                const script = document.createElement("script");
                script.textContent = "window.ran = true";
                document.body.append(script);
            })"""
        )
        assert ran == ["script-src-elem", False]


def test_zoom_moves_all_panes_and_the_buttons_do_the_same(chromium: Browser, report: str) -> None:
    with Opened(chromium, report) as opened:
        page = opened.page
        page.wait_for_selector("#timeline-box.drawn")
        whole = shown_range(page)
        box = page.locator("#timeline-live .nsewdrag").first.bounding_box()
        assert box is not None
        page.locator("#timeline-live").scroll_into_view_if_needed()
        box = page.locator("#timeline-live .nsewdrag").first.bounding_box()
        assert box is not None
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.3, y)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=4)
        page.mouse.up()
        zoomed = shown_range(page)
        axes = page.evaluate("[...new Set(document.getElementById('timeline-live')._fullData.map(t => t.xaxis))]")
        assert zoomed[1] - zoomed[0] == pytest.approx(0.3 * (whole[1] - whole[0]), rel=0.05)
        assert axes == ["x"]
        page.get_by_role("button", name="Whole run").click()
        assert shown_range(page) == whole
        page.get_by_role("button", name="Zoom in").click()
        half = shown_range(page)
        assert half[1] - half[0] == pytest.approx((whole[1] - whole[0]) / 2, rel=0.01)


def test_a_click_shows_the_arithmetic_of_that_moment(chromium: Browser, report: str) -> None:
    with Opened(chromium, report) as opened:
        page = opened.page
        page.wait_for_selector("#timeline-box.drawn")
        before = moment(page)
        page.locator("#timeline-live").scroll_into_view_if_needed()
        box = page.locator("#timeline-live .nsewdrag").first.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_function("before => document.getElementById('moment-time').innerText !== before", arg=before)
        middle = factory.START + (factory.KILLED - factory.START) / 2
        assert abs((middle - _parsed(moment(page))).total_seconds()) < 4
        cells = page.locator("#readout tr:not(.total) [data-key]")
        parts = {"resident", "working_set", "pinned_uncovered_in_use", "pool_idle", "transient", "overhead"}
        figures = {cell.get_attribute("data-key"): _bytes(cell.get_attribute("title")) for cell in cells.all()}
        total = _bytes(page.locator('#readout [data-key="unreclaimable"]').get_attribute("title"))
        assert total == pytest.approx(sum(figures[part] for part in parts), abs=6 * 4096)
        link = page.locator("#moment-link").get_attribute("href")
        chosen = moment(page)
        page.goto(report + str(link))
        page.reload()
        assert moment(page) == chosen


def _parsed(shown: str) -> Any:
    return type(factory.START).fromisoformat(shown.replace("\u00a0UTC", "+00:00"))


def _bytes(title: str | None) -> int:
    return int((title or "0").removesuffix(" bytes").replace(",", ""))


def test_the_keyboard_reaches_every_control_and_reads_moments(chromium: Browser, report: str) -> None:
    with Opened(chromium, report) as opened:
        page = opened.page
        page.wait_for_selector("#timeline-box.drawn")
        reached = set()
        for _ in range(200):
            page.keyboard.press("Tab")
            reached.add(
                page.evaluate(
                    "document.activeElement.id || document.activeElement.dataset.zoom || document.activeElement.tagName"
                )
            )
        assert {
            "copy-markdown",
            "save-json",
            "theme",
            "in",
            "out",
            "left",
            "right",
            "all",
            "moment",
            "SUMMARY",
        } <= reached
        before = moment(page)
        page.locator("#moment").focus()
        for _ in range(5):
            page.keyboard.press("ArrowLeft")
        # One row a second, some of them thinned away: five rows back are five to ten seconds.
        assert 5 <= (_parsed(before) - _parsed(moment(page))).total_seconds() <= 10
        assert "in use" in str(page.locator("#moment").get_attribute("aria-valuetext"))
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        assert moment(page) == before


def test_the_result_and_the_markdown_leave_the_page_whole(chromium: Browser, report: str, tmp_path: Path) -> None:
    with Opened(chromium, report) as opened:
        page = opened.page
        with page.expect_download() as download:
            page.get_by_role("button", name="Save result").click()
        download.value.save_as(tmp_path / "result.json")
        saved = json.loads((tmp_path / "result.json").read_text())
        assert saved["arithmetic"]["limit"]["best"] == factory.LIMIT
        page.evaluate(
            "() => { navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }; }"
        )
        page.get_by_role("button", name="Copy as Markdown").click()
        assert page.evaluate("window.copied") == MARKDOWN


def test_without_scripts_the_essentials_are_there(chromium: Browser, report: str) -> None:
    with Opened(chromium, report, java_script_enabled=False) as opened:
        page = opened.page
        assert "probably killed by the cgroup limit of 342" in page.locator("h1").inner_text()
        assert page.locator("#waterfall svg").is_visible()
        assert page.locator("#timeline-box .static svg.plot").is_visible()
        assert page.locator("#timeline-box .static path.area").count() >= 8
        assert page.locator("#arithmetic-table").is_visible()
        assert page.locator("#ev-5 .hit").is_visible()
        assert page.get_by_role("button").count() == 0
        assert opened.said == []


def test_a_sandboxed_preview_shows_the_essentials(chromium: Browser, report: str, tmp_path: Path) -> None:
    frame = tmp_path / "preview.html"
    frame.write_text(f'<iframe sandbox width="1200" height="800" src="{report}"></iframe>')
    with Opened(chromium, frame.as_uri()) as opened:
        inner = opened.page.frame_locator("iframe")
        assert "probably killed" in inner.locator("h1").inner_text()
        assert inner.locator("#timeline-box .static svg.plot").is_visible()


@pytest.mark.parametrize("width", [360, 768, 3840])
def test_the_page_never_scrolls_sideways_even_with_hostile_names(chromium: Browser, tmp_path: Path, width: int) -> None:
    path = tmp_path / "hostile.html"
    text = render(hostile(factory.incident()), factory.incident_timeline(), markdown=HOSTILE.replace("\ud800", "") * 40)
    path.write_text(text, encoding="utf-8")
    with Opened(chromium, path.as_uri()) as opened:
        opened.page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
        opened.page.set_viewport_size({"width": width, "height": 900})
        opened.page.wait_for_selector("#timeline-box.drawn")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.said == []
        assert opened.asked == [path.as_uri()]


def test_nothing_jumps_when_the_live_figure_takes_over(chromium: Browser, report: str) -> None:
    tops = []
    for scripts in (True, False):
        with Opened(chromium, report, java_script_enabled=scripts) as opened:
            if scripts:
                opened.page.wait_for_selector("#timeline-box.drawn")
                shift = opened.page.evaluate(
                    "() => new Promise(done => new PerformanceObserver(list => done(list.getEntries().reduce((sum, e) => sum + e.value, 0))).observe({type: 'layout-shift', buffered: true}) || setTimeout(() => done(0), 300))"
                )
                assert shift < 0.01
            box = opened.page.locator("#timeline-box").bounding_box()
            assert box is not None
            tops.append((box["width"], box["height"]))
    assert tops[0] == tops[1]


# Fill colours of the printed parts (page.css) as a PDF writes them.
PRINTED = {"pinned, uncovered": (0xCF, 0x4B, 0x1A), "overhead": (0x2B, 0x7A, 0x70), "resident": (0x27, 0x47, 0x7D)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_print_is_white_with_its_charts_and_open_details(chromium: Browser, report: str, scheme: Any) -> None:
    with Opened(chromium, report, color_scheme=scheme) as opened:
        opened.page.wait_for_selector("#timeline-box.drawn")
        paper = opened.page.pdf(format="A4", print_background=True)
        opened.page.emulate_media(media="print")
        opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert opened.page.locator("details:not([open])").count() == 0
        assert opened.page.locator("#timeline-box .static svg.plot").is_visible()
        assert not opened.page.locator("#timeline-live").is_visible()
    drawn = _pdf_content(paper)
    for part, color in PRINTED.items():
        # once each in the legend, the arithmetic's bars, its table, the timeline, the moment's table
        assert len(_filled(drawn, color)) >= 5, f"{part} is not on paper"


def _pdf_content(paper: bytes) -> str:
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", paper, re.DOTALL)
    return "\n".join(_inflated(stream).decode("latin-1") for stream in streams)


def _inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:  # a font or picture of another encoding
        return b""


def _filled(content: str, color: tuple[int, int, int]) -> list[str]:
    """Places where this fill colour is set."""
    written = " ".join(f"{value / 255:.4f}".strip("0") for value in color)
    return re.findall(rf"{re.escape(written)} rg", content)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(chromium: Browser, report: str, scheme: Any) -> None:
    with Opened(chromium, report, color_scheme=scheme, bypass_csp=True) as opened:
        page = opened.page
        page.wait_for_selector("#timeline-box.drawn")
        page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
        page.add_script_tag(path=AXE)
        found = page.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.target.join(' ') + ': ' + n.any.concat(n.all).map(c => c.message).join('; ')).slice(0, 5)]))"
        )
        assert found == []


def test_the_library_beside_the_page_is_used_and_its_absence_leaves_the_static_picture(
    chromium: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(factory.incident(), factory.incident_timeline(), plotly_js="file"), encoding="utf-8")
    with Opened(chromium, path.as_uri()) as opened:
        assert opened.page.locator("#timeline-box .static svg.plot").is_visible()
    (tmp_path / PLOTLY_FILE).write_text(plotly_source(), encoding="utf-8")
    with Opened(chromium, path.as_uri()) as opened:
        opened.page.wait_for_selector("#timeline-box.drawn")
        assert opened.said == []
