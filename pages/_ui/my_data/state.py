"""What one session holds of a user's own data. It lives in that session alone, never in a cache that others share.

Streamlit may start the script again while an earlier run of it is still busy, for instance after a second click, and
then ends the earlier one at its next call into Streamlit, also at a write to the session.  A paid release must neither
be paid twice nor be lost that way.  So the session holds one plain object: what is bought is put into it without any
such call, and every purchase has a ticket that is good for one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from dpgrams_core.figures.own_data import Units
from dpgrams_core.methods.registry import METHODS, private_methods
from dpgrams_core.model.environment import Settings, read_settings
from dpgrams_core.model.errors import BudgetError, DataError, SpecError
from dpgrams_core.model.format import written
from dpgrams_core.model.progress import uninterrupted
from dpgrams_core.model.run import DatasetInfo
from dpgrams_core.own_data.kept import read_kept
from dpgrams_core.own_data.reading.table import Table
from dpgrams_core.own_data.record import RecordedRelease
from dpgrams_core.own_data.release import release, release_range
from dpgrams_core.own_data.table import OwnData, load_table
from dpgrams_core.own_data.twin import released_twin
from dpgrams_core.privacy.ledger.book import Charge, Ledger
from pages._ui.jobs import PRIVATE_WORKERS, in_private_worker
from pages._ui.server import visitors
from pages._ui.server.visitors import HOLDINGS, this_session

_MOST_KEPT = 24
# Of all visitors: what is paid for is never stopped half-way.  A session buys one thing at a time and the first to come
# is the next, so everybody waits for one purchase of each other at most.
_DRAWS_AT_ONCE = threading.BoundedSemaphore(PRIVATE_WORKERS)
_TURN_SECONDS = 60.0  # that a purchase waits for its turn, before it is charged
_BUSY = "Releases of other visitors are being drawn. Nothing was charged: press again in a moment."
_FAILED = (
    "Something failed while the release was drawn, and nothing can be shown. If it was charged, the charge stays: see "
    "the ledger below."
)
# What can be looked for in a file, in the words of every control that offers it.
GOALS = {"modes": "Modes", "clusters": "Clusters", "regression": "A response over a predictor"}
_LOST = "A reload of this page loses it, and another one costs again: take it with you."
_KEPT = "It is kept beside its charge. After a reload of this page open the same file again: it is there, for free."
_NOT_KEPT = f"It could not be kept: the ledger could not be written, perhaps for want of room on the disk. {_LOST}"
_OFF = f"Nothing is kept on this server. {_LOST}"
_EXAMPLE = f"The example file is made afresh at every press, so nothing is kept for it. {_LOST}"


def proven_settings(method: str) -> dict[str, str]:
    """The calibration of a method with a proof, where it has several."""
    known = METHODS[method]
    names = (name for name in known.calibrations if known.status_with({"calibration": name}) == "proven")
    return next(({"calibration": name} for name in names), {})


WAYS = {  # to look for modes: those that release a surface first
    name: ", ".join([METHODS[name].title, *proven_settings(name).values()])
    for name in sorted(private_methods("modes"), key=lambda name: METHODS[name].bare is None)
    if METHODS[name].status_with(proven_settings(name)) == "proven"
}
_DRAWN_HERE = (*WAYS, "functional_c", "functional_regression")  # the command releases others, too


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which columns (the response last), in which public box, for what; hashable, so it can be remembered."""

    names: tuple[str, ...]
    box: tuple[tuple[float, float], ...]
    kind: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Sale(RecordedRelease):
    """A paid release as it is shown; no record of the data is in it."""

    number: int
    charge: Charge
    after_reload: str  # what becomes of it then, in a sentence or two
    earlier: bool = False  # it was paid for before this file was opened here

    @property
    def units(self) -> Units:
        return Units(self.record.columns, np.array(self.record.box))

    @property
    def kind(self) -> str:
        """The problem that it belongs to: modes, clusters or regression."""
        return METHODS[self.record.method].kind

    @property
    def request(self) -> Request:
        """What was asked for."""
        return Request(names=self.record.columns, box=self.record.box, kind=self.kind)


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
    remembered: dict[Any, Any] = field(default_factory=dict)

    def take(self, table: Table | None, source: str, problem: str = "") -> None:
        """Begin with a file, or say why it could not be read, with an empty place for another one.

        What was there of another one goes, and its charges stay in the ledger.
        """
        with self._lock:  # a purchase under way ends first: its result belongs to the file that goes
            self.table, self.source, self.problem = table, source, problem
            self.uploads += 1
            self.bought, self.sales, self.remembered = {}, [], {}
            self.bought_earlier, self.not_shown, self._restored = (), (), False

    def leave(self) -> None:
        """Let go of the file and of everything made from it."""
        self.take(None, "")

    @property
    def held_bytes(self) -> int:
        """The memory that the numbers of a visitor's own file take; those of a local file are the owner's business."""
        if self.table is None or self.source == "local":
            return 0
        picked = sum(value.points.nbytes for key, value in list(self.remembered.items()) if key[0] == "data")
        return picked + sum(array.nbytes for array in self.table.values.values())

    def restore(self, table: Table, ledger: Ledger) -> None:
        """Bring back what was paid for earlier, once for every opening of a file; nothing is read off the records."""
        if self._restored:
            return
        with self._lock:
            if self._restored or table is not self.table:  # another run of the script was faster, with another file
                return
            found = read_kept(ledger, table.identity)
            here = [pair for pair in found.releases if pair[1].record.method in _DRAWN_HERE]
            self.sales = [
                Sale(**vars(kept), number=number, charge=charge, after_reload=_KEPT, earlier=True)
                for number, (charge, kept) in enumerate(here, start=1)
            ]
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
        """A release, paid for in the ledger and drawn by a worker process; call it by ``once``."""
        data = self.data(request)
        with _in_turn():
            paid = release(method, data, ledger, keep=self._keeps, worker=in_private_worker, **options)
        if self._keeps and not paid.kept:
            self.problem = f"The release is there and paid for. {_NOT_KEPT}"
        lost = _NOT_KEPT if self._keeps else _EXAMPLE if self.source == "example" else _OFF
        facts = {name: value for name, value in vars(paid).items() if name != "kept"}
        self.sales.append(Sale(**facts, number=len(self.sales) + 1, after_reload=_KEPT if paid.kept else lost))

    def buy_bounds(self, column: str, ledger: Ledger, epsilon: float, delta: float) -> None:
        """A column's bounds, paid for in the ledger; call it by ``once``."""
        assert self.table is not None
        bought: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "keep": self._keeps, "worker": in_private_worker}
        with _in_turn():
            paid = release_range(self.table, column, ledger, **bought)
        self.bought[column] = (paid.found.low, paid.found.high)

    @property
    def _keeps(self) -> bool:
        """Whether what is bought is kept in the ledger: nobody opens the same example file again."""
        return self.source != "example" and read_settings().keep

    def data(self, request: Request) -> OwnData:
        """The picked columns as private data."""
        assert self.table is not None
        table, columns = self.table, request.names
        asked: dict[str, Any] = {"columns": columns, "box": request.box, "kind": request.kind}
        if request.kind == "regression":
            asked |= {"columns": columns[:1], "response": columns[1], "kind": "modes"}  # a response makes it regression
        return self.remember(("data", request), lambda: load_table(table, **asked), most=1)

    def twin(self, sale: Sale) -> DatasetInfo | None:
        """The twin of a release as a data set, or None where there is none: no surface, or nothing above the noise.

        The title holds no column's name: it stands in results that every session shares.
        """
        shown, surface = sale.release, sale.release.surface
        if surface is None:
            return None

        def make() -> DatasetInfo | None:
            title = f"the twin of release {sale.number}"
            try:
                return released_twin(
                    surface, sale.kind, sale.units.box, shown.rows, branches=shown.branches, title=title
                )
            except DataError:
                return None

        return self.remember(("lab_twin", sale.number), make)

    def remember(self, key: tuple[Any, ...], make: Callable[[], Any], most: int = _MOST_KEPT) -> Any:
        """A value that is made once in this session; of each sort (the key's first word) the last few are kept."""
        if key not in self.remembered:
            with visitors.ends_with_the_script():
                value = make()
            same = [other for other in list(self.remembered) if other[0] == key[0]]
            for old in same[: max(0, len(same) - most + 1)]:
                self.remembered.pop(old, None)
            self.remembered[key] = value
        return self.remembered[key]


@contextmanager
def _in_turn() -> Iterator[None]:
    """Wait until one of the workers is free, or refuse before anything is charged."""
    if not _DRAWS_AT_ONCE.acquire(timeout=_TURN_SECONDS):
        raise DataError(_BUSY)
    try:
        yield
    finally:
        _DRAWS_AT_ONCE.release()


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


def number_slider(label: str, values: Sequence[float], key: str, **more: Any) -> float:
    """A slider over given numbers, which stays where it was put for the whole session."""
    return st.select_slider(label, values, format_func=written, key=key, persist_state="session", **more)
