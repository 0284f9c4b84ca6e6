"""Releases of private data through the ledger: priced first, charged and synced next, and only then drawn.

The order is: check and price on a *public stand-in* (the same n, box and settings, other records), so that a wrong
setting costs nothing and the price is known before a record is read; charge the ledger; draw; compare what ran with
what was charged; note that it is finished.  A crash at any step leaves the ledger at or above what was drawn.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpgrams_core.bandwidths import BANDWIDTH_RULES
from dpgrams_core.checks import one_of
from dpgrams_core.content import content_digest
from dpgrams_core.datasets.table_reader import Table
from dpgrams_core.datasets.upload import OwnData, picked_names, picked_rows
from dpgrams_core.errors import DataError, PrivacyLeakWarning, SpecError
from dpgrams_core.fourier import public_points
from dpgrams_core.methods import METHODS, Method, run
from dpgrams_core.privacy.events import Event
from dpgrams_core.privacy.ledger import Account, Charge, Ledger
from dpgrams_core.privacy.noise import ReleaseNoise, SimulationNoise
from dpgrams_core.private_box import PrivateRange, plan_range, private_range
from dpgrams_core.results import Dataset, Guarantee, Release
from dpgrams_core.settings import DEFAULT_CAP_DELTA, DEFAULT_CAP_EPSILON
from dpgrams_core.specs import make_spec


@dataclass(frozen=True, kw_only=True)
class Quote:
    """What a release will cost and the guarantee that it will have; no record was read for it."""

    method: str
    epsilon: float
    delta: float
    events: tuple[Event, ...]
    guarantee: Guarantee


@dataclass(frozen=True, kw_only=True)
class PaidRelease:
    """A release and the charge that it was paid with."""

    release: Release
    charge: Charge


@dataclass(frozen=True, kw_only=True)
class PaidRange:
    """A column's private bounds and the charge that they were paid with."""

    found: PrivateRange
    charge: Charge


def open_budget(
    data: Dataset | Table,
    ledger: Ledger,
    *,
    cap_epsilon: float = DEFAULT_CAP_EPSILON,
    cap_delta: float = DEFAULT_CAP_DELTA,
) -> Account:
    """The account of a data set; the first call opens it and sets its cap, which then stays."""
    account = ledger.account_of(_content(data))
    ledger.open_account(account, cap_epsilon=cap_epsilon, cap_delta=cap_delta)
    return ledger.account(account)


def quote(method: str, data: Dataset, **options: Any) -> Quote:
    """The price of a release, by running the part of it that reads records on a public stand-in.

    The stand-in has the same n and box, and the events of a private method depend on those and its settings only.  The
    predictors of regression data are kept, since methods take them as public.

    Examples
    --------
    >>> data = Dataset(name="mine", kind="modes", points=np.zeros((500, 2)), box=[(-4, 4)] * 2, private=True)
    >>> offer = quote("functional", data, epsilon=0.5)
    >>> offer.epsilon, offer.delta, offer.guarantee.status
    (0.5, 1e-06, 'proven')
    """
    _refuse_unpriceable(method, options)
    chosen = METHODS[one_of("method", method, METHODS)]
    if data.kind != chosen.kind:
        raise SpecError("method", method, f"it works on {chosen.kind} data, and {data.name} holds {data.kind} data")
    spec: Any = make_spec(chosen.spec, options)
    if data.kind == "regression":
        points = public_points(data.box, data.n)
        points[:, 0] = data.points[:, 0]
        events, guarantee = _priced(chosen, spec, points, data.box)
    else:
        events, guarantee = _priced_by_size(method, spec, data.n, tuple(map(tuple, data.box.tolist())))
    # A claim about adding or removing a record counts twice: replacing is one removed and one added.
    factor = 1.0 if guarantee.neighbours == "replace-one" else 2.0
    return Quote(
        method=method,
        epsilon=factor * guarantee.epsilon,
        delta=factor * guarantee.delta,
        events=events if factor == 1 else (),
        guarantee=guarantee,
    )


def _priced(
    chosen: Method, spec: Any, points: np.ndarray, box: np.ndarray | tuple[tuple[float, float], ...]
) -> tuple[tuple[Event, ...], Guarantee]:
    """Events and guarantee of a method on public points."""
    stand_in = Dataset(name="stand-in", kind=chosen.kind, points=points, box=np.array(box))
    done = (chosen.bare or chosen.function)(stand_in, spec, SimulationNoise(0))
    return done.events, done.guarantee


@lru_cache(maxsize=64)
def _priced_by_size(
    method: str, spec: Any, n: int, box: tuple[tuple[float, float], ...]
) -> tuple[tuple[Event, ...], Guarantee]:
    """The same by public facts alone, kept: a page asks for a price before it asks for the release."""
    return _priced(METHODS[method], spec, public_points(np.array(box), n), box)


def _refuse_unpriceable(method: str, options: dict[str, Any]) -> None:
    if method in METHODS and not METHODS[method].private:
        raise DataError(f"{METHODS[method].title} has no privacy and the data are private; nothing was run.")
    wish = options.get("bandwidth")
    rule = BANDWIDTH_RULES.get(wish) if isinstance(wish, str) else None
    if rule is not None and not rule.public:
        raise SpecError("bandwidth", wish, "it is read off the private records; give a number or a public rule")


def refuse_unproven(offer: Quote) -> None:
    """Refuse a price whose guarantee has no proof."""
    if offer.guarantee.status != "proven":
        raise DataError(
            f"{METHODS[offer.method].title} with these settings has a guarantee that is “{offer.guarantee.status}”, "
            "not proven. Choose the functional release or the tight calibration, or accept an unproven guarantee. "
            "Nothing was charged and nothing was drawn."
        )


def release(
    method: str, data: Dataset, ledger: Ledger, *, accept_unproven: bool = False, **options: Any
) -> PaidRelease:
    """Run a method once on private data, paid for in the ledger.

    Parameters
    ----------
    method : a key of ``METHODS`` that has privacy.
    data : with ``private=True``, from ``load_table`` or one's own.
    ledger : where the data set's account is; one is opened with the default cap where there is none.
    accept_unproven : take a method whose guarantee is not proven, too. Its claimed ε is charged and marked.
    **options : fields of the method's spec; no seed.

    Raises
    ------
    BudgetError
        Where the cap does not allow it, or the ledger cannot be written. Nothing was drawn then.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(pathlib.Path(folder.name) / "ledger.sqlite3")
    >>> data = Dataset(name="mine", kind="modes", points=np.zeros((500, 2)), box=[(-4, 4)] * 2, private=True)
    >>> paid = release("functional", data, ledger, epsilon=0.5)
    >>> paid.release.door, paid.charge.epsilon, ledger.totals(paid.charge.account).basic_epsilon
    ('release', 0.5, 0.5)
    >>> folder.cleanup()
    """
    if not data.private:
        raise DataError("The data are not private: use run, which needs no ledger.")
    if "seed" in options:
        raise SpecError("seed", options["seed"], "the data are private, and a release has no seed; leave it out")
    offer = quote(method, data, **options)
    if not accept_unproven:
        refuse_unproven(offer)
    ReleaseNoise()  # a machine without OpenDP is refused before it is charged
    columns = f" of {', '.join(data.columns)}" if isinstance(data, OwnData) else ""
    charge = ledger.charge(
        _opened(data, ledger),
        offer.events,
        epsilon=offer.epsilon,
        delta=offer.delta,
        status=offer.guarantee.status,
        description=METHODS[method].title + columns,
    )
    if offer.guarantee.status == "proven":
        result = run(method, data, **options)
    else:
        with warnings.catch_warnings():  # refused above unless it was accepted
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            result = run(method, data, **options)
    _check_paid(result, offer)
    ledger.confirm(charge)
    return PaidRelease(release=result, charge=charge)


def _check_paid(result: Release, offer: Quote) -> None:
    """What ran must be what was priced; otherwise it is withheld, and its charge stays."""
    got, promised = result.guarantee, offer.guarantee
    same = (got.epsilon, got.delta, got.status) == (promised.epsilon, promised.delta, promised.status)
    if not same or (offer.events and result.events != offer.events):
        raise RuntimeError("what ran is not what was charged; this is a bug, and the result is withheld")


def release_range(
    table: Table,
    column: str,
    ledger: Ledger,
    *,
    epsilon: float,
    delta: float = 1e-6,
    drop_rows_with_missing: bool = False,
) -> PaidRange:
    """Buy an estimate of one column's bounds (private_box.py), paid for in the ledger."""
    values, _ = picked_rows(table, picked_names(table, [column]), drop_rows_with_missing)
    plan = plan_range(len(values), epsilon, delta)
    noise = ReleaseNoise()
    charge = ledger.charge(
        _opened(table, ledger),
        plan.events,
        epsilon=plan.epsilon,
        delta=plan.delta,
        status="proven",
        description=f"Bounds of {column}",
    )
    found = private_range(values[:, 0], plan, noise)
    ledger.confirm(charge)
    return PaidRange(found=found, charge=charge)


def _opened(data: Dataset | Table, ledger: Ledger) -> str:
    """The name of the data's account, opened with the default cap where there is none yet."""
    account = ledger.account_of(_content(data))
    ledger.open_account(account, cap_epsilon=DEFAULT_CAP_EPSILON, cap_delta=DEFAULT_CAP_DELTA)
    return account


def _content(data: Dataset | Table) -> bytes:
    """What the ledger knows the data by: the whole table it came from, or the records of a data set made by hand."""
    if isinstance(data, (OwnData, Table)):
        return data.content
    return content_digest(list(data.points.T))
