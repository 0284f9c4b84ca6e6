"""Lessons as files: what is read, what is refused, and that the engine answers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core.figures import lessons as pictures
from dpgrams_core.model.errors import SpecError
from dpgrams_core.numerics.surface import box_bases, coefficients
from dpgrams_core.studies import lessons
from dpgrams_core.studies.lessons import PICTURES, QUANTITIES, State, answer, read_lesson
from dpgrams_core.sweeps.plan import plan_run

ALL = lessons.lessons()
STEPS = [step for lesson in ALL for step in lesson.steps]
GOOD = """
title = "A title"
about = "About it."
minutes = 3

[[steps]]
title = "A step"
words = "Some words."
question = "How many?"
choices = [{ words = "few", up_to = 2 }, { words = "many" }]
run = { method = "functional", dataset = "four_corners", n = 500, epsilon = 1.0 }
control = { name = "epsilon" }
reveal = { quantity = "found", words = "It is {value}.", runs = 2, change = { epsilon = 0.5 } }
"""


@pytest.fixture
def reading(tmp_path):
    def read(text):
        path = tmp_path / "07_toy.toml"
        path.write_text(text, encoding="utf-8")
        return read_lesson(path)

    return read


def test_a_good_file_is_read(reading):
    lesson = reading(GOOD)
    (step,) = lesson.steps
    assert (lesson.name, lesson.minutes, step.page, step.picture) == ("toy", 3, "modes", "handle")
    assert (step.start.run.epsilon, step.revealed.run.epsilon, step.first_value) == (1.0, 0.5, 0.5)
    assert step.at(5.0).run.epsilon == 5.0
    assert step.control.label == "Privacy budget, ε"


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("minutes = 3", "minutes = 0", "minutes", "at least 1"),
        ('title = "A title"', "title = 3", "title", "a text"),
        ('title = "A title"', 'titel = "A title"', "titel", "title"),
        ("functional", "functionnal", "step 1, run.method", "functional"),
        ("n = 500, ", "", "step 1, run", "must have a n"),
        ("epsilon = 1.0", "epsilon = -1.0", "step 1, run.epsilon", "above 0"),
        ("epsilon = 1.0", "epsilonn = 1.0", "step 1, run.epsilonn", "epsilon"),
        ('name = "epsilon"', 'name = "frog"', "step 1, control.name", "epsilon"),
        ('name = "epsilon"', 'name = "n", words = "n"', "step 1, control.values", "at least two"),
        ('name = "epsilon"', 'name = "epsilon", values = [1.0, 2.0]', "step 1, control.values", "0.5"),
        ('quantity = "found"', 'quantity = "lost"', "step 1, reveal.quantity", "found"),
        ("runs = 2", "runs = 0", "step 1, reveal.runs", "at least 1"),
        ("It is {value}.", "It is four.", "step 1, reveal.words", "{value}"),
        ("change = { epsilon = 0.5 }", "change = { frog = 1 }", "step 1, reveal.change.frog", "epsilon"),
        (", up_to = 2", "", "step 1, choices.up_to", "grow"),
        ('{ words = "few", up_to = 2 }, ', "", "step 1, choices", "2 to 6"),
        ("[[steps]]", 'picture = "x"\n[[steps]]', "picture", "title"),
        ('words = "Some words."', 'words = "Some words."\npicture = "frog"', "step 1, picture", "handle"),
        ('words = "Some words."', 'words = "Some words."\npage = "frog"', "step 1, page", "modes"),
        ("[[steps]]", "[[steps", "07_toy.toml", "TOML"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(reading, old, new, place, words):
    assert old in GOOD
    with pytest.raises(SpecError) as caught:
        reading(GOOD.replace(old, new, 1))
    message = str(caught.value)
    assert message.startswith("07_toy.toml")
    assert place in message
    assert words in message
    assert "is not allowed" in message


def test_there_are_lessons_of_a_few_minutes_each():
    assert len({lesson.name for lesson in ALL}) == len(ALL)
    assert {name for lesson in ALL for name in [lesson.name]} >= {"what_a_mode_is", "one_persons_influence"}
    for lesson in ALL:
        assert 3 <= lesson.minutes <= 5
        assert 2 <= len(lesson.steps) <= 9


@pytest.mark.parametrize(
    ("name", "said"), [("branch_recall", "90%"), ("coverage", "90%"), ("spurious", "90%"), ("mse", "0.9")]
)
def test_every_measure_that_is_a_share_is_said_in_percent(name, said):
    wanted = plan_run("functional_regression", "sinusoid", n=500, epsilon=1.0)
    assert lessons.quantity_of(name, wanted).written(0.9) == said


def test_every_picture_that_a_file_may_name_can_be_drawn():
    assert {*pictures.DRAWN, "handle"} == set(PICTURES)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.title)
def test_every_step_can_be_drawn_and_answered(step):
    value = answer(step)
    assert math.isfinite(value)
    assert 0 <= step.right_choice(value) < len(step.choices)
    assert "{" not in step.sentence(value)
    if step.picture != "handle":
        for shown in (step.start, step.revealed):
            drawn = pictures.draw(shown, step.picture)
            assert drawn.sentence
            assert len(drawn.table)
            # A machine of a class may have no graphics card.
            assert not any(trace.type.endswith("gl") for trace in drawn.figure.data)


def test_the_answer_is_the_engines_and_follows_its_settings():
    step = next(step for step in STEPS if step.title == "Ten times as strict")
    stricter = replace(step, reveal=replace(step.reveal, change=(("epsilon", 0.02),)))
    assert answer(stricter) < answer(step) < answer(replace(step, reveal=replace(step.reveal, change=())))


def twitched(place):
    run = plan_run("functional", "four_corners", n=500, epsilon=1.0)
    return State(run, (("home", "-3,-3"), ("place", place)))


def test_a_twitch_has_the_length_that_the_kernel_says():
    h = lessons.released(twitched("0,0").run).spec.bandwidth
    for x, y in ((-3.0, -3.0), (-2.5, -2.5), (-1.0, 4.0), (3.0, 3.0)):
        kernel = np.exp(-0.5 * ((x + 3.0) ** 2 + (y + 3.0) ** 2) / h**2)
        found = QUANTITIES["twitch_share"](twitched(f"{x:g},{y:g}"))
        assert found == pytest.approx(math.sqrt(1 - kernel), abs=1e-4)


def test_what_the_hand_finds_is_how_far_the_release_itself_moves_without_noise():
    sent = pictures.by_hand(twitched("-2.5,-2.5"))
    data = lessons.records(twitched("0,0").run)
    bases = box_bases(data.box, sent["bandwidth"])
    for i, j in ((0, 0), (7, 7), (12, 3), (24, 24)):
        place = [sent["lattice"][i], sent["lattice"][j]]
        worlds = [coefficients(np.array([*data.points, last]), bases) for last in (sent["home"], place)]
        moved = np.linalg.norm(worlds[1] - worlds[0]) / math.sqrt(2)
        assert sent["shares"][i][j] == pytest.approx(moved, abs=1e-6)
    assert len(sent["shares"]) ** 2 == len(lessons.PLACES)
