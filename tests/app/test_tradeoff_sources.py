"""Which methods the part "Where the error comes from" offers."""

from __future__ import annotations

import pytest

from dpgrams_core import METHODS
from pages._ui.tradeoff.settings import ARMS, error_measures, source_arms

RIVALS = {"dp_kmeans", "noisy_histogram", "noisy_kmeans", "hash_tree"}  # their steps have no counterparts in ours


@pytest.mark.parametrize("kind", ["modes", "regression", "clusters"])
def test_every_private_method_but_the_rivals_is_told_apart(kind):
    arms = source_arms(kind)
    wanted = {arm for arm in ARMS[kind] if METHODS[arm.method].private and arm.method not in RIVALS}
    assert set(arms) == wanted
    assert arms[0].has("clip_multiplier")  # the one with the most ingredients comes first
    assert error_measures(kind)  # one choice of the error serves all methods of a kind
