"""Who may import whom (design.md), read from the source and not from what happens to be loaded."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = "dpgrams_core"
FIGURES = (f"{CORE}.figures", f"{CORE}.reports")
PRIVACY_MUST_NOT = tuple(
    f"{CORE}.{name}" for name in ("methods", "datasets", "metrics", "figures", "reports", "cells", "sweeps")
)
METHODS_MUST_NOT = tuple(f"{CORE}.{name}" for name in ("datasets", "metrics", "figures", "reports", "cells", "sweeps"))

# Where randomness may come from: everything in the noise door and in synthetic data, one name elsewhere.
RANDOMNESS_ALLOWED = {
    f"{CORE}.privacy.noise": ("",),
    f"{CORE}.datasets": ("",),
    f"{CORE}.bump_posterior": ("numpy.random.default_rng",),  # a fixed seed; it sees the release, never the data
    f"{CORE}.methods.kmeans": ("diffprivlib",),  # DP-k-means draws its own noise, seeded by the door
    f"{CORE}.cells": ("numpy.random.SeedSequence",),  # derives seeds, draws nothing
    f"{CORE}.privacy.ledger_file": ("secrets.token_bytes",),  # the ledger's key, no privacy noise
    f"{CORE}.methods": ("secrets.randbelow",),  # fresh_seed: the number of a simulation
}
RANDOM_SOURCES = ("numpy.random", "random", "secrets", "os.urandom", "uuid", "opendp", "diffprivlib")


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_part_of(name, *modules):
    return any(name == module or name.startswith(module + ".") for module in modules)


def imports_of(source, module="", package=False):
    """Every dotted name that a source imports, ``from a import b`` as ``a.b`` since b may be a module."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".") if package else module.split(".")[:-1]
            parent = ".".join(parts[: len(parts) - node.level + 1]) + "." if node.level else ""
            base = (parent + (node.module or "")).rstrip(".")
            found |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__"):
                found.add(str(node.args[0].value))
    return found


def randomness_of(source):
    """Every dotted name of a source of randomness that is used, through whatever alias."""
    tree = ast.parse(source)
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}

    def dotted(node):
        if isinstance(node, ast.Name):
            return names.get(node.id, "")
        inner = dotted(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{inner}.{node.attr}" if inner else ""

    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    inner = {id(node.value) for node in attributes}
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {dotted(node) for node in [*attributes, *plain] if id(node) not in inner}
    drawn = {f"scipy.stats (.{node.attr})" for node in attributes if node.attr == "rvs"}
    return drawn | {name for name in used if is_part_of(name, *RANDOM_SOURCES)}


def violations(module, source, package=False):
    """Every broken rule of one module, as sentences."""
    names = imports_of(source, module, package)
    is_page = module.startswith("pages.") and not is_part_of(module, "pages._ui")
    broken = []

    def forbid(why, *targets, allowed=()):
        broken.extend(
            f"{module} imports {name}: {why}"
            for name in sorted(names)
            if is_part_of(name, *targets) and not is_part_of(name, *allowed)
        )

    if is_part_of(module, CORE):
        forbid("the core knows no page", "pages", "app")
        if not is_part_of(module, *FIGURES):
            forbid("only figures and reports draw", "plotly")
        if module != f"{CORE}.executors_dask":
            forbid("Dask is for one file, which is imported late", "dask", "distributed")
        allowed = next((names for place, names in RANDOMNESS_ALLOWED.items() if allows(place, module)), ())
        broken.extend(
            f"{module} uses {name}: privacy randomness has one door"
            for name in sorted(randomness_of(source))
            if not any(name.startswith(prefix) for prefix in allowed)
        )
    if is_part_of(module, f"{CORE}.privacy"):
        forbid("privacy knows no method, data set, metric or figure", *PRIVACY_MUST_NOT)
    if is_part_of(module, f"{CORE}.methods"):
        forbid("a method knows no data set module, metric or figure", *METHODS_MUST_NOT)
    if not (is_page or is_part_of(module, "pages._ui", "app", "tests")):
        forbid("only app.py and pages know streamlit", "streamlit")
    forbid("nobody imports a page", "pages", allowed=("pages._ui",))
    if not (is_page or is_part_of(module, "pages._ui", "app", "tests")):
        forbid("only app.py and pages share the frame", "pages._ui")
    return broken


def allows(place, module):
    # The methods package itself holds fresh_seed; its files do not inherit the permission.
    return module == place if place.endswith(".methods") else is_part_of(module, place)


def sources():
    folders = (CORE, "pages", "tests", "benchmarks")
    return sorted([path for folder in folders for path in (ROOT / folder).rglob("*.py")] + list(ROOT.glob("*.py")))


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_keeps_the_import_rules(path):
    assert violations(module_name(path), path.read_text(encoding="utf-8"), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (f"{CORE}.density", "import streamlit as st"),
        (f"{CORE}.density", "def late():\n    from streamlit import cache_data"),
        (f"{CORE}.density", "import importlib\nimportlib.import_module('streamlit')"),
        (f"{CORE}.metrics", "import plotly.graph_objects as go"),
        (f"{CORE}.privacy.noise", "from dpgrams_core import metrics"),
        (f"{CORE}.privacy.accounting", "from ..methods.dap import draw_anchors"),
        (f"{CORE}.privacy.accounting", "from dpgrams_core.datasets import load_dataset"),
        (f"{CORE}.methods.dap", "from dpgrams_core.datasets.mixtures import FOUR_CORNERS"),
        (f"{CORE}.methods.dap", "from ..metrics import score"),
        (f"{CORE}.methods.dap", "import dpgrams_core.figures"),
        (f"{CORE}.sweeps", "from pages._ui import cache"),
        ("pages.modes", "from pages import regression"),
        ("pages._ui.show", "import pages.modes"),
        ("tests.app.test_modes", "from pages.modes import private_run"),
        ("benchmarks.speed", "import streamlit"),
        (f"{CORE}.methods.dap", "import numpy as np\nx = np.random.default_rng(0)"),
        (f"{CORE}.methods.dap", "from numpy.random import default_rng as make\nmake(0)"),
        (f"{CORE}.methods.dap", "import numpy.random as source\nsource.normal()"),
        (f"{CORE}.methods.dap", "import secrets\nsecrets.randbelow(3)"),
        (f"{CORE}.density", "import random\nrandom.random()"),
        (f"{CORE}.density", "import os\nos.urandom(8)"),
        (f"{CORE}.density", "from scipy.stats import norm\nnorm.rvs()"),
        (f"{CORE}.methods.dap", "def late():\n    import opendp.prelude as dp\n    dp.m.make_gaussian()"),
        (f"{CORE}.methods", "from opendp.measurements import make_gaussian\nmake_gaussian()"),
        (f"{CORE}.privacy.accounting", "from opendp import measurements\nmeasurements.make_noisy_max()"),
        (f"{CORE}.cells", "import numpy as np\nnp.random.default_rng(0)"),
        (f"{CORE}.executors", "def late():\n    from distributed import Client"),
        (f"{CORE}.sweeps", "import dask"),
        (f"{CORE}.methods", "import secrets\nsecrets.token_bytes(3)"),
    ],
)
def test_a_planted_violation_is_caught(module, source):
    assert len(violations(module, source)) >= 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pages.modes", "import streamlit as st\nfrom pages._ui import cache\nfrom dpgrams_core.figures import Chart"),
        (f"{CORE}.figures.modes", "import plotly.graph_objects as go"),
        (f"{CORE}.privacy.noise", "import numpy as np\nnp.random.default_rng(0)"),
        (f"{CORE}.privacy.noise", "from opendp import measurements\nmeasurements.make_gaussian()"),
        (f"{CORE}.datasets.mixtures", "import numpy as np\nnp.random.default_rng(0)"),
        (f"{CORE}.cells", "import numpy as np\nnp.random.SeedSequence([1])"),
        (f"{CORE}.executors_dask", "import distributed"),
        (f"{CORE}.methods", "import secrets\nsecrets.randbelow(3)"),
        (f"{CORE}.density", "random = 3\nx = random"),
    ],
)
def test_what_is_allowed_passes(module, source):
    assert violations(module, source) == []


def test_the_files_that_the_rules_speak_of_exist():
    # A moved file must not make a rule silently empty.
    known = {module_name(path) for path in sources()}
    assert {f"{CORE}.privacy.noise", f"{CORE}.methods.dap", f"{CORE}.datasets.mixtures", f"{CORE}.cells"} <= known
    assert f"{CORE}.executors_dask" in known


def test_app_is_a_short_file():
    assert len((ROOT / "app.py").read_text(encoding="utf-8").splitlines()) < 40


def test_importing_the_core_loads_no_streamlit_no_opendp_and_no_dask():
    # OpenDP takes half a second and is needed only for a release of private data, Dask only for a cluster.
    names = ("streamlit", "pages", "opendp", "distributed")
    code = f"import sys, dpgrams_core, dpgrams_core.__main__; print([name in sys.modules for name in {names}])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[False, False, False, False]"
