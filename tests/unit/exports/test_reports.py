"""Pages that open from disk: everything escaped, nothing fetched, and the guarantee in words no larger than it is."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from dpgrams_core import METHODS, Guarantee, load_dataset, run
from dpgrams_core.exports.report import (
    MOST_ROWS,
    figure_html,
    file_stem,
    guarantee_words,
    ledger_line,
    simulation_origin,
    stakeholder_report,
)
from dpgrams_core.figures.modes import contour_chart
from dpgrams_core.figures.style import Chart
from dpgrams_core.figures.traces import density_grid
from dpgrams_core.model.format import one_in, percent
from dpgrams_core.privacy.composition import Totals
from dpgrams_core.privacy.ledger.book import Account, Charge
from dpgrams_core.privacy.meaning import belief

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \"quotes\" 'too'"


def outside_plotly(page: str) -> str:
    """The page without the library in it, which holds addresses that it does not fetch."""
    assert page.count(get_plotlyjs()) == 1
    return page.replace(get_plotlyjs(), "")


def small_chart(text: str = "A sentence.", rows: int = 3) -> Chart:
    figure = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], name=text, text=[text, text]))
    return Chart(figure.update_layout(title=text, xaxis_title=text), text, pd.DataFrame({text: range(rows)}))


@pytest.fixture(scope="module")
def real():
    """A report of the Modes page's picture."""
    data = load_dataset("four_corners", n=300, seed=0)
    release, plain = run("functional", data, seed=1), run("mean_shift", data, seed=0)
    chart = contour_chart(data, density_grid(data, "gaussian", release.spec.bandwidth), release, plain)
    return release, chart, stakeholder_report(
        question="What does privacy cost?",
        answer="At ε = 1 it found 4 of 4.",
        charts=[chart],
        guarantees=[("Functional release", release.guarantee)],
        origin=simulation_origin([1]),
        ledger="charge 7: ε = 1",
        notes=["A note of the page."],
        made_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    )  # fmt: skip


def test_the_report_has_question_answer_picture_table_guarantee_ledger_and_date(real):
    release, chart, page = real
    text = outside_plotly(page)
    for words in (
        "<h1>What does privacy cost?</h1>",
        "At ε = 1 it found 4 of 4.",
        "Plotly.newPlot",
        chart.sentence,
        "<table>",
        "can become at most 73% sure",
        release.guarantee.statement,
        "What this does not cover",
        "a person with k rows has k times the ε",
        "charge 7: ε = 1",
        "nothing of another ledger",  # the ledger's blind spot
        "A note of the page.",
        "one run, seed 1",
        "2 January 2026, 03:04 UTC",
    ):
        assert words in text or words.replace("'", "&#x27;") in text, words


@pytest.mark.parametrize("which", ["report", "figure"])
def test_nothing_is_fetched(real, which):
    page = real[2] if which == "report" else figure_html(real[1], "A picture")
    text = outside_plotly(page)
    assert re.findall(r"<(?:link|img|iframe|object|embed|base|a|form)\b", text) == []
    assert re.findall(r"\b(?:src|href|action|srcset)\s*=", text) == []
    assert "@import" not in text
    assert "url(" not in text
    # And if something tried, the browser would refuse: the policy comes before any script.
    policy = text.index("Content-Security-Policy")
    assert policy < text.index("<script")
    assert "default-src 'none'" in text
    assert "http" not in re.search(r'Policy" content="([^"]*)"', text).group(1)


@pytest.mark.parametrize("which", ["report", "figure"])
def test_every_text_is_escaped(which):
    chart = small_chart(EVIL)
    guarantee = Guarantee(epsilon=1.0, delta=1e-6, status="proven", statement=EVIL, caveats=(EVIL,))
    if which == "figure":
        page = figure_html(chart, EVIL)
    else:
        page = stakeholder_report(
            question=EVIL,
            answer=EVIL,
            charts=[chart, chart],
            guarantees=[(EVIL, guarantee)],
            origin=EVIL,
            ledger=EVIL,
            notes=[EVIL],
        )
    text = outside_plotly(page)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert text.count("<script") == text.count("</script>")
    assert "&lt;script&gt;alert(1)" in text


def test_of_two_charts_each_stands_under_its_name_with_its_numbers():
    charts = [replace(small_chart(f"Sentence of {name}."), title=name) for name in ("First way", "Second way")]
    page = outside_plotly(stakeholder_report(question="?", answer="!", charts=charts, guarantees=[], origin="here"))
    first, second = page.split("<section>")[1:]
    for part, mine, other in ((first, "First", "Second"), (second.split("</section>")[0], "Second", "First")):
        assert f"<h2>{mine} way</h2>" in part
        assert f"The numbers of {mine} way" in part
        assert other not in part


def test_a_long_table_is_cut_and_says_so():
    arguments = {"question": "?", "answer": "!", "guarantees": [], "origin": "here"}
    page = stakeholder_report(charts=[small_chart(rows=MOST_ROWS + 5)], **arguments)
    assert page.count("<tr>") == MOST_ROWS + 1
    assert "and 5 more rows" in page
    assert "more rows" not in outside_plotly(stakeholder_report(charts=[small_chart(rows=MOST_ROWS)], **arguments))


class TestGuaranteeInWords:
    def words(self, **change):
        fields = {"epsilon": 1.0, "delta": 1e-6, "status": "proven", "statement": "Its reason.", "caveats": ("But.",)}
        return " ".join(guarantee_words(Guarantee(**{**fields, **change})))

    def test_only_a_proof_is_stated_without_a_condition(self):
        assert "Someone who was 50% sure" in self.words()
        for status in ("nominal", "as published"):
            said = self.words(status=status)
            assert "If the claim holds, someone" in said
            assert "Proven" not in said
        assert "not a proof" in self.words(status="nominal")

    def test_reason_and_caveats_are_always_there(self):
        for status in ("proven", "nominal", "as published"):
            assert "Its reason. But." in self.words(status=status)

    @pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 10.0, 1000.0])
    def test_the_belief_is_that_of_meaning(self, epsilon):
        assert f"at most {percent(belief(0.5, epsilon, 1e-6).most)} sure" in self.words(epsilon=epsilon)

    def test_a_claim_about_adding_and_removing_counts_twice(self):
        said = self.words(neighbours="add-or-remove-one", epsilon=1.0, delta=0.0)
        assert f"at most {percent(belief(0.5, 2.0, 0.0).most)} sure" in said
        assert "exceptions" not in said

    def test_a_claim_about_adding_and_removing_has_the_delta_of_two_steps(self):
        said = self.words(neighbours="add-or-remove-one", epsilon=2.0, delta=1e-6)
        chance = belief(0.5, 4.0, (1 + math.exp(2.0)) * 1e-6).chance_above
        assert f"a chance of at most {one_in(chance)}" in said

    def test_a_claim_about_responses_promises_nothing_of_predictors(self):
        said = self.words(neighbours="replace-one-response")
        assert "that a record is A" not in said
        assert (
            f"that the response of a record is A and not B can become at most {percent(belief(0.5, 1.0).most)}" in said
        )
        assert "Predictors are not protected." in said
        assert "one record's response changed, its predictor and n public" in said
        assert "Predictors" not in self.words()

    def test_no_privacy_is_said(self):
        said = self.words(status="none", epsilon=float("inf"), delta=1.0)
        assert said.startswith("No privacy")
        assert "sure" not in said

    @pytest.mark.parametrize("method", METHODS)
    def test_the_guarantee_of_every_method_has_words(self, method, corners):
        kind = METHODS[method].kind
        data = {"modes": corners, "regression": None, "clusters": None}[kind] or load_dataset(
            {"regression": "sinusoid", "clusters": "iris"}[kind], n=100, seed=0
        )
        said = guarantee_words(run(method, data, seed=0).guarantee)
        assert ("sure" in said[1]) == METHODS[method].private if len(said) > 1 else not METHODS[method].private


def test_the_line_of_the_ledger_names_what_was_paid_and_what_is_left_and_not_the_account():
    totals = Totals(basic_epsilon=0.7, tight_epsilon=0.6, delta=2e-6, releases=2, unproven=0)
    what = "Functional release of age"
    charge = Charge(2, "a1b2c3", "2026-01-02T03:04:05+00:00", what, 0.5, 1e-6, "proven", (), True)
    line = ledger_line(charge, Account("a1b2c3", 3.0, 1e-4, 2.3, 9.8e-5, totals))
    for words in (
        "charge 2 on 2 January 2026",
        "age",
        "ε = 0.5",
        "ε = 0.7 added up",
        "ε = 2.3",
        "δ = 9.8e-5",
        "proven",
    ):
        assert words in line
    assert "a1b2c3" not in line


def test_a_file_name_has_no_path_in_it():
    assert file_stem("../../etc/passwd") == "etc-passwd"
    assert file_stem("'; alert(1)") == "alert-1"
    assert file_stem("ε?") == "export"


def test_the_picture_keeps_its_numbers_and_the_chart_is_not_changed(real):
    chart = real[1]
    before = chart.figure.to_json()
    figure_html(chart, "x")
    assert chart.figure.to_json() == before
    assert np.isfinite(chart.figure.layout.height)
