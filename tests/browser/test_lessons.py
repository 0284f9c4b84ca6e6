"""A class: every lesson by its link, a person moved by hand, the game to its end, and the way to share each."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dpgrams_core.studies.lessons import lessons
from tests.browser.test_presenting import share

SIZES = [(1280, 720, "light"), (390, 844, "dark")]
WIDER = {"width": 1440, "height": 900}


@pytest.mark.parametrize(("width", "height", "scheme"), SIZES)
def test_a_class_goes_through_lessons_and_the_game(make_dashboard, width, height, scheme):
    dashboard = make_dashboard(width, scheme).watching_console()
    page = dashboard.page
    page.set_viewport_size({"width": width, "height": height})
    for lesson in lessons():
        dashboard.open(f"lessons?lesson={lesson.name}")
        step = lesson.steps[0]
        assert step.title in dashboard.answer()
        assert page.get_by_text("The engine's answer").count() == 0, "nothing is told before the prediction"
        assert_fits(dashboard, width)
        if width != 1280 and lesson.name != "one_persons_influence":
            continue  # predicted once: it takes its time, and the same at every width
        page.get_by_text(step.choices[0].words, exact=True).click()
        expect(page.get_by_text("The engine's answer")).to_be_visible()
        dashboard.settle()
        assert dashboard.in_url() | {"lesson": lesson.name, "guess": "1"} == dashboard.in_url()
        assert re.sub(r"\{value\}.*", "", step.reveal.words) in page.locator(".answer").last.inner_text()
        dashboard.assert_fits(width)
        if lesson.name == "one_persons_influence":
            move_by_hand(dashboard, width)
    page.get_by_role("button", name="All lessons").first.click()
    dashboard.settle()
    play(dashboard)
    assert_fits(dashboard, width)
    dashboard.shoot(f"game_{width}_{scheme}")
    assert dashboard.settle().errors == []


def assert_fits(dashboard, width):
    """At this width, and on a desk in a wider window of the same page."""
    dashboard.assert_fits(width)
    if width == 1280:
        before = dashboard.page.viewport_size
        dashboard.page.set_viewport_size(WIDER)
        dashboard.assert_fits(WIDER["width"])
        dashboard.page.set_viewport_size(before)


def move_by_hand(dashboard, width):
    """By mouse and by keys; the number is the engine's while the hand moves, and the link has where it was left."""
    page = dashboard.page
    figure, pick = page.locator("figure[data-place]"), page.locator(".pick")
    expect(figure).to_have_attribute("data-place", "-2.5,-2.5")
    pick.scroll_into_view_if_needed()
    box, received = pick.bounding_box(), len(dashboard.received)

    def at(x, y):
        return box["x"] + box["width"] * (x + 7) / 14, box["y"] + box["height"] * (7 - y) / 14

    page.mouse.move(*at(-2.5, -2.5))
    page.mouse.down()
    shares = {}
    for place in ((-1, -2), (0, 0), (3, 4)):
        page.mouse.move(*at(*place), steps=3)
        expect(figure).to_have_attribute("data-place", f"{place[0]},{place[1]}")
        shares[place] = float(figure.get_attribute("data-share"))
    assert sorted(shares.values()) == list(shares.values()), "farther away hurts more"
    assert len(dashboard.received) == received, "the server was asked while the hand moved"
    dashboard.shoot(f"influence_{width}")
    page.mouse.up()
    dashboard.until(lambda: dashboard.in_url().get("value") == "3,4", "the place is not in the link")
    dashboard.settle()
    expect(page.get_by_text(f"it is {100 * shares[3, 4]:.0f}%")).to_be_visible()
    pick.focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    expect(figure).to_have_attribute("data-place", "2,4")
    dashboard.until(lambda: dashboard.in_url().get("value") == "2,4", "the keys do not reach the link")
    dashboard.settle()
    expect(page.locator(".most")).to_contain_text("Largest that you found: 100%")


def play(dashboard):
    """From the lessons to the game, ten rounds, and another game against the broken mechanism."""
    page = dashboard.page
    page.get_by_role("button", name="Play: Be the attacker").click()
    page.wait_for_url("**/attacker**")
    dashboard.settle()
    for number in range(10):
        assert f"Round {number + 1} of 10" in dashboard.answer()
        page.get_by_role("button", name="Yes, this person was").click()
        dashboard.until(lambda number=number: f"Round {number + 1} of" not in dashboard.answer(), "no next round")
    dashboard.settle()
    assert re.search(r"right in \d+ of 10 rounds", dashboard.answer())
    expect(page.get_by_text(re.compile("Caught|This score is allowed"))).to_be_visible()
    if page.viewport_size["width"] > 640:  # on a phone the sidebar is a drawer
        dialog = share(dashboard, "Scenes of a talk")
        dialog.get_by_role("button", name="Add this page as a scene").click()
        expect(dialog.get_by_text("Be the attacker", exact=True)).to_be_visible()
        page.keyboard.press("Escape")
        dashboard.settle()
