"""The budget ledger: what was spent on each data set, durable, and never less than what was drawn.

A charge is one row of an SQLite file, written and synced to the disk *before* the noise is drawn.  Checking the cap
and writing the charge are one transaction that holds the file's write lock (``BEGIN IMMEDIATE``), so tabs, threads
and processes cannot overspend together.  The journal mode is DELETE with ``synchronous = EXTRA``: a commit returns
only when the data, the journal and the removal of the journal are on the disk.  (WAL is faster and, with FULL, as
durable, but leaves recent charges in a second file, which gets lost when someone copies or moves the ledger.)  Charges
are never deleted or changed: triggers in the file refuse it.  A charge whose draw was cut short still counts.

What was released may be kept beside its charge (kept_releases.py): paid for and public, so that it need not be paid for
again.  It is found by the account, that is, by whoever holds the same data.

A data set has the cap that it was opened with; where the ledger itself is opened with a lower one, that counts
(ledger_caps.py).  Losing one of the ledger's two files never refills a budget (ledger_file.py).
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dpgrams_core.checks import between, finite, positive
from dpgrams_core.errors import BudgetError
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.composition import Spent, Totals, compose, events_from_json, events_to_json
from dpgrams_core.privacy.events import Event
from dpgrams_core.privacy.ledger_caps import Ceiling, cap_and_spent, left_of, refuse_beyond
from dpgrams_core.privacy.ledger_chain import chain_key, insert_row
from dpgrams_core.privacy.ledger_file import mark_key, read_or_make_key, set_up
from dpgrams_core.tables import safe_text

BLIND_SPOT = (
    "The ledger knows a table by its numbers, in any order of rows and columns. It cannot see that another file holds "
    "the same people: a changed, added or removed row or column is a new data set to it, and so is another ledger."
)
# What it gives away instead: whoever may open files beside a ledger can try a guess of *all* records and see whether
# its budget was touched, which no noise hides.  So a ledger serves those who may see the data, and a public
# demonstration takes no uploads.
GUESSES = (
    "Whoever may open files here can see whether one with exactly the same numbers was opened before. So let only "
    "those in who may see the data; a public demonstration takes no uploads."
)
WAIT_SECONDS = 60.0
_CHARGE_COLUMNS = "id, account, charges.at, description, epsilon, delta, status, events, draws.at IS NOT NULL"


@dataclass(frozen=True)
class Charge:
    """One row of the ledger. ``drawn`` says that the release was finished; a charge counts whether or not it was."""

    id: int
    account: str
    at: str
    description: str
    epsilon: float
    delta: float
    status: str
    events: tuple[Event, ...]
    drawn: bool


@dataclass(frozen=True)
class Account:
    """The state of one data set's budget; its cap is the one in force."""

    account: str
    cap_epsilon: float
    cap_delta: float
    left_epsilon: float
    left_delta: float
    totals: Totals


class Ledger:
    """A ledger in one file, with its key in a second one beside it (``<path>.key``, readable by its owner only).

    An account is named by a keyed hash (HMAC-SHA256) of the data set's content, so that no guess of the data can be
    checked against the name. What is kept beside a charge is public, as every release is.

    Parameters
    ----------
    path : of the database; both files are made where there are none.
    cap_epsilon, cap_delta : the most that is spent on any data set through this object. A data set that was opened
        with a lower cap keeps it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "ledger.sqlite3")
    >>> account = ledger.account_of(b"digest of the content")
    >>> ledger.open_account(account, cap_epsilon=1.0, cap_delta=1e-5)
    >>> charge = ledger.charge(account, (), epsilon=0.75, delta=1e-6, status="nominal", description="an example")
    >>> ledger.account(account).left_epsilon
    0.25
    >>> ledger.charge(account, (), epsilon=0.75, delta=1e-6, status="nominal", description="another")
    Traceback (most recent call last):
    ...
    dpgrams_core.errors.BudgetError: This would spend ε = 0.75 and δ = 1e-06, and of the cap of ε = 1 and δ = 1e-05 \
there are ε = 0.25 and δ = 9e-06 left. Nothing was charged and nothing was drawn.
    >>> folder.cleanup()
    """

    def __init__(
        self, path: str | os.PathLike[str], *, cap_epsilon: float | None = None, cap_delta: float | None = None
    ) -> None:
        self.path = Path(path).expanduser()
        self.ceiling = Ceiling(epsilon=cap_epsilon, delta=cap_delta)
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._key = read_or_make_key(self.path)
            self._chain_key = chain_key(self._key)
            with self._transaction() as connection:
                set_up(connection, self.path, self._key, self.account_of(b"the seal of this ledger"))
            mark_key(self.path)  # the tables are on the disk, and no charge is yet: from now on they must be there
        except (OSError, sqlite3.Error):
            raise BudgetError(
                "The ledger could not be opened, so nothing can be released. Check its place (DPGRAMS_LEDGER) and that "
                "it and its key file may be written."
            ) from None

    def account_of(self, content: bytes) -> str:
        """The name of the account of a data set, from the digest of its content."""
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()

    def open_account(self, account: str, *, cap_epsilon: float, cap_delta: float) -> None:
        """Open an account with its cap, once: where it is open already, the cap that it has stays."""
        caps = positive("cap_epsilon", cap_epsilon), between("cap_delta", cap_delta, 0, 1)
        row = {"account": account, "cap_epsilon": repr(caps[0]), "cap_delta": repr(caps[1]), "opened": _now()}
        with self._transaction() as connection:
            if connection.execute("SELECT 1 FROM accounts WHERE account = ?", (account,)).fetchone() is None:
                insert_row(connection, self._chain_key, "account", row)

    def is_open(self, account: str) -> bool:
        """Whether an account has its cap yet."""
        with self._reading() as connection:
            return connection.execute("SELECT 1 FROM accounts WHERE account = ?", (account,)).fetchone() is not None

    def check_room(self, account: str, *, epsilon: float, delta: float) -> None:
        """Raise the ``BudgetError`` that a charge would meet now, and charge nothing; another one may come between.

        An account that is not open yet is taken as one that is opened with this ledger's own cap.
        """
        with self._reading() as connection:
            caps, spent = cap_and_spent(connection, account, self.ceiling, opening=True)
        refuse_beyond(caps, spent, epsilon, delta)

    def charge(
        self, account: str, events: tuple[Event, ...], *, epsilon: float, delta: float, status: str, description: str
    ) -> Charge:
        """Write a charge, or raise a ``BudgetError`` where the cap does not allow it; on return it is on the disk.

        Parameters
        ----------
        account : from ``account_of``, opened before.
        events : what will run, for the tight total; empty where the mechanism cannot be described.
        epsilon, delta : what is charged; the events must not cost more.
        status : of the guarantee: "proven", "as published" or "nominal".
        description : public words, such as the method and the columns.
        """
        epsilon, delta = positive("epsilon", epsilon), finite("delta", delta)
        if not 0 <= delta < 1:
            raise ValueError("delta must be at least 0 and below 1; nothing was charged")
        if events and price(events, delta or 1e-300).epsilon > epsilon * (1 + 1e-6):
            raise ValueError("the events cost more than what is charged; nothing was charged")
        with self._transaction() as connection:
            refuse_beyond(*cap_and_spent(connection, account, self.ceiling), epsilon, delta)
            number, at = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM charges").fetchone()[0], _now()
            row = {
                "id": number,
                "account": account,
                "at": at,
                "description": description,
                "epsilon": repr(epsilon),
                "delta": repr(delta),
                "status": status,
                "events": events_to_json(events),
            }
            insert_row(connection, self._chain_key, "charge", row)
        return Charge(number, account, at, description, epsilon, delta, status, events, drawn=False)

    def confirm(self, charge: Charge) -> None:
        """Note that the release of a charge was finished, for the reader of the ledger; no total depends on it."""
        with self._transaction() as connection:
            self._note_draw(connection, charge)

    def _note_draw(self, connection: sqlite3.Connection, charge: Charge) -> None:
        if connection.execute("SELECT 1 FROM draws WHERE charge = ?", (charge.id,)).fetchone() is None:
            insert_row(connection, self._chain_key, "draw", {"charge": charge.id, "at": _now()})

    def keep(self, charge: Charge, content: bytes, *, instead: bool = False) -> None:
        """Note that a release was finished and keep what came out of it, once; on return it is on the disk.

        ``content`` must hold nothing but what may be published (``dpgrams_core.kept_releases.pack_release``).
        ``instead`` puts it in the place of what was kept: the same draw, with what was read off it since.
        """
        with self._transaction() as connection:
            self._note_draw(connection, charge)
            there = connection.execute("SELECT 1 FROM kept WHERE charge = ?", (charge.id,)).fetchone()
            if instead or there is None:
                insert_row(connection, self._chain_key, "kept", {"charge": charge.id, "at": _now(), "content": content})

    def kept(self, account: str) -> list[tuple[Charge, bytes]]:
        """What was kept for the charges of one account, in their order, and nothing of any other account."""
        query = "SELECT charge, content FROM kept JOIN charges ON charges.id = kept.charge WHERE account = ?"
        with self._reading() as connection:
            found = dict(connection.execute(query, (account,)).fetchall())
        return [(charge, found[charge.id]) for charge in self.charges(account) if charge.id in found]

    def charges(self, account: str | None = None) -> list[Charge]:
        """All charges of one account, or of all, in the order in which they were made."""
        query = f"SELECT {_CHARGE_COLUMNS} FROM charges LEFT JOIN draws ON draws.charge = charges.id"
        with self._reading() as connection:
            if account is None:
                rows = connection.execute(query + " ORDER BY id").fetchall()
            else:
                rows = connection.execute(query + " WHERE account = ? ORDER BY id", (account,)).fetchall()
        return [
            Charge(number, name, at, text, float(epsilon), float(delta), status, events_from_json(events), bool(drawn))
            for number, name, at, text, epsilon, delta, status, events, drawn in rows
        ]

    def account(self, account: str) -> Account:
        """Cap in force, totals and what is left of one account."""
        with self._reading() as connection:
            caps, spent = cap_and_spent(connection, account, self.ceiling)
        epsilon, delta = left_of(caps, spent)
        return Account(
            account, float(caps[0]), float(caps[1]), float(epsilon), float(delta), totals=self.totals(account)
        )

    def totals(self, account: str) -> Totals:
        """The sum of all charges of an account and their tight composition, side by side."""
        return compose([Spent(row.epsilon, row.delta, row.status, row.events) for row in self.charges(account)])

    def export(self, account: str | None = None) -> list[dict[str, object]]:
        """The charges as plain rows; accounts are keyed hashes, so no secret is in them."""
        return [
            {
                "charge": row.id,
                "data set": row.account,
                "time": row.at,
                "release": row.description,
                "epsilon": row.epsilon,
                "delta": row.delta,
                "status": row.status,
                "finished": row.drawn,
                "events": events_to_json(row.events),
            }
            for row in self.charges(account)
        ]

    def export_csv(self, account: str | None = None) -> str:
        """The same as CSV text."""
        names = ("charge", "data set", "time", "release", "epsilon", "delta", "status", "finished", "events")
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        for row in self.export(account):
            safe = {name: safe_text(value) if isinstance(value, str) else value for name, value in row.items()}
            writer.writerow(safe)
        return text.getvalue()

    def _connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """The write lock of the file for the length of a block: committed and synced at its end, undone on an error."""
        try:
            with closing(self._connection()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            raise _unusable(error) from None

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._connection()) as connection:
                yield connection
        except sqlite3.DatabaseError as error:
            raise _unusable(error) from None


def _unusable(error: sqlite3.DatabaseError) -> BudgetError:
    why = "is busy" if "locked" in str(error) or "busy" in str(error) else "cannot be written or read"
    return BudgetError(f"The ledger {why}. Nothing was drawn; try again, or check the disk that it is on.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
