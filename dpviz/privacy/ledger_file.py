"""The ledger's file: an SQLite database that is checked whole, then changed in one synced step, or refused."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dpviz.errors import RefusedError

APPLICATION = 0x44505631  # "DPV1" in the header: not just any SQLite file
VERSION = 2
BUSY = 60.0  # seconds to wait for another process
_FIRST_TABLES = {
    "ledger": "CREATE TABLE ledger (key TEXT NOT NULL, seal TEXT NOT NULL)",
    "dataset": "CREATE TABLE dataset (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created TEXT NOT NULL, unit TEXT NOT NULL,"
    " neighbours TEXT NOT NULL, cap TEXT NOT NULL, spent TEXT NOT NULL, truth_seen INTEGER NOT NULL)",
    "mark": "CREATE TABLE mark (digest TEXT NOT NULL UNIQUE, dataset INTEGER NOT NULL REFERENCES dataset)",
    "draw": "CREATE TABLE draw (id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset, time TEXT NOT NULL,"
    " mechanism TEXT NOT NULL, purpose TEXT NOT NULL, contributions INTEGER NOT NULL, budget TEXT NOT NULL, published TEXT)",
}
TABLES = {
    **_FIRST_TABLES,
    "dataset": f"{_FIRST_TABLES['dataset'][:-1]}, person TEXT)",
    "seen": "CREATE TABLE seen (digest TEXT NOT NULL UNIQUE)",
}
"""The tables of this version: `dataset.person` is NULL where an older version did not note it, `seen` has marks of data looked at."""
_TABLES_OF = {1: _FIRST_TABLES, VERSION: TABLES}
_FROM_FIRST = (
    "ALTER TABLE dataset ADD COLUMN person TEXT",
    "UPDATE dataset SET person = '' WHERE unit <> 'person'",
    TABLES["seen"],
    f"PRAGMA user_version = {VERSION}",
)
_SETTINGS = ("synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON")
_REASONS = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "is in use by another process: try again"),
    **dict.fromkeys(
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH),
        "cannot be opened and written: it or its folder is read-only, or is not yours",
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM), "cannot be written: the disk is full or does not answer"
    ),
}
_DAMAGED = "is empty, cut short, altered or no ledger of dpviz: bring it back as it was; no new one is made in its place"

# One operation of this process at a time, and none while it forks: a child then never inherits half of one.
_ALONE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_ALONE.acquire, after_in_parent=_ALONE.release, after_in_child=_ALONE.release)


class LedgerFile:
    """One SQLite file with a seal over all it says.

    * Each operation has a connection of its own, in one transaction: threads and forked processes share nothing.
    * The seal is an HMAC over every row. Before anything is read or written, SQLite's own check, the tables' definitions and the seal
      must agree: a file that was cut, emptied, replaced or altered is refused, and so are damaged indexes that would hide a row.
    * A rollback journal with ``synchronous = EXTRA``: COMMIT returns after the data are on the disk, the journal is gone and its folder is
      synced. A crash leaves the state of before (whoever opens it next rolls back) or the state of after; there is nothing between.
    * A file of an older version is brought up to date within the first transaction that changes it, and stays as it is if that is
      undone; until then it is read through a copy in memory. A file of a newer version is refused.
    * A new file is made whole under another name and then linked to its own, so that an empty or half-made ledger is never a new one.

    No other code of the process may open this file: closing it would drop SQLite's locks (POSIX).

    Attributes:
        path: where it is; it need not exist before `create`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One checked state of the whole ledger.

        Raises:
            RefusedError: missing, damaged, busy or unreadable.
        """
        with self._checked("BEGIN") as db:
            if _version(db) == VERSION:
                yield db
            else:
                with closing(_copied(db)) as copy:
                    yield copy

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A checked state that nobody else can change; leaving the block seals, commits and syncs, an error undoes all of it.

        Raises:
            RefusedError: missing, damaged, busy or not writable; nothing has changed then, or the change is kept as a whole.
        """
        with self._checked("BEGIN IMMEDIATE") as db:
            _bring_up_to_date(db)
            yield db
            key, seal = db.execute("SELECT key, seal FROM ledger").fetchone()
            if seal != (now := _seal(db, key)):
                db.execute("UPDATE ledger SET seal = ?", (now,))
            db.execute("COMMIT")

    def exists(self) -> bool:
        """Whether something stands at the path.

        Raises:
            RefusedError: that cannot be told, or the journal of a ledger that is gone lies there.
        """
        with self._refusing():
            found = os.path.lexists(self.path)
            if not found and os.path.lexists(f"{self.path}-journal"):
                raise RefusedError(f"The ledger {self.path} is gone, yet its journal lies there: bring the ledger back.")
        return found

    def create(self) -> None:
        """Make an empty ledger, mode 0600, in a folder of mode 0700 if that is new too; leave one that is there alone.

        Raises:
            RefusedError: the folder cannot be made or written.
        """
        if self.exists():
            return
        with self._refusing():
            _make_folder(self.path.parent)
            handle, name = tempfile.mkstemp(prefix=".new-", suffix=".sqlite", dir=self.path.parent)
            os.close(handle)
            try:
                with closing(self._connect(Path(name))) as db:
                    _lay_out(db)
                os.link(name, self.path)
            except FileExistsError:
                return  # somebody else was first
            finally:
                Path(name).unlink()
                _sync(self.path.parent)

    @contextmanager
    def _checked(self, begin: str) -> Iterator[sqlite3.Connection]:
        with _ALONE, self._refusing(), closing(self._connect(self.path)) as db:
            db.execute(begin)
            if _version(db) > VERSION and _pragma(db, "application_id") == APPLICATION:
                raise RefusedError(f"The ledger {self.path} says that a newer version of dpviz wrote it: update dpviz.")
            if not _is_whole(db, self.path.stat().st_size):
                raise RefusedError(f"The ledger {self.path} {_DAMAGED}.")
            yield db

    def _connect(self, path: Path) -> sqlite3.Connection:
        db = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY, isolation_level=None)
        db.row_factory = sqlite3.Row
        for setting in _SETTINGS:
            db.execute(f"PRAGMA {setting}")
        return db

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What SQLite or the system says becomes one line of ours."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite quotes the bytes of a broken definition
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            raise RefusedError(f"The ledger {self.path} {_REASONS.get(code, _DAMAGED)}.") from None
        except OSError as error:
            raise RefusedError(f"The ledger {self.path} cannot be opened and written: {error.strerror}.") from None


def _lay_out(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")
    for definition in TABLES.values():
        db.execute(definition)
    key = secrets.token_hex(32)
    db.execute("INSERT INTO ledger VALUES (?, ?)", (key, _seal(db, key)))
    db.execute("COMMIT")


def _pragma(db: sqlite3.Connection, name: str) -> int | str:
    value: int | str = db.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _version(db: sqlite3.Connection) -> int:
    return int(_pragma(db, "user_version"))


def _bring_up_to_date(db: sqlite3.Connection) -> None:
    """Add what this version keeps more than the one that wrote the file; all that it says stays as it is."""
    if _version(db) != VERSION:
        for step in _FROM_FIRST:
            db.execute(step)


def _copied(db: sqlite3.Connection) -> sqlite3.Connection:
    """The same ledger in memory, brought up to date."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    copy.row_factory = sqlite3.Row
    db.backup(copy)
    _bring_up_to_date(copy)
    return copy


def _is_whole(db: sqlite3.Connection, size: int) -> bool:
    """All pages, our definitions and no others, SQLite's own check, and the seal over all rows."""
    tables = _TABLES_OF.get(_version(db))
    found = (_pragma(db, "application_id"), _pragma(db, "journal_mode"), int(_pragma(db, "page_count")) * int(_pragma(db, "page_size")))
    if tables is None or found != (APPLICATION, "delete", size):
        return False
    defined = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    if dict(map(tuple, defined)) != tables or [tuple(row) for row in db.execute("PRAGMA integrity_check")] != [("ok",)]:
        return False
    sealed = db.execute("SELECT key, seal FROM ledger").fetchall()
    return len(sealed) == 1 and sealed[0]["seal"] == _seal(db, sealed[0]["key"])


def _seal(db: sqlite3.Connection, key: str) -> str:
    """HMAC-SHA256 over every row of every table but its own."""
    sealed = hmac.new(str(key).encode(), digestmod=hashlib.sha256)
    for table in sorted(_TABLES_OF[_version(db)].keys() - {"ledger"}):
        for row in db.execute(f"SELECT * FROM {table} ORDER BY rowid"):  # noqa: S608
            sealed.update(json.dumps([table, *row], default=repr).encode())
    return sealed.hexdigest()


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync(folder.parent)


def _sync(folder: Path) -> None:
    """Have a folder's entries on the disk; Windows has no such call and needs none."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
