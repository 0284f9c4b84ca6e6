"""The Tradeoff page in a real browser: a sweep is started, stopped, continued and finished; leave and come back."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

GRID = "lab_n_four_corners=200+400&lab_eps_four_corners=1+5"


def in_url(dashboard) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlparse(dashboard.page.url).query).items()}


def arrive(dashboard, query: str):
    """Open the page without waiting for its end: a sweep looks at itself again and again."""
    dashboard.page.goto(f"{dashboard.address}/tradeoff?{query}")
    dashboard.page.wait_for_selector("[data-testid=answer]", timeout=60_000)
    return dashboard.page


def runs_done(page) -> int:
    text = page.locator(".st-key-lab_progress").inner_text()
    return int(re.search(r"([\d,]+) of [\d,]+ runs", text).group(1).replace(",", ""))


def leave_and_come_back(page) -> None:
    """To another page and back, by the navigation."""
    page.get_by_role("link", name="Modes").click()
    page.wait_for_url(re.compile(r":\d+/(\?.*)?$"), timeout=30_000)  # with or without what the page left in it
    page.get_by_role("link", name="Tradeoff").click()
    page.wait_for_url("**/tradeoff**", timeout=30_000)


def test_start_stop_leave_come_back_continue_and_finish(dashboard):
    page = arrive(dashboard, f"{GRID}&lab_runs=40&lab_seed=7")
    # First points while it runs.
    point = page.locator(".st-key-lab_curve_0_chart .scatterlayer path.point").first
    point.wait_for(state="attached", timeout=30_000)
    page.wait_for_selector("text=/of 400 runs/", timeout=30_000)
    page.locator(".st-key-lab_stop button").click()
    page.wait_for_selector("text=What is there is kept", timeout=30_000)
    dashboard.settle()
    at = runs_done(page)
    assert 0 < at < 400
    # A control that changes only the picture keeps everything, and so does another page.
    page.locator(".st-key-lab_view button", has_text="ε, by n").click()
    page.wait_for_selector("text=/^n = 400$/", timeout=30_000)
    leave_and_come_back(page)
    page.wait_for_selector("text=What is there is kept", timeout=60_000)
    assert runs_done(page) >= at
    assert in_url(dashboard)["lab_runs"] == "40"
    page.locator(".st-key-lab_start button", has_text="Continue").click()
    # It goes on while its visitor is away, and is found where it is then.
    page.locator(".st-key-lab_stop button").wait_for(timeout=30_000)
    leave_and_come_back(page)
    page.wait_for_selector("text=/Complete: 10 points, 400 runs/", timeout=120_000)
    dashboard.settle()
    assert "On Four corners with n = 400, at ε = 1, privacy multiplies the MSE by" in dashboard.answer()
    assert "(40 runs)" in dashboard.answer()
    assert page.locator(".st-key-lab_curve_0_chart .scatterlayer .trace").count() == 6  # three lines with bands
    dashboard.shoot("tradeoff_curve")
    # Repeating it, as anyone with the link would, takes no run.
    page.goto(page.url)
    page.wait_for_selector("text=/Complete: 10 points, 400 runs/", timeout=60_000)
    dashboard.unfold("lab_curve_table")
    with page.expect_download() as waiting:
        page.locator(".st-key-lab_curve_csv button").click()
    lines = waiting.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert lines[0].startswith("method,dataset,n,epsilon")
    assert "mse_q90" in lines[0]
    assert len(lines) == 11
