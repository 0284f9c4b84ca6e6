"""The benchmark of the page's live sweep is about the sweep that the page really runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.sweep_speed import page_cells
from dpgrams_core import SpecError
from pages._ui import tradeoff_curve, tradeoff_runs

PAGE = Path(__file__).parents[2] / "pages" / "tradeoff.py"


@pytest.fixture
def planned(monkeypatch):
    """The cells that the page plans when it is opened; nothing is run."""
    found, plan, main = [], tradeoff_curve.lab_cells, sys.modules["__main__"]

    def planning(settings):
        found.extend(plan(settings))
        raise SpecError("runs", 0, "none in this test")

    monkeypatch.setattr(tradeoff_curve, "lab_cells", planning)
    monkeypatch.setattr(tradeoff_runs.WarmPool, "ready", property(lambda _: False))
    page = AppTest.from_file(str(PAGE), default_timeout=60).run()
    sys.modules["__main__"] = main  # the page took its place
    assert not page.exception
    return found


def test_the_benchmark_runs_what_the_page_runs(planned):
    assert page_cells() == planned
    assert len(planned) == 4 * (5 + 5 + 1)
