"""Who may import whom (CONTRIBUTING.md) and who may remember, read from the source and not from what is loaded."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys

import pytest

from tests.places import ROOT

CORE = "dpgrams_core"
# The rooms of the core, from the ground up, each with the rooms that it may use besides itself. The lowest two use each
# other: results hold surfaces (model uses numerics), and pure functions raise our errors (numerics uses model).
GROUND = {"model", "numerics"}
ROOMS = {
    "model": {"numerics"},
    "numerics": {"model"},
    "privacy": GROUND,
    "methods": GROUND | {"privacy"},
    "datasets": GROUND,
    "own_data": GROUND | {"privacy", "methods", "datasets"},
    "sweeps": GROUND | {"methods", "datasets", "own_data"},
    "auditing": GROUND | {"privacy", "methods", "sweeps"},
    "studies": GROUND | {"privacy", "methods", "datasets", "sweeps", "auditing"},
    "figures": GROUND | {"privacy", "methods", "datasets", "own_data", "sweeps", "auditing", "studies"},
    "exports": GROUND | {"privacy", "methods", "datasets", "own_data", "sweeps", "studies", "figures"},
}
ROOMS["cli"] = {*ROOMS, CORE}  # the command line is the only room that calls the public names
DRAWING = (f"{CORE}.figures", f"{CORE}.exports")

# Where randomness may come from: everything in the noise door and in synthetic data, one name elsewhere.
RANDOMNESS_ALLOWED = {
    f"{CORE}.privacy.noise": ("",),
    f"{CORE}.datasets": ("",),
    f"{CORE}.own_data.examples": ("",),  # synthetic tables to try the page with
    f"{CORE}.own_data.twin": ("numpy.random.default_rng",),  # records drawn from a release: post-processing
    f"{CORE}.numerics.bumps": ("numpy.random.default_rng",),  # a fixed seed; it sees the release, never the data
    f"{CORE}.numerics.centres": ("numpy.random.default_rng",),  # likewise
    f"{CORE}.methods.baselines.kmeans": ("diffprivlib",),  # DP-k-means draws its own noise, seeded by the door
    f"{CORE}.sweeps.cell": ("numpy.random.SeedSequence",),  # derives seeds, draws nothing
    f"{CORE}.privacy.ledger.file": ("secrets.token_bytes",),  # the ledger's key, no privacy noise
    f"{CORE}.methods.registry": ("secrets.randbelow",),  # fresh_seed: the number of a simulation
}
# What a server remembers for all its users is nothing that a user brought. Every cache within reach of the My data
# page, with what it knows a value by.
CACHES = ("cache", "lru_cache", "cache_data", "cache_resource")
REMEMBERED = {
    f"{CORE}.own_data.twin._law": "a released surface, which may be published; whoever asks has to have it",
    f"{CORE}.own_data.pricing._priced_by_size": "a method, its settings, n and the box: public facts, no record",
    f"{CORE}.privacy.calibration.gaussian_multiplier": "epsilon and delta",
    f"{CORE}.privacy.calibration.exact_epsilon": "a multiplier and delta",
    f"{CORE}.privacy.accountants.rounds_multiplier": "epsilon, delta, n and the sizes of rounds",
    f"{CORE}.privacy.accountants._log_binomials": "a whole number",
    f"{CORE}.privacy.accountants.poisson_gaussian_epsilon": "a multiplier, a share, delta and the number of rounds",
    f"{CORE}.numerics.kernels._constants": "the name of a kernel and the number of columns",
    f"{CORE}.numerics.threads.threads_of": "the name of a library",
    f"{CORE}.numerics.bumps._nodes": "a public box, a bandwidth, and spreads and a spacing that are constants",
    f"{CORE}.numerics.surface.axis_basis": "a side of a public box and a bandwidth",
    f"{CORE}.numerics.sketch.vertices": "the number of columns and of blocks",
    f"{CORE}.sweeps.fingerprint.engine_fingerprint": "nothing: the code of this version",
    f"{CORE}.studies.coverage.shipped_coverage": "nothing: a file that comes with the code",
    f"{CORE}.studies.coverage.population_centres": "the name of a shape, whose records are drawn",
    f"{CORE}.studies.paper.tables._tables": "nothing: a file that comes with the code",
    f"{CORE}.own_data.reading.parquet_child._doubles_of_halves": "nothing: all numbers of 16 bits",
    f"{CORE}.datasets.mixtures._density_modes": "a mixture of the paper",
    "pages._ui.jobs.jobs": "public settings; work of one session is kept there, and has its visitor for a key",
    "pages._ui.jobs.memory": "runs on listed data sets, or on the twin of a release, which is synthetic",
    "pages._ui.jobs.workers": "nothing: processes",
    "pages._ui.jobs.private_workers": "nothing: processes, which remember nothing of what they are given",
    **{
        f"{CORE}.datasets.real.{name}": "nothing, or the path of a file: public data sets"
        for name in ("iris", "digits", "digits_as_run", "mnist", "tumours", "_genes", "_measuring_copy")
    },
    **{
        f"{CORE}.datasets.real.{name}": "nothing: public data sets in public columns"
        for name in ("public_iris", "public_digits", "public_mnist")
    },
}
RANDOM_SOURCES = ("numpy.random", "random", "secrets", "os.urandom", "uuid", "opendp", "diffprivlib")


@functools.cache
def nodes_of(source):
    """All nodes of a source: many tests look at the same files, and walking them takes longer than reading them."""
    return tuple(ast.walk(ast.parse(source)))


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_part_of(name, *modules):
    return any(name == module or name.startswith(module + ".") for module in modules)


@functools.cache
def imports_of(source, module="", package=False, at_start=False):
    """Every dotted name that a source imports, ``from a import b`` as ``a.b`` since b may be a module."""
    found = set()
    for node in walk_at_start(nodes_of(source)[0]) if at_start else nodes_of(source):
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
    names = {}
    for node in nodes_of(source):
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

    attributes = [node for node in nodes_of(source) if isinstance(node, ast.Attribute)]
    inner = {id(node.value) for node in attributes}
    plain = [node for node in nodes_of(source) if isinstance(node, ast.Name)]
    used = {dotted(node) for node in [*attributes, *plain] if id(node) not in inner}
    drawn = {f"scipy.stats (.{node.attr})" for node in attributes if node.attr == "rvs"}
    return drawn | {name for name in used if is_part_of(name, *RANDOM_SOURCES)}


def room_of(name):
    """The room that a dotted name lies in; the package itself where only its public names are asked for."""
    first, *rest = name.split(".")
    if first != CORE:
        return ""
    return rest[0] if rest and rest[0] in ROOMS else CORE


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
        if not is_part_of(module, *DRAWING):
            forbid("only figures and reports draw", "plotly")
        if module != f"{CORE}.sweeps.dask":
            forbid("Dask is for one file, which is imported late", "dask", "distributed")
        allowed = next((names for place, names in RANDOMNESS_ALLOWED.items() if is_part_of(module, place)), ())
        broken.extend(
            f"{module} uses {name}: privacy randomness has one door"
            for name in sorted(randomness_of(source))
            if not any(name.startswith(prefix) for prefix in allowed)
        )
        room = module.split(".")[1] if "." in module else ""
        broken.extend(
            f"{module} imports {name}: {room} may not use {used}"
            for name in sorted(names)
            if room in ROOMS and (used := room_of(name)) and used != room and used not in ROOMS[room]
        )
    if not (is_page or is_part_of(module, "pages._ui", "app", "tests", "benchmarks.visitor")):
        forbid("only app.py and pages know streamlit", "streamlit")
    forbid("nobody imports a page", "pages", allowed=("pages._ui",))
    if not (is_page or is_part_of(module, "pages._ui", "app", "tests")):
        forbid("only app.py and pages share the frame", "pages._ui")
    return broken


def sources():
    folders = (CORE, "pages", "tests", "benchmarks")
    return sorted([path for folder in folders for path in (ROOT / folder).rglob("*.py")] + list(ROOT.glob("*.py")))


def test_every_file_keeps_the_import_rules():
    paths = sources()
    assert len(paths) > 200  # a folder that moved must not make the rules silently empty
    broken = [
        sentence
        for path in paths
        for sentence in violations(module_name(path), path.read_text(encoding="utf-8"), path.name == "__init__.py")
    ]
    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (f"{CORE}.numerics.density", "import streamlit as st"),
        (f"{CORE}.numerics.density", "def late():\n    from streamlit import cache_data"),
        (f"{CORE}.numerics.density", "import importlib\nimportlib.import_module('streamlit')"),
        (f"{CORE}.model.measures", "import plotly.graph_objects as go"),
        (f"{CORE}.privacy.noise", "from dpgrams_core.methods import registry"),
        (f"{CORE}.privacy.accounting", "from ..methods.dp_grams.starts import draw_anchors"),
        (f"{CORE}.privacy.accounting", "from dpgrams_core.datasets import load_dataset"),
        (f"{CORE}.methods.dp_grams.starts", "from dpgrams_core.datasets.mixtures import FOUR_CORNERS"),
        (f"{CORE}.methods.dp_grams.starts", "from ...datasets import registry"),
        (f"{CORE}.methods.dp_grams.starts", "import dpgrams_core.figures"),
        (f"{CORE}.sweeps.run", "from pages._ui import cache"),
        ("pages.modes", "from pages import regression"),
        ("pages._ui.charts", "import pages.modes"),
        ("tests.app.test_modes", "from pages.modes import private_run"),
        ("benchmarks.speed", "import streamlit"),
        (f"{CORE}.methods.dp_grams.starts", "import numpy as np\nx = np.random.default_rng(0)"),
        (f"{CORE}.methods.dp_grams.starts", "from numpy.random import default_rng as make\nmake(0)"),
        (f"{CORE}.methods.dp_grams.starts", "import numpy.random as source\nsource.normal()"),
        (f"{CORE}.methods.dp_grams.starts", "import secrets\nsecrets.randbelow(3)"),
        (f"{CORE}.numerics.density", "import random\nrandom.random()"),
        (f"{CORE}.numerics.density", "import os\nos.urandom(8)"),
        (f"{CORE}.numerics.density", "from scipy.stats import norm\nnorm.rvs()"),
        (f"{CORE}.methods.dp_grams.starts", "def late():\n    import opendp.prelude as dp\n    dp.m.make_gaussian()"),
        (f"{CORE}.methods.registry", "from opendp.measurements import make_gaussian\nmake_gaussian()"),
        (f"{CORE}.privacy.accounting", "from opendp import measurements\nmeasurements.make_noisy_max()"),
        (f"{CORE}.sweeps.cell", "import numpy as np\nnp.random.default_rng(0)"),
        (f"{CORE}.sweeps.executors", "def late():\n    from distributed import Client"),
        (f"{CORE}.sweeps.run", "import dask"),
        (f"{CORE}.methods.registry", "import secrets\nsecrets.token_bytes(3)"),
    ],
)
def test_a_planted_violation_is_caught(module, source):
    assert len(violations(module, source)) >= 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("pages.modes", "import streamlit as st\nfrom pages._ui import cache\nfrom dpgrams_core.figures import style"),
        (f"{CORE}.figures.modes", "import plotly.graph_objects as go"),
        (f"{CORE}.privacy.noise", "import numpy as np\nnp.random.default_rng(0)"),
        (f"{CORE}.privacy.noise", "from opendp import measurements\nmeasurements.make_gaussian()"),
        (f"{CORE}.datasets.mixtures", "import numpy as np\nnp.random.default_rng(0)"),
        (f"{CORE}.sweeps.cell", "import numpy as np\nnp.random.SeedSequence([1])"),
        (f"{CORE}.sweeps.dask", "import distributed"),
        (f"{CORE}.methods.registry", "import secrets\nsecrets.randbelow(3)"),
        (f"{CORE}.numerics.density", "random = 3\nx = random"),
    ],
)
def test_what_is_allowed_passes(module, source):
    assert violations(module, source) == []


def test_contributors_are_told_the_same_rooms():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = {}
    for room, cell in re.findall(rf"^\| `{CORE}/(\w+)` \|.*\| (.+?) \|$", text, re.MULTILINE):
        all_others = {*ROOMS, CORE} - {room} if "all others" in cell else set()
        told[room] = set(re.findall(r"`(\w+)`", cell)) | (GROUND if "the lowest two" in cell else set()) | all_others
    assert told == ROOMS


def test_the_files_that_the_rules_speak_of_exist():
    # A moved file must not make a rule silently empty.
    known = {module_name(path) for path in sources()}
    assert {
        f"{CORE}.privacy.noise",
        f"{CORE}.methods.dp_grams.starts",
        f"{CORE}.datasets.mixtures",
        f"{CORE}.sweeps.cell",
    } <= known
    assert f"{CORE}.sweeps.dask" in known


def is_for_types_only(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def walk_at_start(node):
    """What runs while a module is being imported: nothing in functions, nothing for type checkers alone."""
    yield node
    for inner in ast.iter_child_nodes(node):
        if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and not is_for_types_only(inner):
            yield from walk_at_start(inner)


def import_cycle(modules):
    """A ring of modules that import one another at their start; ``modules`` gives (source, whether it is a package)."""
    graph = {}
    for module, (source, package) in modules.items():
        wanted = imports_of(source, module, package, at_start=True)
        # ``from a import b`` is a.b where that is a module, and else a name of a.
        found = {name if name in modules else name.rpartition(".")[0] for name in wanted}
        graph[module] = {name for name in found if name in modules and name != module}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def product_modules():
    paths = [path for path in sources() if is_part_of(module_name(path), CORE, "pages", "app")]
    return {module_name(path): (path.read_text(encoding="utf-8"), path.name == "__init__.py") for path in paths}


def test_no_modules_import_one_another_in_a_ring():
    modules = product_modules()
    assert len(modules) > 100
    assert import_cycle(modules) == []


@pytest.mark.parametrize(
    ("sources", "is_ring"),
    [
        ({"a.b": "from a.c import x", "a.c": "from a.d import y", "a.d": "import a.b"}, True),
        ({"a.b": "from . import c", "a.c": "from a import b"}, True),
        (
            {"a.b": "if True:\n    from .c import x\nelse:\n    x = 3", "a.c": "try:\n    import a.b\nfinally: ..."},
            True,
        ),
        ({"a.b": "class A:\n    from .c import x", "a.c": "import a.b"}, True),
        ({"a.b": "from .c import x", "a.c": "def late():\n    import a.b"}, False),
        (
            {"a.b": "from .c import x", "a.c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a.b"},
            False,
        ),
        ({"a.b": "from .c import x", "a.c": "import a.b2", "a.b2": ""}, False),
    ],
)
def test_a_planted_ring_is_found(sources, is_ring):
    assert bool(import_cycle({name: (source, False) for name, source in sources.items()})) is is_ring


@pytest.mark.parametrize(("place", "most"), [(CORE, 16), ("pages/_ui", 14)])
def test_a_corridor_has_few_doors(place, most):
    doors = sorted({path.relative_to(ROOT / place).parts[0] for path in (ROOT / place).rglob("*.py")})
    assert len(doors) <= most, doors


def caches_of(source):
    """What a source remembers for everyone: functions by their names, any other use of a cache by its line."""
    brought = [node for node in nodes_of(source) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {a.asname or a.name for node in brought for a in node.names if a.name.split(".")[-1] in CACHES}
    found, seen = set(), set()

    def uses(nodes):
        for node in nodes:
            is_name = isinstance(node, ast.Name) and node.id in names
            if is_name or (isinstance(node, ast.Attribute) and node.attr in CACHES):
                yield node

    for function in nodes_of(source):
        for decorator in getattr(function, "decorator_list", ()):
            for node in uses(ast.walk(decorator)):
                found.add(function.name)
                seen.add(node)
    return found | {f"line {node.lineno}" for node in uses(nodes_of(source)) if node not in seen}


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
    near = ("exports", "charts", "layout", *(f"my_data.{name}" for name in ("state", "results", "file", "budget")))
    assert {f"pages._ui.{name}" for name in near} <= set(reached)
    assert {
        f"{CORE}.{name}" for name in ("own_data.release", "own_data.pricing", "own_data.table", "own_data.reading.csv")
    } <= set(reached)
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
    lines = (ROOT / "app.py").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if "st.Page(" not in line]) < 37  # besides one line for each page


SLOW = {"streamlit", "pages", "opendp", "distributed", "dask", "dp_accounting", "sklearn", "statsmodels", "diffprivlib"}
SLOW |= {"scipy.stats", "scipy.optimize", "scipy.integrate", "scipy.cluster", "plotly", "pandas", "pyarrow"}
SLOW |= {"scipy.special", "scipy.spatial", "scipy.linalg"}


@pytest.mark.parametrize(
    ("code", "least", "never"),
    [
        ("import dpgrams_core", "dpgrams_core", {*SLOW, "numpy", "scipy"}),
        ("from dpgrams_core import *", "dpgrams_core.privacy.accountants", SLOW),
        ("import dpgrams_core.__main__", "dpgrams_core.privacy.accountants", SLOW - {"pyarrow"}),
    ],
)
def test_importing_the_core_loads_nothing_slow_that_few_calls_need(code, least, never):
    """Every command, worker and server waits for it; OpenDP is for private data, Dask for a cluster, and so on."""
    code = f"{code}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert least in loaded
    assert loaded & never == set()
