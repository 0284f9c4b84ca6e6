"""The Tradeoff page in a real browser: a sweep is started, stopped, continued and finished; leave and come back."""

from __future__ import annotations

import re

GRID = "lab_n_four_corners=200+400&lab_eps_four_corners=1+5"


def arrive(dashboard, query: str):
    """Open the page without waiting for its end: a sweep looks at itself again and again."""
    dashboard.page.goto(f"{dashboard.address}/tradeoff?{query}")
    dashboard.page.wait_for_selector("[data-testid=answer]")
    return dashboard.page


def runs_done(page) -> int:
    """How many runs the line above the picture says that there are."""
    line = page.locator(".st-key-lab_progress", has_text=re.compile(r"of [\d,]+ runs"))
    return int(re.search(r"([\d,]+) of [\d,]+ runs", line.inner_text()).group(1).replace(",", ""))


def leave_and_come_back(dashboard) -> None:
    """To another page and back, by the navigation."""
    for name in ("Paper", "Tradeoff"):
        dashboard.follow(name, name.lower())


def stop(dashboard) -> int:
    """Press Stop; how many runs are there then."""
    dashboard.page.locator(".st-key-lab_stop button").click()
    dashboard.page.get_by_text("What is there is kept").first.wait_for()
    return runs_done(dashboard.settle().page)


def left_of(page, name: str) -> float:
    return page.locator(f".st-key-{name} button").bounding_box()["x"]


def test_start_stop_leave_come_back_continue_and_finish(dashboard):
    # Minutes of work, however fast the machine: it cannot be complete before a click that stops it has come through.
    page = arrive(dashboard, f"{GRID}&lab_runs=2000&lab_seed=7")
    page.locator(".st-key-lab_start button", has_text="Start").click()
    # First points while it runs.
    page.locator(".st-key-lab_curve_0_chart .scatterlayer path.point").first.wait_for(state="attached")
    page.wait_for_selector("text=/of 20,000 runs/")
    at = stop(dashboard)
    assert 0 < at < 20_000
    # Streamlit keeps a button that is gone for as long as it has the focus, and then what stands beside it must not
    # move: a press that begins on Continue takes the focus away, and has to end there.
    before = left_of(page, "lab_start")
    page.evaluate(
        """const start = document.querySelector(".st-key-lab_start"), gone = start.cloneNode(true);
        gone.dataset.retained = true; gone.className = start.className.replace("st-key-lab_start", "gone");
        start.after(gone)"""
    )
    assert left_of(page, "lab_start") == before
    page.evaluate("document.querySelector('.gone').remove()")
    # A control that changes only the picture keeps everything, and so does another page.
    page.locator(".st-key-lab_view button", has_text="ε, by n").click()
    page.wait_for_selector("text=/^n = 400$/")
    leave_and_come_back(dashboard)
    page.wait_for_selector("text=What is there is kept")
    assert runs_done(page) >= at
    assert dashboard.in_url()["lab_runs"] == "2000"
    page.locator(".st-key-lab_start button", has_text="Continue").click()
    # It is found where it is when its visitor comes back, and goes on.
    page.locator(".st-key-lab_stop button").wait_for()
    leave_and_come_back(dashboard)
    while runs_done(page) <= at:
        page.wait_for_timeout(100)
    # A few more for each point: only these are made, and then it is complete.
    runs = stop(dashboard) // 10 + 10
    dashboard.type_number("lab_runs", str(runs))
    page.locator(".st-key-lab_start button", has_text="Continue").click()
    complete = f"Complete: 10 points, {10 * runs:,} runs"
    assert complete in dashboard.settle().text()
    assert "On Four corners with n = 400, at ε = 1, privacy multiplies the MSE by" in dashboard.answer()
    assert f"({runs} runs)" in dashboard.answer()
    assert page.locator(".st-key-lab_curve_0_chart .scatterlayer .trace").count() == 6  # three lines with bands
    dashboard.shoot("tradeoff_curve")
    # Repeating it, as anyone with the link would, takes no run.
    page.goto(page.url)
    page.get_by_text(complete).first.wait_for()
    dashboard.unfold("lab_curve_table")
    with page.expect_download() as waiting:
        page.locator(".st-key-lab_curve_csv button").click()
    lines = waiting.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert lines[0].startswith("method,dataset,n,epsilon")
    assert "mse_q90" in lines[0]
    assert len(lines) == 11
