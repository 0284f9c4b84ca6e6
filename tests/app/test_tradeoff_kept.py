"""What a search for ε and a ladder of errors have made on the page is kept, and not made again."""

from __future__ import annotations

import time

from streamlit.testing.v1 import AppTest

from dpgrams_core.studies import ablation as ladder_runs
from dpgrams_core.sweeps.cell import run_cell
from tests.shown import checked, new_page, until


def lab(**query: str) -> AppTest:
    return checked(new_page("tradeoff", **query))


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

    monkeypatch.setattr("dpgrams_core.sweeps.run.run_cell", slow)
    monkeypatch.setattr(ladder_runs, "ladder_errors", lambda *wish: climbed.append(wish) or right(*wish))
    here = {"lab_seed": "140", "lab_one_n_four_corners": "60"}
    app = lab(lab_part="needed", lab_t_arm_modes="DP-GRAMS experiments", lab_target_mse="1e9", **here)
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
    until(lab(lab_part="sources", lab_runs="3", **here), "Complete. 3 of 3 runs")
    assert len(climbed) == 3
    until(lab(lab_part="sources", lab_runs="5", **here), "Complete. 5 of 5 runs")
    assert len(climbed) == 5
