"""Lessons: predict first, then see what the engine computes. What is shown, and the progress, stand in the link."""

from __future__ import annotations

import html
from contextlib import nullcontext
from typing import Any

import streamlit as st

from dpgrams_core.figures import frames
from dpgrams_core.figures import lessons as pictures
from dpgrams_core.figures.style import Chart
from dpgrams_core.methods.registry import PLAIN_METHODS
from dpgrams_core.model.format import written
from dpgrams_core.model.places import ASSETS
from dpgrams_core.studies import lessons
from dpgrams_core.studies.lessons import Lesson, State, Step
from pages._ui import cache, charts, controls, exports, handle, layout, state

QUESTION = "Lessons: predict first, then look"
SMALLER = "lesson"
KEYS = ["lesson", "step", "guess", "value"]
MOST_STEPS = 9
NONE = "0"  # a step without a prediction
_html, _css, _js = (
    (ASSETS / f"components/influence.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
)
_influence = st.components.v2.component("dpgrams_influence", html=_html, css=_css, js=_js)
TITLES = {"modes": "Modes", "regression": "Regression", "clusters": "Clusters", "guarantee": "Guarantee"}


def guesses(text: str) -> str:
    """A parser of the URL: one digit for each step, 0 where nothing was predicted yet."""
    if len(text) > MOST_STEPS or not ((text.isascii() and text.isdigit()) or text == ""):
        raise ValueError(f"it must be up to {MOST_STEPS} digits, one for each step")
    return text


def guess_of(lesson: Lesson, number: int) -> int | None:
    """What was predicted at a step, counted from 0; None before that."""
    digit = int(st.session_state["guess"][number : number + 1] or NONE)
    return digit - 1 if 1 <= digit <= len(lesson.steps[number].choices) else None


def go(lesson: Lesson | None, number: int = 0) -> None:
    """Open a step of a lesson, or the list; predictions of this lesson are kept."""
    if lesson is None or st.session_state["lesson"] != lesson.name:
        st.session_state["guess"] = ""
    st.session_state["lesson"], st.session_state["step"] = ("", 1) if lesson is None else (lesson.name, number + 1)
    st.session_state["value"] = None if lesson is None else lesson.steps[number].first_value


def predict(number: int, key: str) -> None:
    """Put a prediction into the link."""
    if (picked := st.session_state[key]) is not None:
        known = st.session_state["guess"].ljust(number + 1, NONE)
        st.session_state["guess"] = known[:number] + str(picked + 1) + known[number + 1 :]


def listing(known: tuple[Lesson, ...]) -> None:
    """All lessons, each with what it is about."""
    layout.answer(f"{len(known)} lessons of a few minutes each. In every step you predict, then the engine answers.")
    for first in range(0, len(known), 2):
        for column, lesson in zip(st.columns(2, gap="medium"), known[first : first + 2], strict=False):
            with column, st.container(border=True):
                st.subheader(lesson.title)
                st.markdown(f"{lesson.about} *{lesson.minutes} minutes, {len(lesson.steps)} steps.*")
                st.button(f"Begin: {lesson.title}", key=f"begin_{lesson.name}", on_click=go, args=(lesson,))
    st.markdown("After the lessons, or before them: ten rounds in which you try to find out who is in the data.")
    to_game()


def to_game() -> None:
    """The way to the game."""
    if st.button("Play: Be the attacker", key="to_game", icon=":material/person_search:"):
        st.switch_page("pages/attacker.py")


def show_picture(shown: State, step: Step, held: bool) -> None:
    """The picture of a state; with its ε handle where that is the control."""
    key = "lesson"
    if step.picture != "handle":
        drawn = cache.picture((shown, step.picture), pictures.draw, shown, step.picture)
        if step.picture == "twitch":
            by_hand(shown, drawn, held)
        else:
            charts.chart(drawn, key)
        return
    data, release = cache.records(shown.run), cache.release(shown.run)
    plain = cache.release(controls.without_privacy(shown.run, PLAIN_METHODS[data.kind]))
    if data.kind == "modes":
        grey = cache.kde(shown.run, "gaussian", plain.spec.bandwidth) if release.surface is None else None
        no_grey, sure = release.pooled is not None, release.mode_covariances is not None
        scene = frames.modes_scene(data, plain, None if no_grey else grey, sure)
    elif data.kind == "regression":
        scene = frames.regression_scene(data, plain, release.curve_band is not None)
    else:
        scene = frames.clusters_scene(data, plain)
    handle.show(shown.run, data, release, scene, f"{key}_chart", SMALLER, sets="value", held=held)


def by_hand(shown: State, drawn: Chart, held: bool) -> None:
    """One person who is dragged, or moved by the arrow keys; letting go puts the place into the link."""
    key = "lesson_chart"

    def put() -> None:
        if (place := st.session_state[key].get("place")) in lessons.PLACES:  # a visitor's browser may send anything
            st.session_state["value"] = place

    step = {"held": held, "step": f"{st.session_state['lesson']} {st.session_state['step']}"}
    _influence(data=pictures.by_hand(shown) | step, key=key, on_place_change=put)
    state.on_stage(key, drawn.figure)
    charts.table(drawn, "lesson", canvas=True)
    if not layout.presenting():
        exports.canvas_file(key, "dp-grams-one-record")


def control(step: Step) -> State:
    """The one control that matters, and the state that it asks for; ε is set by the handle of its picture."""
    if step.picture == "handle" and step.control.name == "epsilon":
        st.caption("The control that matters here is the ε handle under the picture.")
    elif step.picture == "twitch":
        st.caption(step.control.words)
    else:
        how: dict[str, Any] = {"format_func": written, "key": "value", "help": step.control.words}
        with layout.under_the_picture() or nullcontext():
            st.select_slider(step.control.label, step.control.values, persist_state="session", **how)
    return step.at(st.session_state["value"])


def question(step: Step, number: int, guess: int | None) -> None:
    """What to predict, and what was."""
    st.subheader("Predict first")
    st.markdown(step.question)
    key = f"predict_{st.session_state['lesson']}_{number}"
    st.radio(
        "Your prediction",
        range(len(step.choices)),
        index=guess,
        format_func=lambda i: step.choices[i].words,
        key=key,
        on_change=predict,
        args=(number, key),
    )


def reveal(step: Step, guess: int) -> None:
    """The engine's own answer, beside the prediction."""
    st.subheader("The engine's answer")
    with st.spinner("The engine computes…"):
        value = cache.lesson_value(step.reveal.quantity, step.revealed, step.reveal.runs)
    right = step.right_choice(value)
    if guess == right:
        st.success(f"As you predicted: {step.choices[right].words}.", icon=":material/check:")
    else:
        words = f"You predicted: {step.choices[guess].words}. The engine says: {step.choices[right].words}."
        st.info(words, icon=":material/lightbulb:")
    layout.answer(step.sentence(value))


def tried(step: Step, shown: State) -> None:
    """What the engine computes where the control stands now, and the way to the page that has all controls."""
    quantity = lessons.quantity_of(step.reveal.quantity, shown.run)
    if shown != step.revealed:
        found = cache.lesson_value(step.reveal.quantity, shown, step.reveal.runs)
        where = written(st.session_state["value"])
        st.markdown(f"With {step.control.label.lower()} at {where} it is **{quantity.written(found)}**.")
    draws = f", the mean of {step.reveal.runs} draws of the noise" if step.reveal.runs > 1 and quantity.random else ""
    st.caption(f"What is computed: {quantity.words.rstrip('.')}{draws}. Simulated data with known truth.")
    if layout.presenting():
        return
    if st.button(f"Open this on the page {TITLES[step.page]}", key="open_page", icon=":material/open_in_new:"):
        st.session_state[state.OPENED] = controls.link_of(shown.run)
        st.switch_page(f"pages/{step.page}.py")


def show(lesson: Lesson, number: int) -> None:
    """One step of a lesson."""
    step, last = lesson.steps[number], len(lesson.steps) - 1
    text = f"{lesson.title}, step {number + 1} of {last + 1}: {step.title}"
    guess = guess_of(lesson, number)

    def turn(steps: int) -> bool:
        if known_step := 0 <= number + steps <= last:
            go(lesson, number + steps)
        return known_step

    st.session_state[state.TURN] = turn
    presenting = layout.presenting()  # then the picture has a line of its own, and most of the width
    if not presenting:
        layout.answer(f"<b>{html.escape(text)}</b>")
    picture, asked = st.columns([2, 1] if presenting else [3, 2], gap="medium")
    with asked:
        top = st.container()  # the answer, and the way on with it, are seen without scrolling
        if presenting:
            with top:
                layout.answer(f"<b>{html.escape(text)}</b>")
        if guess is None or not presenting:  # a projector has no room for both
            st.markdown(step.words)
            question(step, number, guess)
        shown = step.start
        if guess is not None:
            with top:
                reveal(step, guess)
                shown = control(step)
            tried(step, shown)
        with (st if guess is None else top).container(horizontal=True):
            back = (None, 0) if number == 0 else (lesson, number - 1)
            st.button("All lessons" if number == 0 else "Back", key="back", on_click=go, args=back)
            onward = (None, 0) if number == last else (lesson, number + 1)
            words = "All lessons" if number == last else "Next step"
            if number or number < last:
                look: Any = "primary" if guess is not None else "secondary"
                st.button(words, key="next", on_click=go, args=onward, type=look)
    with picture:
        show_picture(shown, step, held=guess is None or step.control.name not in ("epsilon", "place"))
    if number == last and guess is not None:
        done = [cache.lesson_value(one.reveal.quantity, one.revealed, one.reveal.runs) for one in lesson.steps]
        hits = sum(guess_of(lesson, i) == one.right_choice(done[i]) for i, one in enumerate(lesson.steps))
        with asked if presenting else st.container():
            st.success(f"Lesson done: {hits} of {last + 1} predictions were right. Your link keeps them.")
            to_game()


layout.open_page(QUESTION, "pages/lessons.py")
known = lessons.lessons()
by_name = {lesson.name: lesson for lesson in known}
state.start("lesson", "", state.one_of_these(["", *by_name]))
chosen = by_name.get(st.session_state["lesson"])
count = len(chosen.steps) if chosen else 1
state.start("step", 1, state.one_of_these(range(1, count + 1)))
state.start("guess", "", guesses)
if chosen is None:
    state.start("value", None, state.one_of_these([None]))
else:
    step = chosen.steps[st.session_state["step"] - 1]
    state.start("value", step.first_value, state.one_of_these(step.control.values))
state.write_url(KEYS)
state.tell_refused()
if chosen is None:
    listing(known)
else:
    show(chosen, st.session_state["step"] - 1)
