"""Be the attacker: was this person in the data? The rounds live in the session, so no link holds an answer."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpgrams_core.auditing import attacker
from dpgrams_core.auditing.attacker import MECHANISMS, ROUNDS, Score
from dpgrams_core.figures.attacker import round_chart, score_chart
from dpgrams_core.methods.registry import fresh_seed
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.format import chance_words, percent, short, tiny
from pages._ui import charts, controls, layout, state

QUESTION = "Be the attacker: was this person in the data?"
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
FIRST_EPSILON = 0.5
KEYS = ["attack_epsilon", "attack_mechanism"]
SECRETS, GUESSES = "_attack_secrets", "_attack_guesses"  # the numbers of the rounds, and what was said: in no link
NAMES = {"honest": "The honest mechanism", "broken": "A broken one, with the same claim"}
ANSWERS = {True: "Yes, this person was", False: "No, somebody else was"}


def new_game() -> None:
    """Ten rounds that nobody can foresee."""
    st.session_state[SECRETS] = tuple(fresh_seed() for _ in range(ROUNDS))
    st.session_state[GUESSES] = ()


def guess(inside: bool) -> None:
    """What the player says of the open round."""
    st.session_state[GUESSES] = (*st.session_state[GUESSES], inside)


def was_inside(number: int) -> bool:
    """Whether the person was in the data in a round."""
    return bool(st.session_state[SECRETS][number] % 2)


def verdict(found: Score) -> None:
    """What the score says about the claim."""
    if found.caught:
        st.error(
            f"Caught. If the claim were true, even the best attacker would get {found.hits} or more of {found.rounds} "
            f"with a chance of {chance_words(found.by_luck)}. So the mechanism adds too little noise, or this was "
            "rare luck.",
            icon=":material/gpp_bad:",
        )
    else:
        st.success(
            f"This score is allowed: the best attacker that ε leaves room for gets {found.hits} or more of "
            f"{found.rounds} with a chance of {percent(found.by_luck)}. That is no proof of the claim; more rounds "
            "say more.",
            icon=":material/verified_user:",
        )


def playing(epsilon: float, mechanism: str) -> None:
    """The round that is open, with its two answers."""
    said = st.session_state[GUESSES]
    number = len(said)
    hits = sum(told == was_inside(i) for i, told in enumerate(said))
    told = f"Round {number + 1} of {ROUNDS}. Right so far: {hits} of {number}."
    layout.answer(told, f"Was this person in the data? {told}")
    played = attacker.play(mechanism, epsilon, st.session_state[SECRETS][number])
    picture, asked = st.columns([3, 2], gap="medium")
    with asked:
        st.subheader("Was this person in the data?")
        st.markdown(
            "You know everybody else, and their hills are taken out of the released picture. One hill is left, under "
            "noise: at the **ring** if this person was in the data, at the **square** if somebody else was."
        )
        with st.container(horizontal=True):
            for inside, words in ANSWERS.items():
                st.button(words, key=f"attack_{'yes' if inside else 'no'}", on_click=guess, args=(inside,))
        if said:
            right = "right" if said[-1] == was_inside(number - 1) else "wrong"
            st.caption(f"Round {number}: that was {right}.")
        st.caption("Nobody can do better than to say yes where the picture is higher at the ring than at the square.")
    with picture:
        charts.chart(round_chart(played), "attack")


def ended(epsilon: float, mechanism: str) -> None:
    """The score of ten rounds beside the largest that ε allows."""
    hits = sum(told == was_inside(i) for i, told in enumerate(st.session_state[GUESSES]))
    found = attacker.score(ROUNDS, hits, epsilon)
    layout.answer(
        f"You were right in <b>{hits} of {ROUNDS}</b> rounds. At ε = {short(epsilon)} nobody can be right more often "
        f'than <b class="private">{percent(found.allowed)}</b> of the time, in the long run.'
    )
    verdict(found)
    charts.chart(score_chart(found, "you"), "attack_score", "Your score")
    st.caption(
        f"The largest allowed is for any mechanism with this ε and δ = {tiny(attacker.DELTA)}. On the honest noise of "
        f"this game the best attacker is right {percent(found.best)} of the time. You played against: "
        f"{MECHANISMS[mechanism]}."
    )


def class_score(epsilon: float) -> None:
    """The class, summed by hand."""
    st.subheader("The whole class")
    st.markdown("Add up the rounds and the right guesses of everybody: many rounds say what ten cannot.")
    columns = st.columns(2)
    rounds = columns[0].number_input("Rounds of all", 0, attacker.MOST_ROUNDS, 0, key="attack_rounds")
    hits = columns[1].number_input("Right guesses of all", 0, attacker.MOST_ROUNDS, 0, key="attack_hits")
    if not rounds:
        st.caption("Nothing yet: for thirty players these are 300 rounds.")
        return
    try:
        found = attacker.score(int(rounds), int(hits), epsilon)
    except SpecError as error:
        layout.problem(error)
        return
    verdict(found)
    charts.chart(score_chart(found, "the class"), "attack_class")


layout.open_page(QUESTION, "pages/attacker.py")
state.start("attack_epsilon", FIRST_EPSILON, state.one_of_these(EPSILONS))
state.start("attack_mechanism", "honest", state.one_of_these(list(MECHANISMS)))
state.write_url(KEYS)
state.tell_refused()
if SECRETS not in st.session_state:
    new_game()
begin = st.empty()
with st.container(horizontal=True, vertical_alignment="bottom"):
    chosen = controls.one_of_few("Play against", "attack_mechanism", NAMES, on_change=new_game)
    look: dict[str, Any] = {"format_func": short, "key": "attack_epsilon", "on_change": new_game, "width": 320}
    words = "The claim of both mechanisms. Another ε begins a new game."
    budget = st.select_slider("Privacy budget, ε", EPSILONS, help=words, persist_state="session", **look)
    st.button("New game", key="attack_new", on_click=new_game, icon=":material/casino:")
draw = ended if len(st.session_state[GUESSES]) >= ROUNDS else playing
draw(budget, chosen)
if draw is playing:  # a projector has room for the round; the class adds up at the end
    layout.presented()
class_score(budget)
st.caption("Simulated people. The rounds are drawn by your session and stand in no link.")
