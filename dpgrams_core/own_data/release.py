"""Releases of private data through the ledger: priced first, charged and synced next, and only then drawn.

The order is: check and price on a *public stand-in* (pricing.py), so that a wrong setting costs nothing and the price
is known before a record is read; charge the ledger; draw; compare what ran with what was charged; note that it is
finished and keep it beside its charge (own_data/kept.py); and only then read off it what its method reads off, and keep
that as well.  A crash at any step leaves the ledger at or above what was drawn.  From the first keeping on, what was
drawn is not lost either: reading may take minutes, be killed or fail, and is then done when it is opened again.

The long steps (price, draw, reading) may be done by a worker process.  It is given records and settings and no ledger:
the charge is made here before the draw is asked for, and what comes back is held against it here.  A worker that dies
may have its draw made again by another: of the first nothing was seen, so one draw leaves, under one charge.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgrams_core.methods.registry import METHODS, as_asked, draw, read_off
from dpgrams_core.model.environment import read_settings
from dpgrams_core.model.errors import BudgetError, DataError, PrivacyLeakWarning, SpecError
from dpgrams_core.model.format import listed
from dpgrams_core.model.progress import Worker, here, uninterrupted
from dpgrams_core.model.results import Dataset, Release
from dpgrams_core.own_data.bounds import PrivateRange, RangePlan, plan_range, private_range
from dpgrams_core.own_data.kept import pack_bounds, pack_release
from dpgrams_core.own_data.pricing import Quote, quote, refuse_unproven
from dpgrams_core.own_data.reading.table import Table
from dpgrams_core.own_data.record import RecordedRelease, recorded
from dpgrams_core.own_data.table import OwnData, picked_names, picked_rows
from dpgrams_core.privacy.ledger.book import Account, Charge, Ledger
from dpgrams_core.privacy.ledger.digest import Identity, identity_of
from dpgrams_core.privacy.ledger.mark import LedgerBusyError
from dpgrams_core.privacy.noise import ReleaseNoise


@dataclass(frozen=True, kw_only=True, eq=False)
class PaidRelease(RecordedRelease):
    """A release with its record, the charge that it was paid with, and whether it is kept there.

    Where something failed while it was read, the release has its surface and nothing else (``release.unread``).
    """

    charge: Charge
    kept: bool


@dataclass(frozen=True, kw_only=True)
class PaidRange:
    """A column's private bounds, the charge that they were paid with, and whether they are kept there."""

    found: PrivateRange
    charge: Charge
    kept: bool


def open_budget(
    data: Dataset | Table, ledger: Ledger, *, cap_epsilon: float | None = None, cap_delta: float | None = None
) -> Account:
    """The account of a data set; the first call opens it and sets its cap, by default that of the settings."""
    return ledger.account(_opened(data_identity(data), ledger, cap_epsilon, cap_delta))


def overlap_words(data: Dataset | Table, ledger: Ledger) -> str:
    """Why the charges of a data set that was opened count together with those of others, or nothing.

    Only its own columns are named: what the other is, is its owner's business.
    """
    identity = data_identity(data)
    account = ledger.account_of(identity.content)
    if not ledger.account(account).others:
        return ""
    found = ledger.overlap(account, identity)
    if found.columns:
        what = f"a good part of the column{'s' * (len(found.columns) > 1)} {listed(found.columns)}"
    else:  # where it overlaps none itself, a third one overlaps both
        what = "many of its rows" if found.rows else "its people, by way of a third,"
    return f"This file shares {what} with one that was opened here, so their charges count together."


@uninterrupted()  # nothing ends it between its charge and its keeping
def release(
    method: str,
    data: Dataset,
    ledger: Ledger,
    *,
    accept_unproven: bool = False,
    keep: bool = True,
    worker: Worker = here,
    **options: Any,
) -> PaidRelease:
    """Run a method once on private data, paid for in the ledger.

    Parameters
    ----------
    method : a key of ``METHODS`` that has privacy.
    data : with ``private=True``, from ``load_table`` or one's own.
    ledger : where the data set's account is; where there is none, one is opened with the cap of the settings.
    accept_unproven : take a method whose guarantee is not proven, too. Its claimed ε is charged and marked.
    keep : write what is released beside its charge, so that ``own_data.kept.read_kept`` finds it again. Where that
        fails, the release is given all the same, with ``kept=False``.
    worker : where the long steps run, such as ``Processes.call`` of ``sweeps.executors``.
    **options : fields of the method's spec; no seed.

    Raises
    ------
    BudgetError
        Where the cap does not allow it, or the ledger cannot be written. Nothing was drawn then.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(pathlib.Path(folder.name) / "ledger.sqlite3", marks=folder.name)
    >>> data = Dataset(name="mine", kind="modes", points=np.zeros((500, 2)), box=[(-4, 4)] * 2, private=True)
    >>> paid = release("functional", data, ledger, epsilon=0.5)
    >>> paid.release.door, paid.charge.epsilon, ledger.totals(paid.charge.account).basic_epsilon, paid.kept
    ('release', 0.5, 0.5, True)
    >>> folder.cleanup()
    """
    if not data.private:
        raise DataError("The data are not private: use run, which needs no ledger.")
    if "seed" in options:
        raise SpecError("seed", options["seed"], "the data are private, and a release has no seed; leave it out")
    quick = method not in METHODS or METHODS[method].bare is not None
    offer = (here if quick else worker)(_quoted, method, data, options)
    if not accept_unproven:
        refuse_unproven(offer)
    ReleaseNoise()  # a machine without OpenDP is refused before it is charged
    columns = f" of {', '.join(data.columns)}" if isinstance(data, OwnData) else ""
    identity = data_identity(data)
    charge = ledger.charge(
        _opened(identity, ledger),
        offer.events,
        epsilon=offer.epsilon,
        delta=offer.delta,
        status=offer.guarantee.ledger_status,
        description=METHODS[method].title + columns,
        identity=identity,
    )
    drawn = worker(_drawn, method, data, options, offer.guarantee.words == "proven")
    # What ran must be what was priced; otherwise it is withheld, and its charge stays.
    got, promised = (
        (item.epsilon, item.delta, item.words, item.neighbours) for item in (drawn.guarantee, offer.guarantee)
    )
    if got != promised or (offer.events and drawn.events != offer.events):
        raise RuntimeError("what ran is not what was charged; this is a bug, and the result is withheld")
    made = recorded(as_asked(drawn, data), data)
    kept = _finished(ledger, charge, lambda: pack_release(made, data.method_box), keep)
    if METHODS[method].reading is None:
        return PaidRelease(**vars(made), charge=charge, kept=kept)
    whole = drawn
    with suppress(Exception):  # a worker died of it: then it is what was drawn, as where reading fails
        whole = worker(read_off, drawn, data.method_box)
    if not whole.unread:
        made = made.with_reading(as_asked(whole, data))
        if kept:  # so that it is there at once, and the same under a later version that reads better
            with suppress(Exception):  # then it is read again when it is opened
                ledger.keep(charge, pack_release(made, data.method_box), instead=True)
    return PaidRelease(**vars(made), charge=charge, kept=kept)


def _quoted(method: str, data: Dataset, options: dict[str, Any]) -> Quote:
    return quote(method, data, **options)


def _drawn(method: str, data: Dataset, options: dict[str, Any], proven: bool) -> Release:
    """The draw; of what is not proven the warning is left out, since it was accepted before it was charged."""
    with warnings.catch_warnings():
        if not proven:
            warnings.simplefilter("ignore", PrivacyLeakWarning)
        return draw(method, data, **options)


def _finished(ledger: Ledger, charge: Charge, pack: Callable[[], bytes], keep: bool) -> bool:
    """Note that a draw is finished and keep what came out; whether it is kept.

    It is paid for by now, so whatever fails here (a full disk, say) must not take it away from whoever paid.
    """
    if keep:
        try:
            ledger.keep(charge, pack())
            return True
        except LedgerBusyError:  # whoever paid has waited long enough
            return False
        except Exception:  # the caller says that it is not kept
            pass
    with suppress(BudgetError):
        ledger.confirm(charge)
    return False


@uninterrupted()
def release_range(
    table: Table,
    column: str,
    ledger: Ledger,
    *,
    epsilon: float,
    delta: float = 1e-6,
    keep: bool = True,
    worker: Worker = here,
) -> PaidRange:
    """Buy an estimate of one column's bounds (bounds.py), paid for in the ledger; kept as a release is.

    A row with a missing value counts as a row and is in no bin.
    """
    values = picked_rows(table, picked_names(table, [column]))
    plan = plan_range(len(values), epsilon, delta)
    ReleaseNoise()  # as above
    charge = ledger.charge(
        _opened(table.identity, ledger),
        plan.events,
        epsilon=plan.epsilon,
        delta=plan.delta,
        status="proven",
        description=f"Bounds of {column}",
        identity=table.identity,
    )
    found = worker(_range, values[:, 0], plan)
    kept = _finished(ledger, charge, lambda: pack_bounds(column, found.low, found.high), keep)
    return PaidRange(found=found, charge=charge, kept=kept)


def _range(values: np.ndarray, plan: RangePlan) -> PrivateRange:
    return private_range(values, plan, ReleaseNoise())


def _opened(
    identity: Identity, ledger: Ledger, cap_epsilon: float | None = None, cap_delta: float | None = None
) -> str:
    """The name of a data set's account, opened where there is none yet, by default with the cap of the settings."""
    settings = read_settings()
    account = ledger.account_of(identity.content)
    ledger.open_account(
        account,
        cap_epsilon=settings.cap_epsilon if cap_epsilon is None else cap_epsilon,
        cap_delta=settings.cap_delta if cap_delta is None else cap_delta,
        identity=identity,
    )
    return account


def data_identity(data: Dataset | Table) -> Identity:
    """What the ledger knows data by: the whole table it came from, or the records of a data set made by hand."""
    if isinstance(data, (OwnData, Table)):
        return data.identity
    return identity_of({f"column {number}": column for number, column in enumerate(data.points.T, start=1)})
