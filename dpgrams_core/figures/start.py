"""The first page: 300 people, what one of them changes, and what noise leaves of both.  Everything is the engine's.

The picture is one simulated functional release with its usual settings, its number of peaks unknown.  What is released
is linear in its noise: at every ε the surface is ``smooth`` + σ(ε) ``unit``, with one ``unit`` for each draw.  So a few
arrays hold it at all stops, and a test holds them against the releases themselves.  The exact picture without person i
is f - k_h(., x_i), which the browser computes from ``points`` and ``heights``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from dpgrams_core.auditing.game import audit
from dpgrams_core.figures.frames import epsilon_stops, pack
from dpgrams_core.figures.modes import true_modes
from dpgrams_core.figures.traces import grid_axes
from dpgrams_core.methods.registry import run
from dpgrams_core.model.format import fixed, one_in, percent, short
from dpgrams_core.model.measures import default_match_radius, match_modes, score
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.results import AuditResult, Dataset, Release, refuse_private
from dpgrams_core.model.run import Run
from dpgrams_core.numerics.surface import ReleasedSurface
from dpgrams_core.privacy.meaning import Belief, belief

Array = np.ndarray
PEOPLE = 300
PICTURE = Run(method="functional", dataset="four_corners", n=PEOPLE, epsilon=1.0)
NODES = 56  # of a surface, a side
DRAWS = 6  # of the noise
PRIOR = 0.5
SEEN = 3  # one person's twitch is enlarged to the height of the hills over this
AUDITS = ASSETS / "start_audits.json"
# A claim of ε = 1 that is false, and the method of this page with the same claim, in the same game.
AUDITED = ("broken_sum", "functional")
GAME: dict[str, Any] = {"pair": "moved_record", "epsilon": 1.0, "n": 50, "trials": 400, "seed": 0}


def released(data: Dataset, epsilon: float, seed: int) -> Release:
    """The release that the page shows at an ε, with that draw of the noise."""
    refuse_private(data)
    wanted = replace(PICTURE, epsilon=epsilon, seed=seed)
    return run(wanted.method, data, seed=seed, **wanted.settings)


def exact_heights(points: Array, box: Array, bandwidth: float) -> Array:
    """The kernel sum f of the records on the nodes of the picture, (nodes, nodes): not private."""
    x, y = (
        np.exp(-0.5 * ((axis[:, None] - points[None, :, j]) / bandwidth) ** 2)
        for j, axis in enumerate(grid_axes(box, NODES))
    )
    return np.asarray(x @ y.T)


def scene(data: Dataset) -> dict[str, Any]:
    """What stays the same at every ε: the people, the exact heights, the truth, and how much a twitch is enlarged."""
    refuse_private(data)
    surface = _surface(released(data, PICTURE.epsilon, 0))
    heights = exact_heights(data.points, data.box, surface.bandwidth)
    smooth = replace(surface, coefficients=surface.exact(data.points)).grid(grid_axes(data.box, NODES))
    return {
        "box": data.box.tolist(),
        "points": data.points,
        "bandwidth": surface.bandwidth,
        "heights": heights,
        "top": float(heights.max()),
        "enlarged": round(float(heights.max()) / SEEN),
        "smooth": smooth.astype(np.float32),
        "truth": true_modes(data),
        "stops": list(epsilon_stops(PICTURE.method)),
        "first": PICTURE.epsilon,
    }


def draw(data: Dataset, seed: int) -> dict[str, Any]:
    """One draw of the noise: the surface that σ multiplies, and what is found with it at each ε."""
    refuse_private(data)
    surface = _surface(released(data, PICTURE.epsilon, seed))
    noise = (surface.coefficients - surface.exact(data.points)) / surface.noise_scale
    unit = replace(surface, coefficients=noise).grid(grid_axes(data.box, NODES))
    frames = [_frame(data, epsilon, released(data, epsilon, seed)) for epsilon in epsilon_stops(PICTURE.method)]
    return {"seed": seed, "unit": unit.astype(np.float32), "frames": frames}


def _surface(release: Release) -> ReleasedSurface:
    assert isinstance(release.surface, ReleasedSurface)
    return release.surface


def _frame(data: Dataset, epsilon: float, release: Release) -> dict[str, Any]:
    scores, guarantee = score(release, data), release.guarantee
    found, total, extra = (int(value) for value in (scores["found"], _total(scores), scores["spurious"]))
    after = belief(PRIOR, guarantee.epsilon, guarantee.delta)
    return {
        "epsilon": epsilon,
        "text": short(epsilon),
        "sigma": release.noise_scale,
        "noise": short(_surface(release).noise_scale),
        "places": release.modes,
        "status": guarantee.words,
        "learned": learned(after),
        "sure": after.most,
        "found": found_words(found, total, extra),
        "share": found / total,
        "table": _table(data, release),
    }


def _total(scores: dict[str, float]) -> float:
    return scores["found"] + scores["missed"]


def learned(after: Belief) -> str:
    """What someone can learn about one person at most, as HTML."""
    rare = (
        " <small>But for rare exceptions: a chance of at most "
        f"{one_in(after.chance_above)} to end more than a point above.</small>"
    )
    return (
        f"Someone who was <b>{percent(after.before)}</b> sure that you are one of the dots is afterwards at most "
        f'<b class="private">{percent(after.most)}</b> sure.{rare if after.chance_above else ""}'
    )


def found_words(found: int, total: int, extra: int) -> str:
    """What is still found in one draw of the noise, as HTML.

    >>> found_words(4, 4, 0)
    'This draw of the noise: <b class="private">4 of 4</b> peaks are found; nobody told the method how many there are.'
    """
    begins = f'This draw of the noise: <b class="private">{found} of {total}</b> peaks are found'
    if found + extra == 0:
        return f"{begins}. Nothing stands above the noise, so none is shown."
    more = f", and {extra} that {'is' if extra == 1 else 'are'} not there" if extra else ""
    return f"{begins}{more}; nobody told the method how many there are."


def _table(data: Dataset, release: Release) -> list[list[str]]:
    truth = true_modes(data)
    matching = match_modes(truth, release.modes)
    near = matching.distance <= default_match_radius(truth)
    of = {int(i): k + 1 for k, i in enumerate(matching.estimate_of) if i >= 0 and near[k]}
    rows = [[str(i + 1), fixed(x), fixed(y), str(of.get(i, "none"))] for i, (x, y) in enumerate(release.modes)]
    return [["private peak", "across", "up", "true peak"], *rows]


def message(name: str, still: dict[str, Any], draws: list[dict[str, Any]], audits: dict[str, Any]) -> bytes:
    """All of it for the browser."""
    return pack({"name": name, **still, "draws": draws, "audits": audits})


def played(method: str) -> AuditResult:
    """The audit of one of ``AUDITED``."""
    return audit(method, **GAME)


def audit_facts(result: AuditResult) -> dict[str, Any]:
    """What the page says of an audit: the larger of two bounds, that of the tests and that of the fit.

    The last look of an audit gives each of them half of the allowed error (``game._stream``), so both hold at once, and
    their larger one does, with the stated confidence; a test holds it to that.
    """
    fit = 0.0 if result.gaussian is None else result.gaussian.epsilon_lower
    return {
        "claimed": result.epsilon_claimed,
        "shown": max(result.epsilon_lower, fit),
        "caught": result.caught,
        "trials": result.trials_done,
        "confidence": result.confidence,
        "people": result.n,
    }


def kept_audits() -> dict[str, Any]:
    """The audits as they were played once (``python -m dpgrams_core.figures.start``); a test plays them again."""
    return dict(json.loads(AUDITS.read_text(encoding="utf-8")))


if __name__ == "__main__":
    facts = {method: audit_facts(played(method)) for method in AUDITED}
    AUDITS.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
