"""The methods, as a registry with one signature: (data, spec, noise) -> Release."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpgrams_core.checks import one_of, whole
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.methods.baselines import mean_shift
from dpgrams_core.methods.dp_grams import dp_grams
from dpgrams_core.methods.functional import functional
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.results import Dataset, Release
from dpgrams_core.specs import DPGramsSpec, FunctionalSpec, MeanShiftSpec, make_spec


@dataclass(frozen=True)
class Method:
    """A method: what kind of data it takes, its settings and its function."""

    name: str
    kind: str
    title: str
    private: bool
    spec: type
    function: Callable[[Dataset, Any, SimulationNoise], Release]


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("dp_grams", "modes", "DP-GRAMS", True, DPGramsSpec, dp_grams),
        Method("functional", "modes", "Functional release", True, FunctionalSpec, functional),
        Method("mean_shift", "modes", "Mean shift", False, MeanShiftSpec, mean_shift),
    )
}


def run(method: str, data: Dataset, *, seed: int | None = None, **options: Any) -> Release:
    """Run a method on a data set.

    Parameters
    ----------
    method : a key of ``METHODS``.
    data : from ``load_dataset``.
    seed : of the privacy noise; runs with a seed are simulations. Without one, a fresh seed is
        drawn and recorded in the release.
    **options : fields of the method's spec (``METHODS[method].spec``).

    Examples
    --------
    >>> from dpgrams_core import load_dataset
    >>> release = run("dp_grams", load_dataset("four_corners", n=1000, seed=0), epsilon=1.0, seed=0)
    >>> release.guarantee.status
    'nominal'
    """
    chosen = METHODS[one_of("method", method, METHODS)]
    if data.kind != chosen.kind:
        raise SpecError("method", method, f"it works on {chosen.kind} data, and {data.name} holds {data.kind} data")
    spec: Any = make_spec(chosen.spec, options)
    if data.private:
        raise DataError("Private data need the release door, which this version does not have yet; nothing was run.")
    number = fresh_seed() if seed is None else whole("seed", seed, 0)
    release = chosen.function(data, spec, SimulationNoise(number))
    return replace(release, seed=number)


def fresh_seed() -> int:
    """A seed that fits a URL, from operating-system entropy."""
    return secrets.randbelow(2**31)
