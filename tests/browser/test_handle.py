"""The ε handle of a picture: what is under it, in the picture, in the table and in the link is the engine's result."""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pytest
from playwright.sync_api import expect

from dpgrams_core import load_dataset, run
from dpgrams_core.figures.frames import epsilon_stops
from dpgrams_core.figures.style import PRIVATE, channels
from dpgrams_core.model.format import chance_words
from tests.browser.conftest import PATIENCE, Dashboard

STOPS = epsilon_stops("functional")
QUIET = "curve=off&runs=off&landscape=off"
MODES = f"modes?method=functional&n=1000&{QUIET}"


@cache
def engine(epsilon: float, seed: int = 0):
    """The engine's own result, without a page."""
    return run("functional", load_dataset("four_corners", n=1000, seed=0), seed=seed, epsilon=epsilon)


class Handle:
    """The handle on a page."""

    def __init__(self, dashboard: Dashboard, key: str = "contours_chart") -> None:
        self.dashboard = dashboard
        self.page = dashboard.page
        self.figure = self.page.locator(f".st-key-{key} figure")
        self.range = self.figure.locator("input[type=range]")

    def ready(self) -> Handle:
        """All frames are there."""
        expect(self.figure).to_have_attribute("data-frames", str(len(STOPS)))
        self.dashboard.settle()
        return self

    @property
    def epsilon(self) -> float:
        return float(self.figure.get_attribute("data-epsilon"))

    def button(self, what: str):
        return self.figure.locator(f"button[data-play={what}]")

    def over(self, stop: int) -> tuple[float, float]:
        """Where the pointer is on that stop; the thumb's middle never reaches the ends of the track."""
        box, thumb = self.range.bounding_box(), 24
        across = thumb / 2 + (box["width"] - thumb) * stop / (len(STOPS) - 1)
        return box["x"] + across, box["y"] + box["height"] / 2

    def agrees(self, epsilon: float, seed: int = 0) -> None:
        """The number, the picture's data, the sentence and the table are the engine's."""
        release = engine(epsilon, seed)
        expect(self.figure).to_have_attribute("data-epsilon", f"{epsilon:g}")
        expect(self.figure.locator("output")).to_have_text(f"ε = {epsilon:g}")
        expect(self.range).to_have_attribute("aria-valuetext", f"ε = {epsilon:g}")
        assert json.loads(self.figure.get_attribute("data-places")) == release.modes.tolist()
        rows = [row.locator("td, th").all_text_contents() for row in self.figure.locator("tr").all()[1:]]
        sigma, chances = release.significance, release.noise_chances
        wanted = [
            [f"{i + 1}", f"{x:.3f}", f"{y:.3f}", f"{sigma[i]:.1f} σ", chance_words(chances[i])]
            for i, (x, y) in enumerate(release.modes)
        ]
        assert [row[:-1] for row in rows] == wanted  # the last is the true mode that it found
        assert f"At ε = {epsilon:g} " in self.figure.locator(".said").text_content()

    def is_set(self, epsilon: float) -> None:
        """The link, the control in the sidebar and the answer say the same."""
        expect(self.page).to_have_url(re.compile(rf"[?&]epsilon={epsilon:g}(&|$)"))
        self.dashboard.settle()
        assert f"At ε = {epsilon:g}" in self.dashboard.answer()
        assert self.page.locator(".st-key-epsilon [data-testid=stSliderThumbValue]").inner_text() == f"{epsilon:g}"
        assert self.epsilon == epsilon


@pytest.fixture(scope="module")
def handle(server, browser):
    """One page for the tests of the handle alone: each begins where the one before left it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    yield Handle(Dashboard(context.new_page(), server).open(MODES)).ready()
    context.close()


def test_a_drag_shows_each_result_without_the_server_and_letting_go_sets_it(handle):
    page, dashboard = handle.page, handle.dashboard
    handle.range.scroll_into_view_if_needed()
    answer, received, before = dashboard.answer(), len(dashboard.received), dashboard.in_url()
    handle.agrees(handle.epsilon)
    page.mouse.move(*handle.over(STOPS.index(handle.epsilon)))
    page.mouse.down()
    seen = []
    for epsilon in (0.5, 0.1, 0.02, 3.0, 7.0):
        page.mouse.move(*handle.over(STOPS.index(epsilon)), steps=4)
        handle.agrees(epsilon)
        seen.append(handle.figure.locator("canvas").evaluate("canvas => canvas.toDataURL()"))
    assert len(set(seen)) == len(seen), "the picture did not change"
    assert dashboard.in_url() == before
    assert dashboard.answer() == answer
    assert len(dashboard.received) == received, "the server was asked while the handle was dragged"
    dashboard.shoot("handle_dragged")
    page.mouse.up()
    handle.is_set(7.0)
    handle.agrees(7.0)
    # And the other way: the page's own control moves the handle.
    dashboard.slide("epsilon", -1)
    handle.agrees(5.0)


def test_the_keys_do_the_same(handle):
    handle.range.focus()
    handle.range.press("End")
    handle.agrees(10.0)
    handle.is_set(10.0)
    for _ in range(6):
        handle.range.press("ArrowLeft")
    handle.agrees(1.5)
    handle.is_set(1.5)


def test_it_plays_through_epsilon_and_stops_where_it_is_told(handle):
    before = handle.epsilon
    play = handle.button("epsilon")
    play.click()
    expect(play).to_have_attribute("aria-pressed", "true")
    expect(handle.figure).not_to_have_attribute("data-epsilon", f"{before:g}")
    play.click()
    expect(play).to_have_attribute("aria-pressed", "false")
    stopped = handle.epsilon
    assert stopped > before
    handle.agrees(stopped)
    handle.is_set(stopped)


def test_the_climb_and_new_noise_play_and_end_with_the_engines_results(handle):
    climb = handle.button("tracks")
    picture = handle.figure.locator("canvas")
    before = picture.evaluate("canvas => canvas.toDataURL()")
    climb.click()
    expect(climb).to_have_attribute("aria-pressed", "true")
    moves = "([canvas, before]) => canvas.toDataURL() !== before"
    handle.figure.page.wait_for_function(moves, arg=[picture.element_handle(), before])
    expect(climb).to_have_attribute("aria-pressed", "false")
    assert picture.evaluate("canvas => canvas.toDataURL()") == before
    again = handle.button("draws")
    again.click()  # the frames are made when they are asked for, and then it plays
    expect(handle.figure).to_have_attribute("data-seed", re.compile("[1-9]"))
    expect(again).to_have_attribute("aria-pressed", "true")
    again.click()
    expect(again).to_have_attribute("aria-pressed", "false")
    seed = int(handle.figure.get_attribute("data-seed"))
    handle.agrees(handle.epsilon, seed)
    assert f"seed {seed}" in handle.figure.locator(".said").text_content()


def test_whoever_wants_less_motion_gets_a_step_a_press(server, new_context):
    dashboard = Dashboard(new_context(reduced_motion="reduce").new_page(), server)
    dashboard.open(MODES)
    handle = Handle(dashboard).ready()
    play = handle.button("epsilon")
    play.click()
    handle.agrees(1.5)
    expect(play).to_have_attribute("aria-pressed", "false")
    handle.is_set(1.5)


def test_two_methods_move_together(dashboard):
    dashboard.open(f"{MODES}&compare=tight")
    first, second = (Handle(dashboard, f"contours{mark}_chart").ready() for mark in ("", "_2"))
    second.range.focus()
    second.range.press("ArrowLeft")
    first.agrees(0.7)
    assert second.epsilon == 0.7
    first.is_set(0.7)


PAGES = {
    "regression?curve=off&reg_n=600": ("released_chart", "functional_regression", "sinusoid", 600, {"delta": 1e-5}),
    "regression?curve=off&reg_n=600&reg_method=dp_pms&calibration=experiments": (
        "released_chart",
        "dp_pms",
        "sinusoid",
        600,
        {"delta": 1e-5, "calibration": "experiments"},
    ),
    "clusters?curve=off&clu_n_blobs=500": (
        "centres_chart",
        "functional_c",
        "blobs",
        500,
        {"delta": 1e-6, "n_clusters": 4},
    ),
}


@pytest.mark.parametrize("link", PAGES)
def test_regression_and_clusters_have_it_too(dashboard, link):
    key, method, name, n, options = PAGES[link]
    dashboard.open(link)
    handle = Handle(dashboard, key).ready()
    handle.range.focus()
    handle.range.press("Home")
    handle.range.press("PageUp")
    data = load_dataset(name, n=n, seed=0)

    def agrees() -> None:
        found = run(method, data, seed=0, epsilon=handle.epsilon, **options).rows
        shown = json.loads(handle.figure.get_attribute("data-places"))
        # Centres are numbered by the classes they are matched to, and k-means adds in the order of its threads.
        np.testing.assert_allclose(sorted(shown), sorted(found.tolist()), rtol=1e-9)

    assert handle.epsilon < 1
    agrees()
    handle.is_set(handle.epsilon)
    agrees()
    dashboard.shoot(f"handle_{method}")


def test_a_mark_is_small_within_the_region_that_it_would_hide(dashboard):
    """A large one fills more with the colour of what is private; where the region is smaller it is large."""
    filled = {}
    for query in (MODES, "modes?method=functional&n=1000&epsilon=10&curve=off&runs=off"):
        handle = Handle(dashboard.open(query)).ready()
        filled[query] = handle.figure.locator("canvas").evaluate(
            """(canvas, [r, g, b]) => {
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                let count = 0;
                for (let i = 0; i < data.length; i += 4) {
                    const near = [r, g, b].every((full, k) => Math.abs(data[i + k] - full) < 30);
                    count += near && data[i + 3] > 225;
                }
                return count;
            }""",
            [int(part) for part in channels(PRIVATE).split(",")],
        )
    some, large = filled.values()
    assert 0 < some < 540  # 458; all large: 589
    assert large > 350  # 486; all small: about 210


def test_it_fits_a_phone_and_a_finger(make_dashboard):
    dashboard = make_dashboard(390, "dark")
    dashboard.open(MODES)
    handle = Handle(dashboard).ready()
    handle.range.scroll_into_view_if_needed()
    dashboard.assert_fits(390)
    for part in (handle.range, *(handle.button(what) for what in ("epsilon", "tracks", "draws"))):
        assert part.bounding_box()["height"] >= 44
    dashboard.shoot("handle_phone_dark")
