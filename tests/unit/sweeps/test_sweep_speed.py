"""The benchmark of the page's live sweep is about the sweep that the page really runs."""

from __future__ import annotations

import sys

import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.sweep_speed import page_cells
from dpgrams_core import SpecError
from pages._ui import jobs as page_jobs
from pages._ui.tradeoff import settings as tradeoff_settings
from tests.places import ROOT

PAGE = ROOT / "pages" / "tradeoff.py"


@pytest.fixture
def planned(monkeypatch):
    """The cells that the page plans when it is opened; nothing is run."""
    found, plan, main = [], tradeoff_settings.lab_cells, sys.modules["__main__"]

    def planning(settings, confirm):
        found.extend(plan(settings, confirm))
        raise SpecError("runs", 0, "none in this test")

    monkeypatch.setattr(tradeoff_settings, "lab_cells", planning)
    monkeypatch.setattr(page_jobs.WarmPool, "ready", property(lambda _: False))
    page = AppTest.from_file(str(PAGE), default_timeout=120).run()
    sys.modules["__main__"] = main  # the page took its place
    assert not page.exception
    return found


def test_the_benchmark_runs_what_the_page_runs(planned):
    assert page_cells() == planned
    assert len(planned) == 4 * (5 + 5 + 1)
