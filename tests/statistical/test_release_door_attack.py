"""The attack that told two private worlds apart beyond the claim: one response that overflows, DP-PMS with a proof.

Without the door the response 1.79e308 turns a round's vector into NaN, which OpenDP reads as zeros: the steps go
nowhere in one world and to the records in the other.  All of it runs through the release door, with OpenDP's noise.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core import Dataset, run
from dpgrams_core.auditing.bounds import both_tests
from dpgrams_core.methods.registry import Method
from dpgrams_core.privacy import noise as noise_module

N, TRIALS, EPSILON, DELTA = 60, 280, 1.0, 1e-5
# One step from one public start, towards records that lie a bandwidth away from it.
OPTIONS = {
    "calibration": "tight",
    "epsilon": EPSILON,
    "delta": DELTA,
    "n_steps": 1,
    "start_multiplier": 0.1,
    "init_fraction": 0.01,
    "response_grid": (0.4,),
    "evaluation_points": (0.5,),
    "bandwidth": 0.1,
    "gradient_clip": 1e3,
}


def played(response):
    """Two statistics of the released curve, one row a trial, where the last response is this one."""
    points = np.stack([np.linspace(0.45, 0.55, N), np.full(N, 0.5)], axis=1)
    points[-1, 1] = response
    world = Dataset(name="world", kind="regression", points=points, box=[(0, 1), (0, 1)], private=True)
    ends = [run("dp_pms", world, **OPTIONS).curve[0, 1] for _ in range(TRIALS)]
    return np.array([[end, abs(end - 0.5)] for end in ends])


def lower_bound(first, second, error):
    tests = both_tests(first, second, ["end", "distance"], delta=DELTA, error=error)
    return max(test.epsilon_lower for test in tests)


@pytest.fixture(scope="module")
def ordinary():
    return played(0.5)


@pytest.mark.parametrize("response", [1.79e308, np.nan, -np.inf])
def test_one_response_is_not_told_apart_beyond_the_claim(response, ordinary, flake_rate):
    assert lower_bound(ordinary, played(response), flake_rate) <= EPSILON


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_with_the_door_left_open_the_same_attack_succeeds(ordinary, flake_rate, monkeypatch):
    monkeypatch.setattr(Method, "admitted", lambda self, data: data)
    monkeypatch.setattr(noise_module, "refuse_not_finite", lambda numbers: None)
    assert lower_bound(ordinary, played(1.79e308), flake_rate) > EPSILON
