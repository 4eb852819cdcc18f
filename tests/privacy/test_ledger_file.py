"""The ledger's file: foreign, cut, altered, read-only, in use, of another version: one clear refusal, nothing lost, nothing made anew."""

import os
import random
import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dpviz.errors import RefusedError, SettingError
from dpviz.privacy import ledger as module
from dpviz.privacy import ledger_file
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from tests.ledgers import FIRST_VERSION, LOOSE, MARK, OTHER_MARK, PEOPLE, RECORDS, opened, run, usable, usual
from tests.often import often

PERSONS_MARK = "c3" * 32
DAMAGED = "is empty, cut short, altered or not a ledger of dpviz"

READS = {
    "accounts": lambda ledger: ledger.accounts(),
    "account": lambda ledger: ledger.account("visits"),
    "entries": lambda ledger: ledger.entries("visits"),
    "find_by_fingerprints": lambda ledger: ledger.find_by_fingerprints([MARK]),
    "entry": lambda ledger: ledger.entry(1),
    "seen": lambda ledger: ledger.seen([MARK]),
}
WRITES = {
    "open": lambda ledger: ledger.open("new", ["d4" * 32], RECORDS),
    "spend": lambda ledger: ledger.spend("visits", PureBudget(0.1), mechanism="quadtree"),
    "published": lambda ledger: ledger.published(2, "release-2"),
    "note_account_truth_seen": lambda ledger: ledger.note_account_truth_seen("visits"),
    "pay": lambda ledger: ledger.pay("new", ["d4" * 32], RECORDS, PureBudget(0.1), mechanism="quadtree"),
    "note_truth_seen": lambda ledger: ledger.note_truth_seen(["d4" * 32]),
}


@pytest.fixture
def path(tmp_path):
    """A ledger of two datasets and four draws."""
    ledger = opened(tmp_path / "ledger.sqlite", LOOSE)
    ledger.open("trips", [OTHER_MARK], PEOPLE)
    for _ in range(3):
        ledger.spend("visits", ApproxBudget(0.1, 1e-7), mechanism="kdtree")
    ledger.spend("trips", ZcdpBudget(0.5), mechanism="top_down", contributions=3)
    ledger.published(1, "release-1")
    return ledger.path


def says(path):
    """All that a ledger says."""
    ledger = Ledger(path)
    return ledger.accounts(), ledger.entries("visits"), ledger.entries("trips"), ledger.find_by_fingerprints([MARK])


def refusal(action, path):
    """The one line of a refusal, which hides nothing behind it."""
    with pytest.raises(RefusedError) as caught:
        action(Ledger(path))
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


def altered(path, change):
    """Change a ledger past dpviz."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(change)
        db.commit()


@pytest.mark.parametrize("content", ["empty", "text", "zeros", "database", "header only"])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(path, content):
    whole = path.read_bytes()
    path.write_bytes({"text": b"id,lon,lat\n" * 1000, "zeros": bytes(len(whole)), "header only": whole[:100]}.get(content, b""))
    if content == "database":
        altered(path, "CREATE TABLE dataset (name TEXT)")
    foreign = path.read_bytes()
    for action in (READS | WRITES).values():
        assert DAMAGED in refusal(action, path)
        assert path.read_bytes() == foreign
        assert list(path.parent.iterdir()) == [path]


def test_a_ledger_cut_anywhere_is_refused(path):
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 512), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert DAMAGED in refusal(READS["accounts"], path)
        assert DAMAGED in refusal(WRITES["spend"], path)
        assert path.read_bytes() == whole[:length]


@pytest.mark.parametrize("seed", often(range(3), 1))
def test_a_flipped_bit_is_refused_or_does_not_matter(path, seed):
    """It does not matter in unused bytes and in counters of SQLite's own: the file still says what it said."""
    whole, said, draw = path.read_bytes(), says(path), random.Random(seed)
    used = [place for place, byte in enumerate(whole) if byte]
    refused = harmless = 0
    for place in [*draw.sample(range(100), 25), *draw.sample(used, 200), *draw.sample(range(len(whole)), 25)]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        try:
            assert says(path) == said, place
        except RefusedError:
            refused += path.read_bytes() == flipped
        else:
            harmless += 1
    assert refused + harmless == 250
    assert refused > 150


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE dataset SET cap = 'epsilon 1000' WHERE name = 'visits'",
        "DELETE FROM draw WHERE id = 3",
        "DELETE FROM mark",
        "UPDATE ledger SET key = 'abc'",
        "UPDATE ledger SET seal = x'00'",
        "UPDATE draw SET mechanism = x'ff'",
        "INSERT INTO ledger SELECT key, seal FROM ledger",
        "DELETE FROM ledger",
        "CREATE TABLE more (x)",
        "CREATE TRIGGER t AFTER INSERT ON draw BEGIN UPDATE dataset SET spent = 'epsilon 0, delta 0'; END",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = 0",
        "PRAGMA journal_mode = WAL",
    ],
)
def test_a_change_past_dpviz_is_refused(path, change):
    altered(path, change)
    for action in (READS["accounts"], WRITES["spend"]):
        assert DAMAGED in refusal(action, path)


@pytest.mark.parametrize("action", [*READS.values(), *WRITES.values()])
def test_a_ledger_that_was_named_and_is_not_there_is_refused_and_no_folder_is_made(tmp_path, monkeypatch, action):
    """A mistyped path must not begin a new ledger, which would know of nothing that was spent."""
    path = tmp_path / "new" / "lefger.sqlite"
    assert "correct the path, or begin a new ledger there with dpviz.Ledger.new(path)" in refusal(action, path)
    monkeypatch.setenv("DPVIZ_LEDGER", str(path))
    assert f"begin a new ledger there with: dpviz ledger new {path}" in refusal(lambda _: action(Ledger()), path)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_path_is_not_the_usual_ledger():
    with pytest.raises(SettingError, match="path is empty"):
        Ledger("")


def test_the_usual_ledger_is_made_once_and_not_again_where_it_was_used(tmp_path, monkeypatch):
    monkeypatch.delenv("DPVIZ_LEDGER", raising=False)
    monkeypatch.setattr(module, "user_data_path", lambda *_, **__: tmp_path / "data")
    ledger = Ledger()
    assert (ledger.exists(), ledger.accounts(), ledger.made) == (False, [], False)
    ledger.note_truth_seen([MARK])
    assert (ledger.made, Ledger().exists(), Ledger().made) == (True, True, False)
    ledger.path.unlink()
    for action in (*READS.values(), WRITES["pay"]):
        assert "was used and is gone: restore it" in refusal(lambda _, action=action: action(Ledger()), ledger.path)
    Ledger.new(ledger.path)
    ledger.path.unlink()
    monkeypatch.setattr(ledger_file, "_used", set())  # as in another process
    ledger.path.with_name("ledger.sqlite.paid").mkdir()
    assert "was used and is gone" in refusal(lambda _: WRITES["pay"](Ledger()), ledger.path)


def test_a_new_ledger_is_the_owner_s_alone_and_replaces_nothing(tmp_path, path):
    assert stat.S_IMODE(Ledger.new(tmp_path / "new.sqlite").path.stat().st_mode) == 0o600
    assert Ledger(tmp_path / "new.sqlite").accounts() == []
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = path.read_bytes()
    taken = dict.fromkeys((path, tmp_path, tmp_path / "link"), "something at")
    for place, reason in {**taken, tmp_path / "a" / "b": "make it first"}.items():
        with pytest.raises(SettingError, match=reason):
            Ledger.new(place)
    assert path.read_bytes() == before
    assert not (tmp_path / "a").exists()


def test_the_journal_of_a_ledger_that_is_gone_is_not_played_into_a_new_one(path):
    path.unlink()
    path.with_name(f"{path.name}-journal").write_bytes(b"half a transaction")
    assert "is gone, but its journal is still there" in refusal(WRITES["open"], path)
    assert not path.exists()


@pytest.mark.parametrize("place", ["folder", "below a file", "dangling link"])
def test_a_place_where_no_file_can_be_is_refused(tmp_path, place):
    blocked, actions = tmp_path / "blocked", [READS["accounts"], WRITES["open"], WRITES["spend"]]
    if place == "folder":
        blocked.mkdir()
    elif place == "dangling link":
        blocked.symlink_to(tmp_path / "nowhere")
    else:
        blocked.write_text("not a folder")
        blocked /= "ledger.sqlite"
    reason = {"folder": "it is a folder", "dangling link": "a link to a file that is not there", "below a file": "There is no ledger"}[
        place
    ]
    for action in actions:
        assert reason in refusal(action, blocked)
    assert not (tmp_path / "nowhere").exists()


def test_a_file_system_without_links_is_refused_and_left_clean(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert "Operation not permitted" in refusal(lambda ledger: WRITES["open"](usual(ledger.path)), tmp_path / "ledger.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_in_use_is_refused_after_a_while(path, monkeypatch):
    monkeypatch.setattr(ledger_file, "BUSY", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert Ledger(path).account("visits").draws == 3
        assert "is in use by another process" in refusal(WRITES["spend"], path)
        other.execute("ROLLBACK")
        other.execute("BEGIN EXCLUSIVE")
        assert "is in use by another process" in refusal(READS["account"], path)
    assert WRITES["spend"](Ledger(path)) == 5


def test_a_wait_ends_after_five_seconds_and_holds_up_no_other_thread(path, tmp_path, monkeypatch):
    with ledger_file.LedgerFile(path).reading() as db:
        assert db.execute("PRAGMA busy_timeout").fetchone()[0] == 5000
    free, connects, waits, answers = opened(tmp_path / "free.sqlite"), sqlite3.connect, threading.Event(), []
    monkeypatch.setattr(ledger_file, "BUSY", 120.0)
    first = threading.Thread(target=lambda: answers.append(Ledger(path).account("visits").draws))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(ledger_file.sqlite3, "connect", lambda *given, **more: waits.set() or connects(*given, **more))
        first.start()
        assert waits.wait(60)
        assert free.account("visits").draws == 0
        assert (first.is_alive(), answers) == (True, [])
    first.join(60)
    assert answers == [3]


def test_each_commit_waits_for_the_disk(path):
    with ledger_file.LedgerFile(path).writing() as db:
        settings = {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "fullfsync", "journal_mode")}
    assert settings == {"synchronous": 3, "fullfsync": 1, "journal_mode": "delete"}


# Read-only, in ways that hold for the superuser too.


def mounted(command):
    """A prefix that runs a program in a private view of the file system, changed by `command`."""
    return usable("unshare", "-rm", "sh", "-c", f'{command} && exec "$@"', "sh")


def test_a_ledger_that_sqlite_may_not_write_is_read_but_not_spent_from(path):
    """The header's write version says that a later SQLite made it: this binds the superuser too."""
    whole = bytearray(path.read_bytes())
    whole[18] = 9
    path.write_bytes(whole)
    assert Ledger(path).account("visits").draws == 3
    for action in WRITES.values():
        assert "read-only" in refusal(action, path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("folder", [True, False], ids=["disk", "file in a writable folder"])
def test_a_read_only_ledger_is_read_but_not_spent_from(path, folder):
    before, place = path.read_bytes(), path.parent if folder else path
    code = """
print(json.dumps(attempt(lambda: ledger.spend("visits", PureBudget("1/10"), mechanism="quadtree"))))
print(json.dumps(ledger.account("visits").draws))
"""
    refused, draws = run(code, path, under=mounted(f"mount --bind {place} {place} && mount -o remount,bind,ro {place}"))
    assert "it or its folder is read-only" in refused
    assert draws == 3
    assert path.read_bytes() == before


def test_a_read_only_folder_gets_no_ledger(tmp_path):
    under = mounted(f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}")
    code = 'print(json.dumps(attempt(lambda: ledger.open("visits", [MARK], RECORDS))))'
    for path in (tmp_path / "ledger.sqlite", tmp_path / "new" / "ledger.sqlite"):
        assert "Read-only file system" in run(code, path, under=under)[0]
    assert list(tmp_path.iterdir()) == []


def test_the_ledger_of_another_process_that_was_faster_is_kept(tmp_path, monkeypatch):
    path, link = tmp_path / "ledger.sqlite", os.link

    def late(source, target):
        monkeypatch.setattr(os, "link", link)
        opened(path)
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    account = usual(path).open("trips", [OTHER_MARK], PEOPLE)
    assert [each.name for each in Ledger(path).accounts()] == ["visits", account.name]
    assert not list(tmp_path.glob(".new-*"))


# Ledgers of other versions.


@pytest.fixture
def first(tmp_path):
    """A copy of the ledger that version 1 wrote."""
    return Path(shutil.copy(FIRST_VERSION, tmp_path / "ledger.sqlite"))


def test_an_older_ledger_has_everything_that_was_spent_and_reading_changes_nothing(first):
    ledger, before = Ledger(first), first.read_bytes()
    visits, people, unused = ledger.accounts()
    assert (visits.spent["epsilon"], visits.left["epsilon"], visits.draws) == (Fraction(13, 30), Fraction(17, 30), 2)
    assert (people.spent, people.left, people.draws, people.truth_seen) == ({"rho": 1}, {"rho": 1}, 2, True)
    assert (unused.terms.cap, unused.draws) == (ApproxBudget(3, "1e-6"), 0)
    assert [account.terms.person for account in (visits, people, unused)] == ["", None, ""]
    assert [entry.published for entry in ledger.entries("visits")] == ["release-1", None]
    assert [(entry.mechanism, entry.contributions) for entry in ledger.entries("people")] == [("top_down", 3), ("quadtree", 1)]
    assert ledger.find_by_fingerprints([OTHER_MARK]).name == "visits"
    assert ledger.seen([PERSONS_MARK])
    assert not ledger.seen([MARK])
    with pytest.raises(RefusedError, match="would be exceeded"):
        ledger.pay("visits", [MARK, "ee" * 32], RECORDS, PureBudget("3/4"), mechanism="quadtree")
    assert first.read_bytes() == before, "nor does a refused draw"


def test_an_account_without_a_definition_of_a_person_takes_the_first_that_is_named(first):
    def pay(column, rho):
        terms = Terms(unit="person", neighbours="replace one", cap=ZcdpBudget(2), person=column)
        return Ledger(first).pay("people", [PERSONS_MARK], terms, ZcdpBudget(rho), mechanism="top_down")[0]

    with pytest.raises(RefusedError, match="would be exceeded"):
        pay("trip_id", 2)
    account = pay("user_id", "1/2")
    assert (account.terms.person, account.spent) == ("user_id", {"rho": Fraction(3, 2)})
    with pytest.raises(RefusedError, match="a person is one value of the column 'user_id', not one value of the column 'trip_id'"):
        pay("trip_id", "1/4")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("PRAGMA user_version = 5", "was written by a newer version of dpviz: update dpviz"),
        ("PRAGMA user_version = 2", DAMAGED),
        ("PRAGMA user_version = 3", DAMAGED),
        ("PRAGMA user_version = 4", DAMAGED),
        ("UPDATE dataset SET spent = 'epsilon 0, delta 0'", DAMAGED),
    ],
)
def test_newer_and_altered_old_ledgers_are_refused_and_left_alone(first, change, words):
    altered(first, change)
    before = first.read_bytes()
    for action in (READS["accounts"], WRITES["open"]):
        assert words in refusal(action, first)
    assert first.read_bytes() == before
