"""The fleet's figures by hand on a table of known runs, and the page's promises."""

import re
import time
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from postmortem.batch.rows import RUNS
from postmortem.fleet import figures
from postmortem.units import GIB
from postmortem_reports.fleet import render


def table(path: Path, rows: list[dict]) -> Path:
    blank = dict.fromkeys(RUNS)
    full = [
        blank
        | {"run": f"fleet/{n}", "name": str(n), "status": "done", "tags": [], "summary": "s", "confidence": 1.0}
        | row
        for n, row in enumerate(rows)
    ]
    pl.DataFrame(full, RUNS).write_parquet(path)
    return path


def death(need: int, **more) -> dict:
    return {
        "ending": "cgroup_limit",
        "cause": "overhead",
        "limit": 342 * GIB,
        "margin_needed": need * GIB,
        "safe_budget": (342 - need) * GIB,
        "overhead": need * GIB,
        "start": datetime(2026, 1, 1, tzinfo=UTC),
        **more,
    }


def test_the_margin_that_covers_a_share_is_the_smallest_whole_gib_that_does(tmp_path: Path):
    fleet, _ = figures(table(tmp_path / "r.parquet", [death(need) for need in range(1, 101)]))
    (machines,) = fleet.machines
    assert [(m.covered, (m.as_it_ran or 0) // GIB) for m in machines.margins] == [(0.95, 95), (0.99, 99), (1.0, 100)]


def test_deaths_by_leak_and_by_neighbours_do_not_set_the_margin(tmp_path: Path):
    runs = [death(10), death(300, cause="leak"), death(300, cause="neighbour")]
    fleet, _ = figures(table(tmp_path / "r.parquet", runs))
    assert (fleet.machines[0].margins[-1].as_it_ran, fleet.machines[0].measured) == (10 * GIB, 1)


def test_a_run_survives_the_budgets_up_to_its_safe_one(tmp_path: Path):
    fleet, _ = figures(table(tmp_path / "r.parquet", [death(2), death(11)]))
    assert {step.budget // GIB: step.survive for step in fleet.machines[0].ladder}.items() >= {
        342: 0,
        340: 1,
        331: 2,
    }.items()


def test_like_deaths_are_one_cluster_with_the_run_nearest_its_median(tmp_path: Path):
    runs = [death(1, excess=e * GIB) for e in (1, 5, 30)] + [death(1, cause="leak", excess=GIB)]
    fleet, _ = figures(table(tmp_path / "r.parquet", runs))
    assert [(c.cause, c.runs, c.example_name) for c in fleet.clusters] == [("overhead", 3, "1"), ("leak", 1, "3")]


def test_an_outlier_stands_apart_from_its_machine_size(tmp_path: Path):
    fleet, _ = figures(table(tmp_path / "r.parquet", [death(5) for _ in range(9)] + [death(90)]))
    assert [(o.name, o.value // GIB, o.usual // GIB) for o in fleet.outliers] == [("9", 90, 5)]


HOSTILE = "</script><img src=x onerror=alert(1)>\u202e'\""


@pytest.fixture
def page(tmp_path: Path) -> str:
    runs = [death(5, name=HOSTILE, run=f"fleet/{HOSTILE}", summary=HOSTILE, tags=[f"version={HOSTILE}"])]
    return render(*figures(table(tmp_path / "r.parquet", runs)))


def test_what_runs_are_called_is_never_markup(page: str):
    assert "<img" not in page
    assert "\u202e" not in page


def test_the_page_loads_nothing_and_runs_only_its_own_scripts(page: str):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    assert not re.search(r'(?:src|href)="(?!#)(?:https?:)?//', page)
    assert " style=" not in page


def test_the_same_runs_give_the_same_page(tmp_path: Path):
    runs = table(tmp_path / "r.parquet", [death(5), death(7)])
    assert render(*figures(runs)) == render(*figures(runs))


def test_a_fleet_without_any_result_has_a_page(tmp_path: Path):
    assert "No run could be analysed" in render(
        *figures(table(tmp_path / "r.parquet", [{"status": "died", "error": "e"}]))
    )


def test_a_hundred_thousand_runs_stay_under_ten_megabytes(tmp_path: Path):
    runs = pl.read_parquet(table(tmp_path / "r.parquet", [death(5)]))
    count = 100_000
    many = pl.concat([runs] * count).with_columns(
        run=pl.format("archive/2026-01/night-{}.tar.gz/run-{}", pl.int_range(count) // 50, pl.int_range(count)),
        name=pl.format("run-{}", pl.int_range(count)),
        overhead=pl.int_range(count) * 977_777,
    )
    many.write_parquet(tmp_path / "many.parquet")
    begun = time.monotonic()
    page = render(*figures(tmp_path / "many.parquet"))
    assert len(page.encode()) < 10_000_000
    assert time.monotonic() - begun < 20


def test_a_fleet_whose_deaths_are_all_undecided_names_no_cause(tmp_path: Path):
    fleet, frame = figures(table(tmp_path / "r.parquet", [death(10, cause="inconclusive")]))
    page = render(fleet, frame)
    assert "1 of 1 runs died of memory; why, their evidence does not decide" in page
    assert "Death by memory, cause undecided" in page.split('aria-label="Legend"')[1].split("</ul>")[0]
