"""The My data page as a script, without a browser: nothing before a release, one charge for one click, two views."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core.model.errors import BudgetError
from dpgrams_core.privacy.ledger.book import Ledger
from pages._ui.layout import plain
from pages._ui.my_data import state as my_data_state
from pages._ui.my_data.state import Own
from tests.places import ROOT
from tests.shown import all_text, answer, checked, metrics, new_page

AGE, PAY = "37.123457", "41234.0625"  # cells that nothing else on the page could print


def people(rows: int = 400, missing: int = 0, seed: int = 0) -> bytes:
    """A CSV file of two groups, with the two known cells in its first row."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)
    age = np.where(group == 0, 25, 65) + 4 * rng.standard_normal(rows)
    pay = np.where(group == 0, 20_000, 60_000) + 4_000 * rng.standard_normal(rows)
    lines = ["age,pay,town", f"{AGE},{PAY},here"]
    lines += [f"{a:.5f},{p:.4f},there" for a, p in zip(age[1:], pay[1:], strict=True)]
    lines[2 : 2 + missing] = [f",{row.split(',', 1)[1]}" for row in lines[2 : 2 + missing]]
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    """A ledger of the test's own."""
    for name in ("UPLOADS", "DATA", "CAP_EPSILON", "CAP_DELTA", "MAX_UPLOAD_MB", "CURATOR", "KEEP"):
        monkeypatch.delenv(f"DPGRAMS_{name}", raising=False)
    monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "ledger.sqlite3"))
    return Ledger(tmp_path / "ledger.sqlite3")


def upload(app: AppTest, content: bytes, name: str = "people.csv") -> AppTest:
    app.file_uploader[0].set_value((name, content, "text/csv"))
    return checked(app)


def state_boxes(app: AppTest, **bounds: tuple[float, float]) -> AppTest:
    """Pick these columns and state their bounds."""
    app.multiselect[0].set_value(list(bounds))
    checked(app)
    for name, pair in bounds.items():
        for value, word in zip(pair, ("from", "to"), strict=True):
            next(item for item in app.number_input if item.label == f"{name}, {word}").set_value(value)
    return checked(app)


def release_button(app: AppTest):
    return next(item for item in app.button if item.label.startswith("Release ("))


def button(app: AppTest, label: str):
    return next(item for item in app.button if item.label.startswith(label))


def release_once(app: AppTest) -> AppTest:
    release_button(app).click()
    return checked(app)


def everything(app: AppTest) -> str:
    """All that was sent to the browser as text."""
    return str(app.main) + "".join(str(getattr(item, "proto", "")) for item in _elements(app.main))


def _elements(block):
    for child in block.children.values():
        yield child
        if hasattr(child, "children"):
            yield from _elements(child)


def tables(app: AppTest) -> list[dict]:
    """The tables of the charts; the ledger's own is not among them."""
    return [item.value.to_dict() for item in app.dataframe if "release" not in item.value.columns]


def view(app: AppTest, name: str) -> AppTest:
    next(item for item in app.segmented_control if item.key == "own_view").set_value(name)
    return checked(app)


def test_nothing_is_shown_before_a_release_and_one_click_is_one_charge(ledger):
    page = checked(new_page("my_data"))
    assert "Nothing about it is shown until you release" in answer(page)
    upload(page, people())
    assert "400 rows" in all_text(page)
    assert "`town` holds text" in all_text(page)
    state_boxes(page, age=(0, 100), pay=(0, 100_000))
    assert release_button(page).label == "Release (spends ε = 0.5, δ = 1e-6)"
    assert metrics(page)["Left now"] == "ε = 3"
    assert metrics(page)["Left afterwards"] == "ε = 2.5"
    assert "a stand-in, not your data" in all_text(page)
    for value in (0.2, 1.0, 0.5):  # sliders move, and nothing is charged
        next(item for item in page.select_slider if item.key == "own_epsilon").set_value(value)
        checked(page)
    assert ledger.charges() == []
    assert "2.5" in everything(page)  # the search does see what is on the page
    for cell in (AGE, PAY):
        assert cell not in everything(page)
    release_once(page)
    charge = ledger.charges()[0]
    assert (charge.epsilon, charge.delta, charge.status, charge.drawn) == (0.5, 1e-6, "proven", True)
    assert charge.description == "Functional release of age, pay"
    found = r"For ε = 0.5 (you can say: \d modes? in age and pay, near age \d+ and pay [\d,]+|nothing stands above)"
    assert re.search(found, answer(page))
    text = all_text(page)
    assert text.count("The ledger knows a table by its numbers") == 1
    for words in (
        "Is the guarantee real?",
        "Proven: replacing one record",
        "there is no seed",
        "nothing of another ledger",
    ):
        assert words in text
    for key, value in (("own_smooth", 1.5), ("own_count", 3)):  # free, as often as one likes
        next(item for item in page.select_slider if item.key == key).set_value(value)
        checked(page)
    next(item for item in page.segmented_control if item.key.startswith("own_read")).set_value("clusters")
    checked(page)
    assert "3 cluster centres" in all_text(page)
    # The answer follows what is read, and says where.
    assert re.search(r"you can say: 3 clusters in age and pay, near age \d+ and pay [\d,]+, near ", answer(page))
    assert len(ledger.charges()) == 1
    assert "a synthetic twin of your release" in all_text(page)
    for cell in (AGE, PAY):
        assert cell not in everything(page)
    assert set(page.query_params) <= {"own_epsilon", "own_delta", "own_scale", "own_way"}


def test_a_release_has_a_price_in_time_and_one_beyond_a_page_is_not_sold(ledger, monkeypatch):
    page = state_boxes(upload(checked(new_page("my_data")), people()), age=(0, 100))
    assert "of computing" not in all_text(page)
    monkeypatch.setattr("pages._ui.my_data.budget.run_seconds", lambda *_, **__: 70.0)
    assert "It takes about 70 seconds of computing" in all_text(checked(page))
    assert not release_button(page).disabled
    release_button(page).click()  # a press may still arrive after the button was taken away
    monkeypatch.setattr("pages._ui.my_data.budget.run_seconds", lambda *_, **__: 7_200.0)
    words = all_text(checked(page))
    assert "would take about 2.0 hours of computing, and a page gives at most 10 minutes" in words
    assert "choose a larger bandwidth or fewer columns" in words
    assert release_button(page).disabled
    assert ledger.charges() == []


def test_a_third_release_waits_for_its_turn_and_is_not_charged_where_that_does_not_come(ledger, monkeypatch):
    monkeypatch.setattr(my_data_state, "_TURN_SECONDS", 0.1)
    page = state_boxes(upload(checked(new_page("my_data")), people()), age=(0, 100))
    with my_data_state._DRAWS_AT_ONCE, my_data_state._DRAWS_AT_ONCE:
        release_once(page)
        assert "Nothing was charged: press again" in page.error[0].value
        assert ledger.charges() == []
    monkeypatch.setattr(my_data_state, "_TURN_SECONDS", 60.0)
    with my_data_state._DRAWS_AT_ONCE:
        my_data_state._DRAWS_AT_ONCE.acquire()
        threading.Timer(0.3, my_data_state._DRAWS_AT_ONCE.release).start()
        release_once(page)
    assert not page.error
    assert len(ledger.charges()) == 1
    assert my_data_state._DRAWS_AT_ONCE._value == 2  # it was given back


def test_the_curator_sees_records_under_a_banner_and_nobody_else(ledger, monkeypatch):
    page = release_once(state_boxes(upload(checked(new_page("my_data")), people()), age=(0, 100)))
    assert "Curator view: not private" not in all_text(page)
    view(page, "curator")
    assert "Curator view: not private" in all_text(page)
    assert "The 400 records" in all_text(page)
    assert len(page.table) == 1  # and not a data frame, which would offer a download
    page.session_state["presenter"] = True  # a projector is running
    assert "The 400 records" not in all_text(checked(page))
    del page.session_state["presenter"]
    view(checked(page), "curator")
    monkeypatch.setenv("DPGRAMS_CURATOR", "off")
    checked(page)
    assert "The 400 records" not in all_text(page)
    assert "own_view" not in [item.key for item in page.segmented_control]
    assert len(ledger.charges()) == 1


def test_the_same_file_finds_its_releases_and_its_budget_again_and_the_cap_holds(ledger, monkeypatch):
    monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "0.8")
    first = release_once(state_boxes(upload(checked(new_page("my_data")), people()), age=(0, 100)))
    assert "After a reload of this page open the same file again" in all_text(first)
    assert "paid for earlier" not in all_text(first)
    shuffled = people().splitlines(keepends=True)
    again = upload(checked(new_page("my_data")), b"".join([shuffled[0], *reversed(shuffled[1:])]), "another name.csv")
    day = ledger.charges()[0].at[:10]
    assert f"Release 1 of {day} was paid for earlier and is shown again; it costs nothing" in all_text(again)
    assert answer(again) == answer(first)
    (before,), (after,) = (page.session_state["_own"].sales for page in (first, again))
    assert before.request == after.request
    assert before.record == after.record
    for page in (first, again):  # what is free stays free, and gives the same
        next(item for item in page.select_slider if item.key == "own_smooth").set_value(1.5)
        checked(page)
    assert tables(again) == tables(first) != []
    assert "Download the twin (400 rows" in everything(again)
    assert [charge.epsilon for charge in ledger.charges()] == [0.5]
    assert AGE not in everything(again)
    state_boxes(again, pay=(0, 100_000))
    assert metrics(again)["Left now"] == "ε = 0.3"
    assert release_button(again).disabled
    assert "Nothing was charged and nothing was drawn" in all_text(again)
    next(item for item in again.select_slider if item.key == "own_epsilon").set_value(0.3)
    assert not release_button(checked(again)).disabled
    release_once(again)
    sales = again.session_state["_own"].sales
    assert [(sale.number, sale.earlier) for sale in sales] == [(1, True), (2, False)]
    other = state_boxes(upload(checked(new_page("my_data")), people(seed=1)), pay=(0, 100_000))
    assert metrics(other)["Left now"] == "ε = 0.8"
    assert other.session_state["_own"].sales == []


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "empty.csv", "The file is empty"),
        (b"PK\x03\x04 and so on", "people.xlsx", "zip archive or an Excel workbook"),
        (f"{AGE},{PAY}\n1,2\n".encode(), "headless.csv", "does not look like column names"),
        (f"age\n{AGE}\n{AGE},{PAY}\n".encode(), "ragged.csv", "more or fewer cells"),
    ],
)
def test_a_bad_file_gets_one_sentence_and_no_value_is_repeated(content, name, words):
    page = upload(checked(new_page("my_data")), content, name)
    assert words in page.error[0].value
    assert AGE not in everything(page)
    assert len(page.file_uploader) == 1  # the way forward: another file
    assert "400 rows" in all_text(upload(page, people()))


def test_the_twin_opens_in_the_tradeoff_lab_of_this_session_only(ledger, monkeypatch):
    monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "20")
    page = state_boxes(upload(checked(new_page("my_data")), people()), age=(0, 100), pay=(0, 100_000))
    next(item for item in page.select_slider if item.key == "own_epsilon").set_value(10.0)
    release_once(checked(page))
    button(page, "Open it in the Tradeoff lab").click()
    checked(page)
    letters = page.session_state["lab_modes"]
    assert (page.session_state["lab_kind"], letters[:5]) == ("modes", "twin-")
    small = {f"lab_n_{letters}": "60", f"lab_eps_{letters}": "5", "lab_runs": "2", "lab_seed": "31"}

    def lab(**state) -> AppTest:
        app = AppTest.from_file(str(ROOT / "pages" / "tradeoff.py"), default_timeout=120)
        for key, value in {"lab_modes": letters, **small, "lab_n_four_corners": "60"}.items():
            app.query_params[key] = value
        for key, value in state.items():
            app.session_state[key] = value
        return checked(app)

    mine = lab(_own=page.session_state["_own"])
    data = next(item for item in mine.selectbox if item.key == "lab_modes")
    assert (data.value, data.options[-1]) == (letters, "Twin of release 1 (age, pay)")
    assert "Records drawn anew from your release for every run" in all_text(mine)
    assert "no command repeats this sweep" in all_text(mine)
    assert len(mine.code) == 0
    for _ in range(600):
        if "Complete: 3 points, 6 runs" in all_text(mine):
            break
        time.sleep(0.05)
        checked(mine)
    assert "On the twin of release 1 with n = 60, at ε = 5, privacy multiplies the MSE by" in answer(mine)
    assert len(ledger.charges()) == 1
    other = lab()  # another session that was sent the link
    assert "The link's values for lab_modes cannot be used" in all_text(other)
    assert next(item for item in other.selectbox if item.key == "lab_modes").options == ["Four corners", "Five t-bumps"]
    mine.session_state["_own"].leave()  # the file is taken away, and its twin with it
    assert next(item for item in checked(mine).selectbox if item.key == "lab_modes").value == "four_corners"


@pytest.mark.parametrize("missing", [12, 398])
def test_missing_values_stop_nothing_and_are_not_counted_aloud_and_bad_bounds_said(missing, ledger):
    page = upload(checked(new_page("my_data")), people(missing=missing))
    page.multiselect[0].set_value(["age"])
    checked(page)
    assert not page.error
    state_boxes(page, age=(100, 0))
    assert "box" in page.error[0].value
    state_boxes(page, age=(0, 100))
    release_once(page)
    assert "A row with a missing value counts as a row" in all_text(page)
    assert "that there are 400 rows" in all_text(page)
    assert f"{missing} " not in all_text(page)
    assert ledger.charges()[0].drawn
    view(page, "curator")  # who holds the records sees those that miss no value
    assert f"The {400 - missing} records" in all_text(page)


def test_bounds_can_be_bought(ledger):
    page = upload(checked(new_page("my_data")), people(rows=3_000))
    page.multiselect[0].set_value(["age"])
    checked(page)
    button(page, "Estimate age (spends ε = 0.2, δ = 1e-7)").click()
    checked(page)
    assert [(charge.description, charge.epsilon) for charge in ledger.charges()] == [("Bounds of age", 0.2)]
    low, high = (item.value for item in page.number_input)
    assert low < 30 < 60 < high
    assert metrics(page)["Left now"] == "ε = 2.8"


def test_a_response_and_dp_grams(ledger):
    page = upload(checked(new_page("my_data")), people())
    page.segmented_control[0].set_value("regression")
    checked(page)
    for number, name in enumerate(("age", "pay")):
        page.selectbox[number].set_value(name)
        checked(page)
    for item, value in zip(page.number_input, (0, 100, 0, 100_000), strict=True):
        item.set_value(value)
    release_once(checked(page))
    assert re.search(r"\d branch(es)? of pay over age, .*from age \d+ and pay [\d,]+ to age \d+ and pay", answer(page))
    next(item for item in page.segmented_control if item.key.startswith("own_goal")).set_value("modes")
    checked(page)
    state_boxes(page, age=(0, 100))
    next(item for item in page.selectbox if item.key == "own_way").set_value("dp_grams")
    checked(page)
    release_once(page)
    assert [charge.status for charge in ledger.charges()] == ["proven", "proven"]
    assert "This method releases no surface" in all_text(page)


def test_a_demonstration_takes_no_files_and_a_folder_opens_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("DPGRAMS_UPLOADS", "off")
    page = checked(new_page("my_data"))
    assert len(page.file_uploader) == 0
    assert "Uploads are switched off" in all_text(page)
    button(page, "Try it with an example file").click()
    checked(page)
    page.multiselect[0].set_value(["age", "sleep"])
    button(checked(page), "Fill in what anyone would say").click()
    assert release_button(checked(page)).label.startswith("Release (spends ε = 0.5")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "people.csv").write_bytes(people(rows=123))
    monkeypatch.setenv("DPGRAMS_DATA", str(folder))
    page = checked(new_page("my_data"))
    button(page, "Open it").click()
    assert "123 rows" in all_text(checked(page))


def test_a_wrong_configuration_is_a_sentence(monkeypatch):
    monkeypatch.setenv("DPGRAMS_UPLOADS", "maybe")
    assert "it must be on or off" in checked(new_page("my_data")).error[0].value


def test_a_ticket_is_good_for_one_purchase():
    own, started, bought = Own(), threading.Event(), []
    ticket = own.ticket

    def slow_purchase() -> None:
        started.set()
        threading.Event().wait(0.2)
        bought.append(1)

    first = threading.Thread(target=own.once, args=(ticket, slow_purchase))
    first.start()
    started.wait()
    own.once(ticket, slow_purchase)  # a second click, while the first is still drawing
    first.join()
    assert bought == [1]
    assert own.ticket != ticket

    def refused() -> None:
        raise BudgetError("There is not enough left.")

    own.once(own.ticket, refused)
    assert own.problem == "There is not enough left."

    def broken() -> None:
        raise RuntimeError(f"cell {AGE}")

    own.once(own.ticket, broken)
    assert AGE not in own.problem
    assert "the charge stays" in own.problem


def test_a_column_name_is_no_markup():
    assert plain("a_b*[x](http://e.x) $y$ :red[z]") == r"a\_b\*\[x\](http://e.x) \$y\$ \:red\[z\]"
    content = people().replace(b"age,pay", b"a*b*<i>,p$a$y", 1)
    page = upload(checked(new_page("my_data")), content)
    page.multiselect[0].set_value(["a*b*<i>"])
    checked(page)
    assert page.number_input[0].label == "a*b*<i>, from"  # for a screen reader, which reads no Markdown
    assert r":small[a\*b\*\<i\>, from]" in [item.value for item in page.markdown]  # for the eye


def test_a_ledger_that_is_refused_is_a_sentence_and_nothing_is_sold(ledger):
    """An older copy that was put back while the page was open, and a ledger that another program holds."""
    app = state_boxes(upload(checked(new_page("my_data")), people()), age=(0, 100))
    older = ledger.path.read_bytes()
    release_once(app)
    newer = ledger.path.read_bytes()
    ledger.path.write_bytes(older)
    fresh = checked(new_page("my_data"))
    assert answer(fresh) == "Nothing can be released here now."  # without a line a page that Start leads to stays empty
    for page in (checked(app), fresh):
        assert [item.value for item in page.error][-1].startswith("The ledger is behind its high-water mark")
        assert not [item for item in page.button if item.label.startswith("Release (")]
    ledger.path.write_bytes(newer)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        begin = time.monotonic()
        page = checked(app)
        assert time.monotonic() - begin < 5
        assert [item.value for item in page.error][-1].startswith("The ledger is busy")
        assert "you can say" in answer(page) or "nothing stands above the noise" in answer(page)  # it is paid for
    assert not checked(app).error
    assert len(ledger.charges()) == 1


def test_a_screen_reader_hears_the_plain_name_of_a_column():
    """Streamlit hands a label on as it is: an escaped one would be read with its strokes."""
    app = upload(checked(new_page("my_data")), people().replace(b"age,", b"color_intensity,", 1))
    state_boxes(app, color_intensity=(0, 100))
    boxes = [app.number_input, app.multiselect, app.selectbox, app.checkbox, app.slider, app.select_slider, app.toggle]
    labels = [item.label for kind in boxes for item in kind]
    assert {"color_intensity, from", "color_intensity, to"} <= set(labels)
    assert not [label for label in labels if "\\" in label]
    assert r"color\_intensity, from" in all_text(app)  # for the eye, as Markdown
