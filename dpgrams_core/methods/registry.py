"""The methods, as a registry with one signature: (data, spec, noise) -> Release."""

from __future__ import annotations

import logging
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.methods import work
from dpgrams_core.methods.as_run import AS_RUN, refused_on_private
from dpgrams_core.methods.baselines.hash_tree import HashTreeSpec, hash_tree
from dpgrams_core.methods.baselines.histogram import NoisyHistogramSpec, noisy_histogram
from dpgrams_core.methods.baselines.kmeans import DPKMeansSpec, KMeansSpec, dp_kmeans, kmeans
from dpgrams_core.methods.baselines.mean_shift import MeanShiftCSpec, MeanShiftSpec, mean_shift, mean_shift_c
from dpgrams_core.methods.baselines.noisy_kmeans import NoisyKMeansSpec, noisy_kmeans
from dpgrams_core.methods.baselines.regression import LowessSpec, PMSSpec, lowess, pms
from dpgrams_core.methods.door import at_the_door
from dpgrams_core.methods.dp_grams.clusters import dp_grams_c
from dpgrams_core.methods.dp_grams.ladder import DP_GRAMS_C_LADDER, DP_GRAMS_LADDER
from dpgrams_core.methods.dp_grams.run import dp_grams
from dpgrams_core.methods.dp_grams.spec import DPGramsCSpec, DPGramsSpec
from dpgrams_core.methods.dp_pms.ladder import DP_PMS_LADDER
from dpgrams_core.methods.dp_pms.run import dp_pms
from dpgrams_core.methods.dp_pms.spec import DPPMSSpec
from dpgrams_core.methods.functional.clusters import bare_release, functional_c, read_centres
from dpgrams_core.methods.functional.ladder import FUNCTIONAL_C_LADDER, FUNCTIONAL_LADDER, FUNCTIONAL_REGRESSION_LADDER
from dpgrams_core.methods.functional.modes import functional, functional_together, read_modes, release_surface
from dpgrams_core.methods.functional.regression import functional_regression, read_branches, release_joint
from dpgrams_core.methods.functional.spec import FunctionalCSpec, FunctionalRegressionSpec, FunctionalSpec
from dpgrams_core.methods.ladder import Ladder
from dpgrams_core.model.checks import one_of, whole
from dpgrams_core.model.errors import DataError, PrivacyLeakWarning, SpecError
from dpgrams_core.model.results import Dataset, Release, refuse_private
from dpgrams_core.model.settings import Calibration
from dpgrams_core.model.specs import Setting, make_spec, settings_of
from dpgrams_core.model.units import in_units, scaled_by_box, settings_moved
from dpgrams_core.numerics.bandwidths import BANDWIDTH_RULES
from dpgrams_core.privacy.noise import Noise, ReleaseNoise, SimulationNoise


@dataclass(frozen=True)
class Method:
    """A method and every fact about it: what is listed, offered, priced or drawn anywhere comes from here.

    ``bare`` is the part of the function that reads the records, where the rest is post-processing: an audit
    that runs it thousands of times can do without the rest, which never makes two worlds easier to tell apart.
    ``reading`` is that rest: of a bare release and the box of its data, it makes the whole one.
    ``together`` is ``function`` of several data sets, each with its noise, where that is quicker than one by one.
    """

    name: str
    kind: str
    title: str
    spec: type
    function: Callable[[Dataset, Any, Noise], Release]
    _: KW_ONLY
    private: bool = True
    baseline: bool = False  # there to be compared with
    needs_count: bool = False  # cannot do without the number of clusters
    status: str = "proven"  # of its results where it has no calibrations
    bare: Callable[[Dataset, Any, Noise], Release] | None = None
    reading: Callable[[Release, np.ndarray], Release] | None = None
    together: Callable[[Sequence[Dataset], Any, Sequence[Noise]], list[Release]] | None = None
    ladder: Ladder | None = None  # tells the sources of its error apart (methods/ladder.py)
    seconds: Callable[[Any, int, np.ndarray], float] | None = None  # about how long a run takes

    @property
    def settings(self) -> dict[str, Setting]:
        """What it can be told, each setting with all that its spec declares of it."""
        return settings_of(self.spec)

    @property
    def calibrations(self) -> dict[str, Calibration]:
        """The ways to set its noise, if it has several: each with its status and its words."""
        declared = self.settings.get("calibration")
        return dict(declared.choices) if declared is not None and isinstance(declared.choices, dict) else {}

    def status_with(self, options: Mapping[str, Any]) -> str:
        """The status of its results with these options, on data that carry no condition of their own."""
        if not self.private:
            return "none"
        chosen = options.get("calibration", self.settings["calibration"].default) if self.calibrations else None
        return self.status if chosen is None else self.calibrations[chosen].status

    def admitted(self, data: Dataset) -> Dataset:
        """The records as the release door gives them to this method (door.py).

        Those with a bare part are the functional releases, where a record that misses a value adds nothing.
        """
        return at_the_door(data, fill_missing=self.bare is None)


METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Make a method known everywhere: to ``run``, the pages, the command line, sweeps and reports."""
    METHODS[method.name] = method
    return method


def private_methods(kind: str) -> list[str]:
    """The private methods of a kind of data that are offered by themselves, and not to compare with."""
    return [name for name, item in METHODS.items() if item.kind == kind and item.private and not item.baseline]


# The method without privacy that stands beside a private one of its kind, where a reader sees one alone.
PLAIN_METHODS = {"modes": "mean_shift", "regression": "lowess", "clusters": "kmeans"}
_NO_PRIVACY: dict[str, Any] = {"private": False, "baseline": True, "status": "none"}
_BY_DIFFPRIVLIB: dict[str, Any] = {"baseline": True, "needs_count": True, "status": "nominal"}
for _method in (
    Method("dp_grams", "modes", "DP-GRAMS", DPGramsSpec, dp_grams, ladder=DP_GRAMS_LADDER, seconds=work.ascent),
    Method(
        "functional",
        "modes",
        "Functional release",
        FunctionalSpec,
        functional,
        bare=release_surface,
        reading=read_modes,
        together=functional_together,
        ladder=FUNCTIONAL_LADDER,
        seconds=work.functional,
    ),
    Method(
        "functional_regression",
        "regression",
        "Functional release",
        FunctionalRegressionSpec,
        functional_regression,
        bare=release_joint,
        reading=read_branches,
        ladder=FUNCTIONAL_REGRESSION_LADDER,
        seconds=work.functional_regression,
    ),
    Method("mean_shift", "modes", "Mean shift", MeanShiftSpec, mean_shift, seconds=work.mean_shift, **_NO_PRIVACY),
    Method("dp_pms", "regression", "DP-PMS", DPPMSSpec, dp_pms, ladder=DP_PMS_LADDER, seconds=work.dp_pms),
    Method("pms", "regression", "Partial mean shift", PMSSpec, pms, seconds=work.pms, **_NO_PRIVACY),
    Method("lowess", "regression", "LOWESS", LowessSpec, lowess, seconds=work.lowess, **_NO_PRIVACY),
    Method(
        "mean_shift_c", "clusters", "Mean shift", MeanShiftCSpec, mean_shift_c, seconds=work.mean_shift_c, **_NO_PRIVACY
    ),
    Method(
        "dp_grams_c", "clusters", "DP-GRAMS-C", DPGramsCSpec, dp_grams_c, ladder=DP_GRAMS_C_LADDER, seconds=work.ascent
    ),
    Method(
        "functional_c",
        "clusters",
        "Functional release",
        FunctionalCSpec,
        functional_c,
        bare=bare_release,
        reading=read_centres,
        ladder=FUNCTIONAL_C_LADDER,
        seconds=work.functional_c,
    ),
    Method(
        "kmeans",
        "clusters",
        "k-means",
        KMeansSpec,
        kmeans,
        needs_count=True,
        seconds=work.kmeans,
        **_NO_PRIVACY,
    ),
    Method(
        "dp_kmeans",
        "clusters",
        "DP-k-means",
        DPKMeansSpec,
        dp_kmeans,
        seconds=work.dp_kmeans,
        **_BY_DIFFPRIVLIB,
    ),
    Method(
        "noisy_histogram",
        "modes",
        "Noisy histogram",
        NoisyHistogramSpec,
        noisy_histogram,
        seconds=work.noisy_histogram,
        baseline=True,
    ),
    Method(
        "noisy_kmeans",
        "clusters",
        "Noisy k-means",
        NoisyKMeansSpec,
        noisy_kmeans,
        seconds=work.noisy_kmeans,
        baseline=True,
        needs_count=True,
    ),
    Method(
        "hash_tree",
        "clusters",
        "Hash tree",
        HashTreeSpec,
        hash_tree,
        seconds=work.hash_tree,
        baseline=True,
        needs_count=True,
    ),
):
    register(_method)


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
    chosen, spec = asked(method, data, options)
    if data.private:
        if seed is not None:
            raise SpecError("seed", seed, "the data are private, and a release has no seed; leave it out")
        return as_asked(read_off(_drawn(chosen, data, spec), data.method_box), data)
    number = fresh_seed() if seed is None else whole("seed", seed, 0)
    release = chosen.function(scaled_by_box(data), spec, SimulationNoise(number))
    return as_asked(replace(release, seed=number, guarantee=data.qualified(release.guarantee, spec)), data)


def run_together(method: str, data: Sequence[Dataset], seeds: Sequence[int], **options: Any) -> list[Release]:
    """``run`` of each data set with its seed, in less time where the method reads many results together.

    The releases are those of ``run``, to the last digit, whoever else is in the list.  Private data are refused: a
    release is drawn by itself.

    >>> from dpgrams_core import load_dataset
    >>> data = load_dataset("four_corners", n=300, seed=0).for_many_runs()
    >>> many = run_together("functional", [data] * 3, range(3), n_modes=4)
    >>> bool((many[2].modes == run("functional", data, seed=2, n_modes=4).modes).all())
    True
    """
    for one in data:
        refuse_private(one)
    chosen = METHODS[one_of("method", method, METHODS)]
    specs = [asked(method, one, options)[1] for one in data]
    if chosen.together is None or any(spec != specs[0] for spec in specs):
        return [run(method, one, seed=seed, **options) for one, seed in zip(data, seeds, strict=True)]
    numbers = [whole("seed", seed, 0) for seed in seeds]
    noises = [SimulationNoise(number) for number in numbers]
    found = chosen.together([scaled_by_box(one) for one in data], specs[0], noises) if data else []
    return [
        as_asked(replace(release, seed=number, guarantee=one.qualified(release.guarantee, specs[0])), one)
        for release, number, one in zip(found, numbers, data, strict=True)
    ]


def draw(method: str, data: Dataset, **options: Any) -> Release:
    """What a release of private data draws, with nothing read off it yet where that can wait.

    It is in the box that methods see, ``data.method_box``.  ``as_asked`` of ``read_off`` of it is what ``run`` gives;
    in between it can be kept.
    """
    chosen, spec = asked(method, data, options)
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


def as_asked(release: Release, data: Dataset) -> Release:
    """A release of data in the units of their columns."""
    return in_units(release, data.method_box, data.box) if data.scaled else release


def asked(method: str, data: Dataset, options: dict[str, Any]) -> tuple[Method, Any]:
    """A method that takes these data, and its settings, checked, with places in the box that it sees."""
    chosen = METHODS[one_of("method", method, METHODS)]
    if data.kind != chosen.kind:
        raise SpecError("method", method, f"it works on {chosen.kind} data, and {data.name} holds {data.kind} data")
    spec: Any = make_spec(chosen.spec, options)
    data.refuse_other(method, spec)
    return chosen, settings_moved(spec, data.box, data.method_box) if data.scaled else spec


def _drawn(chosen: Method, data: Dataset, spec: Any) -> Release:
    """The release door: refusals and warnings first, then one draw whose result holds only what may leave.

    The method sees no record but in the box.  Whoever releases comes through here, so nobody can forget it.
    """
    if not chosen.private:
        raise DataError(f"{chosen.title} has no privacy and the data are private; nothing was run.")
    refuse_read_bandwidth(vars(spec))
    noise = ReleaseNoise()
    status = chosen.status_with(vars(spec)) if chosen.calibrations else "proven"
    if status != "proven":
        doubt = (
            f"calibration = {spec.calibration!r} gives a guarantee that is “{status}”, not proven: on private data use "
            "the tight calibration or the functional release."
        )
        warnings.warn(doubt, PrivacyLeakWarning, stacklevel=3)
    release = (chosen.bare or chosen.function)(chosen.admitted(scaled_by_box(data)), spec, noise)
    guarantee = data.qualified(release.guarantee, spec)
    if guarantee.words != "proven" and status == "proven":
        conditional = f"“{guarantee.words}”, and not proven without a condition"
        doubt = conditional if guarantee.status == "proven" else f"“{guarantee.status}”, not proven"
        doubt = f"The guarantee of this release is {doubt}."
        warnings.warn(doubt, PrivacyLeakWarning, stacklevel=3)
    return replace(release, door=noise.door, seed=None, guarantee=guarantee, _diagnostics=None)


def refuse_read_bandwidth(options: Mapping[str, Any]) -> None:
    """Refuse what is read off private records: it would leave with the result, without any noise."""
    if options.get("calibration") == AS_RUN:
        raise refused_on_private()
    if options.get("bounds") == "records":
        raise SpecError("bounds", "records", "they are read off the private records; choose box")
    for name in ("bandwidth", "bandwidth_from"):
        wish = options.get(name)
        rule = BANDWIDTH_RULES.get(wish) if isinstance(wish, str) else None
        if rule is not None and not rule.public:
            raise SpecError(name, wish, "it is read off the private records; give a number or a public rule")


def fresh_seed() -> int:
    """A seed that fits a URL, from operating-system entropy."""
    return secrets.randbelow(2**31)
