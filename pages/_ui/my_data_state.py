"""What one session holds of a user's own data. It lives in that session alone, never in a cache that others share.

Streamlit may start the script again while an earlier run of it is still busy, for instance after a second click, and
then ends the earlier one at its next call into Streamlit, also at a write to the session.  A paid release must neither
be paid twice nor be lost that way.  So the session holds one plain object: what is bought is put into it without any
such call, and every purchase has a ticket that is good for one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from dpgrams_core.datasets.table_reader import Table
from dpgrams_core.datasets.upload import OwnData, load_table
from dpgrams_core.errors import BudgetError, DataError, SpecError
from dpgrams_core.figures.own_data import Units
from dpgrams_core.kept_releases import KeptRelease, read_kept
from dpgrams_core.methods import METHODS
from dpgrams_core.privacy.ledger import Charge, Ledger
from dpgrams_core.progress import uninterrupted
from dpgrams_core.recipes import ReleaseRecord, release_record
from dpgrams_core.releasing import release, release_range
from dpgrams_core.results import Release
from dpgrams_core.settings import Settings, read_settings
from pages._ui import visitors
from pages._ui.holdings import HOLDINGS, this_session

_MOST_KEPT = 24
_DRAWS_AT_ONCE = threading.BoundedSemaphore(2)  # of all visitors: what is paid for is never stopped half-way
_BUSY = "Releases of other visitors are being drawn. Nothing was charged: press again in a moment."
_FAILED = (
    "Something failed while the release was drawn, and nothing can be shown. If it was charged, the charge stays: see "
    "the ledger below."
)
_DRAWN_HERE = ("functional", "functional_c", "functional_regression", "dp_grams")  # the command releases others, too
_LOST = "A reload of this page loses it, and another one costs again: take it with you."
_KEPT = "It is kept beside its charge. After a reload of this page open the same file again: it is there, for free."
_NOT_KEPT = f"It could not be kept: the ledger could not be written, perhaps for want of room on the disk. {_LOST}"
_OFF = f"Nothing is kept on this server. {_LOST}"
_EXAMPLE = f"The example file is made afresh at every press, so nothing is kept for it. {_LOST}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which columns, in which public box, for what; hashable, so it can be remembered."""

    columns: tuple[str, ...]
    response: str | None
    box: tuple[tuple[float, float], ...]
    kind: str

    @property
    def names(self) -> tuple[str, ...]:
        """The picked columns, the response last."""
        return self.columns if self.response is None else (*self.columns, self.response)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sale:
    """A paid release with the public facts that are needed to show it; no record is in it."""

    number: int
    request: Request
    release: Release
    charge: Charge
    record: ReleaseRecord
    units: Units
    inner: Any  # the box that methods see, (d, 2)
    statements: tuple[str, ...]
    after_reload: str  # what becomes of it then, in a sentence or two
    earlier: bool = False  # it was paid for before this file was opened here

    @property
    def date(self) -> str:
        """The day on which it was paid for."""
        return self.charge.at[:10]


@dataclass(eq=False)
class Own:
    """A session's file and all that was bought for it."""

    table: Table | None = None
    source: str = ""
    uploads: int = 0  # gives the widgets of every file names of their own
    bought: dict[str, tuple[float, float]] = field(default_factory=dict)
    sales: list[Sale] = field(default_factory=list)
    problem: str = ""
    bought_earlier: tuple[str, ...] = ()  # columns whose bounds are there again
    not_shown: tuple[str, ...] = ()  # what was kept and cannot be shown here, in sentences
    _restored: bool = False
    _tickets: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[Any, Any] = field(default_factory=dict)

    def take(self, table: Table, source: str) -> None:
        """Begin with a file; what was there of another one goes, and its charges stay in the ledger."""
        self._begin(table, source)

    def leave(self) -> None:
        """Let go of the file and of everything made from it."""
        self._begin(None, "")

    def refuse(self, problem: str) -> None:
        """Say why a file could not be read, with an empty place for another one."""
        self._begin(None, "")
        self.problem = problem

    @property
    def held_bytes(self) -> int:
        """The memory that the numbers of a visitor's own file take; those of a local file are the owner's business."""
        if self.table is None or self.source == "local":
            return 0
        picked = sum(value.points.nbytes for key, value in list(self._kept.items()) if key[0] == "data")
        return picked + sum(array.nbytes for array in self.table.values.values())

    def _begin(self, table: Table | None, source: str) -> None:
        with self._lock:  # a purchase under way ends first: its result belongs to the file that goes
            self.table, self.source = table, source
            self.uploads += 1
            self.problem = ""
            self.bought, self.sales, self._kept = {}, [], {}
            self.bought_earlier, self.not_shown, self._restored = (), (), False

    def restore(self, table: Table, ledger: Ledger) -> None:
        """Bring back what was paid for earlier, once for every opening of a file; nothing is read off the records."""
        if self._restored:
            return
        with self._lock:
            if self._restored or table is not self.table:  # another run of the script was faster, with another file
                return
            found = read_kept(ledger, table.identity)
            here = [pair for pair in found.releases if pair[1].record.method in _DRAWN_HERE]
            self.sales = [sale_again(number, *pair) for number, pair in enumerate(here, start=1)]
            bounds = {item.column: (item.low, item.high) for _, item in found.bounds if item.column in table.numeric}
            self.bought, self.bought_earlier = bounds, tuple(bounds)
            self.not_shown = found.problems + tuple(
                f"What was released on {charge.at[:10]} ({charge.description}) cannot be drawn on this page. The "
                "command kept shows it again, for free."
                for charge, kept in found.releases
                if kept.record.method not in _DRAWN_HERE
            )
            self._restored = True

    @property
    def ticket(self) -> str:
        """The name of the next purchase; it is also the key of its button."""
        return f"own_buy_{self.uploads}_{len(self._tickets)}"

    def once(self, ticket: str, purchase: Callable[[], None]) -> None:
        """Make a purchase, unless its ticket was used: a second click on the same button buys nothing."""
        with self._lock, uninterrupted():  # who has left meanwhile finds it kept
            if ticket in self._tickets:
                return
            self._tickets.add(ticket)
            self.problem = ""
            try:
                purchase()
            except (SpecError, DataError, BudgetError) as error:
                self.problem = str(error)
            except Exception:  # its words may quote a record
                self.problem = _FAILED

    def sell(self, method: str, request: Request, ledger: Ledger, options: dict[str, Any]) -> None:
        """A release, paid for in the ledger; call it by ``once``.  Beside two others it is not drawn nor charged."""
        data = self.data(request)
        if not _DRAWS_AT_ONCE.acquire(blocking=False):
            raise DataError(_BUSY)
        try:
            paid = release(method, data, ledger, keep=self._keeps, **options)
        finally:
            _DRAWS_AT_ONCE.release()
        if self._keeps and not paid.kept:
            self.problem = f"The release is there and paid for. {_NOT_KEPT}"
        lost = _NOT_KEPT if self._keeps else _EXAMPLE if self.source == "example" else _OFF
        self.sales.append(
            Sale(
                number=len(self.sales) + 1,
                request=request,
                release=paid.release,
                charge=paid.charge,
                record=release_record(paid.release, data),
                units=Units(data.columns, data.user_box),
                inner=data.box,
                statements=data.statements,
                after_reload=_KEPT if paid.kept else lost,
            )
        )

    def buy_bounds(self, column: str, ledger: Ledger, epsilon: float, delta: float) -> None:
        """A column's bounds, paid for in the ledger; call it by ``once``."""
        assert self.table is not None
        paid = release_range(
            self.table,
            column,
            ledger,
            epsilon=epsilon,
            delta=delta,
            keep=self._keeps,
        )
        self.bought[column] = (paid.found.low, paid.found.high)

    @property
    def _keeps(self) -> bool:
        """Whether what is bought is kept in the ledger: nobody opens the same example file again."""
        return self.source != "example" and read_settings().keep

    def data(self, request: Request) -> OwnData:
        """The picked columns as private data."""
        assert self.table is not None
        table = self.table
        return self.remember(
            ("data", request),
            lambda: load_table(
                table,
                columns=request.columns,
                response=request.response,
                box=request.box,
                kind=request.kind,
            ),
            most=1,
        )

    def remember(self, key: tuple[Any, ...], make: Callable[[], Any], most: int = _MOST_KEPT) -> Any:
        """A value that is made once in this session; of each sort (the key's first word) the last few are kept."""
        if key not in self._kept:
            with visitors.ends_with_the_script():
                value = make()
            same = [other for other in list(self._kept) if other[0] == key[0]]
            for old in same[: max(0, len(same) - most + 1)]:
                self._kept.pop(old, None)
            self._kept[key] = value
        return self._kept[key]

    def remembers(self, key: tuple[Any, ...]) -> bool:
        """Whether a value was made already."""
        return key in self._kept


def sale_again(number: int, charge: Charge, kept: KeptRelease) -> Sale:
    """A release that was kept, as the sale that it was."""
    record, kind = kept.record, METHODS[kept.record.method].kind
    predictors = 1 if kind == "regression" else len(record.columns)
    return Sale(
        number=number,
        request=Request(
            columns=record.columns[:predictors],
            response=record.columns[1] if kind == "regression" else None,
            box=record.box,
            kind="modes" if kind == "regression" else kind,
        ),
        release=kept.release,
        charge=charge,
        record=record,
        units=Units(record.columns, np.array(record.box)),
        inner=kept.box,
        statements=kept.statements,
        after_reload=_KEPT,
        earlier=True,
    )


def own() -> Own:
    """This session's own data."""
    if "_own" not in st.session_state:
        st.session_state["_own"] = Own()
    HOLDINGS.keep(this_session(), st.session_state["_own"])
    return st.session_state["_own"]


def open_ledger(settings: Settings) -> Ledger:
    """The ledger under the installation's caps, opened once a session."""
    asked = (settings.ledger, settings.cap_epsilon, settings.cap_delta)
    known, held = st.session_state.get("_own_ledger", (None, None))
    if known != asked:
        held = Ledger(settings.ledger, cap_epsilon=settings.cap_epsilon, cap_delta=settings.cap_delta)
        st.session_state["_own_ledger"] = (asked, held)
    return held


def curator_allowed(source: str) -> bool:
    """Whether the curator's view exists here: not while presenting, and not where DPGRAMS_CURATOR is off.

    A file of the server's folder can be opened by every visitor, so its owner has to allow it by name.
    """
    settings = read_settings()
    allowed = settings.curator_of_folder if source == "local" else settings.curator
    return allowed and not st.session_state.get("presenter")


def plain(text: str) -> str:
    """Text that may hold a column's name, so that Markdown shows it as it is.

    >>> plain("a_b [x] :red")
    'a\\\\_b \\\\[x\\\\] \\\\:red'
    """
    return re.sub(r"([\\`*_\[\]$<>~|]|:(?=\w))", r"\\\1", text)
