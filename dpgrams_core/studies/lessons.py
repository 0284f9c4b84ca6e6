"""Lessons: read from files, checked, and answered by the engine.

A lesson is a file of assets/lessons/ and no code.  Each of its steps names a state (a run, and facts that are no
setting of it), a picture, the one control that matters, a question with choices, and a *quantity*: what the engine
computes for the state that is revealed.  No file holds an answer, so none can be out of date.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dpgrams_core.datasets.registry import DATASETS, load_dataset
from dpgrams_core.methods.functional.modes import SENSITIVITY
from dpgrams_core.methods.registry import METHODS, run
from dpgrams_core.model.checks import one_of, whole
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import percent, whole_percent
from dpgrams_core.model.measures import default_match_radius, score, scores_of
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.results import Dataset, Release
from dpgrams_core.model.run import Options, Run, ordered
from dpgrams_core.model.specs import settings_of
from dpgrams_core.numerics.surface import box_bases
from dpgrams_core.privacy.composition import Spent, Totals, compose
from dpgrams_core.privacy.meaning import belief
from dpgrams_core.sweeps.plan import plan_run

Array = np.ndarray
FOLDER = ASSETS / "lessons"
PAGES = ("modes", "regression", "clusters", "guarantee")  # where a step can be opened
# What a step can show (``figures/lessons.py`` draws it); "handle" is the picture of the run's own page.
PICTURES = ("handle", "records", "climb", "twitch", "runs", "anchors", "meanings", "budget", "belief", "branches")
MOST_RUNS = 50
LEAST_CHOICES, MOST_CHOICES = 2, 6
MINUTES = (1, 10)
LATTICE = np.arange(-6.0, 6.5, 0.5)  # where a person can be put by hand, along each axis
PLACES = [f"{x:g},{y:g}" for x in LATTICE for y in LATTICE]


@dataclass(frozen=True)
class State:
    """What a step shows: a run, and facts that no setting of the run holds, such as where a person stands."""

    run: Run
    facts: Options = ()

    def fact(self, name: str) -> Any:
        known = dict(self.facts)
        return known[one_of("fact", name, known)]

    def changed(self, changes: Iterable[tuple[str, Any]]) -> State:
        """The same with other settings or facts, checked."""
        state = self
        for name, value in changes:
            if name in dict(state.facts):
                state = replace(state, facts=ordered({**dict(state.facts), name: value}.items()))
            else:
                state = replace(state, run=_changed_run(state.run, name, value))
        return state


def _changed_run(before: Run, name: str, value: Any) -> Run:
    place: dict[str, Any] = {"method": before.method, "dataset": before.dataset, "n": before.n}
    place |= {"seed": before.seed, "data_seed": before.data_seed or 0}
    if name in place:
        place[name] = value
        return plan_run(**place, **before.settings)
    return plan_run(**place, **{**before.settings, name: value})


@dataclass(frozen=True)
class Choice:
    """A prediction in words; it is right up to this value of the quantity, and above that of the choice before it."""

    words: str
    up_to: float = math.inf


@dataclass(frozen=True, kw_only=True)
class Control:
    """The one control of a step: a setting of the run, or one of its facts, with the values that it offers."""

    name: str
    label: str
    words: str
    values: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Reveal:
    """What is revealed: the quantity of the changed state, over so many draws of the noise, and its sentence."""

    quantity: str
    words: str
    change: Options = ()
    runs: int = 1


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a lesson."""

    title: str
    words: str
    start: State
    picture: str
    page: str
    control: Control
    question: str
    choices: tuple[Choice, ...]
    reveal: Reveal

    @property
    def revealed(self) -> State:
        return self.start.changed(self.reveal.change)

    @property
    def first_value(self) -> Any:
        """Where the control stands when the answer is revealed."""
        return value_of(self.revealed, self.control.name)

    def at(self, value: Any) -> State:
        """What is shown when the control stands there."""
        return self.revealed.changed([(self.control.name, value)])

    def right_choice(self, value: float) -> int:
        """The number of the choice that the engine's answer makes right."""
        return next(i for i, choice in enumerate(self.choices) if value <= choice.up_to)

    def sentence(self, value: float) -> str:
        return self.reveal.words.replace("{value}", quantity_of(self.reveal.quantity, self.start.run).written(value))


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson: its name in the link, and its steps."""

    name: str
    title: str
    about: str
    minutes: int
    steps: tuple[Step, ...]


# What the engine can be asked.


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number that the engine computes for a state: its words, how it is written, and its function.

    ``of`` takes a state; one that differs from draw to draw of the noise is averaged over the draws that are asked for.
    """

    words: str
    of: Callable[[State], float]
    written: Callable[[float], str]
    random: bool = True

    def __call__(self, state: State, runs: int = 1) -> float:
        """Its value for a state; seeds of the draws follow that of the run."""
        count = whole("runs", runs, 1, MOST_RUNS) if self.random else 1
        seeds = range(state.run.seed, state.run.seed + count)
        return float(np.mean([self.of(replace(state, run=replace(state.run, seed=seed))) for seed in seeds]))


def records(wanted: Run) -> Dataset:
    """The records of a run."""
    return load_dataset(wanted.dataset, n=wanted.n, seed=wanted.data_seed or 0, design=wanted.design)


def released(wanted: Run) -> Release:
    """The engine's result for a run."""
    return run(wanted.method, records(wanted), seed=wanted.seed, **wanted.settings)


def number(value: float) -> str:
    """A value with three digits at most, and none that a whole number does not have.

    >>> number(4.0), number(1.4), number(0.01234), number(1234.6)
    ('4', '1.4', '0.0123', '1,235')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _measure(name: str, state: State) -> float:
    return score(released(state.run), records(state.run))[name]


def _true_modes(state: State) -> float:
    truth = records(state.run).true_modes
    assert truth is not None  # check_lesson asks for data with modes
    return float(len(truth))


def _noise_over_signal(state: State) -> float:
    release = released(state.run)
    size, noise = release.diagnostics.score_size, release.noise_scale
    if size is None or noise is None:
        raise DataError(f"{METHODS[state.run.method].title} does not tell how large its noise is.")
    return noise / size


def _clipped_share(state: State) -> float:
    share = released(state.run).diagnostics.clipped_share
    if share is None:
        raise DataError(f"{METHODS[state.run.method].title} clips nothing.")
    return share


def _starts_near_a_mode(state: State) -> float:
    release, truth = released(state.run), records(state.run).true_modes
    if release.anchors is None or truth is None:
        raise DataError(f"{METHODS[state.run.method].title} has no private starts.")
    gaps = np.linalg.norm(release.anchors[:, None] - truth[None], axis=2).min(axis=1)
    return float((gaps <= default_match_radius(truth)).mean())


def person_places(state: State) -> tuple[Array, Array]:
    """Where the person of a twitch stands, and where they go: facts of the form "x,y"."""
    home, place = (np.array([float(part) for part in state.fact(name).split(",")]) for name in ("home", "place"))
    return home, place


def twitch_shares(state: State, x: Array, y: Array) -> Array:
    """How far a person who moves from home to each (x, y) moves all that a functional release would release.

    As a share of the most that is possible, (len(x), len(y)): before noise, what is released of one record is an outer
    product of the two axes' basis functions.
    """
    across, up = box_bases(records(state.run).box, released(state.run).spec.bandwidth)
    home, _ = person_places(state)
    before = np.outer(across.values(home[:1]), up.values(home[1:]))
    after = np.einsum("ri,sj->ijrs", across.values(x), up.values(y))
    return np.asarray(np.linalg.norm(after - before, axis=(2, 3))) / SENSITIVITY


def _twitch_share(state: State) -> float:
    _, place = person_places(state)
    return float(twitch_shares(state, place[:1], place[1:])[0, 0])


def totals(state: State) -> Totals:
    """What so many releases of the run cost together."""
    release = released(state.run)
    guarantee = release.guarantee
    spent = Spent(guarantee.epsilon, guarantee.delta, guarantee.status, release.events)
    return compose([spent] * whole("releases", state.fact("releases"), 1, 1_000))


def _releases_that_fit(state: State) -> float:
    budget, each = float(state.fact("budget")), state.run.epsilon
    return float(math.floor(budget / each * (1 + 1e-12)))


def _most_sure(state: State) -> float:
    delta = dict(state.run.options).get("delta", settings_of(METHODS[state.run.method].spec)["delta"].default)
    return belief(float(state.fact("before")), state.run.epsilon, delta).most


QUANTITIES: dict[str, Quantity] = {
    "true_modes": Quantity(
        words="the modes of the law that the records are drawn from", of=_true_modes, written=number, random=False
    ),
    "modes_reported": Quantity(
        words="how many modes the method reports",
        of=lambda state: float(len(released(state.run).modes)),
        written=number,
    ),
    "noise_over_signal": Quantity(
        words="the noise over the size of what it hides", of=_noise_over_signal, written=number
    ),
    "clipped_share": Quantity(
        words="the share of contributions that are cut", of=_clipped_share, written=whole_percent
    ),
    "starts_near_a_mode": Quantity(
        words="the share of private starts that lie near a true mode", of=_starts_near_a_mode, written=whole_percent
    ),
    "twitch_share": Quantity(
        words="one person's change of all that is released, of the largest that anybody can make",
        of=_twitch_share,
        written=whole_percent,
        random=False,
    ),
    "epsilon_added": Quantity(
        words="ε of the releases, added up",
        of=lambda state: totals(state).basic_epsilon,
        written=number,
        random=False,
    ),
    "epsilon_composed": Quantity(
        words="ε of the releases, counted together as what they are",
        of=lambda state: totals(state).tight_epsilon,
        written=number,
        random=False,
    ),
    "releases_that_fit": Quantity(
        words="how many releases the budget pays for, added up", of=_releases_that_fit, written=number, random=False
    ),
    "most_sure": Quantity(words="how sure someone can become at most", of=_most_sure, written=percent, random=False),
}


def quantity_names(kind: str) -> list[str]:
    """What can be asked of a run on this kind of data: the quantities above, and all measures."""
    return [*QUANTITIES, *scores_of(kind)]


def quantity_of(name: str, wanted: Run) -> Quantity:
    """A quantity by its name."""
    if name in QUANTITIES:
        return QUANTITIES[name]
    kind = DATASETS[str(wanted.dataset)].kind
    measure = scores_of(kind)[one_of("quantity", name, quantity_names(kind))]
    written = whole_percent if measure.share else number
    return Quantity(words=measure.words, of=partial(_measure, name), written=written)


def answer(step: Step) -> float:
    """The engine's answer to the question of a step."""
    return quantity_of(step.reveal.quantity, step.start.run)(step.revealed, step.reveal.runs)


def value_of(state: State, name: str) -> Any:
    """The value of a setting or fact of a state; a setting that is left out has its default."""
    given: dict[str, Any] = {**dict(state.facts), "n": state.run.n, **state.run.settings}
    return given[name] if name in given else settings_of(METHODS[state.run.method].spec)[name].default


# The files.


def lessons(folder: Path = FOLDER) -> tuple[Lesson, ...]:
    """All lessons of a folder, in the order of their files."""
    return tuple(read_lesson(path) for path in sorted(folder.glob("*.toml")))


def read_lesson(path: Path) -> Lesson:
    """A lesson from its file; one that cannot be used is a SpecError whose field names the file and the place in it."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(path.name, str(error), "a lesson is a TOML file") from None
    about = _Place(path.name)
    about.only(said, ("title", "about", "minutes", "steps"))
    steps = said.get("steps")
    if not isinstance(steps, list) or not steps:
        raise SpecError(f"{path.name}: steps", steps, "a lesson has at least one [[steps]]")
    return Lesson(
        name=re.sub(r"^\d+_", "", path.stem),
        title=about.text(said, "title"),
        about=about.text(said, "about"),
        minutes=about.checked("minutes", lambda: whole("minutes", said.get("minutes"), *MINUTES)),
        steps=tuple(_step(_Place(path.name, f"step {i + 1}, "), one) for i, one in enumerate(steps)),
    )


@dataclass(frozen=True)
class _Place:
    """Where in which file something stands: the errors say so."""

    file: str
    part: str = ""

    def name(self, field: str) -> str:
        return f"{self.file}: {self.part}{field}"

    def checked(self, field: str, attempt: Callable[[], Any]) -> Any:
        """What ``attempt`` gives; its SpecError names this place."""
        try:
            return attempt()
        except SpecError as error:
            inner = "" if error.field == field else f".{error.field}"
            raise SpecError(self.name(field + inner), error.value, error.allowed) from None
        except DataError as error:
            raise SpecError(self.name(field), "what it says", str(error).rstrip(".")) from None

    def text(self, said: dict[str, Any], field: str) -> str:
        found = said.get(field)
        if not isinstance(found, str) or not found.strip():
            raise SpecError(self.name(field), found, "it must be a text")
        return " ".join(found.split())

    def table(self, said: dict[str, Any], field: str, *, optional: bool = False) -> dict[str, Any]:
        found = said.get(field, {} if optional else None)
        if not isinstance(found, dict):
            raise SpecError(self.name(field), found, "it must be a table of names and values")
        return found

    def only(self, said: dict[str, Any], known: Collection[str]) -> None:
        """No name but these: a misspelt one would be read by nobody."""
        for field in said:
            self.checked(field, lambda field=field: one_of(field, field, known))  # type: ignore[misc]


def _step(place: _Place, said: dict[str, Any]) -> Step:
    place.only(said, [item.name for item in fields(Step) if item.name != "start"] + ["run", "facts"])
    facts = ordered(place.table(said, "facts", optional=True).items())
    wish = place.table(said, "run")
    for field in ("method", "dataset", "n"):
        if field not in wish:
            raise SpecError(place.name("run"), wish, f"it must have a {field}")
    start = State(place.checked("run", lambda: plan_run(**wish)), facts)
    kind = DATASETS[str(start.run.dataset)].kind
    step = Step(
        title=place.text(said, "title"),
        words=place.text(said, "words"),
        start=start,
        picture=place.checked("picture", lambda: one_of("picture", said.get("picture", "handle"), PICTURES)),
        page=place.checked("page", lambda: one_of("page", said.get("page", kind), PAGES)),
        control=_control(place, said, start),
        question=place.text(said, "question"),
        choices=_choices(place, said.get("choices")),
        reveal=_reveal(place, place.table(said, "reveal"), start),
    )
    place.checked("control.values", lambda: _is_offered(step))
    return step


def _is_offered(step: Step) -> None:
    for value in step.control.values:
        step.at(value)
    if step.first_value not in step.control.values:
        raise SpecError(
            "values", list(step.control.values), f"the revealed value {step.first_value!r} is not among them"
        )


def _control(place: _Place, said: dict[str, Any], start: State) -> Control:
    wish = place.table(said, "control")
    place.only(wish, ("name", "label", "words", "values"))
    declared = settings_of(METHODS[start.run.method].spec)
    known = [*dict(start.facts), "n", *declared]
    name = place.checked("control", lambda: one_of("name", wish.get("name"), known))
    item = declared.get(name)
    values = wish.get("values", [*(item.steps or item.choices or ())] if item else PLACES if name == "place" else [])
    if not isinstance(values, list) or len(values) < 2:
        raise SpecError(place.name("control.values"), values, "a control offers a list of at least two values")
    label = item.label if item else {"n": "Number of people, n"}.get(name)
    return Control(
        name=name,
        label=place.text(wish, "label") if "label" in wish or label is None else label,
        words=place.text(wish, "words") if "words" in wish or item is None else item.words,
        values=tuple(values),
    )


def _choices(place: _Place, said: Any) -> tuple[Choice, ...]:
    if not isinstance(said, list) or not LEAST_CHOICES <= len(said) <= MOST_CHOICES:
        raise SpecError(place.name("choices"), said, f"give {LEAST_CHOICES} to {MOST_CHOICES} choices")
    found = []
    for one in said:
        if not isinstance(one, dict):
            raise SpecError(place.name("choices"), one, 'a choice is { words = "…", up_to = … }')
        place.only(one, ("words", "up_to"))
        up_to = one.get("up_to", math.inf)
        if isinstance(up_to, bool) or not isinstance(up_to, (int, float)):
            raise SpecError(place.name("choices.up_to"), up_to, "it must be a number")
        found.append(Choice(place.text(one, "words"), float(up_to)))
    limits = [choice.up_to for choice in found]
    if limits[-1] != math.inf or any(low >= high for low, high in pairwise(limits)):
        raise SpecError(place.name("choices.up_to"), limits, "they must grow, and the last choice has none")
    return tuple(found)


def _reveal(place: _Place, said: dict[str, Any], start: State) -> Reveal:
    place.only(said, [item.name for item in fields(Reveal)])
    change = ordered(place.table(said, "change", optional=True).items())
    place.checked("reveal.change", lambda: start.changed(change))
    runs = place.checked("reveal.runs", lambda: whole("runs", said.get("runs", 1), 1, MOST_RUNS))
    kind = DATASETS[str(start.run.dataset)].kind
    name = place.checked("reveal.quantity", lambda: one_of("quantity", said.get("quantity"), quantity_names(kind)))
    words = place.text(said, "words")
    if "{value}" not in words:
        raise SpecError(place.name("reveal.words"), words, "it must hold {value}, where the engine's answer goes")
    return Reveal(quantity=name, words=words, change=change, runs=runs)
