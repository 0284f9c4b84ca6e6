"""Start, as a newcomer goes through it: drag, a person taken out, new noise, five steps; numbers are the engine's."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from dpgrams_core import load_dataset, score
from dpgrams_core.figures import start
from dpgrams_core.figures.frames import epsilon_stops
from tests.heard import serious

STOPS = epsilon_stops("functional")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_newcomer_goes_through_it(make_dashboard, width, scheme):
    data = load_dataset("four_corners", n=start.PEOPLE, seed=0)
    dashboard = make_dashboard(width, scheme)
    page = dashboard.page
    page.set_viewport_size({"width": width, "height": 720})
    page.on("console", lambda told: dashboard.errors.append(told.text) if told.type == "error" else None)
    page.goto(dashboard.address)
    view = page.locator("section[data-step]")
    expect(view).to_have_attribute("data-draws", str(start.DRAWS))
    dashboard.settle()
    assert page.locator("[data-testid=stSidebar]").is_hidden()
    dashboard.assert_fits(width)
    if width == 1280:  # all of it on one screen
        doors = page.locator(".st-key-doors").bounding_box()
        assert doors["y"] + doors["height"] <= 720

    def agrees(epsilon: float, seed: int) -> None:
        release = start.released(data, epsilon, seed)
        expect(view).to_have_attribute("data-epsilon", f"{epsilon:g}")
        expect(view).to_have_attribute("data-seed", str(seed))
        assert float(view.get_attribute("data-sigma")) == pytest.approx(release.noise_scale, rel=1e-12)
        assert json.loads(view.get_attribute("data-places")) == release.modes.tolist()
        frame = start._frame(data, epsilon, release)
        for part, place in (("learned", ".learned p"), ("found", ".found .words")):
            assert view.locator(place).text_content() == re.sub("<[^>]*>", "", frame[part])
        assert len(view.locator("tr").all()) == 1 + len(release.modes)

    agrees(1.0, 0)
    found = [score(start.released(data, 1.0, seed), data)["found"] for seed in range(start.DRAWS)]
    assert view.locator(".mean").text_content() == f"Mean of {start.DRAWS} draws: {np.mean(found):.1f} of 4."
    dashboard.shoot(f"start_{width}_{scheme}")
    # The handle, without the server.
    handle = view.locator("input[type=range]")
    handle.scroll_into_view_if_needed()
    received, box, thumb = len(dashboard.received), handle.bounding_box(), 28
    seen = []
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    for epsilon in (0.1, 0.5, 5.0):
        across = thumb / 2 + (box["width"] - thumb) * STOPS.index(epsilon) / (len(STOPS) - 1)
        page.mouse.move(box["x"] + across, box["y"] + box["height"] / 2, steps=3)
        agrees(epsilon, 0)
        seen.append(view.locator(".released canvas").evaluate("canvas => canvas.toDataURL()"))
    page.mouse.up()
    assert len(set(seen)) == 3, "the picture did not change"
    handle.press("Home")
    agrees(STOPS[0], 0)
    for _ in range(STOPS.index(1.0)):
        handle.press("ArrowRight")
    agrees(1.0, 0)
    # A person is taken out by keys alone.
    pick, exact = view.locator(".pick"), view.locator(".people canvas")
    before = exact.evaluate("canvas => canvas.toDataURL()")
    view.locator("button.next").focus()
    page.keyboard.press("Tab")
    expect(pick).to_be_focused()
    expect(view).to_have_attribute("data-out", "0")
    page.keyboard.press("ArrowRight")
    expect(view).not_to_have_attribute("data-out", "0")
    person = int(view.get_attribute("data-out"))
    assert data.points[person, 0] > data.points[0, 0]
    assert pick.get_attribute("aria-valuenow") == str(person + 1)
    expect(view.locator(".twitch")).to_contain_text(f"enlarged {start.scene(data)['enlarged']} times")
    bandwidth = start.released(data, 1.0, 0).surface.bandwidth
    heights = start.exact_heights(np.delete(data.points, person, axis=0), data.box, bandwidth)
    shown = json.loads(view.get_attribute("data-exact"))
    assert shown == pytest.approx([heights.sum(), heights.max()], rel=1e-12)
    page.wait_for_timeout(600)
    assert exact.evaluate("canvas => canvas.toDataURL()") != before
    # New noise, three times: other noise, and at this ε the same four peaks.
    for seed in (1, 2, 3):
        view.get_by_role("button", name="New noise").click()
        agrees(1.0, seed)
        expect(view.locator(".found p")).to_contain_text("4 of 4")
    dashboard.shoot(f"start_out_{width}_{scheme}")
    pick.focus()
    page.keyboard.press("Escape")
    expect(view).to_have_attribute("data-out", "")
    # The five steps, to the false claim that is caught.
    for step in (2, 3, 4, 5):
        view.locator("button.next").click()
        expect(view).to_have_attribute("data-step", str(step))
        # Also on a phone, where not all of it is on one screen.
        expect(view.locator(".step")).to_be_in_viewport(ratio=0.9)
        expect(view.locator(".believe" if step == 5 else ".now")).to_be_in_viewport(ratio=0.99)
        assert serious(page) == []
    expect(view.locator("button.next")).to_be_disabled()
    kept = start.kept_audits()
    for part, method in (("right", "functional"), ("wrong", "broken_sum")):
        said = view.locator(f".believe .{part}").inner_text()
        assert f"ε ≥ {kept[method]['shown']:.2f}" in said
        assert f"{kept[method]['trials']} games" in " ".join(said.split())
    expect(view.locator(".wrong")).to_contain_text("caught")
    dashboard.assert_fits(width)
    dashboard.shoot(f"start_believe_{width}_{scheme}")
    assert len(dashboard.received) == received, "the server was asked for what the browser has"
    dashboard.follow("What ε do I need?", "tradeoff")
    expect(page).to_have_url(re.compile("lab_part=needed"))
    assert dashboard.settle().errors == []


def test_less_motion_and_an_old_link(server, new_context, make_dashboard):
    page = new_context(reduced_motion="reduce").new_page()
    page.goto(server)
    view = page.locator("section[data-step]")
    dots = view.locator(".pick")
    dots.click(position={"x": 5, "y": 5})  # where nobody is
    expect(view).to_have_attribute("data-out", "")
    dots.focus()
    dots.press("End")
    expect(view).to_have_attribute("data-out", "299")
    first = view.locator(".people canvas").evaluate("canvas => canvas.toDataURL()")
    page.wait_for_timeout(300)
    assert view.locator(".people canvas").evaluate("canvas => canvas.toDataURL()") == first, "it moves"
    old = make_dashboard().open("?n=500&epsilon=2&curve=off&runs=off&landscape=off")
    assert "/modes?" in old.page.url
    assert "At ε = 2" in old.answer()
