"""Widget groups that become a ``Run``. The key of a control is also its name in the URL.

Labels, help texts, ranges and steps are those that the specs declare.  Where the values or the default differ from
another page a control has a key of its own (``reg_…``, ``clu_…``); the others share theirs, so that ε, the settings of
the ascent and the seeds carry over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS, METHODS
from dpgrams_core.datasets.registry import datasets_of
from dpgrams_core.figures.curve import method_title
from dpgrams_core.methods.as_run import AS_RUN
from dpgrams_core.methods.functional.spec import FunctionalCSpec
from dpgrams_core.methods.registry import private_methods
from dpgrams_core.model.format import written
from dpgrams_core.model.guarantee import full_status
from dpgrams_core.model.run import Run
from dpgrams_core.model.settings import CALIBRATIONS
from dpgrams_core.model.specs import settings_of
from pages._ui import state

COUNTS = ("known", "unknown", *settings_of(FunctionalCSpec)["n_clusters"].steps)
LARGEST_SEED = 2**31 - 1
NOTHING = "nothing"
USUAL = "usual"
N_WORDS = "How many people are in the data (n). Public."
# What may stand beside the method: its name in the URL, and the method and calibration it means.
COMPARISONS: dict[str, tuple[str, str | None]] = {
    **{name: (name, None) for name in private_methods("modes") if name != "dp_grams"},
    **{name: ("dp_grams", name) for name in CALIBRATIONS},
}
COMPARISON_WORDS = {NOTHING: "nothing"} | {
    name: method_title(method, (("calibration", calibration),) if calibration else ())
    for name, (method, calibration) in COMPARISONS.items()
}
# The controls of each method, the settings of its spec with their keys: those in sight, then those folded away.
_SCALE = {"bandwidth_scale": "h_scale"}
IN_SIGHT = {
    "functional": _SCALE,
    "dp_grams": {"clip_multiplier": "clip", "batch_size": "m"},
    "functional_regression": _SCALE,
    "dp_pms": {**_SCALE, "calibration": "calibration", "clip_multiplier": "reg_clip", "batch_size": "m"},
    "dp_grams_c": {"clip_multiplier": "clip", "batch_size": "m"},
    "functional_c": {},
}
_ASCENT = {
    "calibration": "calibration",
    "kernel": "kernel",
    "init_fraction": "share",
    "n_steps": "steps",
    "step_size": "eta",
    "n_starts": "starts",
    "suppression_radius": "rho",
    "init_bandwidth": "h_dap",
}
FOLDED = {
    "dp_grams": {"n_modes": "modes", **_ASCENT},
    "functional": {"n_modes": "modes"},
    "dp_grams_c": _ASCENT,
    "dp_pms": {
        "init_fraction": "reg_share",
        "starts": "reg_starts",
        "start_multiplier": "reg_kappa",
        "n_bins": "reg_bins",
        "n_steps": "steps",
        "step_size": "reg_eta",
        "init_bandwidth": "reg_window",
        "merge_radius": "reg_merge",
    },
}


def methods_of(kind: str) -> list[str]:
    """The private methods that a page offers; where there is no habit of another order, the proven one first."""
    names = private_methods(kind)
    return names if kind == "modes" else sorted(names, key=lambda name: METHODS[name].bare is None)


def in_sight(method: str) -> dict[str, str]:
    """The controls of a method that are not folded away; of one that no table here knows, all that it declares."""
    if method in IN_SIGHT:
        return IN_SIGHT[method]
    declared = settings_of(METHODS[method].spec)
    return {
        name: f"{method}_{name}"
        for name, item in declared.items()
        if name not in ("epsilon", "delta") and (item.choices or item.steps or item.step)
    }


class Group:
    """Builds controls whose values live in the session and the URL, and remembers their keys."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.seeds: dict[str, Any] = {}  # and the design of the data
        self.designs: dict[str, str] = {}

    def steps(self, label: str, key: str, values: tuple[Any, ...], default: Any, help_text: str) -> Any:
        """A slider over fixed values, so that a log scale is exact."""
        self.start(key, default, state.one_of_these(values))
        return st.select_slider(label, values, format_func=written, key=key, help=help_text, persist_state="session")

    def choice(self, label: str, key: str, values: list[str], help_text: str, words: Callable[[str], str]) -> str:
        """A list to choose from; the first is the default."""
        self.start(key, values[0], state.one_of_these(values))
        return st.selectbox(label, values, format_func=words, key=key, help=help_text, persist_state="session")

    def number(self, label: str, key: str, default: Any, kind: type, help_text: str, step: Any) -> Any:
        """A number typed in; with the default None it may be left empty."""
        if default is None:
            self.start(key, None, state.number_within(kind, -1e9, 1e9))
            # value=None is what lets the box be emptied again.
            bounds: dict[str, Any] = {"value": None, "placeholder": "default"}
        else:
            self.start(key, default, state.number_within(kind, 0, LARGEST_SEED, empty=False))
            bounds = {"min_value": 0, "max_value": LARGEST_SEED}
        return st.number_input(label, step=step, key=key, help=help_text, persist_state="session", **bounds)

    def switch(self, *keys: str) -> None:
        """The state of switches that stand elsewhere on the page; on at first."""
        for key in keys:
            self.start(key, True, state.one_of_these([True, False]))

    def start(self, key: str, default: Any, parse: Callable[[str], Any]) -> None:
        self.keys.append(key)
        state.start(key, default, parse)

    def setting(
        self, spec: type, name: str, key: str, *, first: Any = None, help_text: str = "", words: Any = None
    ) -> dict[str, Any]:
        """The control of a setting, as its spec declares it; what is left out is no option.

        ``first`` and ``help_text`` take the place of the declared default and words, ``words`` names the choices.
        """
        declared = settings_of(spec)[name]
        label, text = declared.label, help_text or declared.words
        if declared.choices is not None and not declared.or_number:
            return {name: self.choice(label, key, list(declared.choices), text, words or declared.title)}
        if not declared.steps:
            value = self.number(label, key, None, int if declared.whole else float, text, declared.step)
            return {} if value is None else {name: value}
        if declared.percent:
            shares: tuple[Any, ...] = tuple(round(100 * step) for step in declared.steps)
            if declared.optional:
                shares = (declared.empty, *shares)
            usual = declared.empty if declared.optional else round(100 * declared.default)
            share = self.steps(label, key, shares, usual, text)
            return {} if share == declared.empty else {name: share / 100}
        values, default = declared.steps, declared.default if first is None else first
        if default is None:  # left out at first: at the step that means the same, or at a word of its own
            default = next((step for step in values if written(step) == declared.empty), declared.empty)
            values = values if default in values else (default, *values)
        value = self.steps(label, key, values, default, text)
        return {} if value == declared.empty else {name: value}

    def settings(self, method: str, keys: dict[str, str], condition: str | None = None) -> dict[str, Any]:
        """The controls of several settings of a method; one that would not be read is left away."""
        found: dict[str, Any] = {}
        spec = METHODS[method].spec
        # A calibration comes with its status, on data whose guarantees rest on a condition with that.
        statuses = {
            name: f"{name.replace('_', ' ')} ({full_status(one.status, condition)})"
            for name, one in CALIBRATIONS.items()
        }
        for name, key in keys.items():
            only_if = settings_of(spec)[name].only_if
            choices = {one: choice for one, choice in found.items() if isinstance(choice, str)}
            if only_if is None or only_if(spec(**choices)):
                words = statuses.__getitem__ if name == "calibration" else None
                found |= self.setting(spec, name, key, words=words)
        return found

    def dataset(self, kind: str, key: str, help_text: str, more: str | None = "") -> str:
        """The data set, and what it is; with None for ``more`` that is not told."""
        name = self.choice("Data set", key, datasets_of(kind), help_text, lambda name: DATASETS[name].title)
        if more is not None:
            st.caption(DATASETS[name].description + more)
        self.designs = {item.name: item.words for item in DATASETS[name].designs if not item.public}
        return name

    def method(self, kind: str, key: str, help_text: str) -> str:
        return self.choice("Method", key, methods_of(kind), help_text, lambda name: METHODS[name].title)

    def records(self, key: str, dataset: str, help_text: str = N_WORDS) -> int:
        info = DATASETS[dataset]
        return int(self.steps("Records, n", key, info.offered, info.default_n, help_text))

    def budget(self, method: str, delta_key: str = "delta", first_delta: float | None = None) -> dict[str, Any]:
        """ε on a log scale with both ends labelled, and δ; a page with another first δ has a key of its own."""
        spec = METHODS[method].spec
        epsilon = self.setting(spec, "epsilon", "epsilon")
        st.html('<div class="ends"><span>← stronger privacy</span><span>weaker privacy →</span></div>')
        return epsilon | self.setting(spec, "delta", delta_key, first=first_delta)

    def rest(
        self, method: str, condition: str | None = None, bandwidth: Callable[[], dict[str, Any]] = dict
    ) -> dict[str, Any]:
        """What ends every sidebar: new noise, and one level below the settings of the method and the seeds.

        ``bandwidth`` draws the controls of a bandwidth that the tables here do not hold.
        """
        look: dict[str, Any] = {"icon": ":material/casino:", "width": "stretch", "help": "Draws the next seed."}
        st.button("New noise, same data", key="new_noise", on_click=_next_seed, **look)
        with st.expander("Method settings", key="method_settings"):
            options = bandwidth() | self.settings(method, in_sight(method))
            options |= self.settings(method, FOLDED.get(method, {}), condition)
        with st.expander("Seeds", key="seeds"):
            noise = self.number("Seed of the noise", "seed", 0, int, "Same seed, same noise.", 1)
            data = self.number("Seed of the data", "data_seed", 0, int, "Same seed, same records.", 1)
            self.seeds = {"seed": noise, "data_seed": data}
            if not self.designs:  # a link may ask for one all the same, and is told
                state.start("design", USUAL, state.one_of_these([USUAL]))
                self.seeds["design"] = ""
            else:
                told = "; ".join(f"{name}: {words}" for name, words in self.designs.items())
                words = f"How the records are drawn. Those of the paper’s tables, {told}."
                picked = self.choice("Design of the data", "design", [USUAL, *self.designs], words, str)
                self.seeds["design"] = "" if picked == USUAL else picked
        return options

    def run(self, method: str, dataset: str, n: int, options: dict[str, Any]) -> Run:
        """What the controls say; they are in the URL now."""
        state.write_url(self.keys)
        given = left_alone(method, options)
        epsilon = given.pop("epsilon")
        return Run(method=method, dataset=dataset, n=n, epsilon=epsilon, options=tuple(given.items()), **self.seeds)


def left_alone(method: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options of a run; as run, what stands where it stood at first is left to the settings of the data set's table."""
    if options.get("calibration") != AS_RUN:
        return dict(options)
    declared = settings_of(METHODS[method].spec)

    def at_first(name: str, value: Any) -> bool:
        item = declared[name]
        if item.default is not None:
            return False
        if item.choices:
            return bool(value == next(iter(item.choices)))
        return not isinstance(value, str | tuple) and f"{value:g}" == item.empty

    return {name: value for name, value in options.items() if not at_first(name, value)}


def bandwidth_rule(group: Group) -> dict[str, Any]:
    """The bandwidth of an ascent: a rule times a factor, or a number."""
    spec = METHODS["dp_grams"].spec
    declared = settings_of(spec)["bandwidth"]
    titles = {**(declared.titles or {}), "value": "a value"}
    rule = group.choice(declared.label, "bandwidth", list(titles), declared.words, titles.__getitem__)
    if rule == "value":
        return {"bandwidth": group.steps("h", "h", declared.steps, 1.0, "The bandwidth itself (h), a public number.")}
    return {"bandwidth": rule, **group.setting(spec, "bandwidth_scale", "h_scale")}


# What stands beside a run on its page.


def title_of(run: Run) -> str:
    """The method and its calibration, as people call them."""
    return method_title(run.method, run.options)


def link_of(run: Run) -> dict[str, str]:
    """The link of the page of a run's kind that shows it; a method that the page does not offer is left to the page."""
    kind = DATASETS[str(run.dataset)].kind
    start = {"modes": "", "regression": "reg_", "clusters": "clu_"}[kind]
    size = f"clu_n_{run.dataset}" if kind == "clusters" else f"{start}n"
    found: dict[str, Any] = {f"{start}dataset": run.dataset, size: run.n, "seed": run.seed, "data_seed": run.data_seed}
    if run.method in methods_of(kind):
        slack = {"modes": "delta", "regression": "reg_delta", "clusters": "clu_delta"}[kind]
        if kind == "clusters" and DATASETS[str(run.dataset)].delta == 1e-6:
            slack = "delta"
        declared = settings_of(METHODS[run.method].spec)
        keys = {**in_sight(run.method), **FOLDED.get(run.method, {}), "epsilon": "epsilon", "delta": slack}
        keys |= {"n_clusters": "clu_count", "bandwidth": "clu_h"} if kind == "clusters" else {}
        found[f"{start}method"] = run.method
        for name, value in run.settings.items():
            if name in keys:
                found[keys[name]] = round(100 * value) if declared[name].percent else value
    return {key: state.text_of(value) for key, value in found.items()}


def compares_with_itself(run: Run, compare: str) -> bool:
    """Whether the second method chosen is the first one."""
    return compare == dict(run.options).get("calibration", run.method)


def beside(run: Run, compare: str) -> Run | None:
    """The method to compare a run with: same data, budget, seeds and known count.

    Another calibration of the same method shares its other settings too; another method has its defaults.
    """
    if compare == NOTHING or compares_with_itself(run, compare):
        return None
    method, calibration = COMPARISONS[compare]
    options = {name: value for name, value in run.options if method == run.method or name in ("delta", "n_modes")}
    options |= {"calibration": calibration} if calibration else {}
    return replace(run, method=method, options=tuple(left_alone(method, options).items()))


def without_privacy(run: Run, method: str, *shared: str) -> Run:
    """A method without privacy on the same data, which has no seed; it shares these options."""
    options = tuple((name, value) for name, value in run.options if name in shared)
    again: dict[str, Any] = {"data_seed": run.data_seed, "design": run.design}
    return Run(method=method, dataset=run.dataset, n=run.n, options=options, **again)


def other_regression(run: Run) -> Run:
    """The other private method on the same data with the same budget and seeds, and else its defaults."""
    method = next(name for name in methods_of("regression") if name != run.method)
    options = {"delta": dict(run.options)["delta"]}
    options |= {"calibration": next(iter(CALIBRATIONS))} if method == "dp_pms" else {}
    return replace(run, method=method, options=tuple(options.items()))


def cluster_run(run: Run, method: str, count: int | str, classes: int) -> Run:
    """A method on the same data, with the same ε and the same number of clusters, where it has them.

    k-means and DP-k-means cannot do without a number, so where it is unknown they are told that of the classes.
    """
    options = dict(run.options) if method == run.method else {}
    if count != "unknown" or method in ("kmeans", "dp_kmeans"):
        options["n_clusters"] = classes if isinstance(count, str) else count
    start = run if METHODS[method].private else without_privacy(run, method)
    return replace(start, method=method, options=tuple(options.items()))


def one_of_few(label: str, key: str, words: dict[str, str], **look: Any) -> str:
    """One of a few, side by side."""
    look = {"wrap": True} | look
    picked = st.segmented_control(
        label, list(words), key=key, format_func=words.__getitem__, required=True, persist_state="session", **look
    )
    return picked or next(iter(words))  # no browser sends nothing here, and a visitor may


def _next_seed() -> None:
    st.session_state["seed"] = (int(st.session_state.get("seed") or 0) + 1) % LARGEST_SEED
