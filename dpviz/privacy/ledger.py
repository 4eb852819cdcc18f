"""The ledger: what each private dataset has already lost, and the cap it may not pass."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from platformdirs import user_data_path

from dpviz.errors import BudgetError, RefusedError, SettingError
from dpviz.privacy.accounts import Account, Entry, Terms, amount_of, budget_of, checked_text, exact_amount, exact_text
from dpviz.privacy.budget import Budget
from dpviz.privacy.ledger_file import LedgerFile

__all__ = ["Account", "Entry", "Ledger", "Terms", "default_path"]

PURPOSES = ("draw", "release")


class Ledger:
    """What each private dataset has lost so far: one small file that every draw passes before any noise is drawn.

    The guarantee: for each dataset, the sum of the budgets of all draws made through this ledger never passes its cap, however many
    processes, threads, crashes and restarts there were. The argument: `pay` (or `spend`) adds the draw inside one exclusive transaction
    that reads the sum, compares exact fractions and returns only once the new sum is synced to the disk; only then may noise be drawn.
    A crash before the commit leaves neither an entry nor a draw; a crash after it leaves an entry, perhaps without its draw. So what is
    counted is at least what was drawn: a crash can over-count, never under-count. Whatever keeps the ledger from being read or written
    (a full disk, a read-only or damaged file) is a `RefusedError`, and nothing may be drawn then.

    A dataset is recognised by its name and by marks of its content, the bytes of its file and its counts on the public frame: after
    renaming, copying, converting or another frame it has the account that it had, as long as one of the three is still the same.
    Marks are kept as HMACs with a key of this ledger, so that they mean nothing beside another one; who holds the file can still
    try out a guess, hence mode 0600. Marks of data whose truth was looked at are kept with or without an account; an account with one
    of them says so.

    What it cannot do: data that come in another file, on another frame and under another name at once (with a bound per person,
    which chooses records at random, in another file and under another name) are new to it: keep one name per dataset. A ledger that
    is deleted, or brought back from an old backup, forgets; a person who draws around it is not counted. It guards an honest curator
    against mistakes, not against themselves. Keep the file on a local disk: locks on network drives cannot be relied on.

    Attributes:
        path: the file; made by the first `open`, `pay` or `note_seen`, missing until then.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(os.path.expanduser(path or default_path())).absolute()  # noqa: PTH111
        self._file = LedgerFile(self.path)

    def accounts(self) -> list[Account]:
        """Every dataset, oldest first; none where there is no ledger yet.

        Raises:
            RefusedError: the ledger cannot be read or trusted.
        """
        if not self._file.exists():
            return []
        with self._file.reading() as db:
            return [_account(db, row) for row in db.execute("SELECT * FROM dataset ORDER BY id").fetchall()]

    def account(self, name: str) -> Account:
        """One dataset by its name.

        Raises:
            RefusedError: no dataset has that name, or the ledger cannot be read or trusted.
        """
        with self._file.reading() as db:
            return _account(db, _named(db, name))

    def entries(self, name: str) -> list[Entry]:
        """A dataset's draws, oldest first.

        Raises:
            RefusedError: as `account`.
        """
        with self._file.reading() as db:
            rows = db.execute("SELECT * FROM draw WHERE dataset = ? ORDER BY id", (_named(db, name)["id"],)).fetchall()
            with _refusing(name):
                return [_entry(row) for row in rows]

    def recognised(self, marks: Iterable[str]) -> Account | None:
        """The account that data with any of these marks have, under whatever name.

        Raises:
            RefusedError: the marks belong to different accounts, or the ledger cannot be read or trusted.
        """
        if not self._file.exists():
            return None
        marks = _checked_marks(marks)
        with self._file.reading() as db:
            row = _recognised(db, _keyed(db, marks))
            return _account(db, row) if row else None

    def entry(self, entry_id: int) -> tuple[Account, Entry]:
        """One draw by its number, with the account that paid for it.

        Raises:
            RefusedError: no such draw, or the ledger cannot be read or trusted.
        """
        with self._file.reading() as db:
            row = db.execute("SELECT * FROM draw WHERE id = ?", (entry_id,)).fetchone()
            if row is None:
                raise RefusedError("The ledger has no such draw.")
            account = _account(db, db.execute("SELECT * FROM dataset WHERE id = ?", (row["dataset"],)).fetchone())
            with _refusing(account.name):
                return account, _entry(row)

    def open(self, name: str, marks: Iterable[str], terms: Terms) -> Account:
        """The account of a dataset: the one its marks or its name have, else a new one.

        A new mark under a known name joins that account (the data in another form, or a later version), so that what was spent stays
        counted. Spend from the account that is returned: its name may be an older one. As long as nothing was drawn, other terms
        take the place of those it had: a cap that was too small for any draw binds nobody.

        Args:
            name: what the curator calls the dataset.
            marks: hex digests of content, at least one: of the file's bytes, of the counts on a lattice.
            terms: what an account without draws is opened with, and what one with draws must have.

        Raises:
            RefusedError: other terms than the account has; marks or a name that belong to different accounts; or the
                ledger cannot be written or trusted.
            SettingError: a name that is no short text, or marks that are no hex digests.
        """
        name, marks = checked_text(name, "The dataset's name"), _checked_marks(marks)
        self._file.create()
        with self._file.writing() as db:
            return _joined(db, name, marks, terms)

    def pay(
        self,
        name: str,
        marks: Iterable[str],
        terms: Terms,
        budget: Budget,
        *,
        mechanism: str,
        purpose: str = "draw",
        contributions: int = 1,
    ) -> tuple[Account, Entry]:
        """Open the account of a dataset and pay for one draw from it, in one transaction: a refusal leaves no trace in the ledger.

        Args:
            name: as for `open`.
            marks: as for `open`.
            terms: as for `open`.
            budget: as for `spend`, and the next ones likewise.
            mechanism: its key.
            purpose: "draw" or "release".
            contributions: records per unit at most.

        Returns:
            The account with this draw, and its entry, committed and synced to the disk. Draw only after they are there.

        Raises:
            RefusedError: as `open` and `spend`.
            BudgetError: as `spend`.
            SettingError: as `open` and `spend`.
        """
        name, marks = checked_text(name, "The dataset's name"), _checked_marks(marks)
        _check_draw(mechanism, purpose, contributions)
        self._file.create()
        with self._file.writing() as db:
            account = _joined(db, name, marks, terms)
            entry = _spent(db, account, budget, (mechanism, purpose, contributions))
            return _account(db, _named(db, account.name)), entry

    def spend(self, name: str | Account, budget: Budget, *, mechanism: str, purpose: str = "draw", contributions: int = 1) -> int:
        """Pay for one draw, before it is made: once this returns, the spending is committed and synced to the disk.

        Args:
            name: the account's name; or the account, which must have kept its terms since it was opened.
            budget: the whole budget that the mechanism is handed.
            mechanism: its key.
            purpose: "draw" to look at, or "release" to publish.
            contributions: records per unit at most.

        Returns:
            The id of the entry. Draw only after it is there; if anything is raised, draw nothing.

        Raises:
            RefusedError: the cap would be exceeded (the text says what is left), the budget does not fit the currency, the
                account got other terms meanwhile, no such dataset, or the ledger cannot be written or trusted.
            BudgetError: no budget, an altered one, or one with too many digits to be added up exactly.
            SettingError: an unknown purpose, contributions below 1, or a mechanism that is no short text.
        """
        _check_draw(mechanism, purpose, contributions)
        with self._file.writing() as db:
            account = _account(db, _named(db, name.name if isinstance(name, Account) else name))
            if isinstance(name, Account):
                _refuse_other_terms(account, name.terms)
            return _spent(db, account, budget, (mechanism, purpose, contributions)).id

    def published(self, entry_id: int, release_id: str) -> None:
        """Note that a draw was published; once more under another id costs nothing, the last id stays.

        Raises:
            RefusedError: no such draw, or the ledger cannot be written or trusted.
            SettingError: an id that is no short text.
        """
        checked_text(release_id, "The release's id")
        with self._file.writing() as db:
            if not db.execute("UPDATE draw SET published = ? WHERE id = ?", (release_id, entry_id)).rowcount:
                raise RefusedError("The ledger has no such draw.")

    def looked(self, name: str) -> None:
        """Note, before it is shown, that figures made from the true data of an account are looked at; this is never unset.

        Raises:
            RefusedError: no such dataset, or the ledger cannot be written or trusted.
        """
        with self._file.writing() as db:
            db.execute("UPDATE dataset SET truth_seen = 1 WHERE id = ?", (_named(db, name)["id"],))

    def note_seen(self, marks: Iterable[str]) -> None:
        """Note, before it is shown, that figures made from the true data are looked at, with or without an account; this is never unset.

        Args:
            marks: of the data, as for `open`. An account that has one of them, or gets it later, has had its truth seen.

        Raises:
            RefusedError: the ledger cannot be written or trusted: show nothing then.
            SettingError: marks that are no hex digests.
        """
        marks = _checked_marks(marks)
        self._file.create()
        with self._file.writing() as db:
            db.executemany("INSERT OR IGNORE INTO seen VALUES (?)", [(digest,) for digest in _keyed(db, marks)])

    def seen(self, marks: Iterable[str]) -> bool:
        """Whether the truth of data with any of these marks was looked at, before or after they had an account.

        Raises:
            RefusedError: the ledger cannot be read or trusted.
        """
        if not self._file.exists():
            return False
        marks = _checked_marks(marks)
        with self._file.reading() as db:
            digests = json.dumps(_keyed(db, marks))
            if db.execute("SELECT 1 FROM seen WHERE digest IN (SELECT value FROM json_each(?))", (digests,)).fetchone():
                return True
            owners = db.execute(
                "SELECT * FROM dataset WHERE id IN (SELECT dataset FROM mark WHERE digest IN (SELECT value FROM json_each(?)))", (digests,)
            )
            return any(_truth_seen(db, row) for row in owners.fetchall())


def default_path() -> Path:
    """Where the ledger is unless one is named: the environment's DPVIZ_LEDGER, else the user's data directory."""
    named = os.environ.get("DPVIZ_LEDGER")
    return Path(named) if named else user_data_path("dpviz", appauthor=False) / "ledger.sqlite"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _keyed(db: sqlite3.Connection, marks: Iterable[str]) -> list[str]:
    """Marks as this ledger keeps them."""
    key = db.execute("SELECT key FROM ledger").fetchone()["key"].encode()
    return [hmac.new(key, b"mark " + mark.encode(), hashlib.sha256).hexdigest() for mark in marks]


def _check_draw(mechanism: str, purpose: str, contributions: int) -> None:
    checked_text(mechanism, "mechanism")
    if purpose not in PURPOSES:
        raise SettingError(f"purpose must be one of: {', '.join(PURPOSES)}.")
    if isinstance(contributions, bool) or not isinstance(contributions, int) or not 1 <= contributions < 2**31:
        raise SettingError("contributions must be a whole number of at least 1.")


def _joined(db: sqlite3.Connection, name: str, marks: list[str], terms: Terms) -> Account:
    """The account that marks or name have, or a new one, with these terms and marks."""
    digests = _keyed(db, marks)
    row = _recognised(db, digests, name) or _opened(db, name, terms)
    _agree(db, row, terms)
    db.executemany("INSERT OR IGNORE INTO mark VALUES (?, ?)", [(digest, row["id"]) for digest in digests])
    return _account(db, _named(db, row["name"]))


def _spent(db: sqlite3.Connection, account: Account, budget: Budget, what: tuple[str, str, int]) -> Entry:
    """Add a draw to an account whose cap allows it; `what` is its mechanism, purpose and contributions."""
    spent = exact_text(account.after(budget))
    row = (_named(db, account.name)["id"], _now(), *what, exact_text(amount_of(budget)))
    db.execute("UPDATE dataset SET spent = ? WHERE id = ?", (spent, row[0]))
    made = db.execute(
        "INSERT INTO draw (dataset, time, mechanism, purpose, contributions, budget) VALUES (?, ?, ?, ?, ?, ?)", row
    ).lastrowid
    return _entry(db.execute("SELECT * FROM draw WHERE id = ?", (made,)).fetchone())


def _checked_marks(marks: Iterable[str]) -> list[str]:
    marks = list(marks)
    if not marks or not all(isinstance(mark, str) and re.fullmatch("[0-9a-f]{32,128}", mark) for mark in marks):
        raise SettingError("marks must be hex digests of the data's content (32 to 128 lowercase hex digits), at least one.")
    return marks


def _named(db: sqlite3.Connection, name: str) -> sqlite3.Row:
    row: sqlite3.Row | None = db.execute("SELECT * FROM dataset WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise RefusedError("The ledger has no dataset of that name: open it first.")
    return row


def _recognised(db: sqlite3.Connection, digests: list[str], name: str | None = None) -> sqlite3.Row | None:
    """The one dataset that marks or name belong to."""
    marked = "SELECT dataset FROM mark WHERE digest IN (SELECT value FROM json_each(?))"
    query = f"SELECT * FROM dataset WHERE name = ? OR id IN ({marked}) ORDER BY id"  # noqa: S608  (our own text)
    found = db.execute(query, (name, json.dumps(digests))).fetchall()
    if len(found) > 1:
        names = " and ".join(f"'{row['name']}'" for row in found)
        raise RefusedError(
            f"The ledger knows these data, or the name given, as {names}: it cannot tell which account to charge."
            " If the name is another dataset's, give the one that these data had before; else draw from the files as they were then."
        )
    return found[0] if found else None


def _opened(db: sqlite3.Connection, name: str, terms: Terms) -> sqlite3.Row:
    row = (name, _now(), *_kept(terms), 0)
    columns = "name, created, unit, neighbours, cap, spent, person, truth_seen"
    db.execute(f"INSERT INTO dataset ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608  (our own text)
    return _named(db, name)


def _kept(terms: Terms) -> tuple[str, str, str, str, str | None]:
    """Unit, neighbours, cap, what is spent before any draw, and what a person is, as the ledger writes them."""
    cap, nothing = exact_text(amount_of(terms.cap)), exact_text(dict.fromkeys(terms.limit, Fraction(0)))
    return terms.unit, terms.neighbours, cap, nothing, terms.person


def _agree(db: sqlite3.Connection, row: sqlite3.Row, terms: Terms) -> None:
    """Give an account the terms that are wanted if nothing was drawn from it yet; else they must be the ones that it has.

    An account of an older version, which did not note what a person is, takes the first definition that is named: all that was spent
    stays spent on it, and from then on no other one is added to it.
    """
    account = _account(db, row)
    if not account.draws:
        db.execute("UPDATE dataset SET unit = ?, neighbours = ?, cap = ?, spent = ?, person = ? WHERE id = ?", (*_kept(terms), row["id"]))
        return
    _refuse_other_terms(account, terms)
    if account.terms.person is None:
        db.execute("UPDATE dataset SET person = ? WHERE id = ?", (terms.person, row["id"]))


def _refuse_other_terms(account: Account, terms: Terms) -> None:
    known, asked = account.terms.adopted(terms).described, terms.described
    other = [f"its {name} is {known[name]}, not {asked[name]}" for name in known if known[name] != asked[name]]
    if other:
        raise RefusedError(
            f"'{account.name}' was opened with other terms, which its first draw has fixed: {'; '.join(other)}. Draw with those terms."
        )


def _account(db: sqlite3.Connection, row: sqlite3.Row) -> Account:
    """An account, its stored sum checked against its draws."""
    kinds = db.execute("SELECT budget, count(*) FROM draw WHERE dataset = ? GROUP BY budget", (row["id"],)).fetchall()
    with _refusing(row["name"]):
        account = Account(
            name=row["name"],
            terms=Terms(unit=row["unit"], neighbours=row["neighbours"], cap=_budget(row["cap"]), person=row["person"]),
            spent=exact_amount(row["spent"]),
            draws=sum(times for _, times in kinds),
            created=row["created"],
            truth_seen=_truth_seen(db, row),
        )
        costs = [(account.terms.cost(_budget(text)), times) for text, times in kinds]
    sums = {name: sum((cost[name] * times for cost, times in costs), Fraction(0)) for name in account.terms.limit}
    if sums != account.spent:
        raise RefusedError(f"The ledger's sum for '{account.name}' is not that of its draws: nothing more is granted.")
    return account


def _truth_seen(db: sqlite3.Connection, row: sqlite3.Row) -> bool:
    """Whether the truth was looked at through an account, or that of data with one of its marks was."""
    marked = "SELECT 1 FROM mark JOIN seen USING (digest) WHERE mark.dataset = ? LIMIT 1"
    return bool(row["truth_seen"]) or db.execute(marked, (row["id"],)).fetchone() is not None


def _budget(text: str) -> Budget:
    return budget_of(exact_amount(text))


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Rows that no ledger writes become a refusal."""
    try:
        yield
    except (BudgetError, SettingError, ValueError, TypeError, KeyError, ArithmeticError, AttributeError):
        raise RefusedError(f"The ledger's rows for '{name}' cannot be right: nothing more is granted.") from None


def _entry(row: sqlite3.Row) -> Entry:
    return Entry(
        id=row["id"],
        time=row["time"],
        mechanism=row["mechanism"],
        budget=_budget(row["budget"]),
        purpose=row["purpose"],
        contributions=row["contributions"],
        published=row["published"],
    )
