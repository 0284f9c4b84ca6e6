"""The budget ledger: what was spent on each data set, durable, and never less than what was drawn.

A charge is one row of an SQLite file, written and synced to the disk *before* the noise is drawn.  Checking the cap
and writing the charge are one transaction that holds the file's write lock (``BEGIN IMMEDIATE``), so tabs, threads
and processes cannot overspend together.  The journal mode is DELETE with ``synchronous = EXTRA``: a commit returns
only when the data, the journal and the removal of the journal are on the disk.  (WAL is faster and, with FULL, as
durable, but leaves recent charges in a second file, which gets lost when someone copies or moves the ledger.)  Charges
are never deleted or changed: triggers in the file refuse it.  A charge whose draw was cut short still counts.

Every row is sealed in a chain of keyed hashes (chain.py), and a high-water mark elsewhere says how far that has come
(mark.py): a file that was changed by another hand, or put back from a backup, is refused.  The whole file is verified
when a process opens it first and whenever it is not as that process left it.  The way out of a refusal is the command
``ledger`` (restore.py), which can only lower what is left.  Losing a file never refills a budget (file.py).

Two tables that agree to seven digits share an account.  A table that overlaps another one (overlap.py) has an account
of its own, linked to the other's when it is opened: their charges count together from then on.  What was released may
be kept beside its charge (own_data/kept.py), for whoever holds exactly the same data.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import operator
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpgrams_core.model.checks import asked_epsilon, between, finite, positive
from dpgrams_core.model.errors import BudgetError
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.composition import Spent, Totals, compose, events_from_json, events_to_json
from dpgrams_core.privacy.events import Event
from dpgrams_core.privacy.ledger import file as files
from dpgrams_core.privacy.ledger.caps import CLOSED, Ceiling, cap_and_spent, group_of, is_closed, left_of, refuse_beyond
from dpgrams_core.privacy.ledger.chain import KINDS, chain_end, chain_key, entries, insert_row, is_row, last_rows, now
from dpgrams_core.privacy.ledger.digest import Identity
from dpgrams_core.privacy.ledger.mark import PLACE, WAIT_SECONDS, HighWater, LedgerBusyError, Reached, unusable
from dpgrams_core.privacy.ledger.overlap import Alike, KeyedTraces
from dpgrams_core.privacy.ledger.restore import back_up

BLIND_SPOT = (
    "The ledger knows a table by its numbers, in any order of rows and columns. It notices one that shares many rows "
    "or a column with an earlier one, also shifted or scaled: their charges count together. It does not notice a file "
    "of the same people where numbers were rounded or mixed with noise and put in another order; where all columns "
    "hold a few codes, such as answers or whole years, and rows were put in another order or left out here and there, "
    "or there are two codes and a thousand rows or more; a twentieth of the rows or fewer, or more than twenty times "
    "as many others (a tenth and ten times with more than 8 columns, a half with more than 32), and, where they were "
    "scaled or shifted and put in another order, less than nine tenths; each row repeated; or other columns of the "
    "same people. An account from before overlaps were noted is noticed once its file was opened again. It knows "
    "nothing of another ledger."
)
# What it gives away instead: whoever may open files beside a ledger can try a guess of a column and see whether a
# budget was touched, which no noise hides.  So a ledger serves those who may see the data, and a public demonstration
# takes no uploads.
GUESSES = (
    "Whoever may open files here can see whether one with the same numbers, or a good part of a column, was opened "
    "before. So let only those in who may see the data; a public demonstration takes no uploads."
)
OF_ANOTHER = "of another file, or from before this was noted"
TOGETHER = (
    "The file overlaps another one that was opened here, in many rows or in a column, so their charges count together."
)
NO_MARK = (
    "The ledger's high-water mark is not where it was, so nobody can tell whether this is an older copy of the ledger, "
    "and nothing is released. Put the mark back (DPGRAMS_LEDGER_MARK is its folder). Where it is lost, the command "
    "ledger restore opens the ledger again, with no budget left."
)
BEHIND = (
    "The ledger is behind its high-water mark: it is an older copy, or a part of it was lost. Budgets that were spent "
    "would be there again, so nothing is released. The command ledger restore adds what is missing."
)
OTHER = (
    "The ledger is not the one that its high-water mark was made for, or a copy of it went on for itself. Nothing is "
    "released. Put back the right file, or let the command ledger restore make it from the mark."
)
NOT_CHARGED = (
    "The ledger is busy: another program holds it. Nothing was drawn and nothing was charged; try again in a moment."
)
UNUSABLE = (
    "The ledger cannot be written or read. Try again, check the disk that it is on, or ask the command ledger verify."
)
_CLOCK_NANOSECONDS = 20_000_000  # a file system's clock ticks every few milliseconds
# What the files of ledgers looked like when this process last verified or wrote them; nothing of what is in them.
_VERIFIED: dict[tuple[str, str], tuple[int, ...]] = {}
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
    others: int = 0  # accounts of other tables whose charges count as well


class Ledger:
    """A ledger in one file, its key in a second one beside it (``<path>.key``), and its high-water mark elsewhere.

    All three are readable by their owner only. An account is named by a keyed hash (HMAC-SHA256) of the data set's
    content, so that no guess of the data can be checked against the name.

    Parameters
    ----------
    path : of the database; both files are made where there are none.
    cap_epsilon, cap_delta : the most that is spent on any data set through this object. A data set that was opened
        with a lower cap keeps it.
    marks : the folder of its high-water mark, by default that of the settings (DPGRAMS_LEDGER_MARK).

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "ledger.sqlite3", marks=folder.name)
    >>> account = ledger.account_of(b"digest of the content")
    >>> ledger.open_account(account, cap_epsilon=1.0, cap_delta=1e-5)
    >>> charge = ledger.charge(account, (), epsilon=0.75, delta=1e-6, status="nominal", description="an example")
    >>> ledger.account(account).left_epsilon
    0.25
    >>> ledger.charge(account, (), epsilon=0.75, delta=1e-6, status="nominal", description="another")
    Traceback (most recent call last):
    ...
    dpgrams_core.model.errors.BudgetError: This would spend ε = 0.75 and δ = 1e-06, and of the cap of ε = 1 and \
δ = 1e-05 there are ε = 0.25 and δ = 9e-06 left. Nothing was charged and nothing was drawn.
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cap_epsilon: float | None = None,
        cap_delta: float | None = None,
        marks: str | os.PathLike[str] | None = None,
    ) -> None:
        self.ceiling = Ceiling(epsilon=cap_epsilon, delta=cap_delta)
        try:
            self.path = Path(path).expanduser()
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._key = files.read_or_make_key(self.path)
            self._chain_key = chain_key(self._key)
            self.mark = HighWater(None if marks is None else Path(marks).expanduser(), self._key)
            files.own_only(self.path)
            if not self._is_ready():
                self._make()
            with self._reading() as connection:  # all of it is verified once in every process
                behind = self.mark.reached() != Reached(*chain_end(connection), torn=False)
            if behind:  # a crash came before the mark was written: what is shown from now on must be in it
                with self._transaction():
                    pass
        except (OSError, RuntimeError, sqlite3.Error):  # RuntimeError: there is no home folder
            raise BudgetError(
                "The ledger could not be opened, so nothing can be released. Check its place (DPGRAMS_LEDGER) and that "
                f"of its high-water mark ({PLACE}), and that all of it may be written."
            ) from None

    def _is_ready(self) -> bool:
        """Whether nothing is left to make or to upgrade; the ledger need not be held for it."""
        if not files.is_sealed(self.path):
            return False
        with self._database() as connection:
            return files.version_of(connection) == files.VERSION

    def _make(self) -> None:
        """Tables first, then the high-water mark, then the seal behind the key: a crash between them is no loss."""
        with self.mark.held(WAIT_SECONDS):
            with self._database() as connection:
                with _writing(connection):
                    files.set_up(connection, self.path, self._key)
                if not files.is_sealed(self.path) and self.mark.reached() is None:
                    files.check_file(connection, self._key, contents=False)
                    found = list(entries(connection))
                    if not files.is_as_made(found):  # a charge needs the seal: somebody took it away, and the mark
                        raise BudgetError(NO_MARK)
                    self.mark.write(found)
            files.seal_key(self.path)

    def account_of(self, content: bytes) -> str:
        """The name of the account of a data set, from the digest of its content."""
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()

    def exact_of(self, identity: Identity) -> str:
        """The name of exactly this table, to the last digit and with the names of its columns."""
        return hmac.new(self._key, b"exactly\n" + identity.exact, hashlib.sha256).hexdigest()

    def open_account(
        self, account: str, *, cap_epsilon: float, cap_delta: float, identity: Identity | None = None
    ) -> None:
        """Open an account with its cap, once: where it is open already, the cap that it has stays.

        ``identity`` is what the table is known by. The accounts of tables that it overlaps are linked to it, while the
        ledger is held: of two that are opened at one moment the later sees the earlier.
        """
        caps = positive("cap_epsilon", cap_epsilon), between("cap_delta", cap_delta, 0, 1)
        with self._transaction() as connection:
            if not _is_open(connection, account):
                if is_closed(connection):
                    raise BudgetError(CLOSED)
                self._insert(connection, "account", account, *map(repr, caps), now())
            if identity is not None:
                self._note_identity(connection, account, identity)

    def _note_identity(self, connection: sqlite3.Connection, account: str, identity: Identity) -> None:
        exact = self.exact_of(identity)
        known = connection.execute("SELECT 1 FROM identities WHERE account = ? AND exact = ?", (account, exact))
        if known.fetchone() is not None:
            return
        group = group_of(connection, [account])
        for other in self._overlaps(connection, account, identity):
            if other not in group:
                self._insert(connection, "link", account, other)
                group = group_of(connection, [account])
        self._insert(connection, "identity", account, exact, self._keyed(identity).text())

    def _insert(self, connection: sqlite3.Connection, kind: str, *values: str | int | bytes) -> None:
        row = dict(zip(KINDS[kind].columns, values, strict=True))
        insert_row(connection, self._chain_key, kind, row)

    def _keyed(self, identity: Identity) -> KeyedTraces:
        return KeyedTraces(identity.traces, hmac.digest(self._key, b"the traces of this ledger", "sha256"))

    def _overlaps(self, connection: sqlite3.Connection, account: str, identity: Identity) -> dict[str, Alike]:
        """The accounts of other tables that a table overlaps, and in what."""
        keyed = self._keyed(identity)
        found: dict[str, Alike] = {}
        query = "SELECT account, traces FROM identities WHERE account <> ? ORDER BY rowid"
        for other, text in connection.execute(query, (account,)):
            if alike := keyed.alike(text):
                found[other] = found.get(other, Alike()) | alike
        return found

    def overlap(self, account: str, identity: Identity) -> Alike:
        """In what a table overlaps others that were opened here, by the names of its own columns."""
        with self._reading() as connection:
            found = self._overlaps(connection, account, identity).values()
        return functools.reduce(operator.or_, found, Alike())

    def is_open(self, account: str) -> bool:
        with self._reading() as connection:
            return _is_open(connection, account)

    def check_room(self, account: str, *, epsilon: float, delta: float, identity: Identity | None = None) -> None:
        """Raise the ``BudgetError`` that a charge would meet now, and charge nothing; another one may come between.

        An account that is not open yet is taken as one that is opened with this ledger's own cap, for the table of
        this identity.
        """
        with self._reading() as connection:
            joined = [] if identity is None else list(self._overlaps(connection, account, identity))
            caps, spent = cap_and_spent(connection, account, self.ceiling, opening=True, joined=joined)
            refuse_beyond(caps, spent, epsilon, delta, _together(group_of(connection, (account, *joined))))

    def charge(
        self,
        account: str,
        events: tuple[Event, ...],
        *,
        epsilon: float,
        delta: float,
        status: str,
        description: str,
        identity: Identity | None = None,
    ) -> Charge:
        """Write a charge, or raise a ``BudgetError`` where the cap does not allow it; on return it is on the disk.

        Parameters
        ----------
        account : from ``account_of``, opened before.
        events : what will run, for the tight total; empty where the mechanism cannot be described.
        epsilon, delta : what is charged; the events must not cost more.
        status : of the guarantee: "proven", "as published" or "nominal".
        description : public words, such as the method and the columns.
        identity : of the table, to which alone the description and what is kept are shown again.
        """
        epsilon, delta = asked_epsilon("epsilon", epsilon), finite("delta", delta)
        if not 0 <= delta < 1:
            raise ValueError("delta must be at least 0 and below 1; nothing was charged")
        if events and price(events, delta or 1e-300).epsilon > epsilon * (1 + 1e-6):
            raise ValueError("the events cost more than what is charged; nothing was charged")
        with _charging(), self._transaction() as connection:
            why = _together(group_of(connection, [account]))
            refuse_beyond(*cap_and_spent(connection, account, self.ceiling), epsilon, delta, why)
            number, at = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM charges").fetchone()[0], now()
            amounts = repr(epsilon), repr(delta)
            self._insert(
                connection, "charge", number, account, at, description, *amounts, status, events_to_json(events)
            )
            if identity is not None:
                self._insert(connection, "owner", number, self.exact_of(identity))
        return Charge(number, account, at, description, epsilon, delta, status, events, drawn=False)

    def confirm(self, charge: Charge) -> None:
        """Note that the release of a charge was finished, for the reader of the ledger; no total depends on it."""
        with self._transaction() as connection:
            self._note_draw(connection, charge)

    def _note_draw(self, connection: sqlite3.Connection, charge: Charge) -> None:
        if connection.execute("SELECT 1 FROM draws WHERE charge = ?", (charge.id,)).fetchone() is None:
            self._insert(connection, "draw", charge.id, now())

    def keep(self, charge: Charge, content: bytes, *, instead: bool = False) -> None:
        """Note that a release was finished and keep what came out of it, once; on return it is on the disk.

        ``content`` must hold nothing but what may be published (``dpgrams_core.own_data.kept.pack_release``).
        ``instead`` puts it in the place of what was kept: the same draw, with what was read off it since.
        """
        with self._transaction() as connection:
            self._note_draw(connection, charge)
            there = connection.execute("SELECT 1 FROM kept WHERE charge = ?", (charge.id,)).fetchone()
            if instead or there is None:
                self._insert(connection, "kept", charge.id, now(), content)

    def kept(self, account: str, identity: Identity | None = None) -> list[tuple[Charge, bytes]]:
        """What was kept for the charges of exactly one table, in their order, and nothing of any other.

        Without an identity: what was kept before identities were noted, of whatever table that shares the account. What
        is no longer the content that was kept comes back empty.
        """
        query = "SELECT charge, kept.at, content FROM kept JOIN charges ON charges.id = kept.charge WHERE account = ?"
        with self._reading() as connection:
            rows = [dict(zip(KINDS["kept"].columns, row, strict=True)) for row in connection.execute(query, (account,))]
            sealed = last_rows(connection, "kept") if rows else {}
            owners = dict(connection.execute("SELECT charge, exact FROM owners").fetchall())
        found = {
            row["charge"]: row["content"] if is_row(self._chain_key, row, sealed.get((row["charge"],), "")) else b""
            for row in rows
        }
        exact = None if identity is None else self.exact_of(identity)
        return [
            (charge, found[charge.id])
            for charge in self.charges(account)
            if charge.id in found and owners.get(charge.id) == exact
        ]

    def is_shared(self, account: str, identity: Identity) -> bool:
        """Whether an account has charges of another table as well, one that agrees with this to seven digits."""
        query = "SELECT 1 FROM owners JOIN charges ON charges.id = owners.charge WHERE account = ? AND exact <> ?"
        with self._reading() as connection:
            return connection.execute(query, (account, self.exact_of(identity))).fetchone() is not None

    def charges(self, account: str | None = None) -> list[Charge]:
        """All charges of one account, or of all, in the order in which they were made."""
        tables = "charges LEFT JOIN draws ON draws.charge = charges.id WHERE coalesce(?1, account) = account"
        with self._reading() as connection:
            rows = connection.execute(f"SELECT {_CHARGE_COLUMNS} FROM {tables} ORDER BY id", (account,)).fetchall()
        return [
            Charge(number, name, at, text, float(epsilon), float(delta), status, events_from_json(events), bool(drawn))
            for number, name, at, text, epsilon, delta, status, events, drawn in rows
        ]

    def account(self, account: str) -> Account:
        """Cap in force, totals and what is left of one account, with all whose charges count as well."""
        with self._reading() as connection:
            caps, spent = cap_and_spent(connection, account, self.ceiling)
            others = len(group_of(connection, [account])) - 1
        cap_epsilon, cap_delta, left_epsilon, left_delta = map(float, (*caps, *left_of(caps, spent)))
        return Account(account, cap_epsilon, cap_delta, left_epsilon, left_delta, self.totals(account), others)

    def together(self, account: str) -> list[Charge]:
        """All charges that count against an account, in the order in which they were made."""
        with self._reading() as connection:
            group = group_of(connection, [account])
        return sorted((charge for name in group for charge in self.charges(name)), key=lambda charge: charge.id)

    def totals(self, account: str) -> Totals:
        """The sum of all charges that count against an account and their tight composition, side by side."""
        return compose([Spent(row.epsilon, row.delta, row.status, row.events) for row in self.together(account)])

    def statement(self, account: str, identity: Identity) -> list[dict[str, object]]:
        """All charges that count against an account, as rows for whoever holds this table.

        Those of exactly this table are told in full. Of any other there are the amounts and nothing else: neither when
        it was made, nor what it was, which names columns.
        """
        with self._reading() as connection:
            exact = (self.exact_of(identity),)
            own = {number for (number,) in connection.execute("SELECT charge FROM owners WHERE exact = ?", exact)}
        told = []
        for row in self.together(account):
            amounts = {"release": OF_ANOTHER, "epsilon": row.epsilon, "delta": row.delta}
            words: dict[str, object] = {
                "charge": str(row.id),
                "time": row.at,
                **(amounts | {"release": row.description}),
                "status": row.status,
                "finished": "yes" if row.drawn else "no",
                "events": events_to_json(row.events),
            }
            told.append(words if row.id in own else dict.fromkeys(words, "") | amounts)
        return told

    def back_up(self, target: str | os.PathLike[str]) -> int:
        """Copy the ledger and its key to another place, as they are at one moment; how many entries the copy holds."""
        with self._reading() as connection:
            return back_up(connection, self.path, Path(target).expanduser())

    def _connection(self) -> sqlite3.Connection:
        place = self.path.absolute().as_uri() + "?mode=rw"  # a file that is gone is not made again, empty
        connection = sqlite3.connect(place, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        # UnicodeDecodeError: the names in a damaged file may be no text
        with _told(sqlite3.DatabaseError, UnicodeDecodeError), closing(self._connection()) as connection:
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """The ledger is verified and held for a block; at its end it is on the disk, or on an error as it was.

        The high-water mark follows the database: what the caller then does, such as drawing, comes after both.
        """
        with _told(OSError), self.mark.held(WAIT_SECONDS), self._database() as connection:
            with _writing(connection):
                reached = self._verified(connection, self.mark.reached())
                yield connection
                found = list(entries(connection, after=reached))
            try:
                self.mark.append(found)
            except OSError:
                raise BudgetError(
                    "The ledger's high-water mark cannot be written, perhaps for want of room on its disk. Nothing was "
                    f"drawn; what was charged counts. Check its place ({PLACE})."
                ) from None
            self._remember()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """The ledger as it is at one moment, verified."""
        with _told(OSError):
            reached = self.mark.reached()  # before the database, which is written first: so it can never seem ahead
        with self._database() as connection:
            connection.execute("BEGIN")
            self._verified(connection, reached)
            yield connection
            connection.execute("COMMIT")

    def _verified(self, connection: sqlite3.Connection, reached: Reached | None) -> int:
        """Refuse a ledger that was changed, or that is behind its high-water mark; the number that the mark is at.

        The whole ledger is read where its file is not as this process left it.
        """
        files.refuse_other(connection, self._key)
        if _VERIFIED.get(self._place) != _state(self.path):
            files.check_file(connection, self._key, contents=False)
            self._remember()
        return refuse_behind(connection, reached)

    def _remember(self) -> None:
        """Note what the file looks like, unless it is so young that the clock may not tell the next change from it."""
        state = _state(self.path)
        if time.time_ns() - state[0] > _CLOCK_NANOSECONDS:
            _VERIFIED[self._place] = state
        else:
            _VERIFIED.pop(self._place, None)

    @property
    def _place(self) -> tuple[str, str]:
        return str(self.path.absolute()), files.seal_of(self._key)


def refuse_behind(connection: sqlite3.Connection, reached: Reached | None) -> int:
    """Refuse a ledger that lacks what its high-water mark holds; the number that the mark is at."""
    if reached is None:
        raise BudgetError(NO_MARK)
    there = connection.execute("SELECT mark FROM chain WHERE number = ?", (reached.number,)).fetchone()
    if there is not None and there[0] != reached.mark:
        raise BudgetError(OTHER)
    if there is None or (reached.torn and chain_end(connection)[0] == reached.number):
        raise BudgetError(BEHIND)
    return reached.number


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    """The write lock of the database for a block: committed and synced at its end, undone on an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite itself undoes what finds no room on the disk
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _charging() -> Iterator[None]:
    """Where a charge meets a ledger that is held, it was not made: then that may be said."""
    try:
        yield
    except LedgerBusyError:
        raise LedgerBusyError(NOT_CHARGED) from None


def _state(path: Path) -> tuple[int, ...]:
    """What changes with every change of a file. (It must not be opened: closing it would end SQLite's locks.)"""
    found = path.stat()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


@contextmanager
def _told(*errors: type[Exception]) -> Iterator[None]:
    """What the disk or SQLite refuses is said in a sentence."""
    try:
        yield
    except errors as error:
        raise unusable(error, UNUSABLE) from None


def _is_open(connection: sqlite3.Connection, account: str) -> bool:
    return connection.execute("SELECT 1 FROM accounts WHERE account = ?", (account,)).fetchone() is not None


def _together(group: list[str]) -> str:
    return TOGETHER if len(group) > 1 else ""
