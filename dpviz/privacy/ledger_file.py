"""The ledger's file: an SQLite database. Each operation first verifies its whole content, and changes it in one synced transaction."""

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

APPLICATION = 0x44505631  # "DPV1" in the file's header, to distinguish it from other SQLite files
VERSION = 2
BUSY = 60.0  # seconds to wait for another process
_TABLES_1 = {
    "ledger": "CREATE TABLE ledger (key TEXT NOT NULL, seal TEXT NOT NULL)",
    "dataset": "CREATE TABLE dataset (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created TEXT NOT NULL, unit TEXT NOT NULL,"
    " neighbours TEXT NOT NULL, cap TEXT NOT NULL, spent TEXT NOT NULL, truth_seen INTEGER NOT NULL)",
    "mark": "CREATE TABLE mark (digest TEXT NOT NULL UNIQUE, dataset INTEGER NOT NULL REFERENCES dataset)",
    "draw": "CREATE TABLE draw (id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset, time TEXT NOT NULL,"
    " mechanism TEXT NOT NULL, purpose TEXT NOT NULL, contributions INTEGER NOT NULL, budget TEXT NOT NULL, published TEXT)",
}
TABLES = {
    **_TABLES_1,
    "dataset": f"{_TABLES_1['dataset'][:-1]}, person TEXT)",
    "seen": "CREATE TABLE seen (digest TEXT NOT NULL UNIQUE)",
}
"""The tables of this version. `mark` holds the fingerprints of datasets; `seen`, those of data whose true figures were looked at.
`dataset.person` is NULL if an older version opened the account without storing it."""
_TABLES_OF_VERSION = {1: _TABLES_1, VERSION: TABLES}
_UPGRADE_FROM_1 = (
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
_DAMAGED = "is empty, cut short, altered or not a ledger of dpviz: restore it from a backup; no new ledger is made instead"

# The process runs one operation at a time, and none while it forks, so that a child process never inherits an unfinished one.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


class LedgerFile:
    """One SQLite file with a seal over its whole content.

    * Each operation has its own connection and one transaction: threads and forked processes share nothing.
    * The seal is an HMAC over every row. Before anything is read or written, SQLite's integrity check, the definitions of the tables
      and the seal are verified. So a file that was cut short, emptied, replaced or altered is refused, and so is a damaged index that
      would hide a row.
    * It uses a rollback journal with ``synchronous = EXTRA``: COMMIT returns when the data are on the disk, the journal is deleted and
      its folder is synced. After a crash the file has the state before the transaction (the next process to open it rolls back) or
      the state after it, and no other.
    * A file of an older version is upgraded in the first transaction that changes it; if that is rolled back, it stays as it was. Until
      then it is read through an upgraded copy in memory. A file of a newer version is refused.
    * A new file is completed under a temporary name and then linked to its final name. So an empty or half-written file is always a
      damaged ledger, never a new one.

    No other code of the process may open this file: closing it would release SQLite's locks (POSIX).

    Attributes:
        path: the path of the file, which need not exist before `create`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that reads one verified state of the ledger.

        Raises:
            RefusedError: the file is missing, damaged, busy or unreadable.
        """
        with self._open_checked("BEGIN") as db:
            if _read_version(db) == VERSION:
                yield db
            else:
                with _copy_in_memory(db) as copy:
                    yield copy

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in an exclusive transaction on a verified state of the ledger.

        Leaving the block renews the seal, commits and syncs. If the block raises, nothing is changed.

        Raises:
            RefusedError: the file is missing, damaged, busy or not writable. Then either nothing or the whole change is stored.
        """
        with self._open_checked("BEGIN IMMEDIATE") as db:
            _upgrade(db)
            yield db
            key, seal = db.execute("SELECT key, seal FROM ledger").fetchone()
            if seal != (new_seal := _compute_seal(db, key)):
                db.execute("UPDATE ledger SET seal = ?", (new_seal,))
            db.execute("COMMIT")

    def exists(self) -> bool:
        """Return whether there is a file (or anything else) at the path.

        Raises:
            RefusedError: the system cannot tell, or there is a journal without its ledger.
        """
        with self._translate_errors():
            exists = os.path.lexists(self.path)
            if not exists and os.path.lexists(f"{self.path}-journal"):
                raise RefusedError(f"The ledger {self.path} is gone, but its journal is still there: restore the ledger.")
        return exists

    def create(self) -> None:
        """Create an empty ledger with mode 0600, and its folder with mode 0700 if it is missing. Do nothing if the file exists.

        Raises:
            RefusedError: the folder cannot be created or written.
        """
        if self.exists():
            return
        with self._translate_errors():
            _make_folder(self.path.parent)
            handle, name = tempfile.mkstemp(prefix=".new-", suffix=".sqlite", dir=self.path.parent)
            os.close(handle)
            try:
                with self._connect(Path(name)) as db:
                    _create_tables(db)
                os.link(name, self.path)
            except FileExistsError:
                return  # another process created it in the meantime
            finally:
                Path(name).unlink()
                _sync_folder(self.path.parent)

    @contextmanager
    def _open_checked(self, begin: str) -> Iterator[sqlite3.Connection]:
        with _LOCK, self._translate_errors(), self._connect(self.path) as db:
            db.execute(begin)
            if _read_version(db) > VERSION and _read_pragma(db, "application_id") == APPLICATION:
                raise RefusedError(f"The ledger {self.path} was written by a newer version of dpviz: update dpviz.")
            if not _is_intact(db, self.path.stat().st_size):
                raise RefusedError(f"The ledger {self.path} {_DAMAGED}.")
            yield db

    @contextmanager
    def _connect(self, path: Path) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY, isolation_level=None)) as db:
            db.row_factory = sqlite3.Row
            for setting in _SETTINGS:
                db.execute(f"PRAGMA {setting}")
            yield db

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn errors of SQLite and of the system into a `RefusedError` that says what to do."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite quotes a broken table definition, which may not be UTF-8
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            raise RefusedError(f"The ledger {self.path} {_REASONS.get(code, _DAMAGED)}.") from None
        except OSError as error:
            raise RefusedError(f"The ledger {self.path} cannot be opened and written: {error.strerror}.") from None


def _create_tables(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")
    for definition in TABLES.values():
        db.execute(definition)
    key = secrets.token_hex(32)
    db.execute("INSERT INTO ledger VALUES (?, ?)", (key, _compute_seal(db, key)))
    db.execute("COMMIT")


def _read_pragma(db: sqlite3.Connection, name: str) -> int | str:
    value: int | str = db.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _read_version(db: sqlite3.Connection) -> int:
    return int(_read_pragma(db, "user_version"))


def _upgrade(db: sqlite3.Connection) -> None:
    """Add the columns and tables that the version that wrote the file did not have. Its content stays."""
    if _read_version(db) != VERSION:
        for step in _UPGRADE_FROM_1:
            db.execute(step)


@contextmanager
def _copy_in_memory(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Yield an upgraded copy of the ledger, in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        copy.row_factory = sqlite3.Row
        db.backup(copy)
        _upgrade(copy)
        yield copy


def _is_intact(db: sqlite3.Connection, size: int) -> bool:
    """Return whether the file has all its pages, exactly our tables and the right seal, and passes SQLite's integrity check."""
    tables = _TABLES_OF_VERSION.get(_read_version(db))
    actual = (
        _read_pragma(db, "application_id"),
        _read_pragma(db, "journal_mode"),
        int(_read_pragma(db, "page_count")) * int(_read_pragma(db, "page_size")),
    )
    if tables is None or actual != (APPLICATION, "delete", size):
        return False
    defined = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    if dict(map(tuple, defined)) != tables or [tuple(row) for row in db.execute("PRAGMA integrity_check")] != [("ok",)]:
        return False
    rows = db.execute("SELECT key, seal FROM ledger").fetchall()
    return len(rows) == 1 and rows[0]["seal"] == _compute_seal(db, rows[0]["key"])


def _compute_seal(db: sqlite3.Connection, key: str) -> str:
    """Return the HMAC-SHA256 of every row of every table except the one that holds the seal, as hex digits."""
    mac = hmac.new(str(key).encode(), digestmod=hashlib.sha256)
    for table in sorted(_TABLES_OF_VERSION[_read_version(db)].keys() - {"ledger"}):
        for row in db.execute(f"SELECT * FROM {table} ORDER BY rowid"):  # noqa: S608
            mac.update(json.dumps([table, *row], default=repr).encode())
    return mac.hexdigest()


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Wait until a folder's entries are on the disk. Windows has no such call and needs none."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
