"""A planted record leaves no trace in any export of a release, nor in its logs."""

from __future__ import annotations

import base64
import json
import logging
import re
import struct

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from dpgrams_core import METHODS, load_table, run
from dpgrams_core.figures import Chart
from dpgrams_core.figures.own_curves import ascent_map, branches_map
from dpgrams_core.figures.own_data import Units, surface_map
from dpgrams_core.privacy.ledger import Ledger
from dpgrams_core.readings import released_modes
from dpgrams_core.recipes import release_record, spec_json
from dpgrams_core.releasing import release
from dpgrams_core.reports import RELEASE_ORIGIN, figure_html, ledger_line, stakeholder_report
from dpgrams_core.scripts import release_script
from dpgrams_core.tables import table_csv

LIBRARY = get_plotlyjs().encode()
SECRET = (73.91846205, 91827.36455463)  # one person's record
BOX = {"age": (0, 100), "pay": (0, 1e5)}
CASES = [
    ("functional", {}),
    ("dp_grams", {"calibration": "tight"}),
    ("functional_regression", {}),
    # DP-PMS takes predictors as public: its own evaluation points reach from the smallest one to the largest.
    ("dp_pms", {"calibration": "tight", "evaluation_points": tuple(np.linspace(-4, 4, 41))}),
    ("functional_c", {"n_clusters": 2}),
    ("dp_grams_c", {"calibration": "tight"}),
]


def own_data(rng, kind, n=400):
    group = rng.integers(0, 2, n)
    frame = pd.DataFrame({"age": rng.normal(30 + 30 * group, 4), "pay": rng.normal(3e4 + 4e4 * group, 5e3)})
    frame.iloc[n // 2] = SECRET
    if kind == "regression":
        return load_table(frame, columns=["age"], response="pay", box=BOX)
    return load_table(frame, columns=["age", "pay"], box=BOX, kind=kind)


def traces(value: float) -> list[bytes]:
    """How a number could stand in a file: written in several ways and lengths, and as its bytes."""
    texts = {repr(value), f"{value:.7g}", f"{value:.8g}", f"{value:.6f}", f"{value:.9e}", f"{value:,.6f}"}
    digits = f"{abs(value):.9e}".split("e")[0].replace(".", "")
    return [text.encode() for text in {*texts, digits[:8]}] + [struct.pack(kind, value) for kind in ("<d", ">d")]


def holds(content: bytes, value: float) -> bool:
    """Whether a file holds a number: as text, as bytes, or in the packed arrays of a plotly figure."""
    content = content.replace(LIBRARY, b"")
    unescaped = content.replace(b"\\u002f", b"/").replace(b"\\u003d", b"=")
    if any(trace in part for trace in traces(value) for part in (content, unescaped)):
        return True
    for kind, packed in re.findall(rb'"dtype":"(\w+)","bdata":"([^"]*)"', unescaped):
        numbers = np.frombuffer(base64.b64decode(packed), dtype=kind.decode()).astype(float)
        if np.isclose(numbers, value, rtol=1e-6, atol=0).any():
            return True
    return False


def picture(data, result) -> Chart:
    """The chart of the public view."""
    units = Units(data.columns, data.user_box)
    if result.method == "dp_pms":  # its starts are predictors, so only the curve is drawn
        rows = data.to_user_units(result.curve)
        return Chart(go.Figure(go.Scatter(x=rows[:, 0], y=rows[:, 1])), "A curve.", pd.DataFrame(rows))
    if result.surface is None:
        return ascent_map(units, result, data.box)
    if result.curve is not None:
        return branches_map(units, result, data.box)
    return surface_map(units, result.surface, result.surface.bandwidth, released_modes(result))


def every_export(data, paid, ledger) -> dict[str, bytes]:
    record = release_record(paid.release, data)
    chart = picture(data, paid.release)
    report = stakeholder_report(
        question="What can you say about your data?",
        answer=f"{len(record.rows)} {record.what}",
        charts=[chart],
        guarantees=[(METHODS[record.method].title, record.guarantee)],
        origin=RELEASE_ORIGIN,
        ledger=ledger_line(paid.charge, ledger.account(paid.charge.account)),
        notes=data.statements,
    )
    return {
        "report": report.encode(),
        "figure": figure_html(chart, "A release").encode(),
        "figure as JSON": chart.figure.to_json().encode(),
        "table of the chart": table_csv(chart.table),
        "released rows": table_csv(pd.DataFrame(record.rows, columns=list(record.columns))),
        "settings": spec_json(record).encode(),
        "script": release_script(record).encode(),
        "ledger": ledger.export_csv().encode(),
    }


@pytest.mark.parametrize(("method", "options"), CASES, ids=[method for method, _ in CASES])
def test_no_export_and_no_log_of_a_release_holds_the_record_a_seed_or_a_diagnostic(
    rng, tmp_path, caplog, capsys, method, options
):
    caplog.set_level(logging.DEBUG)
    data = own_data(rng, METHODS[method].kind)
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    paid = release(method, data, ledger, epsilon=1.0, **options)
    files = every_export(data, paid, ledger)
    files |= {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ((_, files["kept"]),) = ledger.kept(paid.charge.account)
    files["log"] = caplog.text.encode()
    files["screen"] = "".join(capsys.readouterr()).encode()
    standard = data.points[data.n // 2].tolist()
    np.testing.assert_allclose(data.to_user_units([standard])[0], SECRET)
    for name, content in files.items():
        for value in (*SECRET, *standard):
            assert not holds(content, value), name
    forbidden = rb"^\W*(seed|diagnostics|points|content)\b\W*[:=]"
    for name in ("settings", "script"):
        assert not re.search(forbidden, files[name].lower(), re.MULTILINE), name
    assert not re.search(rb'"(seed|diagnostics|points|content|labels|utilities|score_size)"', files["kept"])
    assert b'"statements"' in files["kept"]  # its text can be searched
    assert json.loads(files["settings"])["kind"] == "release"
    assert paid.charge.account.encode() not in b"".join(files[name] for name in ("report", "settings", "script"))


def test_the_search_finds_a_record_that_is_drawn_tabled_or_written(rng):
    data = own_data(rng, "modes")
    standard = data.points[data.n // 2].tolist()
    points = data.to_user_units(data.points)
    leak = Chart(go.Figure(go.Scatter(x=points[:, 0], y=points[:, 1])), "Records.", pd.DataFrame(points))
    for content in (figure_html(leak, "leak").encode(), table_csv(leak.table), leak.figure.to_json().encode()):
        assert all(holds(content, value) for value in SECRET)
    assert holds(data.points.tobytes(), standard[0])
    assert holds(repr(standard).encode(), standard[1])
    assert holds(f"{SECRET[1]:,.6f}".encode(), SECRET[1])


def test_a_simulation_of_the_same_records_would_have_what_a_release_has_not(rng):
    data = own_data(rng, "modes")
    released = run("functional", data, epsilon=1.0)
    assert released.seed is None
    with pytest.raises(ValueError, match="not private"):
        _ = released.diagnostics
