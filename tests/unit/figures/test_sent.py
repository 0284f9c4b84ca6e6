"""A chart as it is sent: the same picture, shorter, and made once."""

from __future__ import annotations

import base64
import json
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io
import pytest
from plotly.io._json import to_json

from dpgrams_core.figures.sent import FEW, sent
from dpgrams_core.figures.style import Chart
from pages._ui import cache, jobs
from pages._ui.server import visitors
from pages._ui.server.as_told import send_as_told


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
    whole.figure.update_layout(template="plotly")  # Streamlit brings another one
    told, usual = (json.loads(plotly.io.to_json(figure)) for figure in (sent(whole).figure, whole.figure))
    looks = [figure["layout"]["template"].pop("data") for figure in (told, usual)]
    rest, whole_rest = (figure["layout"].pop("template")["layout"] for figure in (told, usual))
    assert told == usual
    assert looks[0] == {"scatter": looks[1]["scatter"]}
    assert rest.items() <= whole_rest.items()
    assert whole_rest.keys() - rest.keys() == {"polar", "ternary", "geo", "scene", "colorscale"}


@pytest.mark.parametrize(
    ("trace", "kept"), [(go.Surface(z=np.eye(3)), "scene"), (go.Heatmap(z=np.eye(3)), "colorscale")]
)
def test_a_trace_keeps_what_the_template_says_of_it(trace, kept):
    told = sent(Chart(go.Figure(trace, {"template": "plotly"}), "", pd.DataFrame())).figure.to_dict()
    assert kept in told["layout"]["template"]["layout"]


def test_many_marks_have_their_colours_as_numbers_of_a_scale():
    colours = ["#112233", "#abcdef", "#112233", "#000000"] * FEW
    told = sent(Chart(go.Figure(go.Scatter(y=np.arange(4 * FEW), marker_color=colours)), "", pd.DataFrame()))
    marker = told.figure.to_dict()["data"][0]["marker"]
    scale = dict(marker["colorscale"])
    codes = np.frombuffer(base64.b64decode(marker["color"]["bdata"]), marker["color"]["dtype"])
    assert [scale[code / marker["cmax"]] for code in codes] == colours
    assert (marker["cmin"], marker["showscale"]) == (0, False)
    go.Figure(told.figure.to_dict())  # plotly takes it


def test_streamlit_sends_the_text_that_is_kept(monkeypatch):
    monkeypatch.setattr(plotly.io, "to_json", to_json)  # put back afterwards: another test may have told it already
    figure = sent(chart_of(np.linspace(0, 1, 500))).figure
    escaped = plotly.io.to_json(figure.to_dict(), validate=False)
    send_as_told()
    text = plotly.io.to_json(figure.to_dict(), validate=False)
    assert json.loads(text) == json.loads(escaped)
    assert len(text) == figure.size < len(escaped)
    assert plotly.io.to_json({"data": [], "layout": {"title": "a/b"}}, validate=False).count("u002f") == 1


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


def test_two_who_ask_for_the_same_wait_for_one_and_the_oldest_is_forgotten():
    made, first = [], threading.Event()

    @cache.kept(2)
    def slow(name):
        made.append(name)
        first.wait(5)
        return name

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(slow, "a") for _ in range(2)]
        first.set()
        assert [one.result() for one in asked] == ["a", "a"]
    for name in "bacb":
        assert slow(name) == name
    assert made == ["a", "b", "c", "b"]


def test_what_failed_is_made_again():
    made = []

    @cache.kept(2)
    def fails_once(name):
        made.append(name)
        if len(made) == 1:
            raise ValueError(name)
        return name

    with pytest.raises(ValueError, match="a"):
        fails_once("a")
    assert fails_once("a") == "a"


def test_few_results_stay_once_the_last_visitor_has_left(monkeypatch):
    monkeypatch.setattr(visitors, "WHEN_EMPTY", [])
    made = []
    square = cache.kept(100)(lambda number: made.append(number) or number**2)
    for number in range(50):
        square(number)
    visitors.forget("one who is not the last")
    assert square(0) == 0
    assert len(made) == 50
    visitors.forget("the last", last=True)
    made.clear()
    assert [square(number) for number in (0, 49, 48)] == [0, 49**2, 48**2]
    assert made == []  # those that were asked for last
    square(1)
    assert made == [1]


def test_few_results_of_jobs_stay_once_the_last_visitor_has_left(monkeypatch):
    monkeypatch.setattr(visitors, "WHEN_EMPTY", [])
    shared = jobs.jobs.__wrapped__()  # one of its own
    shared.kept.update((number, number) for number in range(50))
    visitors.forget("one who is not the last")
    assert len(shared.kept) == 50
    visitors.forget("the last", last=True)
    assert list(shared.kept) == list(range(50 - jobs.MOST_AT_REST, 50))


def test_the_door_knows_the_last_visitor(monkeypatch):
    told = queue.Queue()
    monkeypatch.setattr(visitors, "forget", lambda session, last: told.put((session, last)))
    monkeypatch.setattr(visitors, "is_here", lambda _: False)
    door = visitors.VisitDoor(None)
    door._leaving = {"a": None, "b": None}
    for session, last in (("a", False), ("b", True)):
        door._gone(session)
        assert told.get(timeout=10) == (session, last)
