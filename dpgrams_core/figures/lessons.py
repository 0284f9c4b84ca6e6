"""The pictures of lessons that no page has; ``PICTURES`` names all that a step can show, but the ε handle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures import style
from dpgrams_core.figures.modes import anchors_chart, runs_chart, true_modes
from dpgrams_core.figures.regression import branches_chart
from dpgrams_core.figures.style import NON_PRIVATE, NON_PRIVATE_MARK, PRIVATE, TRUTH_MARK, Chart, plain_layout
from dpgrams_core.figures.traces import contours, density_grid, grid_axes, line, points
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.methods.registry import run as engine_run
from dpgrams_core.model.format import percent, short, whole_percent
from dpgrams_core.model.results import Dataset
from dpgrams_core.model.run import Run
from dpgrams_core.model.settings import CALIBRATIONS
from dpgrams_core.numerics.density import density_and_gradient
from dpgrams_core.numerics.kernels import get_kernel
from dpgrams_core.studies import lessons
from dpgrams_core.studies.lessons import State

Array = np.ndarray
HEIGHT = 400
MOST_DOTS = 1_000
RUNS = 20
CLIMB_STEPS, CLIMB_STARTS = 60, 7  # of mean shift, from so many places a side
BELIEFS = np.linspace(0.01, 10, 100)  # ε along an axis


def draw(state: State, name: str) -> Chart:
    """The picture of that name for a state."""
    return DRAWN[name](state)


def _square(box: Array) -> dict[str, dict]:
    (left, right), (low, high) = box.tolist()
    within = {"constrain": "domain"}  # no axis shows more than the box
    return {"x": {"range": [left, right], **within}, "y": {"range": [low, high], "scaleanchor": "x", **within}}


def _dots(data: Dataset) -> go.Scatter:
    shown = data.points[:: -(-data.n // MOST_DOTS)]
    mark = {"size": 5, "color": NON_PRIVATE, "opacity": 0.45}
    return points(shown.T, "people (not private)", mark)


def _places(what: str, places: Array) -> pd.DataFrame:
    return pd.DataFrame({what: np.arange(1, len(places) + 1), "x": places[:, 0], "y": places[:, 1]})


def records_picture(state: State) -> Chart:
    """Each dot is one person."""
    data = lessons.records(state.run)
    figure = go.Figure([_dots(data), points(true_modes(data).T, "true modes", TRUTH_MARK)])
    sentence = f"{data.n:,} people, each a dot (at most {MOST_DOTS:,} are drawn), and the true modes."
    return Chart(plain_layout(figure, HEIGHT, **_square(data.box)), sentence, _places("true mode", true_modes(data)))


def climb_picture(state: State) -> Chart:
    """Mean shift from a lattice of starts: each path goes uphill on the plain density (not private)."""
    data, release = lessons.records(state.run), lessons.released(state.run)
    h, kernel = release.spec.bandwidth, get_kernel("gaussian")
    axes = [np.linspace(low, high, CLIMB_STARTS + 2)[1:-1] for low, high in data.box]
    path = [np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)]
    for _ in range(CLIMB_STEPS):
        density, gradient = density_and_gradient(kernel, data.points, path[-1], h)
        path.append(path[-1] + h**2 * gradient / np.maximum(density, 1e-300)[:, None])
    steps = np.array([*path, np.full_like(path[0], np.nan)]).transpose(1, 0, 2).reshape(-1, 2)
    figure = go.Figure(
        [
            contours(density_grid(data, "gaussian", h, 60)),
            line(steps.T, "the climb (not private)", NON_PRIVATE, width=1.2, opacity=0.6),
            points(release.modes.T, "modes of mean shift (not private)", NON_PRIVATE_MARK),
            points(true_modes(data).T, "true modes", TRUTH_MARK),
        ]
    )
    sentence = (
        f"Every start moves to the mean of the people around it, again and again; with bandwidth {short(h)} the climbs "
        f"end in {len(release.modes)} places. Nothing here is private."
    )
    return Chart(plain_layout(figure, HEIGHT, **_square(data.box)), sentence, _places("mode", release.modes))


def twitch_picture(state: State) -> Chart:
    """How the exact picture changes when one person moves (not private)."""
    data, release = lessons.records(state.run), lessons.released(state.run)
    h = release.spec.bandwidth
    home, place = lessons.person_places(state)
    x, y = grid_axes(data.box, 70)

    def hill(middle: Array) -> Array:
        return np.exp(-0.5 * ((x - middle[0])[:, None] ** 2 + (y - middle[1])[None, :] ** 2) / h**2)

    change = np.abs(hill(place) - hill(home))
    share = lessons.QUANTITIES["twitch_share"](state)
    heat = go.Heatmap(
        x=x,
        y=y,
        z=change.T.astype(np.float32),
        colorscale=style.NON_PRIVATE_SCALE,
        zmin=0,
        zmax=1,
        showscale=False,
        hoverinfo="skip",
        name="change of the exact picture",
    )
    person = {"symbol": "diamond", "size": 15, "color": style.NO_PRIVACY, "line": {"width": 1.5, "color": style.WHITE}}
    before = {"symbol": "diamond-open", "size": 15, "color": style.NO_PRIVACY, "line": {"width": 2}}
    figure = go.Figure(
        [
            heat,
            _dots(data),
            points(home[:, None], "the person, before", before),
            points(place[:, None], "the person, after", person),
        ]
    )
    sentence = (
        f"Blue: where the exact picture twitches when one person goes from ({short(home[0])}, {short(home[1])}) to "
        f"({short(place[0])}, {short(place[1])}). Over the whole picture that is {whole_percent(share)} of "
        "the largest twitch that anybody can cause."
    )
    table = pd.DataFrame({"x": place[:1], "y": place[1:], "twitch, share of the largest": [share]})
    return Chart(plain_layout(figure, HEIGHT, **_square(data.box)), sentence, table)


def by_hand(state: State) -> dict[str, Any]:
    """The same for the browser, where the person is dragged: the twitch at every place that they can be put to."""
    data, (home, place) = lessons.records(state.run), lessons.person_places(state)
    return {
        "box": data.box.tolist(),
        "points": data.points.round(2).tolist(),
        "home": home.tolist(),
        "place": place.tolist(),
        "lattice": lessons.LATTICE.tolist(),
        "shares": lessons.twitch_shares(state, lessons.LATTICE, lessons.LATTICE).round(6).tolist(),
        "bandwidth": lessons.released(state.run).spec.bandwidth,
    }


def runs_picture(state: State) -> Chart:
    """Twenty private runs side by side."""
    data = lessons.records(state.run)
    releases = [lessons.released(replace(state.run, seed=state.run.seed + i)) for i in range(RUNS)]
    baseline = engine_run("mean_shift", data, seed=0)
    grid = density_grid(data, "gaussian", baseline.spec.bandwidth, 60)
    return runs_chart(data, grid, releases, baseline, columns=5, row_height=90)


def anchors_picture(state: State) -> Chart:
    """Where the private search starts."""
    return anchors_chart(lessons.records(state.run), lessons.released(state.run))


def meanings_of(wanted: Run) -> dict[str, Run]:
    """The same ε on the same records with each way to set the noise, by what people call it."""
    shared = tuple(pair for pair in wanted.options if pair[0] == "delta")
    found = {
        name: replace(wanted, method="dp_grams", options=(*shared, ("calibration", name)))
        for name in ("theorem", "experiments", "tight")
    }
    return found | {"functional": replace(wanted, method="functional", options=shared)}


def meanings_picture(state: State) -> Chart:
    """How many times as large the noise is as what it hides, for four meanings of one ε."""
    runs = meanings_of(state.run)
    noise = [lessons.QUANTITIES["noise_over_signal"](State(one)) for one in runs.values()]
    status = [CALIBRATIONS[name].status if name in CALIBRATIONS else METHODS[name].status for name in runs]
    names = [f"{name}<br>({word})" for name, word in zip(runs, status, strict=True)]
    bars = go.Bar(x=names, y=noise, marker_color=PRIVATE, text=[short(one) for one in noise], textposition="outside")
    figure = go.Figure([bars])
    y = {**style.LOG, "title": "noise over what it hides"}
    figure.add_hline(1.0, line={"color": NON_PRIVATE, "dash": "dash"}, annotation_text="as large as the signal")
    words = ", ".join(f"{name} {short(one)} times" for name, one in zip(runs, noise, strict=True))
    sentence = f"At the same ε = {short(state.run.epsilon)} the noise is, of what it hides: {words}."
    table = pd.DataFrame({"noise": list(runs), "status": status, "noise over what it hides": noise})
    return Chart(plain_layout(figure, HEIGHT, y=y, showlegend=False), sentence, table)


def budget_picture(state: State) -> Chart:
    """ε of one release after another, added up and counted together, under a cap."""
    count, budget = int(state.fact("releases")), float(state.fact("budget"))
    number = list(range(1, count + 1))
    found = [lessons.totals(state.changed([("releases", k)])) for k in number]
    added, composed = [one.basic_epsilon for one in found], [one.tight_epsilon for one in found]
    figure = go.Figure(
        [
            line((number, added), "added up", PRIVATE, width=3),
            line((number, composed), "counted together", PRIVATE, width=3, dash="dot"),
            line(([1, max(count, 2)], [budget, budget]), "the budget", style.GREY, width=2),
        ]
    )
    sentence = (
        f"{count} releases with ε = {short(state.run.epsilon)} each: {short(added[-1])} added up, "
        f"{short(composed[-1])} counted together, of a budget of {short(budget)}."
    )
    table = pd.DataFrame({"releases": number, "ε added up": added, "ε counted together": composed})
    axes = {"x": {"title": "releases"}, "y": {"title": "ε spent", "rangemode": "tozero"}}
    return Chart(plain_layout(figure, HEIGHT, **axes), sentence, table)


def belief_picture(state: State) -> Chart:
    """How sure someone can become, against ε."""
    sure = [_sure(state, float(value)) for value in BELIEFS]
    epsilon = short(state.run.epsilon)
    here, before = _sure(state, state.run.epsilon), float(state.fact("before"))
    mark = {**style.PRIVATE_MARK, "size": 14}
    figure = go.Figure(
        [
            line((BELIEFS, sure), "how sure at most, after", PRIVATE, width=3),
            line(([0, 10], [before, before]), "how sure before", style.GREY, width=2),
            points(np.array([[state.run.epsilon], [here]]), f"at ε = {epsilon}", mark, showlegend=True),
        ]
    )
    sentence = f"Someone who was {percent(before)} sure becomes at most {percent(here)} sure at ε = {epsilon}."
    axes: dict[str, Any] = {"x": {"title": "ε"}, "y": {"title": "how sure", "tickformat": ".0%", "range": [0, 1.02]}}
    return Chart(plain_layout(figure, HEIGHT, **axes), sentence, pd.DataFrame({"ε": BELIEFS, "how sure": sure}))


def _sure(state: State, epsilon: float) -> float:
    return lessons.QUANTITIES["most_sure"](state.changed([("epsilon", epsilon)]))


def branches_picture(state: State) -> Chart:
    """Records, the true branches and one curve."""
    data, release = lessons.records(state.run), lessons.released(state.run)
    title = METHODS[state.run.method].title
    # So few dots need no graphics card: a class has machines of all kinds.
    dots = replace(data, points=data.points[:: -(-data.n // MOST_DOTS)])
    drawn = branches_chart(dots, [(title, release)], records=True, truth=True)
    drawn.figure.update_layout(height=HEIGHT)
    return drawn


DRAWN: dict[str, Callable[[State], Chart]] = {
    "records": records_picture,
    "climb": climb_picture,
    "twitch": twitch_picture,
    "runs": runs_picture,
    "anchors": anchors_picture,
    "meanings": meanings_picture,
    "budget": budget_picture,
    "belief": belief_picture,
    "branches": branches_picture,
}
