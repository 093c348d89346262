"""The fleet's page in a browser: sorted, filtered, accessible, narrow, and readable without scripts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Browser
from reports.browser import browser

from postmortem.batch.rows import RUNS
from postmortem.fleet import figures
from postmortem.units import GIB
from postmortem_reports.fleet import render

pytestmark = pytest.mark.browser
AXE = Path(__file__).parents[1] / "reports" / "assets" / "axe.min.js"
CAUSES = ("untracked_pinned", "overhead", "leak", "transient_spike", "neighbour")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("fleet")
    rows = [
        dict.fromkeys(RUNS)
        | {
            "run": f"fleet/night-{n // 10}/run-{n:03d}",
            "name": f"run-{n:03d}",
            "status": "died" if n == 7 else "done",
            "error": "its worker died" if n == 7 else None,
            "tags": [],
            "ending": None if n == 7 else "cgroup_limit" if n % 3 else "finished",
            "cause": None if n == 7 else CAUSES[n % 5] if n % 3 else "not_memory",
            "confidence": 0.9,
            "summary": f"summary {n}",
            "limit": (342 if n % 2 else 256) * GIB,
            "margin_needed": (n % 40) * GIB,
            "safe_budget": 200 * GIB,
            "overhead": n * GIB,
            "start": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=n),
            "report": f"reports/run-{n:03d}-0123456789ab.postmortem.html" if n % 3 else None,
        }
        for n in range(130)
    ]
    pl.DataFrame(rows, RUNS).write_parquet(folder / "runs.parquet")
    page = folder / "index.html"
    page.write_text(render(*figures(folder / "runs.parquet")), encoding="utf-8")
    return page.as_uri()


def test_runs_are_filtered_by_words_and_sorted_by_columns(chromium: Browser, url: str):
    page = chromium.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(url)
    assert page.inner_text("#shown") == "1–100 of 130 runs"
    page.click("button[data-key=overhead]")
    assert page.inner_text("#runs-body tr:first-child th a, #runs-body tr:first-child th bdi") == "run-129"
    page.fill("#filter-text", "night-1/ run-01")
    page.get_by_text("1–10 of 10 runs").wait_for()
    link = page.locator("#runs-body a").first
    assert link.get_attribute("href") == f"reports/{link.inner_text()}-0123456789ab.postmortem.html"
    assert said == []


def test_the_page_is_readable_without_scripts(chromium: Browser, url: str):
    page = chromium.new_context(java_script_enabled=False).new_page()
    page.goto(url)
    assert page.locator("#runs-body tr").count() == 130
    assert not page.locator("#filter-text").is_visible()


def test_nothing_is_wider_than_a_telephone(chromium: Browser, url: str):
    page = chromium.new_page(viewport={"width": 360, "height": 800})
    page.goto(url)
    assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(chromium: Browser, url: str, scheme):
    page = chromium.new_context(color_scheme=scheme, bypass_csp=True).new_page()
    page.goto(url)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    page.add_script_tag(path=AXE)
    found = page.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.target.join(' ') + ': ' + n.any.concat(n.all).map(c => c.message).join('; ')).slice(0, 5)]))"
    )
    assert found == []
