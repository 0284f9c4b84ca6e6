"""What holds for every grid and every set of anchors."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from dpgrams_core import SpecError
from dpgrams_core.methods.dp_grams.starts import MAX_CANDIDATES, draw_anchors, public_grid
from dpgrams_core.privacy.noise import SimulationNoise

bounds = st.tuples(st.floats(-50, 50), st.floats(0.01, 30)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(sides=st.lists(bounds, min_size=1, max_size=3), spacing=st.floats(0.05, 20))
def test_the_grid_is_all_multiples_of_the_spacing_in_the_box(sides, spacing):
    box = np.array(sides)
    low, high = box[:, 0] / spacing, box[:, 1] / spacing
    # On the very edge rounding may go either way; whole multiples well away from it may not.
    assume((np.abs(low - np.round(low)) > 1e-6).all())
    assume((np.abs(high - np.round(high)) > 1e-6).all())
    expected = np.prod(np.maximum(0, np.floor(high) - np.ceil(low) + 1))
    if not 1 <= expected <= MAX_CANDIDATES:
        try:
            public_grid(box, spacing)
        except SpecError:
            return
        raise AssertionError("a grid that is empty or too large was not refused")
    grid = public_grid(box, spacing)
    assert len(grid) == expected == len(np.unique(grid.round(9), axis=0))
    assert ((grid >= box[:, 0]) & (grid <= box[:, 1])).all()
    np.testing.assert_allclose(grid / spacing, np.round(grid / spacing), atol=1e-9)
    for column in grid.T:
        steps = np.diff(np.unique(column.round(9)))
        np.testing.assert_allclose(steps, spacing, rtol=1e-6)


@given(
    candidates=arrays(float, st.tuples(st.integers(1, 15), st.just(2)), elements=st.integers(-6, 6).map(float)),
    points=arrays(float, (20, 2), elements=st.floats(-6, 6)),
    draws=st.integers(1, 20),
    suppression=st.sampled_from([0.1, 1.0, 2.5, 30.0]),
    epsilon=st.floats(1e-6, 1e6),
    seed=st.integers(0, 2**32 - 1),
)
def test_anchors_come_from_the_candidates_and_keep_apart(candidates, points, draws, suppression, epsilon, seed):
    anchors = draw_anchors(
        points,
        candidates,
        epsilon_each=epsilon,
        draws=draws,
        radius=1.0,
        suppression=suppression,
        noise=SimulationNoise(seed),
    )
    assert anchors.points.shape == (draws, 2)
    assert np.array_equal(anchors.points, candidates[anchors.indices])
    assert ((anchors.utilities >= 0) & (anchors.utilities <= 1)).all()
    # Play the rounds again: each anchor must have been open when it was drawn.
    near = cdist(candidates, candidates) <= suppression
    open_ = np.ones(len(candidates), dtype=bool)
    for pick in anchors.indices:
        if not open_.any():
            open_[:] = True
        assert open_[pick]
        open_ &= ~near[pick]
