"""What is to be run: the one description that pages, sweeps, recipes, scripts, links and the command line share.

A ``Run`` knows no method and no data set beyond their names, so it checks only what needs neither; the rooms above
check the rest (``plan_run`` and ``plan_cells`` of dpgrams_core.sweeps.plan) and make it (dpgrams_core.sweeps.cell).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.guarantee import GIVEN_REPRESENTATION
from dpgrams_core.model.results import Dataset

Options = tuple[tuple[str, Any], ...]


# Of n, epsilon and the number of a run: the seed of its data and that of its noise, None where a table has none.
TableSeeds = Callable[[int, float, int], tuple[int | None, int | None]]


def no_seeds(_n: int, _epsilon: float, _run: int) -> tuple[None, None]:
    """Of a table whose seeds are not known."""
    return None, None


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Another way in which the records of a data set are drawn or prepared.

    Parameters
    ----------
    name : as ``load_dataset`` takes it.
    words : what is different.
    source : as that of the data set.
    seeds : those of the printed table: its runs have them where a sweep has the seed 0.
    public : whether its columns were made without a look at the records, whatever those of the usual one are. The pages
        do not offer it: designs go with a link from page to page, and only some data sets have this one.
    """

    name: str
    words: str
    source: Callable[[DatasetInfo, int | None, int], Dataset] = field(repr=False)
    seeds: TableSeeds = field(default=no_seeds, repr=False)
    public: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class DatasetInfo:
    """All that is known of a data set before it is drawn, once; two with the same name are the same.

    Listed ones are in ``dpgrams_core.DATASETS``.  One that is in no list, such as the twin of a release, is its own
    description: it goes wherever the name of a listed one goes, also into a worker process.
    """

    name: str  # for links and files
    kind: str
    title: str  # for people
    description: str
    box: tuple[tuple[float, float], ...]
    default_n: int  # of a real data set, all its records
    # Draws or loads the records, given these facts, n (or None for the default) and a seed.
    source: Callable[[DatasetInfo, int | None, int], Dataset] = field(repr=False)
    synthetic: bool  # whether a seed draws other records; those of a real data set are the same for any seed
    sizes: tuple[int, ...]  # these three are of the paper's tables, and so the first ones on a page
    epsilons: tuple[float, ...]
    delta: float
    offered: tuple[int, ...] = ()  # the sizes on the slider of a page
    count: int | None = None  # the true number of modes or clusters, where it is known
    draw: int | None = None  # the seed of the one draw of all runs of the paper's tables; None: each has a fresh one
    fitted: bool = False  # whether its columns were computed from the records (``Representation``)
    picked: Options = ()  # settings picked by looking at the records (``Dataset``): results with them are nominal
    branches_end: bool = False  # whether some branch of regression data does not reach over the whole box
    slow: bool = False  # whether a sweep over it waits for a click
    curve_pieces: tuple[int, int] = (3, 1)  # how many pieces of how many runs a point of the Clusters page's curve has
    designs: tuple[Design, ...] = ()  # other ways in which its records are drawn, besides the usual one
    as_run: Options = ()  # the settings that the paper's table was run with (``Dataset``)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetInfo) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def condition(self, design: str = "") -> str | None:
        """What every guarantee on these data, drawn in a design, rests on (``Guarantee.condition``)."""
        wish = self.design(design)
        return GIVEN_REPRESENTATION if self.fitted and not (wish and wish.public) else None

    def design(self, name: str) -> Design | None:
        """A design by its name, None for the usual one; another name is refused."""
        if name == "":
            return None
        known = {item.name: item for item in self.designs}
        if not isinstance(name, str) or name not in known:
            allowed = f"it must be {' or '.join(map(repr, known))} for {self.name}, or left out"
            raise SpecError("design", name, allowed if known else f"{self.name} has only the usual one; leave it out")
        return known[name]

    def same_records(self, n: int) -> bool:
        return not self.synthetic and n == self.default_n


AnyDataset = str | DatasetInfo  # the name of a listed data set, or one that brings its facts


@dataclass(frozen=True, kw_only=True)
class Run:
    """A method on n records of a data set, with its options and seeds: once, or again and again in a sweep."""

    method: str
    dataset: AnyDataset
    n: int
    epsilon: float = math.inf  # the privacy budget; infinite where none is given, as for a method without privacy
    options: Options = ()  # the other settings, in order of their names, as plain numbers, texts and tuples
    seed: int = 0  # of the noise; of a sweep, the number that the seeds of all its runs are derived from
    data_seed: int | None = 0  # of the draw of the records; None: each run of a sweep has a fresh one
    derived: bool = False  # whether this is a point of a sweep, whose runs have a number and seeds derived from it
    runs: int = 1  # how many runs a point of a sweep has
    first_run: int = 0
    varied: str = ""  # the option that the sweep varies, where the method has it
    note: str = ""  # what tells it apart in a picture that holds several of its method
    design: str = ""  # of the data, where it is not the usual one (``DatasetInfo.designs``)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", ordered(self.options))
        if not self.derived and (self.runs, self.first_run) != (1, 0):
            raise SpecError("runs", self.runs, "only a point of a sweep has several runs")

    @property
    def numbers(self) -> range:
        return range(self.first_run, self.first_run + self.runs)

    @property
    def value(self) -> Any:
        """The value of the varied option; NaN where the method does not have it."""
        return dict(self.options).get(self.varied, math.nan)

    @property
    def settings(self) -> dict[str, Any]:
        """All that the method is given: the budget, where there is one, and the options."""
        return ({"epsilon": self.epsilon} if math.isfinite(self.epsilon) else {}) | dict(self.options)


def same_but_runs(run: Run) -> Run:
    """A point of a sweep without its choice of runs and how it is shown: equal for all pieces of one point."""
    return replace(run, first_run=0, runs=1, varied="", note="")


def ordered(options: Iterable[tuple[str, Any]]) -> Options:
    """Options in order of their names, with plain values, so that the same settings are equal however they came."""
    return tuple(sorted(((name, plain(value)) for name, value in options), key=lambda pair: pair[0]))


def plain(value: Any) -> Any:
    """A public setting as numbers, text and tuples, whatever array library it came from."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise SpecError("options", type(value).__name__, "settings are numbers, texts, or lists of them")
