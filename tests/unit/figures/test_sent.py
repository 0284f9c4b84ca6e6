"""A chart as it is sent: the same picture, shorter, and made once."""

from __future__ import annotations

import base64
import json

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io
import pytest

from dpgrams_core.figures.sent import FEW, sent
from dpgrams_core.figures.style import Chart
from pages._ui import cache


def chart_of(numbers):
    return Chart(go.Figure([go.Scatter(x=numbers, y=numbers**2)]), "A parabola.", pd.DataFrame())


@pytest.mark.parametrize(("count", "kind"), [(FEW, "f8"), (FEW + 1, "f4")])
def test_only_long_arrays_lose_digits(count, kind):
    chart = chart_of(np.linspace(0, 1, count))
    trace = sent(chart).figure.to_dict()["data"][0]
    assert trace["x"]["dtype"] == trace["y"]["dtype"] == kind
    numbers = np.frombuffer(base64.b64decode(trace["y"]["bdata"]), kind)
    np.testing.assert_allclose(numbers, np.linspace(0, 1, count) ** 2, rtol=1e-6)


def test_all_else_is_what_plotly_sends():
    whole = chart_of(np.linspace(0, 1, FEW))
    told, usual = (json.loads(plotly.io.to_json(figure)) for figure in (sent(whole).figure, whole.figure))
    looks = [figure["layout"]["template"].pop("data") for figure in (told, usual)]
    assert told == usual
    assert looks[0] == {"scatter": looks[1]["scatter"]}


def test_a_picture_is_drawn_once_for_its_key_and_anew_for_another(monkeypatch):
    kept, drawn = cache.Pictures(), []
    monkeypatch.setattr(cache, "pictures", lambda: kept)

    def draw(size, tall=False):
        drawn.append((size, tall))
        return chart_of(np.arange(float(size)))

    first = cache.picture("a", draw, 5)
    assert cache.picture("a", draw, 5) is first
    assert cache.picture("a", draw, 5, tall=True) is not first
    cache.picture("b", draw, 6)
    assert drawn == [(5, False), (5, True), (6, False)]


def test_what_was_not_looked_at_for_longest_is_forgotten_first():
    chart = sent(chart_of(np.arange(1000.0)))
    kept = cache.Pictures(most_bytes=2 * chart.figure.size)
    for key in ("a", "b"):
        kept.add(key, chart)
    kept.find("a")
    kept.add("c", chart)
    assert [kept.find(key) is not None for key in "abc"] == [True, False, True]
