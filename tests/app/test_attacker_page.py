"""Be the attacker, as a script: ten rounds, the score, the class, and nothing of the answers in the link."""

from __future__ import annotations

from tests.shown import all_text, answer, button, checked, new_page, widget


def play_out(page, says):
    for number in range(10):
        inside = bool(page.session_state["_attack_secrets"][number] % 2)
        button(page, f"attack_{'yes' if says(inside) else 'no'}").click()
        checked(page)
    return page


def test_ten_right_answers_catch_the_claim_and_ten_wrong_ones_do_not():
    page = checked(new_page("attacker", attack_mechanism="broken"))
    assert "Round 1 of 10" in answer(page)
    play_out(page, lambda inside: inside)
    assert "10 of 10" in answer(page)
    assert page.error[0].value.startswith("Caught.")
    button(page, "attack_new").click()
    checked(page)
    assert "Round 1 of 10" in answer(page)
    play_out(page, lambda inside: not inside)
    assert "0 of 10" in answer(page)
    assert not page.error
    assert dict(page.query_params) == {"attack_mechanism": "broken"}


def test_the_class_is_summed_by_hand():
    page = checked(new_page("attacker"))
    widget(page, "number_input", "attack_rounds").set_value(300)
    widget(page, "number_input", "attack_hits").set_value(290)
    checked(page)
    assert page.error[0].value.startswith("Caught.")
    assert "290 or more of 300 with a chance of less than 1 in 10,000" in page.error[0].value  # and not of 0%
    widget(page, "number_input", "attack_hits").set_value(301)
    checked(page)
    assert "hits = 301 is not allowed" in page.error[0].value


def test_a_mangled_link_gets_a_sentence():
    page = checked(new_page("attacker", attack_epsilon="frog", attack_mechanism="x"))
    assert "attack_epsilon" in page.info[0].value
    assert "Round 1" in answer(page)
    assert "no link" in all_text(page)
