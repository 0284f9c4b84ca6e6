"""Step 4 of the My data page, with releases that are there already: which one is shown, to whom, and what is free."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core import Dataset
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.own_data.reading.table import read_table
from dpgrams_core.own_data.release import open_budget
from dpgrams_core.privacy.ledger.book import Ledger
from pages._ui import exports
from pages._ui.my_data import budget as my_data_budget
from pages._ui.my_data.budget import QUOTE_ROWS, Plan, offered
from pages._ui.my_data.state import Own, Request
from tests.places import ROOT
from tests.shown import all_text, answer, checked

PAGE = ROOT / "pages" / "my_data.py"
AGE = Request(names=("age",), box=((0.0, 100.0),), kind="modes")
BOTH = Request(names=("age", "pay"), box=((0.0, 100.0), (0.0, 50.0)), kind="regression")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A ledger of the test's own."""
    for name in ("UPLOADS", "DATA", "CAP_EPSILON", "CAP_DELTA", "MAX_UPLOAD_MB", "CURATOR", "KEEP"):
        monkeypatch.delenv(f"DPGRAMS_{name}", raising=False)
    monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "ledger.sqlite3"))
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
def files(monkeypatch):
    """The page's files by the key of their button."""
    found: dict[str, exports.File] = {}
    button = exports.download
    monkeypatch.setattr(exports, "download", lambda file, key, *more: (found.update({key: file}), button(file, key)))
    return found


def bought(place: Path, *purchases: tuple[str, Request, float], source: str = "upload", rows: int = 400) -> Own:
    """A file of two groups with its releases, made as the page makes them, without the page."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, rows)[:, None]
    people = np.where(group == 0, [25, 15], [65, 35]) + 4 * rng.standard_normal((rows, 2))
    table = read_table("\n".join(["age,pay", *(f"{a:.4f},{p:.4f}" for a, p in people)]).encode(), "people.csv")
    own, ledger = Own(), Ledger(place)
    own.take(table, source)
    open_budget(table, ledger)
    own.restore(table, ledger)
    for method, request, epsilon in purchases:
        own.once(own.ticket, lambda m=method, r=request, e=epsilon: own.sell(m, r, ledger, {"epsilon": e}))
    assert own.problem == ""
    return own


def shown(own: Own) -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=120)
    app.session_state["_own"] = own
    return checked(app)


def widget(items, key: str):
    return next(item for item in items if item.key == key)


def test_what_is_said_and_reported_is_about_the_release_that_is_shown(place, files):
    pay = replace(AGE, names=("pay",), box=((0.0, 50.0),))
    page = shown(bought(place, ("functional", AGE, 0.5), ("functional", pay, 0.25)))
    assert answer(page).startswith("For ε = 0.25 ")
    widget(page.selectbox, "own_which_2").set_value(1)
    checked(page)
    assert answer(page).startswith("For ε = 0.5 ")
    report = files["export_report_html"].build()
    said = re.search(r'<p class="answer">(.*?)</p>', report).group(1)
    assert said == answer(page)
    assert "in age" in said
    assert "One row is protected" in all_text(page)
    assert "One row is protected" in report


@pytest.mark.parametrize(
    ("source", "curator", "offered_here"),
    [
        ("upload", None, True),
        ("upload", "off", False),
        ("local", None, False),  # everybody who reaches the server can open it
        ("local", "off", False),
        ("local", "on", True),
    ],
)
def test_records_of_the_servers_own_files_are_shown_only_where_its_owner_says_so(
    source, curator, offered_here, place, monkeypatch
):
    if curator is not None:
        monkeypatch.setenv("DPGRAMS_CURATOR", curator)
    own = bought(place, ("functional", AGE, 0.5), source=source, rows=80)
    page = AppTest.from_file(str(PAGE), default_timeout=120)
    page.session_state["_own"] = own
    page.session_state["own_view"] = "curator"  # what a visitor could send
    checked(page)
    assert ("own_view" in [item.key for item in page.segmented_control]) == offered_here
    assert ("The 80 records" in all_text(page)) == offered_here
    assert ("DPGRAMS_CURATOR=on" in all_text(page)) == (source == "local" and curator is None)


def test_a_lowered_cap_counts_for_a_file_that_is_open_and_a_raised_one_is_said(place, monkeypatch):
    own = bought(place, ("functional", AGE, 0.5), rows=80)
    assert "keeps the cap" not in all_text(shown(own))
    monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "0.4")
    page = shown(own)
    assert "ε = 0.5 of 0.4 spent, ε = 0 left" in all_text(page)
    monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "0.75")
    assert "ε = 0.5 of 0.75 spent, ε = 0.25 left" in all_text(checked(page))  # in a session that goes on
    monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "8")
    text = all_text(checked(page))
    assert "ε = 0.5 of 3 spent, ε = 2.5 left" in text
    assert "keeps the cap that it was opened with, ε = 3 and δ = 1e-4." in text


def test_branches_can_be_smoothed_further_for_free(place):
    page = shown(bought(place, ("functional_regression", BOTH, 2.0)))
    before, least = page.dataframe[0].value, widget(page.slider, "own_least")
    least.set_value(1.0)
    widget(page.select_slider, "own_smooth").set_value(2.0)
    checked(page)
    assert "on the released surface, smoothed further to 2 times its bandwidth" in all_text(page)
    assert "(smoothed to 2 times its bandwidth)" in answer(page)
    assert not page.dataframe[0].value.equals(before)
    assert widget(page.slider, "own_least").value == 1.0  # the other control stays where it was put
    assert len(Ledger(place).charges()) == 1


def test_a_regression_that_nothing_stands_out_of_is_a_page_all_the_same(place):
    own = bought(place, ("functional_regression", BOTH, 0.5), rows=80)
    sale = own.sales[0]
    release, surface = sale.release, sale.release.surface
    flat = replace(surface, bare=replace(surface.bare, coefficients=np.zeros_like(surface.coefficients)))
    own.sales[0] = replace(sale, release=replace(release, surface=flat, significance=0 * release.significance))
    page = shown(own)
    assert (widget(page.slider, "own_least").min, widget(page.slider, "own_least").max) == (0, 0.5)
    assert len(page.dataframe[0].value) == len(release.curve)


@pytest.mark.parametrize(("method", "request_"), [("functional", AGE), ("functional_regression", BOTH)])
def test_a_release_that_could_not_be_read_is_shown_as_it_was_drawn(method, request_, place, monkeypatch):
    def broken(*_):
        raise RuntimeError("a bug")

    monkeypatch.setitem(METHODS, method, replace(METHODS[method], reading=broken))
    page = shown(bought(place, (method, request_, 2.0), rows=80))
    assert answer(page).endswith(
        "is drawn and paid for. Something failed while it was read, so there is nothing to say yet."
    )
    assert "What was drawn." in all_text(page)
    assert "nothing stands above" not in all_text(page)


@pytest.mark.parametrize(("method", "rows"), [("functional", 100_000), ("dp_grams", QUOTE_ROWS)])
def test_the_price_is_for_all_rows_where_that_is_quick(method, rows, monkeypatch):
    points = np.broadcast_to(np.zeros(3), (100_000, 3))
    data = Dataset(name="mine", kind="modes", points=points, box=[(-4, 4)] * 3, private=True)
    asked = []
    monkeypatch.setattr(my_data_budget, "quote", lambda method, data, **_: asked.append(data.n))
    monkeypatch.setattr(my_data_budget, "refuse_unproven", lambda _: None)
    offered(SimpleNamespace(data=lambda _: data), AGE, Plan(method=method, options=()))
    assert asked == [rows]


def test_a_bandwidth_that_is_refused_for_all_rows_is_refused_before_the_button(monkeypatch):
    said = []
    monkeypatch.setattr(my_data_budget, "st", SimpleNamespace(error=lambda words, **_: said.append(words)))
    points = np.broadcast_to(np.zeros(3), (100_000, 3))
    data = Dataset(name="mine", kind="modes", points=points, box=[(-4, 4)] * 3, private=True)
    own, plan = SimpleNamespace(data=lambda _: data), Plan(method="functional", options=(("bandwidth_scale", 0.4),))
    assert offered(own, AGE, plan) is None
    assert "the released grid would have" in said[0]


def test_a_mangled_link_is_told_at_once():
    page = AppTest.from_file(str(PAGE), default_timeout=120)
    page.query_params["own_epsilon"] = "abc"
    page.query_params["own_delta"] = "1e-6, please"
    checked(page)
    notes = [item.value for item in page.info]
    (note,) = notes
    assert note.startswith("The link's values for own_epsilon, own_delta cannot be used; the defaults stand instead. ")
    assert "own_epsilon = abc: it must be one of 0.01, " in note
    assert "please" not in note  # only a plain word or number of a link is shown again
    assert (page.session_state["own_epsilon"], page.session_state["own_delta"]) == (0.5, 1e-6)
    assert [item.value for item in checked(page).info] == []


def test_a_link_holds_until_its_controls_are_shown(place):
    page = AppTest.from_file(str(PAGE), default_timeout=120)
    page.query_params["own_epsilon"] = "2"
    page.query_params["own_way"] = "dp_grams"
    checked(page)
    page.session_state["_own"] = bought(place)
    checked(page)
    page.multiselect[0].set_value(["age"])
    checked(page)
    for item, value in zip(page.number_input, (0, 100), strict=True):
        item.set_value(value)
    checked(page)
    assert widget(page.select_slider, "own_epsilon").value == 2.0
    assert widget(page.selectbox, "own_way").value == "dp_grams"
    assert set(page.query_params) == {"own_epsilon", "own_way"}
