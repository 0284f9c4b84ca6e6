"""A planted record leaves no trace in any export of a release, nor in its logs, whatever the method.

What the My data page shows and offers is searched in tests/app/test_my_data_secrets.py; the command releases more.
"""

from __future__ import annotations

import io
import json
import logging
import re

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dpgrams_core import METHODS, load_table, run
from dpgrams_core.exports.csv import table_csv
from dpgrams_core.exports.report import RELEASE_ORIGIN, figure_html, ledger_line, stakeholder_report
from dpgrams_core.exports.script import release_script
from dpgrams_core.exports.settings import spec_json
from dpgrams_core.figures.own_data import Units, ascent_map, branches_map, surface_map
from dpgrams_core.figures.style import Chart
from dpgrams_core.model.units import scaled_by_box
from dpgrams_core.own_data.postprocess import released_modes
from dpgrams_core.own_data.record import release_record
from dpgrams_core.own_data.release import data_identity, release
from dpgrams_core.privacy.ledger.book import Ledger
from tests.secret_search import found_in, records_of

# One person's record, the largest in either column: what is read off the ends of the data would show it.
SECRET = {"age": 93.9184620538171, "pay": 91827.3645546327}
BOX = {"age": (0, 100), "pay": (0, 1e5)}
CASES = [
    ("functional", {}),
    ("dp_grams", {"calibration": "tight"}),
    ("functional_regression", {}),
    ("dp_pms", {"calibration": "tight"}),
    ("functional_c", {"n_clusters": 2}),
    ("dp_grams_c", {"calibration": "tight"}),
]


def own_data(rng, kind, n=400):
    group = rng.integers(0, 2, n)
    frame = pd.DataFrame({"age": rng.normal(25 + 30 * group, 4), "pay": rng.normal(2e4 + 3e4 * group, 5e3)})
    frame.iloc[n // 2] = list(SECRET.values())
    assert (frame.max() == pd.Series(SECRET)).all()
    if kind == "regression":
        return load_table(frame, columns=["age"], response="pay", box=BOX)
    return load_table(frame, columns=["age", "pay"], box=BOX, kind=kind)


def secrets_of(data) -> dict[str, float]:
    """The planted record as it stands in the file, as methods see it, and in shares of its box."""
    record, scaled = data.points[data.n // 2], scaled_by_box(data).points[data.n // 2]
    shares = (record - data.box[:, 0]) / (data.box[:, 1] - data.box[:, 0])
    np.testing.assert_array_equal(record, list(SECRET.values()))
    rows = zip(SECRET, scaled.tolist(), shares.tolist(), strict=True)
    return SECRET | {f"{name}, {how}": v for name, x, y in rows for how, v in (("scaled", x), ("share", y))}


def as_file(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def picture(data, result) -> Chart:
    """The chart of the public view."""
    units = Units(data.columns, data.box)
    if result.method == "dp_pms":  # the curve is all that it releases of private data
        rows = result.curve
        return Chart(go.Figure(go.Scatter(x=rows[:, 0], y=rows[:, 1])), "A curve.", pd.DataFrame(rows))
    if result.surface is None:
        return ascent_map(units, result)
    if result.curve is not None:
        return branches_map(units, result)
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
        "ledger": str(ledger.charges()).encode(),
    }


@pytest.mark.slow
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
    files |= {name: as_file(part) for name, part in vars(paid.release).items() if isinstance(part, np.ndarray)}
    ((_, files["kept"]),) = ledger.kept(paid.charge.account, data_identity(data))
    files["log"] = caplog.text.encode()
    files["screen"] = "".join(capsys.readouterr()).encode()
    for name, content in files.items():
        assert found_in(content, secrets_of(data), records_of(data)) == [], name
    forbidden = rb"^\W*(seed|diagnostics|points|content)\b\W*[:=]"
    for name in ("settings", "script"):
        assert not re.search(forbidden, files[name].lower(), re.MULTILINE), name
    assert not re.search(rb'"(seed|diagnostics|points|content|labels|utilities|score_size)"', files["kept"])
    assert b'"statements"' in files["kept"]  # its text can be searched
    assert json.loads(files["settings"])["kind"] == "release"
    assert paid.charge.account.encode() not in b"".join(files[name] for name in ("report", "settings", "script"))


def test_the_search_finds_a_record_that_is_drawn_tabled_or_written(rng):
    data = own_data(rng, "modes")
    points, scaled, secrets = data.points, scaled_by_box(data).points, secrets_of(data)
    leak = Chart(go.Figure(go.Scatter(x=points[:, 0], y=points[:, 1])), "Records.", pd.DataFrame(points))
    for content in (figure_html(leak, "leak").encode(), table_csv(leak.table), leak.figure.to_json().encode()):
        assert found_in(content, SECRET, records_of(data)) == ["a record", "age", "pay"]
    short = Chart(go.Figure(go.Scatter(x=points[:, 0].astype("f4"), y=points[:, 1].round(1))), "", pd.DataFrame())
    assert found_in(short.figure.to_json().encode(), SECRET, records_of(data)) == ["age", "pay"]
    assert found_in(scaled.tobytes(), secrets) == ["age, scaled", "pay, scaled"]
    archive = io.BytesIO()
    np.savez_compressed(archive, a=scaled.astype("f4"), b=points[:3])
    assert found_in(archive.getvalue(), secrets, records_of(data)) == ["a record", "age, scaled", "pay, scaled"]


@pytest.mark.parametrize(
    "written",
    ["{:.6g}", "{:.7g}", "{:.6f}", "{:.9e}", "{:,.6f}", "{:.3f}", "{!r}", "[1,{:.8g}]", "x={:.5E};", "1,2,{:.1f}\n"],
)
def test_the_search_finds_a_number_however_it_is_written(written):
    assert found_in(written.format(SECRET["pay"]).encode(), SECRET) == ["pay"]


def test_the_search_finds_nothing_where_there_is_nothing(rng):
    others = rng.normal(50, 20, 20_000)
    text = " ".join(map(repr, others.tolist())).encode()
    for content in (text, others.tobytes(), as_file(others), b"93.9 91827 91,827 93.92 91827.0"):
        assert found_in(content, SECRET, np.array(list(SECRET.values()))) == []


def test_a_simulation_of_the_same_records_would_have_what_a_release_has_not(rng):
    data = own_data(rng, "modes")
    released = run("functional", data, epsilon=1.0)
    assert released.seed is None
    with pytest.raises(ValueError, match="not private"):
        _ = released.diagnostics
