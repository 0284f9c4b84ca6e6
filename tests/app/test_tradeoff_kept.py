"""What a search for ε and a ladder of errors have made on the page is kept, and not made again."""

from __future__ import annotations

import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

from dpgrams_core import ladder_runs
from dpgrams_core.cells import run_cell

ROOT = Path(__file__).parents[2]


def new_page(**query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "pages" / "tradeoff.py"), default_timeout=120)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def until(app: AppTest, words: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not any(words in item.value for item in app.caption):
        assert time.monotonic() < end, [item.value for item in app.caption]
        time.sleep(0.05)
        app.run()
        assert not app.exception


def press(app: AppTest, key: str, label: str) -> None:
    (button,) = (item for item in app.button if item.key == key)
    assert button.label == label
    button.click()
    app.run()


def test_a_stopped_search_continues_and_a_longer_ladder_makes_only_the_new_runs(monkeypatch):
    made, climbed, right = [], [], ladder_runs.ladder_errors

    def slow(cell):
        time.sleep(0.1)
        made.extend((cell.epsilon, number) for number in cell.numbers)
        return run_cell(cell)

    monkeypatch.setattr("dpgrams_core.sweeps.run_cell", slow)
    monkeypatch.setattr(ladder_runs, "ladder_errors", lambda *wish: climbed.append(wish) or right(*wish))
    here = {"lab_seed": "140", "lab_one_n_four_corners": "60"}
    app = new_page(lab_part="needed", lab_t_arm_modes="DP-GRAMS experiments", lab_target_mse="1e9", **here)
    press(app, "lab_start", "Start")
    until(app, "1 value tried")
    press(app, "lab_stop", "Stop")
    until(app, "Stopped. ")
    time.sleep(0.5)  # the piece that was under way ends, and counts
    stopped_at = len(made)
    assert 0 < stopped_at < 2 * 60
    press(app, "lab_start", "Continue")
    until(app, "Complete. 2 values tried")
    assert len(made) == len(set(made)) == 2 * 60
    until(new_page(lab_part="sources", lab_runs="3", **here), "Complete. 3 of 3 runs")
    assert len(climbed) == 3
    until(new_page(lab_part="sources", lab_runs="5", **here), "Complete. 5 of 5 runs")
    assert len(climbed) == 5
