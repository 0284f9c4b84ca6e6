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

import streamlit as st

from dpgrams_core.datasets.table_reader import Table
from dpgrams_core.datasets.upload import OwnData, load_table
from dpgrams_core.errors import BudgetError, DataError, SpecError
from dpgrams_core.figures.own_data import Units
from dpgrams_core.privacy.ledger import Charge, Ledger
from dpgrams_core.recipes import ReleaseRecord, release_record
from dpgrams_core.releasing import release, release_range
from dpgrams_core.results import Release
from dpgrams_core.settings import Settings, read_settings

_MOST_KEPT = 24
_FAILED = (
    "Something failed while the release was drawn, and nothing can be shown. If it was charged, the charge stays: see "
    "the ledger below."
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which columns, in which public box, for what; hashable, so it can be remembered."""

    columns: tuple[str, ...]
    response: str | None
    box: tuple[tuple[float, float], ...]
    kind: str
    drop_rows: bool

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


@dataclass(eq=False)
class Own:
    """A session's file and all that was bought for it."""

    table: Table | None = None
    source: str = ""
    uploads: int = 0  # gives the widgets of every file names of their own
    drop_rows: bool = False
    bought: dict[str, tuple[float, float]] = field(default_factory=dict)
    sales: list[Sale] = field(default_factory=list)
    problem: str = ""
    _tickets: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[Any, Any] = field(default_factory=dict)

    def take(self, table: Table, source: str) -> None:
        """Begin with a file; what was there of another one goes, and its charges stay in the ledger."""
        self._begin(table, source)

    def leave(self) -> None:
        """Let go of the file and of everything made from it."""
        self._begin(None, "")

    def _begin(self, table: Table | None, source: str) -> None:
        with self._lock:  # a purchase under way ends first: its result belongs to the file that goes
            self.table, self.source = table, source
            self.uploads += 1
            self.drop_rows, self.problem = False, ""
            self.bought, self.sales, self._kept = {}, [], {}

    @property
    def ticket(self) -> str:
        """The name of the next purchase; it is also the key of its button."""
        return f"own_buy_{self.uploads}_{len(self._tickets)}"

    def once(self, ticket: str, purchase: Callable[[], None]) -> None:
        """Make a purchase, unless its ticket was used: a second click on the same button buys nothing."""
        with self._lock:
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
        """A release, paid for in the ledger; call it by ``once``."""
        data = self.data(request)
        paid = release(method, data, ledger, **options)
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
            )
        )

    def buy_bounds(self, column: str, ledger: Ledger, epsilon: float, delta: float) -> None:
        """A column's bounds, paid for in the ledger; call it by ``once``."""
        assert self.table is not None
        paid = release_range(
            self.table, column, ledger, epsilon=epsilon, delta=delta, drop_rows_with_missing=self.drop_rows
        )
        self.bought[column] = (paid.found.low, paid.found.high)

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
                drop_rows_with_missing=request.drop_rows,
            ),
            most=1,
        )

    def remember(self, key: tuple[Any, ...], make: Callable[[], Any], most: int = _MOST_KEPT) -> Any:
        """A value that is made once in this session; of each sort (the key's first word) the last few are kept."""
        if key not in self._kept:
            value = make()
            same = [other for other in list(self._kept) if other[0] == key[0]]
            for old in same[: max(0, len(same) - most + 1)]:
                self._kept.pop(old, None)
            self._kept[key] = value
        return self._kept[key]

    def remembers(self, key: tuple[Any, ...]) -> bool:
        """Whether a value was made already."""
        return key in self._kept


def own() -> Own:
    """This session's own data."""
    if "_own" not in st.session_state:
        st.session_state["_own"] = Own()
    return st.session_state["_own"]


def open_ledger(settings: Settings) -> Ledger:
    """The ledger, opened once a session."""
    held = st.session_state.get("_own_ledger")
    if held is None or held.path != settings.ledger:
        held = st.session_state["_own_ledger"] = Ledger(settings.ledger)
    return held


def curator_allowed() -> bool:
    """Whether the curator's view exists here: not while presenting, and not where DPGRAMS_CURATOR is off."""
    return read_settings().curator and not st.session_state.get("presenter")


def plain(text: str) -> str:
    """Text that may hold a column's name, so that Markdown shows it as it is.

    >>> plain("a_b [x] :red")
    'a\\\\_b \\\\[x\\\\] \\\\:red'
    """
    return re.sub(r"([\\`*_\[\]$<>~|]|:(?=\w))", r"\\\1", text)
