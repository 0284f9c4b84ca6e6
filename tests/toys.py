"""A toy one of each, registered as a file of the project would do it, and where it is then found (test_adding_one.py).

Importing this registers nothing: pytest imports it, too, and other tests list the registries.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dpgrams_core.datasets import registry as datasets
from dpgrams_core.exports import registry as exports
from dpgrams_core.figures import style
from dpgrams_core.methods import registry as methods
from dpgrams_core.methods.functional.modes import functional
from dpgrams_core.methods.functional.spec import FunctionalSpec
from dpgrams_core.model import measures, settings
from dpgrams_core.model.specs import Spec
from dpgrams_core.privacy import accountants

TOYS = ("Toy method", "toy_method", "Toy data", "toy_data")


@dataclass(frozen=True, kw_only=True)
class ToySpec(Spec):
    """Settings of its own, without a bandwidth."""

    epsilon: float = settings.epsilon()
    delta: float = settings.delta(1e-6)
    n_modes: int | None = settings.n_modes(40)


def toy(data, spec, noise):
    """A released surface whose highest place is the only mode."""
    release = functional(data, FunctionalSpec(**vars(spec)), noise)
    return replace(
        release, method="toy_method", spec=spec, modes=release.modes[:1], significance=release.significance[:1]
    )


@contextlib.contextmanager
def registered() -> Iterator[None]:
    """All toys, for as long as this lasts; what reads a registry while it is imported must be imported in it."""
    tables: list[dict[Any, Any]] = [
        methods.METHODS,
        datasets.DATASETS,
        measures.MEASURES["modes"],
        accountants.ACCOUNTANTS,
        style.THEMES,
    ]
    before, files = [dict(table) for table in tables], exports.EXPORTS
    methods.register(methods.Method("toy_method", "modes", "Toy method", ToySpec, toy))
    datasets.register(replace(datasets.DATASETS["four_corners"], name="toy_data", title="Toy data"))
    measures.register(
        measures.Measure(kind="modes", name="toy_measure", title="Toy measure", words="Always seven.", of=lambda _: 7.0)
    )
    accountants.ACCOUNTANTS["toy"] = accountants.Accountant("toy accountant", lambda *_: accountants.Quote(123.0))
    exports.EXPORTS += (
        exports.Export("Toy file", "toy.txt", "text/plain", lambda shown: shown.question, lambda shown: shown),
    )
    style.THEMES["dark"] = replace(style.THEMES["dark"], private="#010203")
    try:
        yield
    finally:
        for table, had in zip(tables, before, strict=True):
            table.clear()
            table.update(had)
        exports.EXPORTS = files


def look_everywhere() -> dict[str, Any]:
    """Where the toys are found; in a process of its own, in which no page was imported before."""
    from dpgrams_core import load_dataset, run, score, sweep
    from dpgrams_core.cli.main import main
    from pages._ui import charts, exports, jobs
    from pages._ui.server.styled_page import StyledPage
    from tests.shown import all_text, answer, checked, new_page, until, widget

    async def not_asked(*_: Any) -> None:
        """Streamlit, whose page the style goes into."""

    files = {}
    plain_download = exports.download

    def listening(file, key, *more):
        files[key] = file
        plain_download(file, key, *more)

    exports.download = listening
    jobs.WarmPool.ready = property(lambda _: False)  # processes would not know the toys
    jobs.WARM_SECONDS = 0.0
    charts.scrolled_to = charts.unfolded = lambda *_: True  # type: ignore[assignment]  # nobody scrolls or unfolds here
    found: dict[str, Any] = {}

    # The engine, the command line and a sweep.
    data = load_dataset("toy_data", n=100, seed=0)
    found["score"] = score(run("toy_method", data, seed=0), data)["toy_measure"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        found["exit"] = main(["run", "toy_data", "toy_method", "--n", "100", "--seed", "0", "--json"])
    found["command line"] = out.getvalue()
    table = sweep(["toy_method", "mean_shift"], "toy_data", n=[60], epsilon=[1.0], runs=2, seed=0, executor="serial")
    found["sweep"] = table[["method", "dataset", "toy_measure"]].values.tolist()

    # The Modes page and what it gives away; then the same beside another method.
    quiet = {"n": "200", "epsilon": "5", "curve": "off", "runs": "off", "landscape": "off"}
    page = checked(new_page("modes", **quiet, method="toy_method", dataset="toy_data"))
    offered = [widget(page, "selectbox", key).options for key in ("method", "dataset")]
    found["modes options"] = [title for titles in offered for title in titles]
    found["modes answer"] = answer(page)
    found["modes text"] = all_text(page)
    pages_own = {file for key, file in files.items() if key.startswith("export_")}
    found["files"] = {file.name: [name for name in TOYS if name in str(file.build())] for file in pages_own}
    found["toy file"] = [file.build() for file in pages_own if file.label == "Toy file"]
    found["dark colours"] = "--private-text: 1,2,3;" in StyledPage(not_asked).style.decode()
    page = checked(new_page("modes", **quiet, method="toy_method", dataset="toy_data", compare="functional"))
    found["beside another"] = answer(page)

    # A kernel and a bandwidth rule (test_adding_one.py registers them) among the settings of a method.
    chosen = {"kernel": "toy_kernel", "bandwidth": "toy_rule"}
    page = checked(new_page("modes", **quiet, method="dp_grams", dataset="toy_data", **chosen))
    found["settings options"] = [title for item in page.selectbox for title in item.options]
    found["settings chosen"] = [item.value for item in page.selectbox if item.value in chosen.values()]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        words = ["run", "toy_data", "dp_grams", "--n", "100", "--seed", "0", "--json"]
        found["settings exit"] = main([*words, *("--kernel", "toy_kernel", "--bandwidth", "toy_rule")])
    found["settings line"] = out.getvalue()

    # The Tradeoff page draws it.
    lab = {"lab_modes": "toy_data", "lab_n_toy_data": "60", "lab_eps_toy_data": "1", "lab_runs": "2", "lab_seed": "9"}
    page = checked(new_page("tradeoff", **lab, lab_m_toy_method="on", lab_score_modes="toy_measure"))
    found["tradeoff methods"] = [item.label for item in page.checkbox]
    found["tradeoff data"] = widget(page, "selectbox", "lab_modes").options
    found["tradeoff text"] = all_text(until(page, "Complete"))

    # The Guarantee page prices by it, and attacks it.
    page = until(
        checked(new_page("guarantee", n="200", tab="accounting", measure="off", accountants="on")), "toy accountant"
    )
    found["accountants"] = [item.value for item in page.caption if "toy accountant" in item.value]
    page = checked(new_page("guarantee", n="200", tab="audit", measure="off", audit_method="toy_method"))
    found["audit options"] = widget(page, "selectbox", "audit_method").options
    found["attacked"] = widget(page, "selectbox", "audit_method").value

    # My data offers it.
    from pages._ui.guarantee.audit import Wish
    from pages._ui.my_data.state import WAYS

    (*_, last) = Wish(choice="toy_method", trials=40, n=30).stream()
    found["audit"] = [last.claimed_status, last.trials_done]
    found["my data"] = WAYS
    return found


def main() -> None:
    """Print it."""
    with registered():
        print(json.dumps(look_everywhere()))
