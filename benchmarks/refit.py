"""How far one replaced image moves the released sums of the digits when their representation is fitted again.

The guarantee on the digits bounds what one record can do to the sums in a *given* representation.  But scaling and
principal components were fitted on all images, so a replaced image moves every record a little, and directions by a
lot: here it is measured in units of the stated bound, for a few images that the format allows.

Run: .venv/bin/python -m benchmarks.refit              # a few images in the place of the first one
     .venv/bin/python -m benchmarks.refit 100          # the white image in the place of so many others
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_digits

from dpgrams_core import load_dataset
from dpgrams_core.datasets.real import DIGITS_COLUMNS
from dpgrams_core.methods.functional.clusters import bare_release
from dpgrams_core.methods.functional.spec import FunctionalCSpec
from dpgrams_core.model.representation import standardise, whitened_pca
from dpgrams_core.numerics.sketch import SKETCH_SENSITIVITY, choose_blocks, feature_sums
from dpgrams_core.privacy.noise import SimulationNoise

WHITEST = 16.0  # of 0 to 16 in every pixel
PIXELS = 64
IMAGES = {
    "white": np.full(PIXELS, WHITEST),
    "black": np.zeros(PIXELS),
    "chequered": WHITEST * (np.add.outer(np.arange(8), np.arange(8)) % 2).ravel(),
    "corner": WHITEST * (np.arange(PIXELS) == 0),  # a pixel that is black in every image
}


def refit_times(row: int = 0, image: str = "white", epsilon: float = 1.0, delta: float = 1e-5) -> float:
    """The change of the sums that ``functional_c`` releases of the digits, over the bound that its noise is made for.

    One image is replaced and the representation is fitted again as ``dpgrams_core.datasets.real.digits`` fits it.
    Bandwidth and number of features are those of a release at this ε and δ; records beyond the box stand at its edge.
    The noise is white in the features, so their distance is the norm that counts.
    """
    data = load_dataset("digits")
    release = bare_release(data, FunctionalCSpec(epsilon=epsilon, delta=delta), SimulationNoise(0))
    assert release.noise_scale is not None
    blocks = choose_blocks(data.n, release.noise_scale)

    def sums(pixels: np.ndarray) -> np.ndarray:
        scores = whitened_pca(standardise(pixels)[0], DIGITS_COLUMNS).scores
        inside = np.clip(scores, data.box[:, 0], data.box[:, 1])
        return feature_sums(inside, data.box, release.spec.bandwidth, blocks)

    before = load_digits().data
    after = before.copy()
    after[row] = IMAGES[image]
    return float(np.linalg.norm(sums(after) - sums(before)) / SKETCH_SENSITIVITY)


def main() -> None:
    """Print the factor for every image, or its range over rows."""
    if len(sys.argv) > 1:
        found = [refit_times(row) for row in range(int(sys.argv[1]))]
        print(f"white, in the place of {len(found)} images: {min(found):.1f} to {max(found):.1f} times the bound")
        return
    for name in IMAGES:
        print(f"{name} in the place of the first image: {refit_times(image=name):.1f} times the bound")


if __name__ == "__main__":
    main()
