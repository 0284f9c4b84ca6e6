"""The My data page in a real browser: a file, a paid release, the same file again, and eight sessions at once."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

import numpy as np
import pandas as pd

from tests.heard import serious
from tests.secret_search import found_in

SESSIONS = 8
RELEASING = 3
PLANTED = {"age": 91.7384620538171, "pay": 93.6455463271184}  # one person, the largest in both columns


def people(rows: int, seed: int, columns: tuple[str, str] = ("age", "pay")) -> bytes:
    """A CSV file of two groups, with the planted record in its middle."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)[:, None]
    values = np.where(group == 0, [25, 20], [65, 60]) + 4 * rng.standard_normal((rows, 2))
    frame = pd.DataFrame(values, columns=columns).round(3)
    frame.iloc[rows // 2] = list(PLANTED.values())
    return frame.to_csv(index=False).encode()


def choose_file(dashboard, content: bytes) -> None:
    file = {"name": "people.csv", "mimeType": "text/csv", "buffer": content}
    dashboard.page.locator("input[type=file]").set_input_files(file)


def wait_for_file(dashboard) -> None:
    dashboard.page.get_by_text("The ledger of this file").wait_for()


def upload(dashboard, content: bytes) -> None:
    choose_file(dashboard, content)
    wait_for_file(dashboard)


def pick(dashboard, **bounds: tuple[int, int]) -> None:
    """Choose columns from the list and type their bounds, as a user does."""
    page = dashboard.page
    for name in bounds:
        page.locator("[class*=st-key-own_columns_] input").click()
        page.get_by_role("option", name=name, exact=True).click()
        dashboard.settle()
    page.keyboard.press("Escape")
    for name, pair in bounds.items():
        for value, word in zip(pair, ("from", "to"), strict=True):
            box = page.get_by_label(f"{name}, {word}")
            box.fill(str(value))
            box.press("Enter")
    dashboard.settle()


def wait_for_release(dashboard) -> None:
    dashboard.page.get_by_text("ε = 0.5 of 3 spent").wait_for()
    dashboard.settle()


def test_a_file_is_released_once_and_its_budget_is_not_refilled(make_dashboard, server_folder):
    content = people(1_500, seed=0)
    first = make_dashboard().open("my_data")
    assert "Nothing about it is shown until you release" in first.answer()
    upload(first, content)
    pick(first, age=(0, 100), pay=(0, 100))
    button = first.page.get_by_role("button", name="Release (spends ε = 0.5, δ = 1e-6)")
    first.shoot("my_data_before")
    button.dblclick()  # impatient: two clicks, one release
    # The result is on the first screen: who pressed the button further down need not look for it.
    picture = first.page.locator(".st-key-own_chart")
    picture.wait_for()
    first.until(lambda: 0 < picture.bounding_box()["y"] < 300, "the picture on the first screen")
    wait_for_release(first)
    assert "ε = 0.5 of 3 spent, ε = 2.5 left" in first.text()
    assert re.search(r"2 modes in age and pay, near age \d\d and pay \d\d, and near age \d\d", first.answer())
    labels = first.page.locator(".st-key-own_chart .textpoint").all_inner_texts()
    assert len(labels) == 2
    first.shoot("my_data_released")
    assert serious(first.page) == []
    with first.page.expect_download() as waiting:
        first.page.locator(".st-key-own_twin_csv button").click()
    twin = pd.read_csv(waiting.value.path())
    assert list(twin.columns) == ["age", "pay"]
    assert len(twin) == 1_500
    assert twin["age"].between(0, 100).all()
    left = {"twin": twin.to_csv().encode(), "messages": b"\n".join(first.received)}
    left |= {path.name: path.read_bytes() for path in server_folder.rglob("*") if path.is_file()}
    assert {"log.txt", "ledger.sqlite3"} <= set(left)
    assert b"URL:" in left["log.txt"]
    assert b"own_twin_csv" in left["messages"]
    shares = {f"{name}, share": value / 100 for name, value in PLANTED.items()}
    for name, written in left.items():
        assert found_in(written, PLANTED | shares) == [], name
    assert set(parse_qs(urlparse(first.page.url).query)) <= {"own_epsilon", "own_delta", "own_scale", "own_way"}
    again = make_dashboard(390, "dark").open("my_data")
    upload(again, content)
    again.page.get_by_text("is shown again; it costs nothing").wait_for()
    again.settle()
    assert again.answer() == first.answer()
    again.page.get_by_text("ε = 0.5 of 3 spent, ε = 2.5 left").wait_for()
    wide = again.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    again.shoot("my_data_390_dark")


def test_eight_sessions_at_once_each_with_its_own_data(make_dashboard):
    first = make_dashboard(900)
    # Tabs of one browser: each has its own session on the server, and they share the page's code.
    tabs = [first] + [type(first)(first.page.context.new_page(), first.address) for _ in range(SESSIONS - 1)]
    markers = [f"mark{number:02d}of{97 * number + 1013}" for number in range(SESSIONS)]  # a column of each file
    for tab in tabs:
        tab.page.goto(f"{tab.address}/my_data", wait_until="commit")
    for tab in tabs:
        tab.page.wait_for_selector("[data-testid=answer]")
    for number, tab in enumerate(tabs):  # all are read at the same time
        choose_file(tab, people(300 + number, seed=100 + number, columns=("age", markers[number])))
    for tab in tabs:
        wait_for_file(tab)
    for number, tab in enumerate(tabs[:RELEASING]):
        pick(tab, **{markers[number]: (0, 100)})
    for tab in tabs[:RELEASING]:  # all draw at the same time
        tab.page.get_by_role("button", name="Release (spends").click()
    for tab in tabs[:RELEASING]:
        wait_for_release(tab)
    for number, tab in enumerate(tabs):
        text, received = tab.text(), b"\n".join(tab.received)
        assert tab.errors == []
        assert f"{300 + number:,} rows" in text
        assert (markers[number] in text) == (number < RELEASING)
        assert markers[number].encode() in received
        for other in set(range(SESSIONS)) - {number}:
            assert f"{300 + other:,} rows" not in text
            assert markers[other] not in text
            assert markers[other].encode() not in received
        spent = "0.5" if number < RELEASING else "0"
        assert f"ε = {spent} of 3 spent" in text
