"""The ledger: how much budget each private dataset has spent, and the cap that it must not exceed."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Self

from platformdirs import user_data_path

from dpviz.errors import BudgetError, RefusedError, SettingError, check_choice
from dpviz.privacy.accounts import Account, Amount, Entry, Terms, amount_of, budget_of, exact_amount, exact_text, require_short_text
from dpviz.privacy.budget import Budget
from dpviz.privacy.ledger_file import NAMED_BY_PATH, NAMED_BY_VARIABLE, LedgerFile
from dpviz.privacy.series import Series

__all__ = ["Account", "Entry", "Ledger", "Terms", "default_path"]

PURPOSES = ("draw", "release")


class Ledger:
    """A small file that records the budget of every draw on every private dataset, before the draw is made.

    Guarantee: for each dataset, the sum of the budgets of all draws made through this ledger never exceeds its cap, despite any
    number of processes, threads, crashes and restarts.

    Argument: `pay` (or `spend`) adds the draw in one exclusive transaction. It reads the sum, compares exact fractions, and returns
    only when the new sum is synced to the disk; noise may be drawn only after that. A crash before the commit leaves neither an entry
    nor a draw. A crash after it leaves an entry, perhaps without its draw. So the recorded sum is at least what was really spent.
    If the ledger cannot be read or written for any reason (a full disk, a read-only or damaged file), a `RefusedError` is raised, and
    nothing may be drawn. Of a series (`Terms.series`) the same transaction compares the sum of the draw's period with the period's share,
    and the number of periods with theirs. No clock decides anything: the period is named.

    How a dataset is recognised: by its name, and by fingerprints of its content, which are digests of the bytes of its file and of
    its counts in the public domain or regions. If it is renamed, copied or converted, or counted in another domain, it still has its
    account as long as its name or one of the fingerprints is the same. Fingerprints are stored as HMACs with a key of this ledger, so
    that they cannot be compared with those of another ledger. Anyone who can read the file can test a guess, hence its mode 0600.
    Fingerprints of data whose true figures were looked at are stored even if there is no account; an account with one of them is marked.

    Limits: data under another name, in another file and in another domain at once are new to the ledger, so use one name per dataset.
    (With a bound per person, which chooses records at random, another name and another file suffice.) A ledger that is deleted or
    restored from an old backup forgets. Draws made without it are not counted. It protects an honest curator from mistakes, but does
    not stop a dishonest one. Keep the file on a local disk: locks on network drives are unreliable.

    Args:
        path: of the file, which must be there: `Ledger.new` makes one. None for the usual ledger: the one that the environment variable
            DPVIZ_LEDGER names, which must be there, too, or else a file in the user's data directory, which the first `open`, `pay` or
            note makes.

    Attributes:
        path: the file.

    Raises:
        SettingError: the path is an empty text, such as that of a variable without a value.

    >>> import tempfile
    >>> from dpviz.privacy.budget import PureBudget
    >>> terms = Terms(unit="record", neighbours="add or remove one", cap=PureBudget(2))
    >>> fingerprint = hashlib.sha256(b"the content of a file").hexdigest()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.new(Path(folder) / "ledger.sqlite")
    ...     account, entry = ledger.pay("walks", [fingerprint], terms, PureBudget(0.5), mechanism="quadtree")
    >>> exact_text(account.left)
    'epsilon 3/2, delta 0'
    """

    def __init__(self, path: Path | str | None = None) -> None:
        if path == "":
            raise SettingError("The ledger's path is empty: name a file, or give None for the usual ledger.")
        self.path = Path(os.path.expanduser(default_path() if path is None else path)).absolute()  # noqa: PTH111
        named_by = NAMED_BY_PATH if path is not None else NAMED_BY_VARIABLE if os.environ.get("DPVIZ_LEDGER") else ""
        self._file = LedgerFile(self.path, named_by)

    @classmethod
    def new(cls, path: Path | str) -> Self:
        """Make a new, empty ledger that only its owner can read, and open it.

        Args:
            path: of the file, which must not be there yet; its folder must.

        Raises:
            SettingError: there is something at the path, or its folder is missing.
            RefusedError: the folder cannot be written.
        """
        ledger = cls(path)
        if not ledger.path.parent.is_dir():
            raise SettingError(f"The folder {ledger.path.parent} is not there: make it first, or correct the ledger's path.")
        if os.path.lexists(ledger.path) or not ledger._file.make():
            raise SettingError(f"There is something at {ledger.path} already, and no ledger is overwritten: choose another path.")
        return ledger

    @property
    def made(self) -> bool:
        """Whether this object made the file; then nothing that was spent before is known to it."""
        return self._file.made

    def exists(self) -> bool:
        """Return whether the file is there; False only for the usual ledger, before it is used first.

        Raises:
            RefusedError: a ledger that was named or used is not there, or the system cannot tell.
        """
        return self._file.exists()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the file is open only while it is read or written."""

    def accounts(self) -> list[Account]:
        """The accounts of all datasets, oldest first; none if there is no ledger yet.

        Raises:
            RefusedError: the ledger cannot be read, or fails its checks.
        """
        if not self.exists():
            return []
        with self._file.reading() as db:
            return [_read_account(db, row) for row in db.execute("SELECT * FROM dataset ORDER BY id").fetchall()]

    def account(self, name: str) -> Account:
        """The account of one dataset, by its name.

        Raises:
            RefusedError: there is no ledger yet, no dataset has that name, or the ledger cannot be read or fails its checks.
        """
        with self._file.reading() as db:
            return _read_account(db, _find_by_name(db, name))

    def remaining(self, name: str, period: str | None = None) -> Budget | None:
        """The budget that one dataset has left, by its name: pure where no delta is left; None if nothing is left.

        Args:
            name: the dataset's name.
            period: of a series, the name of the period that would pay; None without one.

        Raises:
            RefusedError: as for `account`.

        >>> import tempfile
        >>> from dpviz.privacy.budget import PureBudget
        >>> terms = Terms(unit="record", neighbours="add or remove one", cap=PureBudget(2))
        >>> with tempfile.TemporaryDirectory() as folder, Ledger.new(f"{folder}/ledger.sqlite") as ledger:
        ...     _ = ledger.pay("walks", [hashlib.sha256(b"a file").hexdigest()], terms, PureBudget(0.5), mechanism="quadtree")
        ...     ledger.remaining("walks")
        PureBudget(epsilon=Fraction(3, 2))
        """
        account = self.account(name)
        left = dict(account.left_in(period))
        if next(iter(left.values())) <= 0:
            return None
        if left.get("delta") == 0:
            del left["delta"]
        return budget_of(left)

    def entries(self, name: str) -> list[Entry]:
        """A dataset's draws, oldest first.

        Args:
            name: the dataset's name.

        Raises:
            RefusedError: as for `account`.
        """
        with self._file.reading() as db:
            rows = db.execute("SELECT * FROM draw WHERE dataset = ? ORDER BY id", (_find_by_name(db, name)["id"],)).fetchall()
            with _refuse_bad_rows(name):
                return [_read_entry(row) for row in rows]

    def find_by_fingerprints(self, fingerprints: Iterable[str]) -> Account | None:
        """The account to which any of these fingerprints belongs, under any name; None if there is none.

        Args:
            fingerprints: as for `open`.

        Raises:
            RefusedError: the fingerprints belong to different accounts, or the ledger cannot be read or fails its checks.
            SettingError: the fingerprints are not hex digests.
        """
        if not self.exists():
            return None
        fingerprints = _check_fingerprints(fingerprints)
        with self._file.reading() as db:
            row = _find_by_fingerprints(db, _hash_with_key(db, fingerprints))
            return _read_account(db, row) if row else None

    def find_by_name(self, name: str) -> Account | None:
        """The account of one dataset, by its name; None if there is none.

        Raises:
            RefusedError: the ledger cannot be read or fails its checks.
        """
        if not self.exists():
            return None
        with self._file.reading() as db:
            row = db.execute("SELECT * FROM dataset WHERE name = ?", (_stored_name(db, name),)).fetchone()
            return _read_account(db, row) if row else None

    def entry(self, entry_id: int) -> tuple[Account, Entry]:
        """One draw by its number, with the account that paid for it.

        Raises:
            RefusedError: there is no such draw, or the ledger cannot be read or fails its checks.
        """
        with self._file.reading() as db:
            row = db.execute("SELECT * FROM draw WHERE id = ?", (entry_id,)).fetchone()
            if row is None:
                raise RefusedError("The ledger has no such draw.")
            account = _read_account(db, db.execute("SELECT * FROM dataset WHERE id = ?", (row["dataset"],)).fetchone())
            with _refuse_bad_rows(account.name):
                return account, _read_entry(row)

    def open(self, name: str, fingerprints: Iterable[str], terms: Terms) -> Account:
        """Find the account of a dataset by its fingerprints or its name, or open a new one.

        New fingerprints under a known name are added to that account: they belong to the same data in another form, or to a later
        version, and the budget spent so far stays counted. Spend from the returned account: it may have an older name than `name`.
        As long as an account has no draws, its terms are replaced by the given ones, so that a cap chosen too small can be corrected.

        Args:
            name: the curator's name for the dataset: one line, 1 to 120 characters.
            fingerprints: lower-case hex digests of content, at least one: of the file's bytes, and of the counts on a lattice.
            terms: the terms of the account; if the account has draws already, they must equal its terms.

        Raises:
            RefusedError: the account has other terms; the fingerprints or the name belong to different accounts; or the ledger
                cannot be written or fails its checks.
            SettingError: the name is not a short text, or the fingerprints are not hex digests.
        """
        name, fingerprints = require_short_text(name, "The dataset's name"), _check_fingerprints(fingerprints)
        self._file.create()
        with self._file.writing() as db:
            return _join_account(db, name, fingerprints, terms)

    def pay(
        self,
        name: str,
        fingerprints: Iterable[str],
        terms: Terms,
        budget: Budget,
        *,
        mechanism: str,
        purpose: str = "draw",
        contributions: int = 1,
        period: str | None = None,
    ) -> tuple[Account, Entry]:
        """Open the account of a dataset and pay for one draw from it, in one transaction. A refusal changes nothing in the ledger.

        Args:
            name: as for `open`.
            fingerprints: as for `open`.
            terms: as for `open`.
            budget: the whole budget that the mechanism is given.
            mechanism: the mechanism's key.
            purpose: "draw" (to look at) or "release" (to publish).
            contributions: the most records per unit that are counted.
            period: of a series, the name of the period that pays, such as "2026-11"; None without one.

        Returns:
            The account with this draw, and its entry, committed and synced to the disk. Draw only after this has returned.

        Raises:
            RefusedError: as for `open` and `spend`.
            BudgetError: as for `spend`.
            SettingError: as for `open` and `spend`.
        """
        name, fingerprints = require_short_text(name, "The dataset's name"), _check_fingerprints(fingerprints)
        _check_draw(mechanism, purpose, contributions)
        self._file.create()
        with self._file.writing() as db:
            account = _join_account(db, name, fingerprints, terms)
            entry = _record_draw(db, account, budget, (mechanism, purpose, contributions, period))
            return _read_account(db, _find_by_name(db, account.name)), entry

    def preview(self, name: str, fingerprints: Iterable[str], terms: Terms, budget: Budget, *, period: str | None = None) -> Account:
        """The account as `pay` would leave it now; nothing is written, and nothing is spent.

        Args:
            name: as for `open`.
            fingerprints: as for `open`.
            terms: as for `open`.
            budget: the whole budget of the draw.
            period: as for `pay`.

        Raises:
            RefusedError: as for `pay`.
            BudgetError: as for `pay`.
            SettingError: as for `open`.
        """
        name, fingerprints = require_short_text(name, "The dataset's name"), _check_fingerprints(fingerprints)
        zero = dict.fromkeys(terms.limit, Fraction(0))
        account = Account(name=name, terms=terms, spent=zero, draws=0, created="", truth_seen=False)
        if self.exists():
            with self._file.reading() as db:
                row = _find_by_fingerprints(db, _hash_with_key(db, fingerprints), name)
                if row is not None:
                    account = _read_account(db, row)
        if account.draws:
            _refuse_other_terms(account, terms)
        else:
            account = replace(account, terms=terms, spent=zero)
        return account.paying(budget, period)

    def spend(
        self,
        name: str | Account,
        budget: Budget,
        *,
        mechanism: str,
        purpose: str = "draw",
        contributions: int = 1,
        period: str | None = None,
    ) -> int:
        """Pay for one draw before it is made. When this returns, the payment is committed and synced to the disk.

        Args:
            name: the account's name; or the account itself, whose terms must be unchanged in the ledger.
            budget: the whole budget that the mechanism is given.
            mechanism: the mechanism's key.
            purpose: "draw" (to look at) or "release" (to publish).
            contributions: the most records per unit that are counted.
            period: as for `pay`.

        Returns:
            The id of the entry. Draw only after this has returned; if it raises, draw nothing.

        Raises:
            RefusedError: the cap would be exceeded (the text states the remaining budget), the budget cannot be converted to the
                currency, the account's terms have changed, there is no such dataset, or the ledger cannot be written or fails its
                checks.
            BudgetError: the budget is not one, was altered, or has too many digits to be added up exactly.
            SettingError: the purpose is unknown, contributions are below 1, or the mechanism is not a short text.
        """
        _check_draw(mechanism, purpose, contributions)
        with self._file.writing() as db:
            account = _read_account(db, _find_by_name(db, name.name if isinstance(name, Account) else name))
            if isinstance(name, Account):
                _refuse_other_terms(account, name.terms)
            return _record_draw(db, account, budget, (mechanism, purpose, contributions, period)).id

    def kept_key(self) -> bytes:
        """A secret of this ledger by which a series chooses the records that each person keeps: the same in every period.

        It is no noise, and depends on no data. It goes to a reader's `key`.

        Raises:
            RefusedError: the ledger cannot be read or made.
        """
        self._file.create()
        with self._file.reading() as db:
            secret = str(db.execute("SELECT key FROM ledger").fetchone()["key"])
        return hmac.new(secret.encode(), b"kept records", hashlib.sha256).digest()

    def published(self, entry_id: int, release_id: str) -> None:
        """Record that a draw was published. Publishing it again under another id costs nothing; the last id is kept.

        Args:
            entry_id: the draw's number.
            release_id: the id in the release's manifest.

        Raises:
            RefusedError: there is no such draw, or the ledger cannot be written or fails its checks.
            SettingError: the id is not a short text.
        """
        require_short_text(release_id, "The release's id")
        with self._file.writing() as db:
            if not db.execute("UPDATE draw SET published = ? WHERE id = ?", (release_id, entry_id)).rowcount:
                raise RefusedError("The ledger has no such draw.")

    def note_account_truth_seen(self, name: str) -> None:
        """Record that figures made from an account's true data are looked at. Call it before they are shown; it is never undone.

        Args:
            name: the account's name.

        Raises:
            RefusedError: there is no such dataset, or the ledger cannot be written or fails its checks: show nothing then.
        """
        with self._file.writing() as db:
            db.execute("UPDATE dataset SET truth_seen = 1 WHERE id = ?", (_find_by_name(db, name)["id"],))

    def note_truth_seen(self, fingerprints: Iterable[str]) -> None:
        """Record that figures made from true data, with or without an account, are looked at. Call it first; it is never undone.

        Args:
            fingerprints: fingerprints of the data, as for `open`. Every account that has one of them, now or later, is marked.

        Raises:
            RefusedError: the ledger cannot be written or fails its checks: show nothing then.
            SettingError: the fingerprints are not hex digests.
        """
        self._note("seen", fingerprints)

    def note_persons_searched(self, fingerprints: Iterable[str]) -> None:
        """Record that distinct values of columns are counted, to find persons. Call it before they are shown; it is never undone.

        No figure of a place is seen by that, so it is no look at the truth.

        Args:
            fingerprints: as for `note_truth_seen`.

        Raises:
            RefusedError: as for `note_truth_seen`.
            SettingError: as for `note_truth_seen`.
        """
        self._note("searched", fingerprints)

    def _note(self, table: str, fingerprints: Iterable[str]) -> None:
        fingerprints = _check_fingerprints(fingerprints)
        self._file.create()
        with self._file.writing() as db:
            rows = [(digest,) for digest in _hash_with_key(db, fingerprints)]
            db.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?)", rows)  # noqa: S608  (our own text)

    def seen(self, fingerprints: Iterable[str]) -> bool:
        """Whether figures made from true data with any of these fingerprints were looked at, with or without an account.

        Args:
            fingerprints: as for `open`.

        Raises:
            RefusedError: the ledger cannot be read or fails its checks.
            SettingError: the fingerprints are not hex digests.
        """
        if not self.exists():
            return False
        fingerprints = _check_fingerprints(fingerprints)
        with self._file.reading() as db:
            digests = json.dumps(_hash_with_key(db, fingerprints))
            if db.execute("SELECT 1 FROM seen WHERE digest IN (SELECT value FROM json_each(?))", (digests,)).fetchone():
                return True
            owners = db.execute(
                "SELECT * FROM dataset WHERE id IN (SELECT dataset FROM mark WHERE digest IN (SELECT value FROM json_each(?)))", (digests,)
            )
            return any(_was_truth_seen(db, row) for row in owners.fetchall())


def default_path() -> Path:
    """The default path of the ledger: the environment variable DPVIZ_LEDGER if set, else a file in the user's data directory."""
    path = os.environ.get("DPVIZ_LEDGER")
    return Path(path) if path else user_data_path("dpviz", appauthor=False) / "ledger.sqlite"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _hash_with_key(db: sqlite3.Connection, fingerprints: Iterable[str]) -> list[str]:
    """Fingerprints as this ledger stores them: HMACs with its key."""
    key = db.execute("SELECT key FROM ledger").fetchone()["key"].encode()
    return [hmac.new(key, b"mark " + fingerprint.encode(), hashlib.sha256).hexdigest() for fingerprint in fingerprints]


def _check_draw(mechanism: str, purpose: str, contributions: int) -> None:
    require_short_text(mechanism, "mechanism")
    check_choice(purpose, PURPOSES, "purpose")
    if isinstance(contributions, bool) or not isinstance(contributions, int) or not 1 <= contributions < 2**31:
        raise SettingError("contributions must be a whole number of at least 1.")


def _join_account(db: sqlite3.Connection, name: str, fingerprints: list[str], terms: Terms) -> Account:
    """Find or open the account of the fingerprints or the name; set or check its terms, and add the fingerprints to it."""
    digests = _hash_with_key(db, fingerprints)
    row = _find_by_fingerprints(db, digests, name) or _insert_account(db, name, terms)
    _set_or_check_terms(db, row, terms)
    db.executemany("INSERT OR IGNORE INTO mark VALUES (?, ?)", [(digest, row["id"]) for digest in digests])
    return _read_account(db, _find_by_name(db, row["name"]))


def _record_draw(db: sqlite3.Connection, account: Account, budget: Budget, details: tuple[str, str, int, str | None]) -> Entry:
    """Add a draw to an account if the cap allows it. `details` holds the draw's mechanism, purpose, contributions and period."""
    spent = exact_text(account.after(budget, details[-1]))
    row = (_find_by_name(db, account.name)["id"], _now(), *details, exact_text(amount_of(budget)))
    db.execute("UPDATE dataset SET spent = ? WHERE id = ?", (spent, row[0]))
    entry_id = db.execute(
        "INSERT INTO draw (dataset, time, mechanism, purpose, contributions, period, budget) VALUES (?, ?, ?, ?, ?, ?, ?)", row
    ).lastrowid
    return _read_entry(db.execute("SELECT * FROM draw WHERE id = ?", (entry_id,)).fetchone())


def _check_fingerprints(fingerprints: Iterable[str]) -> list[str]:
    fingerprints = list(fingerprints)
    if not fingerprints or not all(
        isinstance(fingerprint, str) and re.fullmatch("[0-9a-f]{32,128}", fingerprint) for fingerprint in fingerprints
    ):
        raise SettingError("Fingerprints must be hex digests of the data's content (32 to 128 lowercase hex digits), at least one.")
    return fingerprints


def _find_by_name(db: sqlite3.Connection, name: str) -> sqlite3.Row:
    row: sqlite3.Row | None = db.execute("SELECT * FROM dataset WHERE name = ?", (_stored_name(db, name),)).fetchone()
    if row is None:
        raise RefusedError("The ledger has no dataset of that name: open it first.")
    return row


def _stored_name(db: sqlite3.Connection, name: object) -> str | None:
    """A dataset's name as the ledger stores it; None if there is no such dataset.

    A letter with an accent can be one character or two, and looks the same. File systems and keyboards write it in different ways, so that
    one name would have two accounts, each with a cap of its own.
    """
    if not isinstance(name, str):
        return None
    names = [str(row["name"]) for row in db.execute("SELECT name FROM dataset ORDER BY id")]
    alike = [stored for stored in names if unicodedata.normalize("NFC", stored) == unicodedata.normalize("NFC", name)]
    return name if name in alike else next(iter(alike), None)


def _find_by_fingerprints(db: sqlite3.Connection, digests: list[str], name: str | None = None) -> sqlite3.Row | None:
    """The one dataset to which the fingerprints or the name belong; None if there is none."""
    by_fingerprint = "SELECT dataset FROM mark WHERE digest IN (SELECT value FROM json_each(?))"
    query = f"SELECT * FROM dataset WHERE name = ? OR id IN ({by_fingerprint}) ORDER BY id"  # noqa: S608  (our own text)
    rows = db.execute(query, (_stored_name(db, name), json.dumps(digests))).fetchall()
    if len(rows) > 1:
        names = " and ".join(f"'{row['name']}'" for row in rows)
        raise RefusedError(
            f"These data and this name belong to different accounts in the ledger, {names}: it cannot tell which one to charge."
            " If the name is wrong, give the name that these data had before; if it is right, use the files that had this name before."
        )
    return rows[0] if rows else None


def _insert_account(db: sqlite3.Connection, name: str, terms: Terms) -> sqlite3.Row:
    row = (name, _now(), *_account_columns(terms), 0)
    columns = "name, created, unit, neighbours, cap, spent, person, series, truth_seen"
    db.execute(f"INSERT INTO dataset ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608  (our own text)
    return _find_by_name(db, name)


def _account_columns(terms: Terms) -> tuple[str, str, str, str, str | None, str | None]:
    """The stored texts of a new account: unit, neighbours, cap, a spent amount of 0, the column of persons, and the series."""
    cap, nothing = exact_text(amount_of(terms.cap)), exact_text(dict.fromkeys(terms.limit, Fraction(0)))
    return terms.unit, terms.neighbours, cap, nothing, terms.person, None if terms.series is None else terms.series.to_text()


def _set_or_check_terms(db: sqlite3.Connection, row: sqlite3.Row, terms: Terms) -> None:
    """Set the terms of an account without draws; require that an account with draws has these terms.

    An older version did not store which column identifies persons. Such an account gets the first column that is given, and refuses
    another column from then on.
    """
    account = _read_account(db, row)
    if not account.draws:
        db.execute(
            "UPDATE dataset SET unit = ?, neighbours = ?, cap = ?, spent = ?, person = ?, series = ? WHERE id = ?",
            (*_account_columns(terms), row["id"]),
        )
        return
    _refuse_other_terms(account, terms)
    if account.terms.person is None:
        db.execute("UPDATE dataset SET person = ? WHERE id = ?", (terms.person, row["id"]))


def _refuse_other_terms(account: Account, terms: Terms) -> None:
    if account.terms.series is not None and terms.series is None:
        raise RefusedError(account.terms.series.send_to_command_line(account.name))
    current, given = account.terms.take_over_person(terms).descriptions, terms.descriptions
    differences = [f"its {name} is {current[name]}, not {given[name]}" for name in current if current[name] != given[name]]
    if differences:
        raise RefusedError(
            f"These data have the account '{account.name}', which was opened with other terms; its first draw has fixed them:"
            f" {'; '.join(differences)}. Use those terms."
        )


def _read_account(db: sqlite3.Connection, row: sqlite3.Row) -> Account:
    """The account in a row, after a check that its stored sum equals the sum of its draws."""
    drawn = db.execute("SELECT budget, period, count(*) FROM draw WHERE dataset = ? GROUP BY budget, period", (row["id"],)).fetchall()
    with _refuse_bad_rows(row["name"]):
        terms = Terms(
            unit=row["unit"],
            neighbours=row["neighbours"],
            cap=_parse_budget(row["cap"]),
            person=row["person"],
            series=None if row["series"] is None else Series.from_text(row["series"]),
        )
        for _, period, _ in drawn:
            terms.check_period(period)
        sums = _add_up(terms, ((terms.cost(_parse_budget(budget)), period, times) for budget, period, times in drawn))
        account = Account(
            name=row["name"],
            terms=terms,
            spent=exact_amount(row["spent"]),
            draws=sum(times for _, _, times in drawn),
            created=row["created"],
            truth_seen=_was_truth_seen(db, row),
            persons_searched=_is_noted(db, "searched", row),
            spent_by_period={} if terms.series is None else {str(period): amount for period, amount in sums.items()},
        )
    if account.spent != {name: sum((amount[name] for amount in sums.values()), Fraction(0)) for name in terms.limit}:
        raise RefusedError(f"The ledger's sum for '{account.name}' is not the sum of its draws: no further draw is allowed.")
    return account


def _add_up(terms: Terms, costs: Iterable[tuple[Amount, str | None, int]]) -> dict[str | None, Amount]:
    """Add up the costs of draws by their periods; each comes with the number of draws that cost it."""
    sums: dict[str | None, Amount] = {}
    for cost, period, times in costs:
        so_far = sums.setdefault(period, dict.fromkeys(terms.limit, Fraction(0)))
        sums[period] = {name: so_far[name] + part * times for name, part in cost.items()}
    return sums


def _was_truth_seen(db: sqlite3.Connection, row: sqlite3.Row) -> bool:
    """Whether true figures were looked at through this account, or figures of data with one of its fingerprints."""
    return bool(row["truth_seen"]) or _is_noted(db, "seen", row)


def _is_noted(db: sqlite3.Connection, table: str, row: sqlite3.Row) -> bool:
    """Whether a table of notes has one of the fingerprints of an account."""
    by_fingerprint = f"SELECT 1 FROM mark JOIN {table} USING (digest) WHERE mark.dataset = ? LIMIT 1"  # noqa: S608  (our own text)
    return db.execute(by_fingerprint, (row["id"],)).fetchone() is not None


def _parse_budget(text: str) -> Budget:
    return budget_of(exact_amount(text))


@contextmanager
def _refuse_bad_rows(name: str) -> Iterator[None]:
    """Refuse if reading a row raises an error: no version of the ledger writes such rows."""
    try:
        yield
    except (BudgetError, SettingError, ValueError, TypeError, KeyError, ArithmeticError, AttributeError):
        raise RefusedError(f"The ledger's rows for '{name}' cannot be right: no further draw is allowed.") from None


def _read_entry(row: sqlite3.Row) -> Entry:
    facts = {name: row[name] for name in ("id", "time", "mechanism", "purpose", "contributions", "published", "period")}
    return Entry(**facts, budget=_parse_budget(row["budget"]))
