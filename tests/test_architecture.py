"""Who may import whom (design.md) and who may remember, read from the source and not from what happens to be loaded."""

from __future__ import annotations

import ast
import runpy
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
# What a server remembers for all its users is nothing that a user brought. Every cache within reach of the My data
# page, with what it knows a value by.
CACHES = ("cache", "lru_cache", "cache_data", "cache_resource")
REMEMBERED = {
    f"{CORE}.quoting._priced_by_size": "a method, its settings, n and the box: public facts, no record",
    f"{CORE}.privacy.accountants.rounds_multiplier": "epsilon, delta, n and the sizes of rounds",
    f"{CORE}.privacy.subsampling._log_binomials": "a whole number",
    f"{CORE}.kernels._constants": "the name of a kernel and the number of columns",
    f"{CORE}.fourier.vertices": "the number of columns and of blocks",
    f"{CORE}.fingerprint.engine_fingerprint": "nothing: the code of this version",
    f"{CORE}.paper._tables": "nothing: a file that comes with the code",
    f"{CORE}.figures.cluster_curve._paper": "nothing: the same file",
    f"{CORE}.reproduce._printed": "nothing: the same file",
    f"{CORE}.datasets.parquet_child._doubles_of_halves": "nothing: all numbers of 16 bits",
    f"{CORE}.datasets.mixtures._density_modes": "a mixture of the paper",
    **{
        f"{CORE}.datasets.real.{name}": "nothing, or the path of a file: public data sets"
        for name in ("iris", "digits", "mnist", "_genes", "_measuring_copy")
    },
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


def caches_of(source):
    """What a source remembers for everyone: functions by their names, any other use of a cache by its line."""
    tree = ast.parse(source)
    brought = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {a.asname or a.name for node in brought for a in node.names if a.name.split(".")[-1] in CACHES}
    found, seen = set(), set()

    def uses(tree):
        for node in ast.walk(tree):
            is_name = isinstance(node, ast.Name) and node.id in names
            if is_name or (isinstance(node, ast.Attribute) and node.attr in CACHES):
                yield node

    for function in ast.walk(tree):
        for decorator in getattr(function, "decorator_list", ()):
            for node in uses(decorator):
                found.add(function.name)
                seen.add(node)
    return found | {f"line {node.lineno}" for node in uses(tree) if node not in seen}


def reached_from(module):
    """A module of ours and all of ours that it imports, directly or through others, with their sources."""
    paths = {module_name(path): path for path in sources() if is_part_of(module_name(path), CORE, "pages")}
    found, waiting = {}, [module]
    while waiting:
        name = waiting.pop()
        if name in paths and name not in found:
            found[name] = paths[name].read_text(encoding="utf-8")
            for wanted in imports_of(found[name], name, paths[name].name == "__init__.py"):
                parts = wanted.split(".")  # a package is run before its modules
                waiting += [".".join(parts[:size]) for size in range(1, len(parts) + 1)]
    return found


def test_no_cache_that_users_share_is_within_reach_of_private_data():
    reached = reached_from("pages.my_data")
    near = ("exports", "show", "frame", "my_data_state", "my_data_results", "my_data_curator", "my_data_ledger")
    assert {f"pages._ui.{name}" for name in near} <= set(reached)
    assert {f"{CORE}.{name}" for name in ("releasing", "quoting", "datasets.upload", "datasets.csv_reader")} <= set(
        reached
    )
    remembered = {f"{name}.{what}" for name, source in reached.items() for what in caches_of(source)}
    assert remembered == set(REMEMBERED)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from functools import lru_cache\n@lru_cache(maxsize=4)\ndef mine(x): ...", {"mine"}),
        ("from functools import cache\n@cache\ndef mine(x): ...", {"mine"}),
        ("import functools as f\nclass A:\n    @f.cache\n    def mine(self): ...", {"mine"}),
        ("from functools import lru_cache as keep\n@keep\ndef mine(x): ...", {"mine"}),
        ("import functools\nmine = functools.lru_cache(None)(print)", {"line 2"}),
        ("import streamlit as st\n@st.cache_data(max_entries=3)\ndef mine(x): ...", {"mine"}),
        ("import streamlit as st\ndef page():\n    @st.cache_resource\n    def mine(x): ...", {"mine"}),
        ("from pages._ui import cache\nx = cache.dataset('blobs', 10, 0)", {"line 2"}),
        ("import pages._ui.cache as shared\nshared.dataset('blobs', 10, 0)", {"line 2"}),
        ("cache = {}\ncache['x'] = 3  # a name of one's own", set()),
    ],
)
def test_a_planted_cache_is_caught(source, found):
    assert caches_of(source) == found


def test_app_is_a_short_file():
    assert len((ROOT / "app.py").read_text(encoding="utf-8").splitlines()) < 45


def test_importing_the_core_loads_no_streamlit_no_opendp_and_no_dask():
    # OpenDP takes half a second and is needed only for a release of private data, Dask only for a cluster.
    names = ("streamlit", "pages", "opendp", "distributed")
    code = f"import sys, dpgrams_core, dpgrams_core.__main__; print([name in sys.modules for name in {names}])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[False, False, False, False]"


def test_a_worker_process_that_imports_the_app_runs_no_page():
    """Workers that start while a page runs may take app.py for their main script, under this name (multiprocessing)."""
    found = runpy.run_path(str(ROOT / "app.py"), run_name="__mp_main__")
    assert callable(found["main"])
