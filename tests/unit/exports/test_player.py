"""A deck as one file: everything stands in it, nothing is fetched, and texts of a deck stay texts."""

from __future__ import annotations

import base64
import json
import re

import plotly.graph_objects as go

from dpgrams_core.exports.deck import Scene
from dpgrams_core.exports.player import NOTHING_SHOWN, Slide, deck_html

FIGURE = go.Figure(go.Scatter(x=[1, 2], y=[3, 4]), layout={"height": 300})
HANDLED = ({"name": "a", "epsilon": 1.0, "stops": [1.0], "run": "x", "frames": "y"}, b"\x00frames")


def told(html):
    return json.loads(re.search(r'id="deck">(.*?)</script>', html, re.DOTALL)[1])


def test_each_slide_has_its_line_its_notes_and_its_pictures():
    slides = [
        Slide(Scene("modes", "", "One", "Notes."), "Two lines are one too many.", [HANDLED, HANDLED]),
        Slide(Scene("paper"), "A <b>line</b>.", [FIGURE]),
        Slide(Scene("tradeoff"), "", []),
    ]
    first, second, third = told(deck_html(slides))
    assert (first["title"], first["notes"], first["line"]) == ("One", "Notes.", "")
    assert [base64.b64decode(one["pack"]) for one in first["pictures"]] == [HANDLED[1]] * 2
    assert first["pictures"][0]["state"] == HANDLED[0]
    assert (second["title"], second["line"]) == ("Paper", "A <b>line</b>.")
    assert "height" not in second["pictures"][0]["figure"]["layout"]  # it fills its place
    assert (third["line"], third["pictures"]) == (NOTHING_SHOWN, [])


def test_nothing_is_fetched_and_plotly_comes_only_where_it_draws():
    with_handles = deck_html([Slide(Scene("modes"), "", [HANDLED])])
    for html in (with_handles, deck_html([Slide(Scene("paper"), "", [FIGURE])])):
        assert "default-src 'none'" in html[:600]
        assert not re.search(r"<(?:script|img|link|iframe)[^>]*\b(?:src|href)=", html)
        assert not re.search(r"^\s*import\b|^export\b", html, re.MULTILINE)
    assert len(with_handles) < 100_000


def test_texts_of_a_deck_that_somebody_else_made_stay_texts():
    evil = "</script><script>alert(1)</script><img src=x>"
    html = deck_html([Slide(Scene("modes", "", evil, evil), "", [HANDLED])])
    assert "<script>alert" not in html
    assert "<img" not in html
    assert told(html)[0]["title"] == told(html)[0]["notes"] == evil
