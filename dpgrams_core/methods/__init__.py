"""The methods, as a registry with one signature: (data, spec, noise) -> Release."""

from __future__ import annotations

import logging
import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.bandwidths import BANDWIDTH_RULES
from dpgrams_core.checks import one_of, whole
from dpgrams_core.errors import DataError, PrivacyLeakWarning, SpecError
from dpgrams_core.methods.baselines import mean_shift
from dpgrams_core.methods.door import at_the_door
from dpgrams_core.methods.dp_grams import dp_grams
from dpgrams_core.methods.dp_grams_c import dp_grams_c
from dpgrams_core.methods.dp_pms import dp_pms
from dpgrams_core.methods.functional import functional, read_modes, release_surface
from dpgrams_core.methods.functional_c import bare_release, functional_c, read_centres
from dpgrams_core.methods.functional_regression import functional_regression, read_branches, release_joint
from dpgrams_core.methods.kmeans import dp_kmeans, kmeans
from dpgrams_core.methods.lowess import lowess
from dpgrams_core.methods.mean_shift_c import mean_shift_c
from dpgrams_core.methods.pms import pms
from dpgrams_core.privacy.noise import Noise, ReleaseNoise, SimulationNoise
from dpgrams_core.results import Dataset, Release
from dpgrams_core.specs import DPGramsSpec, FunctionalRegressionSpec, FunctionalSpec, MeanShiftSpec, make_spec
from dpgrams_core.specs_baselines import LowessSpec, PMSSpec
from dpgrams_core.specs_clusters import DPGramsCSpec, DPKMeansSpec, FunctionalCSpec, KMeansSpec, MeanShiftCSpec
from dpgrams_core.specs_regression import DPPMSSpec


@dataclass(frozen=True)
class Method:
    """A method: what kind of data it takes, its settings and its function.

    ``bare`` is the part of the function that reads the records, where the rest is post-processing: an audit
    that runs it thousands of times can do without the rest, which never makes two worlds easier to tell apart.
    ``reading`` is that rest: of a bare release and the box of its data, it makes the whole one.
    """

    name: str
    kind: str
    title: str
    private: bool
    spec: type
    function: Callable[[Dataset, Any, Noise], Release]
    bare: Callable[[Dataset, Any, Noise], Release] | None = None
    reading: Callable[[Release, np.ndarray], Release] | None = None

    def admitted(self, data: Dataset) -> Dataset:
        """The records as the release door gives them to this method (door.py).

        Those with a bare part are the functional releases, where a record that misses a value adds nothing.
        """
        return at_the_door(data, fill_missing=self.bare is None)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("dp_grams", "modes", "DP-GRAMS", True, DPGramsSpec, dp_grams),
        Method(
            "functional", "modes", "Functional release", True, FunctionalSpec, functional, release_surface, read_modes
        ),
        Method(
            "functional_regression",
            "regression",
            "Functional release",
            True,
            FunctionalRegressionSpec,
            functional_regression,
            release_joint,
            read_branches,
        ),
        Method("mean_shift", "modes", "Mean shift", False, MeanShiftSpec, mean_shift),
        Method("dp_pms", "regression", "DP-PMS", True, DPPMSSpec, dp_pms),
        Method("pms", "regression", "Partial mean shift", False, PMSSpec, pms),
        Method("lowess", "regression", "LOWESS", False, LowessSpec, lowess),
        Method("mean_shift_c", "clusters", "Mean shift", False, MeanShiftCSpec, mean_shift_c),
        Method("dp_grams_c", "clusters", "DP-GRAMS-C", True, DPGramsCSpec, dp_grams_c),
        Method(
            "functional_c",
            "clusters",
            "Functional release",
            True,
            FunctionalCSpec,
            functional_c,
            bare_release,
            read_centres,
        ),
        Method("kmeans", "clusters", "k-means", False, KMeansSpec, kmeans),
        Method("dp_kmeans", "clusters", "DP-k-means", True, DPKMeansSpec, dp_kmeans),
    )
}


# The calibrations that run without a proof, and the status that their results carry.
UNPROVEN_CALIBRATIONS = {"experiments": "nominal", "theorem": "as published"}


def run(method: str, data: Dataset, *, seed: int | None = None, **options: Any) -> Release:
    """Run a method on a data set.

    Data marked private go through the release door: every record is put into the public box (door.py), operating-system
    entropy, no seed, and no diagnostics in the result; a seed or a method without privacy is refused there.  All other
    data are simulated on, as they are.

    Parameters
    ----------
    method : a key of ``METHODS``.
    data : from ``load_dataset``, or a ``Dataset`` of one's own.
    seed : of the privacy noise; runs with a seed are simulations. Without one, a fresh seed is
        drawn and recorded in the release. Private data take none.
    **options : fields of the method's spec (``METHODS[method].spec``).

    Warns
    -----
    PrivacyLeakWarning
        When private data are run with settings that no proof covers, before anything is drawn.

    Examples
    --------
    >>> from dpgrams_core import Dataset, load_dataset
    >>> data = load_dataset("four_corners", n=1000, seed=0)
    >>> release = run("dp_grams", data, epsilon=1.0, seed=0)
    >>> release.door, release.guarantee.status
    ('simulation', 'nominal')
    >>> mine = Dataset(name="mine", kind="modes", points=data.points, box=data.box, private=True)
    >>> release = run("functional", mine, epsilon=1.0)
    >>> release.door, release.seed, release.guarantee.status
    ('release', None, 'proven')
    """
    chosen, spec = _asked(method, data, options)
    if data.private:
        if seed is not None:
            raise SpecError("seed", seed, "the data are private, and a release has no seed; leave it out")
        return read_off(_drawn(chosen, data, spec), data.box)
    number = fresh_seed() if seed is None else whole("seed", seed, 0)
    release = chosen.function(data, spec, SimulationNoise(number))
    return replace(release, seed=number, guarantee=data.qualified(release.guarantee, spec))


def draw(method: str, data: Dataset, **options: Any) -> Release:
    """What a release of private data draws, with nothing read off it yet where that can wait.

    ``read_off`` of it is what ``run`` gives.  Between the two it can be kept.
    """
    chosen, spec = _asked(method, data, options)
    return _drawn(chosen, data, spec)


def read_off(drawn: Release, box: np.ndarray) -> Release:
    """A release with all that its method reads off what was drawn: post-processing, the same each time.

    By now it is paid for.  So a failure here gives what was drawn (``Release.unread``) and never an exception instead.
    """
    reading = METHODS[drawn.method].reading
    if reading is None:
        return drawn
    try:
        return reading(drawn, box)
    except Exception:
        logging.getLogger(__name__).exception("Something failed while a release was read; it holds all that was drawn.")
        return drawn


def _asked(method: str, data: Dataset, options: dict[str, Any]) -> tuple[Method, Any]:
    """The method and its settings, or a refusal."""
    chosen = METHODS[one_of("method", method, METHODS)]
    if data.kind != chosen.kind:
        raise SpecError("method", method, f"it works on {chosen.kind} data, and {data.name} holds {data.kind} data")
    return chosen, make_spec(chosen.spec, options)


def _drawn(chosen: Method, data: Dataset, spec: Any) -> Release:
    """The release door: refusals and warnings first, then one draw whose result holds only what may leave.

    The method sees no record but in the box.  Whoever releases comes through here, so nobody can forget it.
    """
    if not chosen.private:
        raise DataError(f"{chosen.title} has no privacy and the data are private; nothing was run.")
    refuse_read_bandwidth(getattr(spec, "bandwidth", None))
    noise = ReleaseNoise()
    doubts = _doubts(spec)
    for doubt in doubts:
        warnings.warn(doubt, PrivacyLeakWarning, stacklevel=3)
    release = (chosen.bare or chosen.function)(chosen.admitted(data), spec, noise)
    guarantee = data.qualified(release.guarantee, spec)
    if guarantee.words != "proven" and not doubts:
        doubt = f"The guarantee of this release is “{guarantee.words}”, and not proven without a condition."
        if guarantee.status != "proven":
            doubt = f"The guarantee of this release is “{guarantee.status}”, not proven."
        warnings.warn(doubt, PrivacyLeakWarning, stacklevel=3)
    return replace(release, door=noise.door, seed=None, guarantee=guarantee, _diagnostics=None)


def refuse_read_bandwidth(wish: object) -> None:
    """Refuse a bandwidth that would be read off private records: it would leave with the result, without any noise."""
    rule = BANDWIDTH_RULES.get(wish) if isinstance(wish, str) else None
    if rule is not None and not rule.public:
        raise SpecError("bandwidth", wish, "it is read off the private records; give a number or a public rule")


def _doubts(spec: Any) -> list[str]:
    """What no proof covers in these settings, one sentence each."""
    doubts = []
    calibration = getattr(spec, "calibration", None)
    if calibration in UNPROVEN_CALIBRATIONS:
        doubts.append(
            f"calibration = {calibration!r} gives a guarantee that is “{UNPROVEN_CALIBRATIONS[calibration]}”, not "
            "proven: on private data use the tight calibration or the functional release."
        )
    return doubts


def fresh_seed() -> int:
    """A seed that fits a URL, from operating-system entropy."""
    return secrets.randbelow(2**31)
