"""The arrays of the first page are the engine's results."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dpgrams_core import load_dataset, score
from dpgrams_core.auditing import game
from dpgrams_core.figures import start
from dpgrams_core.figures.frames import epsilon_stops
from dpgrams_core.figures.traces import grid_axes
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.format import one_in, percent
from dpgrams_core.privacy.meaning import belief

STOPS = epsilon_stops("functional")


@cache
def data():
    return load_dataset("four_corners", n=start.PEOPLE, seed=0)


@cache
def scene():
    return start.scene(data())


@cache
def drawn(seed: int):
    return start.draw(data(), seed)


@pytest.mark.parametrize("seed", [0, 3])
def test_one_surface_and_one_noise_are_the_release_at_every_epsilon(seed):
    found = drawn(seed)
    assert [frame["epsilon"] for frame in found["frames"]] == list(STOPS)
    for frame in found["frames"]:
        release = start.released(data(), frame["epsilon"], seed)
        shown = scene()["smooth"].astype(float) + frame["sigma"] * found["unit"].astype(float)
        surface = release.surface.grid(grid_axes(data().box, start.NODES))
        np.testing.assert_allclose(shown, surface, rtol=0, atol=1e-5 * max(1.0, frame["sigma"]))
        np.testing.assert_array_equal(frame["places"], release.modes)
        scores = score(release, data())
        assert f"{scores['found']:.0f} of 4" in frame["found"]
        assert len(frame["table"]) == 1 + len(release.modes)
        after = belief(0.5, frame["epsilon"], release.guarantee.delta)
        assert frame["sure"] == pytest.approx(after.most, rel=1e-6)
        assert f">{percent(after.most)}<" in frame["learned"]
        first, _, rest = frame["learned"].partition("<small>")  # in ten seconds; and what keeps it true
        assert first.rstrip().endswith("</b> sure.")
        assert (f"at most {one_in(after.chance_above)} to end" in rest) == (after.chance_above > 0)
        assert frame["status"] == "proven"


def test_another_draw_is_other_noise():
    first, second = (drawn(seed)["unit"] for seed in (0, 3))
    assert np.abs(first - second).max() > 1


def test_the_story_is_true_at_the_first_epsilon():
    """What the steps say: all four peaks, in each of three more draws, and noise larger than a twitch."""
    for seed in (0, 3):
        frame = next(frame for frame in drawn(seed)["frames"] if frame["epsilon"] == start.PICTURE.epsilon)
        assert frame["share"] == 1
        assert len(frame["places"]) == 4
        assert frame["sigma"] > 1


@pytest.mark.parametrize("person", [0, 17, 299])
def test_the_exact_picture_without_a_person_is_the_engines_without_their_record(person):
    still = scene()
    axes, h, place = grid_axes(data().box, start.NODES), still["bandwidth"], data().points[person]
    factors = [np.exp(-0.5 * ((axis - place[j]) / h) ** 2) for j, axis in enumerate(axes)]
    others = np.delete(data().points, person, axis=0)
    without = start.exact_heights(others, data().box, h)
    np.testing.assert_allclose(still["heights"] - np.outer(*factors), without, rtol=0, atol=1e-12)
    # And what the release adds its noise to is this, but for what its grid cannot show.
    np.testing.assert_allclose(still["smooth"], still["heights"], rtol=0, atol=1e-3 * start.PEOPLE)
    assert still["top"] / start.SEEN == pytest.approx(still["enlarged"], abs=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("method", start.AUDITED)
def test_the_kept_audits_are_those_of_the_engine(method):
    kept, again = start.kept_audits()[method], start.audit_facts(start.played(method))
    assert kept.pop("shown") == pytest.approx(again.pop("shown"), rel=1e-6)
    assert kept == again
    assert kept["caught"] == (method == "broken_sum")


def test_the_larger_of_two_bounds_keeps_the_confidence_that_the_page_states(monkeypatch):
    """Bonferroni: what the tests and the fit may err by, together, is no more than what the page says."""
    allowed = []
    for name in ("both_tests", "gaussian_fit"):
        bound = getattr(game, name)
        monkeypatch.setattr(
            game, name, lambda *given, bound=bound, **law: allowed.append(law["error"]) or bound(*given, **law)
        )
    facts = start.audit_facts(start.played("functional"))
    assert len(allowed) == 2
    assert sum(allowed) <= (1 - facts["confidence"]) * (1 + 1e-12)


def test_the_message_fits_and_private_data_are_refused():
    assert len(start.message("start", scene(), [drawn(0), drawn(3)], start.kept_audits())) < 120_000
    secret = replace(data(), private=True)
    for refused in (start.scene, lambda given: start.draw(given, 0)):
        with pytest.raises(DataError):
            refused(secret)


def test_words_of_what_is_found():
    assert "This draw of the noise: " in start.found_words(4, 4, 0)
    assert "Nothing stands above the noise" in start.found_words(0, 4, 0)
    assert "2 that are not there" in start.found_words(1, 4, 2)
    assert "1 that is not there" in start.found_words(3, 4, 1)
