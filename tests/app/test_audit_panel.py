"""The audit's panel as a script: controls, looks, stopping, and nothing lost (the repeating is the browser's)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core import SpecError
from dpgrams_core.auditing import PAIRS
from dpgrams_core.model.guarantee import STATUSES, status_words
from dpgrams_core.model.progress import Stopped, stoppable
from pages._ui import jobs as page_jobs
from pages._ui.guarantee import audit as audit_panel
from pages._ui.guarantee.audit import CHOICES, KEYS, LESSON, OWN, PAIR_WORDS, Desk, Wish, own_pair

QUICK = Wish(choice="broken_sum", trials=200, n=30)


def script() -> None:
    import streamlit as st

    from pages._ui.guarantee import audit as audit_panel

    st.toggle("another control", key="other")
    audit_panel.audit_panel()


STARTED: list[Iterator[None]] = []  # jobs that go on when the test says so, instead of in a thread


@pytest.fixture(autouse=True)
def by_hand(monkeypatch):
    monkeypatch.setattr(page_jobs.jobs(), "_start", STARTED.append)
    yield
    STARTED.clear()
    page_jobs.jobs()._jobs.clear()


@pytest.fixture
def page() -> AppTest:
    app = AppTest.from_function(script, default_timeout=120)
    app.query_params.update({"audit_method": "broken_sum", "audit_trials": "200"})
    return app.run()


def press(app: AppTest, key: str) -> AppTest:
    next(button for button in app.button if button.key == key).click()
    return app.run()


def keys(app: AppTest) -> set[str]:
    return {button.key for button in app.button}


def text(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.info, *app.get("html")]
    return "\n".join(getattr(item, "value", "") or item.proto.body for item in parts)


def desk(app: AppTest) -> Desk:
    return app.session_state["_audits"]


def look(app: AppTest, times: int = 1) -> AppTest:
    """What the thread of a job does: a look each time."""
    for _ in range(times):
        next(STARTED[-1], None)
    return app.run()


def choose(app: AppTest, kind: str, key: str, value) -> AppTest:
    next(item for item in getattr(app, kind) if item.key == key).set_value(value)
    return app.run()


def table(app: AppTest):
    return app.dataframe[-1].value


class TestPanel:
    def test_it_says_what_the_game_is_and_that_a_pass_proves_nothing(self, page):
        assert not page.exception
        words = text(page)
        for sentence in ("Two worlds differ in one record", "A pass proves nothing", "Only a catch is a finding"):
            assert sentence in words
        assert "No audit yet" in words
        assert "audit_stop" not in keys(page)

    def test_every_control_explains_itself(self, page):
        choose(page, "selectbox", "audit_pair", OWN)
        controls = [*page.selectbox, *page.select_slider, *page.number_input]
        assert {control.key for control in controls} == set(KEYS)
        for control in controls:
            assert control.help

    def test_an_audit_runs_look_by_look_to_its_verdict(self, page):
        press(page, "audit_run")
        assert "audit_stop" in keys(page)
        look(page, 3)
        words = text(page)
        assert "60 of 200 runs" in words
        assert "all interim results hold at once with 95% confidence" in words
        look(page, 7)
        assert not page.exception
        assert "audit_stop" not in keys(page)
        words = text(page)
        assert "Caught: “Broken on purpose: a sum, with the noise of a mean” claims ε = 1" in words
        assert "**A pass proves nothing.**" in words
        assert "all interim results" not in words
        assert list(table(page)["outcome"]) == ["caught"]
        assert list(table(page)["runs"]) == ["200"]

    def test_drawing_the_page_takes_no_look(self, page):
        press(page, "audit_run")
        for _ in range(3):
            page.run()
        assert desk(page).current.result is None

    def test_stopping_keeps_what_there_is(self, page):
        press(page, "audit_run")
        look(page, 2)
        press(page, "audit_stop")
        assert not desk(page).busy
        assert list(table(page)["runs"]) == ["40 of 200"]
        assert "This rests on 40 of 200 runs" in text(page)
        done = desk(page).found[-1].result
        look(page, 2)
        assert desk(page).found[-1].result is done

    def test_stopping_before_the_first_look_leaves_nothing(self, page):
        press(page, "audit_run")
        press(page, "audit_stop")
        assert desk(page).records == []
        assert "No audit yet" in text(page)

    def test_a_changed_setting_stops_it_and_keeps_what_there_is(self, page):
        press(page, "audit_run")
        look(page, 2)
        choose(page, "select_slider", "audit_eps", 5.0)
        assert "A setting changed, so the audit was stopped" in text(page)
        assert not desk(page).busy
        assert list(table(page)["runs"]) == ["40 of 200"]
        assert list(table(page)["claimed ε"]) == [1.0]

    def test_another_control_of_the_page_disturbs_nothing(self, page):
        press(page, "audit_run")
        look(page, 2)
        page.toggle[0].set_value(True).run()
        assert desk(page).busy
        look(page, 8)
        page.toggle[0].set_value(False).run()
        assert list(table(page)["runs"]) == ["200"]
        press(page, "audit_run")
        look(page, 10)
        assert list(table(page)["no."]) == [1, 2]
        assert (table(page)["lower bound"].nunique(), len(page.dataframe)) == (1, 2)  # same seed, same audit

    def test_the_lesson_catches_both_broken_methods(self, page):
        press(page, "audit_teach")
        look(page, 20)
        assert not desk(page).busy
        shown = table(page)
        assert list(shown["outcome"]) == ["caught", "caught"]
        assert list(shown["status"]) == [status_words("none")] * 2
        press(page, "audit_clear")
        assert "No audit yet" in text(page)

    def test_a_pair_of_ones_own_is_audited_and_a_wrong_one_refused_with_nothing_lost(self, page):
        press(page, "audit_run")
        look(page, 10)
        choose(page, "selectbox", "audit_pair", OWN)
        for key in ("audit_old_x", "audit_new_x"):
            choose(page, "number_input", key, 2.0)
        press(page, "audit_run")
        assert "exactly one record" in page.error[0].value
        assert not page.exception
        assert not desk(page).busy
        assert len(table(page)) == 1
        choose(page, "number_input", "audit_new_x", -3.0)
        assert not page.error
        press(page, "audit_run")
        look(page, 10)
        assert list(table(page)["pair"]) == ["far_record", "own pair"]

    def test_the_link_holds_the_settings_and_leaves_other_names_alone(self, page):
        page.query_params["someone_elses"] = "7"
        choose(page, "select_slider", "audit_eps", 0.5)
        found = dict(page.query_params)
        assert found == {
            "audit_method": "broken_sum",
            "audit_trials": "200",
            "audit_eps": "0.5",
            "someone_elses": "7",
        }
        choose(page, "select_slider", "audit_eps", 1.0)
        assert "audit_eps" not in page.query_params

    def test_two_sessions_do_not_disturb_each_other(self, page):
        other = AppTest.from_function(script, default_timeout=120).run()
        press(page, "audit_run")
        look(page, 1)
        other.run()
        assert not desk(other).busy
        assert "No audit yet" in text(other)


class TestDoors:
    def test_an_audit_through_the_release_door_runs_to_its_end_and_has_no_seed(self, page, monkeypatch):
        monkeypatch.setattr(audit_panel, "TRIALS", (40, *audit_panel.TRIALS))  # the noise of this door takes its time
        choose(page.run(), "select_slider", "audit_trials", 40)
        choose(page, "selectbox", "audit_method", "tight")
        choose(page, "selectbox", "audit_door", "release")
        assert "without a seed: no such audit can be repeated" in text(page)
        assert "audit_seed" not in {control.key for control in page.number_input}
        choose(page, "selectbox", "audit_pair", "missing_record")
        press(page, "audit_run")
        look(page, 10)
        assert not page.exception
        assert not page.error
        shown = table(page)
        assert (list(shown["door"]), list(shown["seed"]), list(shown["pair"])) == (
            ["release"],
            ["none"],
            ["missing_record"],
        )
        assert page.query_params["audit_door"] == "release"

    def test_a_broken_method_is_simulated_only_and_other_choices_follow(self, page):
        choose(page, "selectbox", "audit_method", "tight")
        choose(page, "selectbox", "audit_door", "release")
        choose(page, "selectbox", "audit_pair", "infinite_record")
        choose(page, "selectbox", "audit_method", "broken_sum")
        boxes = {control.key: control for control in page.selectbox}
        assert not page.exception
        assert boxes["audit_door"].options == ["A simulation"]
        assert boxes["audit_pair"].value == "far_record"
        choose(page, "selectbox", "audit_method", "pms_tight")
        assert {control.key: control.value for control in page.selectbox}["audit_pair"] == "far_response"

    def test_a_link_cannot_ask_for_more_runs_than_the_door_is_offered_with(self):
        app = AppTest.from_function(script, default_timeout=120)
        app.query_params.update({"audit_trials": "5000", "audit_door": "release", "audit_pair": "largest_record"})
        app.run()
        assert not app.exception
        assert {control.key: control.value for control in app.select_slider}["audit_trials"] == 1_000
        assert {control.key: control.value for control in app.selectbox}["audit_pair"] == "largest_record"

    def test_a_link_with_a_pair_that_the_door_does_not_take_is_set_right(self):
        app = AppTest.from_function(script, default_timeout=120)
        app.query_params.update({"audit_pair": "largest_record"})
        app.run()
        assert not app.exception
        assert {control.key: control.value for control in app.selectbox}["audit_pair"] == "far_record"


class TestWords:
    def test_every_choice_and_pair_has_its_sentence(self):
        assert all(choice.words.endswith(".") for choice in CHOICES.values())
        assert set(PAIR_WORDS) == {*PAIRS, OWN}

    def test_the_titles_say_the_status_that_the_releases_claim(self):
        for name, choice in CHOICES.items():
            result = next(Wish(choice=name, trials=40, n=30).stream())
            as_run = choice.calibration == "as_run"  # of no guarantee, and not broken on purpose
            status = "Broken on purpose" if result.claimed_status == "none" and not as_run else result.claimed_status
            assert status in choice.title
            others = {*STATUSES, "Broken on purpose"} - {status, "none"}
            assert not any(other in choice.title for other in others)


class TestDesk:
    def test_nothing_more_is_computed_after_a_stop(self, monkeypatch):
        from dpgrams_core.auditing import game

        started, right = [], game.run_chunk
        monkeypatch.setattr(game, "run_chunk", lambda chunk: started.append(chunk) or right(chunk))
        mine = Desk()
        mine.begin((QUICK, QUICK))
        looks = mine.looks()
        next(looks)
        mine.stop()
        assert next(looks, "end") == "end"
        assert len(started) == 2  # one look is a chunk of each world
        assert not mine.busy

    def test_a_refused_wish_changes_nothing(self):
        mine = Desk()
        mine.begin((QUICK,))
        looks = mine.looks()
        next(looks)
        with pytest.raises(SpecError, match="epsilon"):
            mine.begin((QUICK, Wish(choice="broken_sum", epsilon=-1.0)))
        assert mine.busy
        assert mine.found[0].result.trials_done == 20

    def test_a_setting_that_is_refused_while_running_ends_with_its_sentence(self):
        mine = Desk()
        mine.begin((Wish(choice="broken_sum", trials=40, n=30, options=(("batch_size", 31),)), QUICK))
        assert list(mine.looks()) == []
        assert isinstance(mine.problem, SpecError)
        assert not mine.busy
        mine.begin((QUICK,))
        assert mine.problem is None

    def test_audits_come_one_after_the_other(self):
        mine = Desk()
        mine.begin((QUICK, Wish(choice="broken_sum", trials=200, n=30, seed=1)))
        seen = [len(mine.found) for _ in mine.looks()]
        assert len(seen) == 20
        assert all(after - before in (0, 1) for before, after in pairwise(seen))
        assert [record.result.seed for record in mine.found] == [0, 1]
        assert all(record.result.complete for record in mine.found)

    def test_the_lesson_is_about_the_broken_methods(self):
        assert {wish.choice for wish in LESSON} == {name for name in CHOICES if name.startswith("broken")}

    def test_an_own_pair_differs_in_the_last_record_only(self):
        first, second, settings = own_pair((1.0, 2.0), (-4.0, 0.5))
        assert (first.points[:-1] == second.points[:-1]).all()
        assert first.points[-1].tolist() == [1.0, 2.0]
        assert second.points[-1].tolist() == [-4.0, 0.5]
        assert settings["candidates"] == ((1.0, 2.0), (-4.0, 0.5))


def test_a_look_that_is_left_in_the_middle_ends_the_audit_and_keeps_what_was_found():
    desk = Desk()
    desk.begin((Wish(choice="functional", trials=400, n=20), Wish(choice="broken_sum", trials=400, n=20)))
    looks = desk.looks()
    next(looks)
    (record,) = desk.found

    def gone():
        raise Stopped

    with pytest.raises(Stopped), stoppable(gone):
        next(looks)
    assert not desk.busy
    assert desk.found == [record]
    assert list(desk.looks()) == []  # nothing is left to run
