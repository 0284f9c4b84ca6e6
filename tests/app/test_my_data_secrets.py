"""A planted record leaves no trace in what the My data page draws, offers and writes, nor in any log."""

from __future__ import annotations

import logging
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.testing.v1 import AppTest

from dpgrams_core.own_data.table import OwnData
from dpgrams_core.privacy.ledger.book import Ledger
from tests.places import ROOT
from tests.secret_search import found_in, records_of

PAGE = ROOT / "pages" / "my_data.py"
ROWS = 600
GROUPS = {"age": (30, 35, 4), "pay": (25e3, 4e4, 4e3), "height": (150, 40, 5), "weight": (50, 40, 5)}
BOX = {"age": (0, 120), "pay": (0, 130_000), "height": (0, 250), "weight": (0, 150)}
# One person, in every column the largest and far from the others: whatever reads the ends of the data shows it first.
PLANTED = {"age": 103.918462053817, "pay": 98273.6455463271, "height": 231.480573926183, "weight": 131.706248395164}
PLACE = ROWS // 2
FILES = {"own_csv", "own_html", "export_report_html", "export_release_py", "export_release_json", "export_released_csv"}
FILES |= {"own_ledger_csv"}
CASES = {
    "one column, bounds bought": (("age",), None),
    "two columns": (("age", "pay"), None),
    "three columns": (("age", "pay", "height"), None),
    "four columns, a sketch": (("age", "pay", "height", "weight"), None),
    "regression": (("age",), "pay"),
}


@pytest.fixture
def people(rng):
    """Two groups, and the planted record in their midst."""
    group = rng.integers(0, 2, ROWS)
    frame = pd.DataFrame({name: rng.normal(low + gap * group, sd) for name, (low, gap, sd) in GROUPS.items()})
    frame.iloc[PLACE] = [PLANTED[name] for name in frame.columns]
    assert (frame.max() == pd.Series(PLANTED)).all()
    return frame


class Watched:
    """A page in use, and everything that has left it so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sent: list[bytes] = []  # messages to the browser, also those that a later one replaces
        self.logged: list[str] = []
        self.offered: dict[str, Callable[[], str | bytes]] = {}
        self.files: dict[str, bytes] = {}
        self.app = AppTest.from_file(str(PAGE), default_timeout=120)

    def run(self) -> None:
        self.offered.clear()
        self.app.run()
        assert not self.app.exception

    def find(self, kind: str, name: str) -> Any:
        """A widget by its key, its label, or the beginning of its label."""
        found = [item for item in self.app.get(kind) if item.key == name or item.label.startswith(name)]
        assert found, name
        return found[0]

    def set(self, kind: str, name: str, value: object) -> None:
        self.find(kind, name).set_value(value)
        self.run()

    def click(self, name: str) -> None:
        self.find("button", name).click()
        self.run()

    def take(self, when: str) -> set[str]:
        """Press every download button, whose keys are given back, and take the tables: each offers a download too."""
        assert {item.key for item in self.app.get("download_button")} == set(self.offered)
        for key, build in self.offered.items():
            content = build()
            self.files[f"{key}, {when}"] = content.encode() if isinstance(content, str) else content
        for number, item in enumerate(self.app.dataframe):
            self.files[f"table {number}, {when}"] = item.value.to_csv().encode()
        return set(self.offered)

    def everything(self) -> dict[str, bytes]:
        """All that has left, by what it is."""
        ledger = Ledger(self.folder / "ledger.sqlite3")
        with closing(sqlite3.connect(ledger.path)) as connection:
            kept = [content for (content,) in connection.execute("SELECT content FROM kept")]
        assert len(kept) == len(ledger.charges())
        return {
            **self.files,
            **{f"kept {number}": content for number, content in enumerate(kept)},
            **{path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()},
            "drawn": b"\n".join(self.sent),
            "log": "\n".join(self.logged).encode(),
            "link": str(dict(self.app.query_params)).encode(),
        }


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A page of which all is seen: messages, downloads, what any logger is told at any level, and files on the disk."""
    for name in ("UPLOADS", "DATA", "CAP_DELTA", "MAX_UPLOAD_MB", "CURATOR", "KEEP"):
        monkeypatch.delenv(f"DPGRAMS_{name}", raising=False)
    monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "ledger.sqlite3"))
    monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "50")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = Watched(tmp_path)
    enqueue, offer = ForwardMsgQueue.enqueue, st.download_button

    def send(queue, message):
        seen.sent.append(message.SerializeToString())
        enqueue(queue, message)

    def offers(label, data, **more):
        seen.offered[more["key"]] = data
        return offer(label, data, **more)

    def log(logger, record):
        seen.logged.append(logging.Formatter("%(name)s %(message)s").format(record))

    monkeypatch.setattr(ForwardMsgQueue, "enqueue", send)
    monkeypatch.setattr(st, "download_button", offers)
    monkeypatch.setattr(logging.Logger, "callHandlers", log)
    monkeypatch.setattr(logging.Logger, "isEnabledFor", lambda logger, level: True)
    return seen


def release(watched: Watched, frame: pd.DataFrame, columns: tuple[str, ...], response: str | None) -> None:
    """Open the file, pick columns, state their bounds, or buy them where there is one column, and press the button."""
    watched.run()
    watched.app.file_uploader[0].set_value(("people.csv", frame.to_csv(index=False).encode(), "text/csv"))
    watched.run()
    if response is None:
        watched.set("multiselect", "Columns", list(columns))
    else:
        watched.set("segmented_control", "What do you look for?", "regression")
        watched.set("selectbox", "Predictor", columns[0])
        watched.set("selectbox", "Response", response)
    if columns == ("age",) and response is None:
        watched.set("select_slider", "own_box_epsilon", 1.0)
        watched.click("Estimate age")
    else:
        for name in (*columns, *filter(None, [response])):
            for word, value in zip(("from", "to"), BOX[name], strict=True):
                watched.find("number_input", f"{name}, {word}").set_value(value)
        watched.run()
    watched.set("select_slider", "own_epsilon", 5.0)
    watched.click("Release (")


def picked(watched: Watched) -> OwnData:
    """The columns that the last release is of."""
    mine = watched.app.session_state["_own"]
    return mine.data(mine.sales[-1].request)


def secrets_of(data: OwnData) -> dict[str, float]:
    """The planted record as it stands in the file, as methods see it, and in shares of its box."""
    scaled = data.points[PLACE]
    shares = (scaled - data.box[:, 0]) / (data.box[:, 1] - data.box[:, 0])
    assert ((shares > 0) & (shares < 1)).all()  # at an edge it would be as public as the box
    found = dict(PLANTED)
    for name, value, share in zip(data.columns, scaled.tolist(), shares.tolist(), strict=True):
        found |= {f"{name}, scaled": value, f"{name}, share": share}
    return found


def assert_no_trace(watched: Watched, frame: pd.DataFrame, screen: str) -> None:
    """Nothing of the planted record in any form, and no number of any record, in all that has left."""
    secrets = secrets_of(picked(watched))
    records = np.concatenate([frame.to_numpy().ravel(), records_of(picked(watched))])
    for name, content in {**watched.everything(), "screen": screen.encode()}.items():
        assert found_in(content, secrets, records) == [], name
    watched.files.clear()
    watched.sent.clear()


@pytest.mark.parametrize(("columns", "response"), CASES.values(), ids=CASES)
def test_nothing_that_leaves_the_page_holds_a_record(watched, people, capfd, columns, response):
    release(watched, people, columns, response)
    assert watched.take("released") == FILES | {"own_twin_csv"}
    if response is None and len(columns) <= 3:
        if len(columns) == 2:
            watched.set("select_slider", "own_smooth", 1.5)
            watched.set("toggle", "own_paths", True)
            watched.take("climbs")
        watched.set("segmented_control", "own_read_1", "clusters")
        watched.take("clusters")
    assert_no_trace(watched, people, "".join(capfd.readouterr()))
    # The same search finds the record where it is shown on purpose, and what may leave stays clean beside it.
    watched.set("segmented_control", "own_view", "curator")
    assert {*columns, *filter(None, [response])} <= set(found_in(b"\n".join(watched.sent), PLANTED))
    watched.sent.clear()
    assert watched.take("beside the curator's view") == FILES | {"own_twin_csv"}
    assert_no_trace(watched, people, "".join(capfd.readouterr()))


def test_nothing_that_leaves_with_paths_or_with_what_was_kept_holds_a_record(watched, people, capfd):
    release(watched, people, ("age",), None)
    watched.set("toggle", "own_curve_1", True)
    assert watched.take("curve of the twin") == FILES | {"own_twin_csv", "own_twin_curve_csv", "own_twin_curve_html"}
    watched.set("selectbox", "own_way", "dp_grams")
    watched.click("Release (")
    assert watched.take("paths") == FILES
    again = AppTest.from_file(str(PAGE), default_timeout=120).run()  # another session, the same file
    again.file_uploader[0].set_value(("again.csv", people.to_csv(index=False).encode(), "text/csv"))
    again.run()
    assert [sale.earlier for sale in again.session_state["_own"].sales] == [True, True]
    assert_no_trace(watched, people, "".join(capfd.readouterr()))


def test_a_line_in_a_log_a_message_and_a_file_left_behind_would_be_found(watched, people, capfd):
    watched.run()
    for name in ("dpgrams_core", "streamlit.runtime", "tornado.access"):
        logging.getLogger(name).debug("read %.6g", PLANTED["age"])
    logging.getLogger("asyncio").error("failed", exc_info=ValueError(f"could not use {PLANTED['pay']!r}"))
    with tempfile.NamedTemporaryFile(delete=False) as file:
        people.to_parquet(file.name, compression=None)
    print(np.float32(PLANTED["weight"]))
    everything = watched.everything()
    assert found_in(everything["log"], PLANTED) == ["age", "pay"]
    assert found_in(everything[Path(file.name).name], PLANTED) == sorted(PLANTED)
    assert found_in(capfd.readouterr().out.encode(), PLANTED) == ["weight"]
    assert found_in(everything["drawn"], PLANTED) == []
