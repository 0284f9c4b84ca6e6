"""A new method, data set, measure, accountant, export or colour is added in one place, and stands everywhere.

The toys of tests/toys.py are registered in a process of their own before any page is imported, as a file of the project
would register them.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dpgrams_core.datasets import registry as datasets
from dpgrams_core.exports import registry as exports
from dpgrams_core.figures import style
from dpgrams_core.methods import registry as methods
from dpgrams_core.model import measures, settings
from dpgrams_core.privacy import accountants
from tests.places import ROOT
from tests.toys import registered

pytestmark = pytest.mark.slow
# A package of another project that is installed here is called tests, too.
PROGRAM = "import sys, types; here = sys.modules['tests'] = types.ModuleType('tests'); here.__path__ = ['tests']"
# Kernels and bandwidth rules are read by the settings of the methods as these are imported: so they come before.
NUMERICS = """
from dataclasses import replace
from dpgrams_core.numerics.bandwidths import BANDWIDTH_RULES, BandwidthRule
from dpgrams_core.numerics.kernels import KERNELS
KERNELS["toy_kernel"] = replace(KERNELS["gaussian"], name="toy_kernel", title="Toy kernel")
BANDWIDTH_RULES["toy_rule"] = BandwidthRule("toy_rule", "Toy rule (public)", True, lambda facts: 0.7)
"""


@pytest.fixture(scope="module")
def found():
    command = [sys.executable, "-c", f"{PROGRAM}\n{NUMERICS}\nfrom tests.toys import main; main()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_command_line_runs_a_method_on_a_data_set_and_gives_a_measure(found):
    assert found["exit"] == 0
    printed = json.loads(found["command line"])
    assert (printed["method"], printed["dataset"]) == ("toy_method", "toy_data")
    assert printed["score"]["toy_measure"] == found["score"] == 7.0


def test_a_sweep_has_all_three(found):
    assert found["sweep"] == [["mean_shift", "toy_data", 7.0], ["toy_method", "toy_data", 7.0]]


def test_the_modes_page_offers_and_shows_a_method_and_a_data_set(found):
    assert {"Toy method", "Toy data"} <= set(found["modes options"])
    assert "Toy data, n = 200" in found["modes text"]
    assert "Below is the last picture that worked" not in found["modes text"]
    assert "1 of 4" in found["modes answer"]
    assert "Toy method found 1 of 4" in found["beside another"]


def test_a_kernel_and_a_bandwidth_rule_are_offered_and_run(found):
    assert {"Toy kernel", "Toy rule (public)"} <= set(found["settings options"])
    assert found["settings chosen"] == ["toy_rule", "toy_kernel"]
    assert found["settings exit"] == 0
    spec = json.loads(found["settings line"])["spec"]
    assert (spec["kernel"], spec["bandwidth"]) == ("toy_kernel", 0.7)


def test_reports_scripts_and_settings_name_them(found):
    assert {"Toy method", "Toy data"} <= set(found["files"]["report.html"])
    assert {"toy_method", "toy_data"} <= set(found["files"]["simulation.py"])
    assert {"toy_method", "toy_data"} <= set(found["files"]["settings.json"])


def test_the_export_of_a_page_has_a_file(found):
    assert found["toy file"] == ["What does privacy cost when you look for modes?"]


def test_the_audit_attacks_a_method(found):
    assert "Toy method: proven" in found["audit options"]
    assert found["attacked"] == "toy_method"
    assert found["audit"] == ["proven", 40]


def test_my_data_offers_a_method(found):
    assert found["my data"]["toy_method"] == "Toy method"


def test_the_tradeoff_page_draws_a_method_on_a_data_set_by_a_measure(found):
    assert "Toy method" in found["tradeoff methods"]
    assert "Toy data" in found["tradeoff data"]
    assert "Mean Toy measure at n = 60" in found["tradeoff text"]
    assert "toy method 7 at ε = 1" in found["tradeoff text"]


def test_the_guarantee_page_prices_by_an_accountant(found):
    (sentence,) = found["accountants"]
    assert "priced six ways" in sentence
    assert "toy accountant 123" in sentence


def test_a_colour_of_a_theme_reaches_the_style_sheet(found):
    assert found["dark colours"]


def test_the_toys_go_as_they_came():
    def known():
        tables = (methods.METHODS, datasets.DATASETS, measures.MEASURES["modes"], accountants.ACCOUNTANTS, style.THEMES)
        return [list(table.items()) for table in tables], exports.EXPORTS

    before = known()
    with registered():
        assert {"toy_method", "Toy file"} <= {*methods.METHODS, *(export.label for export in exports.EXPORTS)}
    assert known() == before


def test_a_calibration_has_its_status_and_its_words(monkeypatch):
    monkeypatch.setitem(settings.CALIBRATIONS, "toy", settings.Calibration("nominal", "A toy noise."))
    for name in ("dp_grams", "dp_pms", "dp_grams_c"):
        assert methods.METHODS[name].status_with({"calibration": "toy"}) == "nominal"
        assert methods.METHODS[name].calibrations["toy"].words == "A toy noise."
