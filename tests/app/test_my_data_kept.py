"""What the My data page keeps of a release and brings back: to the same file only, for free, and it says so."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core import load_table
from dpgrams_core.own_data.reading.table import read_table
from dpgrams_core.own_data.release import open_budget, release
from dpgrams_core.privacy.ledger.book import Ledger
from pages._ui.my_data.state import Own, Request
from tests.places import ROOT

PAGE = ROOT / "pages" / "my_data.py"


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    """A ledger of the test's own."""
    monkeypatch.delenv("DPGRAMS_KEEP", raising=False)
    monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "ledger.sqlite3"))
    return Ledger(tmp_path / "ledger.sqlite3")


def people(rows: int = 100, seed: int = 0) -> bytes:
    """A CSV file of one group."""
    ages = np.random.default_rng(seed).normal(40, 5, rows)
    return ("age\n" + "\n".join(f"{age:.4f}" for age in ages) + "\n").encode()


def bought(content: bytes, ledger: Ledger, source: str = "upload") -> Own:
    """A file opened and released from as the page does it, without the page."""
    own = opened(content, ledger, source)
    request = Request(names=("age",), box=((0.0, 100.0),), kind="modes")
    own.once(own.ticket, lambda: own.sell("functional", request, ledger, {"epsilon": 0.5}))
    return own


def opened(content: bytes, ledger: Ledger, source: str = "upload") -> Own:
    own, table = Own(), read_table(content, "people.csv")
    own.take(table, source)
    open_budget(table, ledger)
    own.restore(table, ledger)
    return own


def test_what_becomes_of_a_release_is_said(ledger, monkeypatch):
    kept = bought(people(), ledger)
    assert "it is there, for free" in kept.sales[0].after_reload
    assert len(opened(people(), ledger).sales) == 1
    assert opened(people(seed=1), ledger).sales == []  # other people, nothing of theirs
    example = bought(people(seed=2), ledger, "example")
    assert "made afresh at every press" in example.sales[0].after_reload
    assert opened(people(seed=2), ledger).sales == []
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "keep", None)  # a full disk, say
        lost = bought(people(seed=3), ledger)
    assert "costs again: take it with you" in lost.sales[0].after_reload
    assert lost.problem.startswith("The release is there and paid for. It could not be kept")
    assert opened(people(seed=3), ledger).sales == []
    monkeypatch.setenv("DPGRAMS_KEEP", "off")
    assert "Nothing is kept on this server" in bought(people(seed=4), ledger).sales[0].after_reload
    assert opened(people(seed=4), ledger).sales == []
    assert len(opened(people(), ledger).sales) == 1  # what was kept before stays


def test_what_was_kept_comes_back_to_its_own_file_only(ledger):
    one = bought(people(), ledger)
    table = read_table(people(seed=1), "other.csv")
    late = Own()
    late.take(table, "upload")
    late.restore(one.table, ledger)  # an earlier run of the script, still busy with the earlier file
    assert late.sales == []
    late.restore(table, ledger)
    assert late.sales == []


def test_what_the_page_cannot_draw_is_left_to_the_command(ledger):
    table = read_table(people(), "people.csv")
    data = load_table(table, columns=["age"], box=[(0, 100)], kind="clusters")
    release("dp_kmeans", data, ledger, accept_unproven=True, epsilon=0.5, n_clusters=2)
    own = opened(people(), ledger)
    assert own.sales == []
    (sentence,) = own.not_shown
    assert "(DP-k-means of age) cannot be drawn on this page" in sentence


def test_a_damaged_release_is_a_sentence_and_bought_bounds_are_filled_in(ledger):
    content = people(rows=3_000)
    own = bought(content, ledger)
    own.once(own.ticket, lambda: own.buy_bounds("age", ledger, 0.5, 1e-6))
    low, high = own.bought["age"]
    with sqlite3.connect(ledger.path, isolation_level=None) as connection:
        connection.execute("DELETE FROM kept WHERE charge = 1")
        connection.execute("INSERT INTO kept VALUES (1, 'now', x'00')")
    connection.close()
    page = AppTest.from_file(str(PAGE), default_timeout=120).run()
    page.file_uploader[0].set_value(("people.csv", content, "text/csv"))
    page.run()
    assert "was kept and cannot be shown again. It is damaged." in "".join(item.value for item in page.info)
    assert "paid for earlier are filled in when you pick the column: age" in "".join(
        item.value for item in page.caption
    )
    assert page.session_state["_own"].sales == []
    page.multiselect[0].set_value(["age"])
    page.run()
    assert not page.exception
    assert [item.value for item in page.number_input] == [low, high]
    assert len(ledger.charges()) == 2


def texts(page: AppTest) -> str:
    """All that a page says, its tables and downloads included."""
    parts = [str(item.value) for kind in ("markdown", "caption", "info", "warning", "error") for item in page.get(kind)]
    return "\n".join([*parts, *(item.value.to_csv() for item in page.dataframe)])


def opened_page(content: bytes) -> AppTest:
    page = AppTest.from_file(str(PAGE), default_timeout=120).run()
    page.file_uploader[0].set_value(("people.csv", content, "text/csv"))
    page.run()
    assert not page.exception
    return page


def test_a_file_that_agrees_to_seven_digits_shows_nothing_of_the_other(ledger):
    first = people(rows=3_000)
    own = bought(first, ledger)
    own.once(own.ticket, lambda: own.buy_bounds("age", ledger, 0.5, 1e-6))
    again = texts(opened_page(first))
    assert "Functional release of age" in again
    day = own.sales[0].charge.at[:10]
    assert day in again
    digits = b"age\n" + first.split(b"\n", 1)[1].replace(b"\n", b"0000000001\n")
    for other in (first.replace(b"age", b"years"), digits):
        page = opened_page(other)
        said = texts(page)
        assert page.session_state["_own"].sales == []
        assert page.session_state["_own"].bought == {}
        assert "shown only for exactly the file" in said
        assert said.count("of another file") == 2
        for word in ("Functional release", "Bounds of", day):
            assert word not in said


def test_the_page_says_why_charges_count_together(ledger):
    bought(people(rows=500), ledger)
    rows = people(rows=500).decode().split()[1:]
    copy = "other name,constant\n" + "\n".join(f"{2 * float(row):.4f},1" for row in rows[1:]) + "\n"
    page = opened_page(copy.encode())
    (words,) = [item.value for item in page.warning]
    assert words.startswith("This file shares a good part of the column other name with one that was opened here")
    said = texts(page)
    assert "of another file" in said
    assert "Functional release of age" not in said
    assert page.session_state["_own"].sales == []
