"""Every lesson: its steps by their links, what they reveal, and the page that each opens."""

from __future__ import annotations

import math

import pytest

from dpgrams_core.studies.lessons import answer as engine_answer
from dpgrams_core.studies.lessons import lessons
from pages._ui import state
from pages._ui.controls import link_of
from tests.shown import all_text, answer, button, checked, new_page, opened, widget

LESSONS = lessons()
STEPS = [(lesson, number) for lesson in LESSONS for number in range(len(lesson.steps))]
NAMES = [f"{lesson.name}-{number + 1}" for lesson, number in STEPS]
QUICK = {"curve": "off", "runs": "off", "landscape": "off", "measure": "off", "accountants": "off"}
# The last settings that a page could show stand in the session, under this name.
SHOWN = {"modes": "_modes_last_good", "regression": "_regression_last_good", "clusters": "_clusters_last_good"}


def page_at(lesson, number, guess="", **more):
    query = {"lesson": lesson.name, "step": str(number + 1), **({"guess": guess} if guess else {}), **more}
    return checked(new_page("lessons", **query))


def test_the_list_names_every_lesson_and_begins_one():
    page = checked(new_page("lessons"))
    assert f"{len(LESSONS)} lessons" in answer(page)
    for lesson in LESSONS:
        assert lesson.about in all_text(page)
    last = LESSONS[-1]
    button(page, f"begin_{last.name}").click()
    checked(page)
    assert last.steps[0].question in all_text(page)
    assert page.query_params["lesson"] == last.name


@pytest.mark.parametrize(("lesson", "number"), STEPS, ids=NAMES)
def test_a_step_asks_first_and_then_reveals_what_the_engine_computes(lesson, number):
    step = lesson.steps[number]
    before = page_at(lesson, number)
    assert step.question in all_text(before)
    assert "The engine's answer" not in all_text(before)
    assert not any(slider.key == "value" for slider in before.select_slider)  # nothing to try before a prediction
    found = engine_answer(step)
    assert math.isfinite(found)
    right = step.right_choice(found)
    known = "0" * number
    after = page_at(lesson, number, f"{known}{right + 1}")
    assert answer(after) == step.sentence(found)
    assert f"As you predicted: {step.choices[right].words}." in [item.value for item in after.success]
    if number:
        return  # what a wrong guess is told has the same words at every step
    wrong = (right + 1) % len(step.choices)
    other = page_at(lesson, number, f"{known}{wrong + 1}")
    assert answer(other) == step.sentence(found)
    assert "You predicted" in all_text(other)


@pytest.mark.parametrize(("lesson", "number"), STEPS, ids=NAMES)
def test_a_step_opens_on_its_page(lesson, number):
    step = lesson.steps[number]
    run = step.revealed.run
    page = opened(new_page(step.page, **link_of(run), **QUICK))
    assert not any("cannot be used" in item.value for item in page.info)
    assert not page.error
    shown = page.session_state[SHOWN[step.page]] if step.page in SHOWN else None
    count = shown[1] if isinstance(shown, tuple) else None  # of clusters: no setting of the page's run
    shown = shown[0] if isinstance(shown, (list, tuple)) else shown
    if shown is not None:
        assert (shown.dataset, shown.n, shown.seed, shown.data_seed) == (run.dataset, run.n, run.seed, run.data_seed)
        if shown.method == run.method:
            assert shown.epsilon == run.epsilon
            given = dict(run.options)
            assert given.pop("n_clusters", count) == count
            assert dict(shown.options) | given == dict(shown.options)


def test_progress_is_in_the_link_and_the_control_changes_what_is_said():
    lesson = next(lesson for lesson in LESSONS if lesson.name == "one_persons_influence")
    page = page_at(lesson, 0)
    widget(page, "radio", f"predict_{lesson.name}_0").set_value(0)
    checked(page)
    assert page.query_params["guess"] == "1"
    page.session_state["value"] = "6,6"  # as letting go of the dragged person does; a browser tests the dragging
    checked(page)
    assert page.query_params["value"] == "6,6"
    assert "it is **100%**" in all_text(page)
    button(page, "next").click()
    checked(page)
    assert page.query_params["step"] == "2"
    assert page.query_params["guess"] == "1"
    assert lesson.steps[1].question in all_text(page)
    widget(page, "radio", f"predict_{lesson.name}_1").set_value(1)
    checked(page)
    assert page.query_params["guess"] == "12"
    assert any("Lesson done" in item.value for item in page.success)
    assert button(page, "to_game").label == "Play: Be the attacker"


def test_a_mangled_link_gets_a_sentence():
    page = checked(new_page("lessons", lesson="frog", step="77", guess="<b>", value="9"))
    told = " ".join(item.value for item in page.info)
    for name in ("lesson", "step", "guess", "value"):
        assert name in told
    assert f"{len(LESSONS)} lessons" in answer(page)
    page = checked(new_page("lessons", lesson=LESSONS[0].name, guess="9"))  # no such choice
    assert "The engine's answer" not in all_text(page)


def test_a_link_of_a_run_has_shares_as_percent():
    from dpgrams_core.sweeps.plan import plan_run

    run = plan_run("dp_grams", "four_corners", n=500, epsilon=0.5, init_fraction=0.3, calibration="experiments")
    link = link_of(run)
    assert (link["share"], link["epsilon"], link["calibration"]) == ("30", "0.5", "experiments")
    assert state.text_of(0.5) == link["epsilon"]
