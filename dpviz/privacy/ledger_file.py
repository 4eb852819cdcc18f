"""The ledger's file: an SQLite database. Each operation first verifies its whole content, and changes it in one synced transaction."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import shlex
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dpviz.errors import RefusedError

APPLICATION = 0x44505631  # "DPV1" in the file's header, to distinguish it from other SQLite files
VERSION = 4
BUSY = 5.0  # seconds to wait for another process, or another thread
NAMED_BY_VARIABLE, NAMED_BY_PATH = "variable", "path"
_TABLES_1 = {
    "ledger": "CREATE TABLE ledger (key TEXT NOT NULL, seal TEXT NOT NULL)",
    "dataset": "CREATE TABLE dataset (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created TEXT NOT NULL, unit TEXT NOT NULL,"
    " neighbours TEXT NOT NULL, cap TEXT NOT NULL, spent TEXT NOT NULL, truth_seen INTEGER NOT NULL)",
    "mark": "CREATE TABLE mark (digest TEXT NOT NULL UNIQUE, dataset INTEGER NOT NULL REFERENCES dataset)",
    "draw": "CREATE TABLE draw (id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset, time TEXT NOT NULL,"
    " mechanism TEXT NOT NULL, purpose TEXT NOT NULL, contributions INTEGER NOT NULL, budget TEXT NOT NULL, published TEXT)",
}
_TABLES_2 = {
    **_TABLES_1,
    "dataset": f"{_TABLES_1['dataset'][:-1]}, person TEXT)",
    "seen": "CREATE TABLE seen (digest TEXT NOT NULL UNIQUE)",
}
_TABLES_3 = {**_TABLES_2, "searched": "CREATE TABLE searched (digest TEXT NOT NULL UNIQUE)"}
TABLES = {
    **_TABLES_3,
    "dataset": f"{_TABLES_3['dataset'][:-1]}, series TEXT)",
    "draw": f"{_TABLES_3['draw'][:-1]}, period TEXT)",
}
"""The tables of this version. `mark` holds the fingerprints of datasets; `seen`, those of data whose true figures were looked at;
`searched`, those of data whose columns were searched for persons. `dataset.person` is NULL if an older version opened the account
without storing it. `dataset.series` and `draw.period` are NULL where all draws spend from one cap."""
_TABLES_OF_VERSION = {1: _TABLES_1, 2: _TABLES_2, 3: _TABLES_3, VERSION: TABLES}
_UPGRADES = {
    1: (
        "ALTER TABLE dataset ADD COLUMN person TEXT",
        "UPDATE dataset SET person = '' WHERE unit <> 'person'",
        TABLES["seen"],
    ),
    2: (TABLES["searched"],),
    3: ("ALTER TABLE dataset ADD COLUMN series TEXT", "ALTER TABLE draw ADD COLUMN period TEXT"),
}
"""For each older version, the statements that bring its file to the next one."""
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


class _Gate:
    """Operations pass side by side; a fork waits until none is under way, and none begins until it is done.

    So a child process never inherits an unfinished operation, and an operation that waits for another process holds up no other thread.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._running = self._forks = 0

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Pass, for as long as the block lasts."""
        with self._changed:
            self._changed.wait_for(lambda: not self._forks)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Wait until no operation is under way, and let none begin."""
        self._changed.acquire()
        self._forks += 1
        self._changed.wait_for(lambda: not self._running)

    def open(self) -> None:
        """Let operations begin again, in the parent process and in the child."""
        self._forks -= 1
        self._changed.notify_all()
        self._changed.release()


_GATE = _Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_GATE.close, after_in_parent=_GATE.open, after_in_child=_GATE.open)
_used: set[Path] = set()  # the ledgers that this process has read or written: one that is gone is not made anew


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
        path: the path of the file.
        named_by: who named the path: the environment ("variable") or the caller ("path"). Such a file is never made by `create`: a
            path that is mistyped would begin a new ledger, which knows of nothing that was spent. "" for the usual path.
        made: whether `create` or `make` made the file.
    """

    def __init__(self, path: Path, named_by: str = "") -> None:
        self.path, self.named_by, self.made = path, named_by, False

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
            RefusedError: the system cannot tell; there is no file though the path was named, or this process or a release that is kept
                has used it; or there is a journal without its ledger.
        """
        with self._translate_errors():
            exists = os.path.lexists(self.path)
            if not exists and os.path.lexists(f"{self.path}-journal"):
                raise RefusedError(f"The ledger {self.path} is gone, but its journal is still there: restore the ledger.")
            if not exists and (self.named_by or self.path in _used or os.path.lexists(f"{self.path}.paid")):
                raise RefusedError(self._describe_missing())
        return exists

    def create(self) -> None:
        """Make an empty ledger at the usual path if there is none, and its folder with mode 0700 if it is missing.

        Raises:
            RefusedError: as for `exists`, or the folder cannot be created or written.
        """
        if not self.exists():
            with self._translate_errors():
                _make_folder(self.path.parent)
            self.make()

    def make(self) -> bool:
        """Make an empty ledger with mode 0600. Return False if there is something at the path, which is left alone.

        Raises:
            RefusedError: the folder is missing or cannot be written.
        """
        with self._translate_errors():
            handle, name = tempfile.mkstemp(prefix=".new-", suffix=".sqlite", dir=self.path.parent)
            os.close(handle)
            try:
                with self._connect(Path(name)) as db:
                    _create_tables(db)
                os.link(name, self.path)
                self.made = True
            except FileExistsError:
                return False  # another process created it in the meantime
            finally:
                Path(name).unlink()
                _sync_folder(self.path.parent)
        return True

    def _describe_missing(self) -> str:
        if self.named_by == NAMED_BY_PATH:
            return f"There is no ledger {self.path}: correct the path, or begin a new ledger there with dpviz.Ledger.new(path)."
        command = f"dpviz ledger new {shlex.quote(str(self.path))}"
        if self.named_by:
            return f"DPVIZ_LEDGER names the ledger {self.path}, which is not there: correct it, or begin a new ledger there with: {command}"
        return f"The ledger {self.path} was used and is gone: restore it from a backup, or begin a new one with: {command}"

    @contextmanager
    def _open_checked(self, begin: str) -> Iterator[sqlite3.Connection]:
        if not self.exists():
            raise RefusedError(f"There is no ledger {self.path} yet: the first paid release or draw makes it.")
        with _GATE.passing(), self._translate_errors(), self._connect(self.path) as db:
            db.execute(begin)
            if _read_version(db) > VERSION and _read_pragma(db, "application_id") == APPLICATION:
                raise RefusedError(f"The ledger {self.path} was written by a newer version of dpviz: update dpviz.")
            if not _is_intact(db, self.path.stat().st_size):
                raise RefusedError(f"The ledger {self.path} {_DAMAGED}.")
            _used.add(self.path)
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
            raise RefusedError(f"The ledger {self.path} {self._describe_place() or _REASONS.get(code, _DAMAGED)}.") from None
        except OSError as error:
            raise RefusedError(f"The ledger {self.path} cannot be opened and written: {error.strerror}.") from None

    def _describe_place(self) -> str:
        """Say what is at the path if it is no file; "" if it is one."""
        if os.path.isdir(self.path):  # noqa: PTH112  (gives False without permission, where Path.is_dir raises)
            return "cannot be opened and written: it is a folder, and a ledger is a file"
        is_dangling = os.path.islink(self.path) and not os.path.exists(self.path)  # noqa: PTH110, PTH114
        return "cannot be opened and written: it is a link to a file that is not there" if is_dangling else ""


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
    for version in range(_read_version(db), VERSION):
        for step in (*_UPGRADES[version], f"PRAGMA user_version = {version + 1}"):
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
