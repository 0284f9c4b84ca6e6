"""What tests of methods share."""

from __future__ import annotations

import pytest

from dpgrams_core import load_dataset
from dpgrams_core.privacy.noise import SimulationNoise


@pytest.fixture(scope="session")
def waves(seed):
    return load_dataset("sinusoid", n=300, seed=seed)


@pytest.fixture
def watched_noise(monkeypatch):
    """What was asked of the joint noise, as (correlation, scale, columns), and the minibatches that were drawn."""
    seen, batches = [], []
    draw, batch = SimulationNoise.correlated_gaussian, SimulationNoise.batch

    def watch(self, correlation, scale, columns):
        seen.append((correlation, scale, columns))
        return draw(self, correlation, scale, columns)

    def watch_batch(self, n, size):
        batches.append(batch(self, n, size))
        return batches[-1]

    monkeypatch.setattr(SimulationNoise, "correlated_gaussian", watch)
    monkeypatch.setattr(SimulationNoise, "batch", watch_batch)
    return seen, batches
