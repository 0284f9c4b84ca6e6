"""No page shows "proven" alone where the columns were fitted on the records, nor does any file that it gives away."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core.datasets.registry import DATASETS, datasets_of
from dpgrams_core.model.guarantee import status_words
from dpgrams_core.model.representation import FITTED_CAVEAT, REFIT_TIMES
from pages._ui import exports

PICKED_CLIPS = {name: dict(info.picked)["clip_multiplier"] for name, info in DATASETS.items() if info.picked}

GIVEN = "proven, given the representation"
ALONE = re.compile(r"(?<!not )\bproven\b(?!, given the representation)", re.IGNORECASE)
SMALL = {"blobs": "100", "iris": "100", "digits": "200", "mnist": "500", "uneven": "200", "tumours": "100"}
RELEASE, TIGHT = {"clu_method": "functional_c"}, {"clu_method": "dp_grams_c", "calibration": "tight"}
# Each data set once, and each way of a run once: how both come together is the guarantee's own
# (tests/unit/model/test_conditions.py).
SHOWN = [
    *((dataset, RELEASE) for dataset in SMALL),
    *(("blobs", {**TIGHT, "calibration": name}) for name in ("tight", "theorem", "experiments")),
]


def everything(app: AppTest) -> str:
    """All that the browser is sent: texts, badges, options, help, charts and tables."""
    parts = [str(item.proto) for item in app._tree if getattr(item, "proto", None) is not None]
    return "\n".join([*parts, *(table.value.to_string() for table in app.dataframe)])


def built(file: exports.File) -> str:
    content = file.build()
    text = content if isinstance(content, str) else content.decode("utf-8-sig")
    return re.sub(r"<script>/\*\*.*?</script>", "", text, flags=re.DOTALL)  # plotly.js itself


def alone(text: str) -> list[str]:
    return [text[max(0, found.start() - 60) : found.end() + 40] for found in ALONE.finditer(text)]


def test_every_fitted_data_set_but_one_that_does_not_come_with_us_is_tried():
    assert {*SMALL, "rnaseq"} == {name for name in datasets_of("clusters") if DATASETS[name].fitted}
    assert alone("It is proven. It was not proven.") == ["It is proven. It was not proven."]


@pytest.mark.parametrize(
    ("dataset", "method"), SHOWN, ids=lambda part: part if isinstance(part, str) else "-".join(part.values())
)
def test_the_clusters_page_and_its_files_never_say_proven_alone(opened_with_files, dataset, method):
    query = {"clu_dataset": dataset, f"clu_n_{dataset}": SMALL[dataset], "curve": "off", **method}
    app, files = opened_with_files("clusters", query)
    shown = everything(app)
    assert alone(shown) == []
    assert str(REFIT_TIMES) in shown  # the reason
    report = built(files["export_report_html"])
    assert FITTED_CAVEAT in report
    if method.get("calibration", "tight") == "tight":
        assert any(GIVEN in item.proto.body for item in app.markdown if "badge" in item.proto.body)
        assert f"<b>{GIVEN.capitalize()}." in report
        assert GIVEN in built(files["scores_csv"])
    for key, file in files.items():
        assert alone(built(file)) == [], key


def test_a_clip_multiplier_picked_on_the_records_is_nominal_on_the_page(opened_with_files):
    query = {"clu_dataset": "digits", "clu_n_digits": "200", "curve": "off", "clu_method": "dp_grams_c"}
    query |= {"calibration": "tight", "clip": f"{PICKED_CLIPS['digits']:g}"}
    app, files = opened_with_files("clusters", query)
    card = [item.value for item in app.main.markdown]
    assert any(status_words("nominal") in text for text in card)
    assert not any(GIVEN in text for text in card)
    assert any("was picked on these records" in item.value for item in app.caption)
    report = built(files["export_report_html"])
    assert "picked on the records" in report
    assert GIVEN.capitalize() not in report


def test_where_nothing_was_fitted_it_still_says_proven(opened_with_files):
    quick = {"n": "200", "curve": "off", "runs": "off", "landscape": "off"}
    app, files = opened_with_files("modes", {**quick, "method": "functional"})
    assert any("proven" in item.value and "badge" in item.value for item in app.markdown)
    assert GIVEN not in everything(app)
    assert "<b>Proven. " in built(files["export_report_html"])


def test_the_clustering_tables_of_the_paper_page(opened_with_files):
    for name in ("blobs", "digits", "mnist"):
        app, files = opened_with_files("paper", {"paper_part": "clustering", "paper_clustering": f"clustering_{name}"})
        bodies = [item.proto.body for item in app.get("html") if 'class="printed"' in item.proto.body]
        (head,) = (body.split("</thead>")[0] for body in bodies)
        assert alone(head) == []
        assert f'Functional release <span class="status blue">{GIVEN}' in head
        tight, theorem = (head.split(f"DP-GRAMS-C {way}")[1].split("</th>")[0] for way in ("tight", "theorem"))
        assert GIVEN in tight  # without the picked clips, which the theorem's noise was run with
        assert (status_words("nominal") in theorem) == (name in PICKED_CLIPS)
        report = built(files["export_report_html"])
        assert f"functional: {GIVEN}." in report
        assert alone(built(files["paper_ratio_csv"])) == []
    answer = next(item.proto.body for item in app.get("html") if 'data-testid="answer"' in item.proto.body)
    assert f"clustering tables: {GIVEN}" in answer
    assert "mode tables and regression tables: proven;" in answer
