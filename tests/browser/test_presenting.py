"""A talk: a page is shared and added as a scene, and the scenes are shown by keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dpgrams_core.studies.lessons import lessons
from tests.heard import serious

QUICK = "n=200&method=functional&curve=off&runs=off&landscape=off"


def share(dashboard, tab, button=".st-key-share_page button"):
    dashboard.page.locator(button).click()
    dialog = dashboard.page.get_by_role("dialog")
    dialog.get_by_role("tab", name=tab).click()
    dashboard.settle()
    return dialog


def add_scene(dashboard, title, notes, *button):
    dialog = share(dashboard, "Scenes of a talk", *button)
    dialog.get_by_role("textbox", name="Title of the scene").fill(title)
    dialog.get_by_role("textbox", name="Notes for the speaker").fill(notes)
    dialog.get_by_role("button", name="Add this page as a scene").click()
    expect(dialog.get_by_text(title, exact=True)).to_be_visible()
    dashboard.settle()
    return dialog


def assert_on_one_screen(page):
    """The picture has most of the height, and nothing needs scrolling."""
    main = "document.querySelector('[data-testid=stMain]')"
    assert page.evaluate(f"{main}.scrollHeight <= {main}.clientHeight")
    picture = page.locator("canvas, .stPlotlyChart").first.bounding_box()
    height = page.viewport_size["height"]
    assert picture["height"] >= 0.7 * height
    assert picture["y"] + picture["height"] <= height


DESKS = [(1280, 720, "light"), (1440, 900, "dark")]


def test_a_page_is_shared_and_becomes_a_scene_that_the_keys_show(make_dashboard, new_context, tmp_path):
    width, height, scheme = DESKS[0]
    dashboard = make_dashboard(width, scheme).watching_console()
    page = dashboard.page
    page.set_viewport_size({"width": width, "height": height})
    dashboard.open(f"modes?{QUICK}&epsilon=5")
    dialog = share(dashboard, "This page as a link")
    link = dialog.get_by_label("Link to this page")
    expect(link).to_have_value(re.compile(rf"^{dashboard.address}/modes\?.*epsilon=5(?!.*presenter)"))
    dialog.get_by_role("button", name="Copy link").click()
    expect(dialog.get_by_text("Copied.")).to_be_visible()
    dialog.get_by_text("In presenter mode").click()
    expect(link).to_have_value(re.compile("epsilon=5.*presenter=on"))
    assert dialog.get_by_alt_text("QR code of the link").bounding_box()["width"] > 150
    dashboard.shoot(f"share_{scheme}")
    page.keyboard.press("Escape")
    add_scene(dashboard, "Four hills", "Speak of hills.")
    page.keyboard.press("Escape")
    dashboard.settle()
    dashboard.follow("Guarantee", "guarantee")
    dashboard.settle()
    add_scene(dashboard, "What it means", "")
    page.keyboard.press("Escape")
    dashboard.settle()
    dashboard.follow("Start", "")
    dashboard.settle()
    dialog = add_scene(dashboard, "The idea", "", ".st-key-share_start button")
    deck_link = dialog.get_by_label("Link to this deck").input_value()
    dialog.get_by_role("button", name="Present", exact=True).click()
    where = page.locator(".where")
    expect(where).to_have_text("1 / 3  Four hills")
    expect(page.locator("figure")).to_have_attribute("data-epsilon", "5")
    dashboard.settle()
    assert_on_one_screen(page)
    page.keyboard.press("n")
    expect(page.get_by_text("Speak of hills.")).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.press(" ")  # plays ε from 5 to its end
    expect(page.locator("figure")).to_have_attribute("data-epsilon", "10")
    dashboard.settle()
    page.keyboard.press("ArrowRight")
    expect(where).to_have_text("2 / 3  What it means")
    dashboard.settle()
    assert_on_one_screen(page)
    here = page.url
    page.keyboard.press("ArrowRight")
    expect(where).to_have_text("3 / 3  The idea")
    expect(page.locator("section[data-step]")).to_have_attribute("data-epsilon", "1")
    dashboard.settle()
    assert_on_one_screen(page)
    dashboard.shoot(f"start_presented_{scheme}")
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement !== null")
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement === null")
    page.keyboard.press("ArrowRight")  # there is none
    dashboard.settle()
    page.keyboard.press("ArrowLeft")
    expect(where).to_have_text("2 / 3  What it means")
    dashboard.settle()
    page.keyboard.press("ArrowLeft")
    expect(where).to_have_text("1 / 3  Four hills")
    expect(page.locator("figure")).to_have_attribute("data-epsilon", "5")  # the scene, not where it was played to
    dashboard.settle()
    for address, scene in ((here, "2 / 3  What it means"), (deck_link, "1 / 3  Four hills")):
        page.goto(address)  # another visitor with the link
        expect(where).to_have_text(scene)
        dashboard.settle()
    assert_shown_on_another_desk(make_dashboard, deck_link)
    page.get_by_role("button", name="Leave").click()
    dashboard.settle()
    dialog = share(dashboard, "Scenes of a talk")
    dialog.get_by_role("button", name="Make a page (HTML)").first.click()
    with page.expect_download() as waiting:  # every scene is shown once, then the dialog is there again
        page.get_by_role("button", name="Save as a page (HTML)").click()
    waiting.value.save_as(tmp_path / "deck.html")
    dashboard.settle()
    for width, height, scheme in DESKS:
        alone = new_context(width, color_scheme=scheme, offline=True).new_page()
        alone.set_viewport_size({"width": width, "height": height})
        assert_plays_from_disk(alone, tmp_path / "deck.html")


def assert_shown_on_another_desk(make_dashboard, deck_link):
    """Each scene fits, and the dialog of another page opens, for somebody with the link, a wide window and the dark."""
    width, height, scheme = DESKS[1]
    dashboard = make_dashboard(width, scheme).watching_console()
    page = dashboard.page
    page.set_viewport_size({"width": width, "height": height})
    page.goto(deck_link)
    for scene in ("1 / 3  Four hills", "2 / 3  What it means", "3 / 3  The idea"):
        expect(page.locator(".where")).to_have_text(scene)
        expect(page.locator("canvas, .stPlotlyChart, section[data-step]").first).to_be_visible()
        dashboard.settle()
        assert_on_one_screen(page)
        if not scene.startswith("3"):
            page.keyboard.press("ArrowRight")
    dashboard.shoot("start_presented_dark")
    page.get_by_role("button", name="Leave").click()
    dashboard.settle()
    share(dashboard, "This page as a link", ".st-key-share_start button")
    dashboard.shoot("share_dark")


WITHOUT_EPSILON = ("paper", "tradeoff?lab_part=kernel")  # all of them stand side by side there
LAST = [(lesson.name, len(lesson.steps)) for lesson in lessons()]  # the step of a lesson that has most beside it
PAGES = [
    *("regression?curve=off&runs=off", "clusters?runs=off", "tradeoff", "paper", "attacker"),
    "tradeoff?lab_part=kernel",
    "guarantee?measure=off&accountants=off",
    *(f"lessons?lesson={name}&step={step}&guess={'1' * step}" for name, step in LAST),
]


def test_every_page_and_every_lesson_fits_a_projector(dashboard):
    """Picture and controls stand above the bar with next and previous, and nothing scrolls."""
    page = dashboard.page
    page.set_viewport_size({"width": 1280, "height": 720})
    for address in PAGES:
        page.goto(f"{dashboard.address}/{address}{'&' if '?' in address else '?'}presenter=on")
        bar = page.get_by_role("navigation", name="Scenes").bounding_box()["y"]
        expect(page.locator("canvas, .stPlotlyChart").first).to_be_visible()
        dashboard.settle()
        assert_on_one_screen(page)
        if not address.startswith("lessons"):  # there the line has a column, and a lesson may begin without a handle
            size = page.locator("p.answer, .said").first.evaluate("one => parseFloat(getComputedStyle(one).fontSize)")
            assert size >= 20, address
            handles = page.get_by_test_id("stMain").locator("[role=slider], input[type=range]").count()
            assert handles or address in WITHOUT_EPSILON, address
        for control in page.get_by_test_id("stMain").locator("button, [role=slider], input[type=range]").all():
            if control.is_visible() and (box := control.bounding_box()) and box["y"] < page.viewport_size["height"]:
                at = f"{address}: {control.evaluate('one => one.outerHTML')[:200]}"
                assert box["y"] + box["height"] <= bar or control.locator("xpath=ancestor::nav").count(), at


@pytest.mark.parametrize("address", ["", "modes", "regression", "clusters"])
def test_a_projector_shows_a_picture_as_soon_as_it_is_drawn(dashboard, address):
    page = dashboard.page
    page.goto(f"{dashboard.address}/{address}?presenter=on")
    page.wait_for_selector("figure[data-frames], section[data-draws]", state="attached")
    assert page.get_by_test_id("stMain").evaluate("main => getComputedStyle(main).opacity") == "1"


def test_the_keys_go_through_the_steps_of_a_lesson_first(dashboard):
    page = dashboard.page
    dashboard.open("lessons?lesson=clipping&presenter=on")
    for key, step in (("ArrowRight", "2"), ("ArrowLeft", None), ("ArrowRight", "2")):
        page.keyboard.press(key)
        dashboard.until(lambda step=step: dashboard.in_url().get("step") == step, f"{key} did not go to step {step}")
        dashboard.settle()
    expect(page.locator(".where")).to_have_text("Lessons")
    page.keyboard.press("ArrowRight")  # after the last one the tour goes on
    page.wait_for_url("**/modes**")


def test_the_end_of_the_game_fits_a_projector_and_so_does_the_class(dashboard):
    page = dashboard.page
    page.set_viewport_size({"width": 1280, "height": 720})
    dashboard.open("attacker?presenter=on")
    for number in range(10):
        page.get_by_role("button", name="Yes, this person was").click()
        dashboard.until(lambda number=number: f"Round {number + 1} of" not in dashboard.answer(), "no next round")
    for name, count in (("rounds", "300"), ("hits", "290")):
        dashboard.settle()
        fits = "(one => one.scrollHeight <= one.clientHeight)(document.querySelector('[data-testid=stMain]'))"
        assert page.evaluate(fits), f"before the {name} of the class"
        dashboard.type_number(f"attack_{name}", count)
    expect(page.get_by_text("290 or more of 300")).to_be_visible()
    assert page.evaluate(fits)


def assert_plays_from_disk(page, file):
    """All scenes by key, the handle by key and by playing, and nothing asked for."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else wrong.append(asked.url))
    page.goto(file.as_uri())
    figure, where = page.locator("figure"), page.locator(".where")
    expect(where).to_have_text("1 / 3  Four hills")
    expect(figure).to_have_attribute("data-epsilon", "5")
    slider = page.get_by_role("slider")
    slider.focus()
    slider.press("ArrowLeft")
    expect(figure).to_have_attribute("data-epsilon", "4")
    expect(page.locator(".said")).to_contain_text("At ε = 4 Functional release found")
    slider.evaluate("box => box.blur()")
    page.keyboard.press(" ")
    expect(figure).to_have_attribute("data-epsilon", "10")
    page.keyboard.press("n")
    expect(page.get_by_text("Speak of hills.")).to_be_visible()
    for scene in ("1 / 3  Four hills", "2 / 3  What it means", "3 / 3  The idea"):
        expect(where).to_have_text(scene)
        root = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        assert root <= list(page.viewport_size.values())
        assert page.locator("canvas, .js-plotly-plot").first.bounding_box()["height"] >= 0.7 * root[1]
        if scene.startswith("2"):
            expect(page.locator(".answer")).to_contain_text("sure")
            ground = "getComputedStyle(document.querySelector('{}')).backgroundColor"
            page.wait_for_selector(".js-plotly-plot .main-svg")
            page_ground, chart_ground = (page.evaluate(ground.format(at)) for at in ("body", ".main-svg"))
            assert chart_ground == page_ground, "the chart does not follow the scheme"
        assert serious(page) == []
        page.keyboard.press("PageDown")
    view = page.locator("section[data-step]")
    view.get_by_role("slider", name="Privacy budget").press("Home")
    expect(view).to_have_attribute("data-epsilon", "0.01")
    view.get_by_role("button", name="New noise").click()
    expect(view).to_have_attribute("data-seed", "1")
    assert wrong == []


def test_a_picture_stands_inside_another_page_with_its_handle_and_nothing_else(dashboard):
    page = dashboard.page
    dashboard.open(f"modes?{QUICK}&epsilon=5")
    dialog = share(dashboard, "This page as a link")
    dialog.get_by_text("Inside another page").click()
    code = dialog.get_by_label("HTML that shows this page inside another")
    expect(code).to_have_value(re.compile("<iframe src.*embed=true"))
    html = code.input_value()
    page.goto(f"{dashboard.address}/_stcore/health")  # any page of this server may frame it
    page.set_content(html)
    inside = page.frame_locator("iframe")
    figure = inside.locator("figure")
    expect(figure).to_have_attribute("data-epsilon", "5")
    for name in ("stSidebar", "stHeader"):
        expect(inside.get_by_test_id(name)).to_be_hidden()
    assert inside.get_by_role("button", name="Next scene").count() == 0
    handle = inside.get_by_role("slider", name=re.compile("drag to see"))
    handle.focus()
    handle.press("ArrowLeft")
    expect(figure).to_have_attribute("data-epsilon", "4")
    (frame,) = page.frames[1:]
    dashboard.until(lambda: "epsilon=4" in frame.url, "the handle did not set ε")
    assert "embed=true" in frame.url  # moving a control does not end it
