"""A ledger of an older version opens with everything that was spent; one of a newer version is refused."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dpviz.errors import RefusedError
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from tests.ledgers import run
from tests.privacy.test_ledger_crashes import FORKS

FIRST = Path(__file__).parents[1] / "golden" / "ledger_1.sqlite"  # as version 1 wrote it: never written again
VISITS, PEOPLE, UNUSED = "a1" * 32, "c3" * 32, "d4" * 32
RECORDS = Terms(unit="record", neighbours="add or remove one", cap=PureBudget(1))


@pytest.fixture
def path(tmp_path):
    return Path(shutil.copy(FIRST, tmp_path / "ledger.sqlite"))


def persons(column):
    return Terms(unit="person", neighbours="replace one", cap=ZcdpBudget(2), person=column)


def version(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def test_everything_that_was_spent_is_there_and_reading_changes_nothing(path):
    ledger, before = Ledger(path), path.read_bytes()
    visits, people, unused = ledger.accounts()
    assert (visits.spent["epsilon"], visits.left["epsilon"], visits.draws) == (Fraction(13, 30), Fraction(17, 30), 2)
    assert (people.spent, people.left, people.draws, people.truth_seen) == ({"rho": 1}, {"rho": 1}, 2, True)
    assert (unused.terms.cap, unused.draws) == (ApproxBudget(3, "1e-6"), 0)
    assert [account.terms.person for account in (visits, people, unused)] == ["", None, ""]
    assert [entry.published for entry in ledger.entries("visits")] == ["release-1", None]
    assert [(entry.mechanism, entry.contributions) for entry in ledger.entries("people")] == [("top_down", 3), ("quadtree", 1)]
    assert ledger.find_by_fingerprints(["b2" * 32]).name == "visits"
    assert ledger.seen([PEOPLE])
    assert not ledger.seen([VISITS])
    assert path.read_bytes() == before


def test_the_first_draw_brings_it_up_to_date_and_forgets_nothing(path):
    before = Ledger(path).accounts()
    account, entry = Ledger(path).pay("visits", [VISITS], RECORDS, PureBudget("1/2"), mechanism="quadtree")
    assert (account.spent["epsilon"], account.draws, entry.id) == (Fraction(13, 30) + Fraction(1, 2), 3, 5)
    assert version(path) == 2
    assert Ledger(path).accounts()[1:] == before[1:]
    with pytest.raises(RefusedError, match="would be exceeded"):
        Ledger(path).pay("visits", [VISITS], RECORDS, PureBudget("1/10"), mechanism="quadtree")


def test_a_refused_draw_leaves_it_as_it_was(path):
    before = path.read_bytes()
    with pytest.raises(RefusedError, match="would be exceeded"):
        Ledger(path).pay("visits", [VISITS, "ee" * 32], RECORDS, PureBudget("3/4"), mechanism="quadtree")
    assert path.read_bytes() == before


def test_an_account_without_a_definition_of_a_person_takes_the_first_that_is_named(path):
    ledger = Ledger(path)
    with pytest.raises(RefusedError, match="would be exceeded"):
        ledger.pay("people", [PEOPLE], persons("trip_id"), ZcdpBudget(2), mechanism="top_down")
    account, _ = ledger.pay("people", [PEOPLE], persons("user_id"), ZcdpBudget("1/2"), mechanism="top_down")
    assert (account.terms.person, account.spent) == ("user_id", {"rho": Fraction(3, 2)})
    with pytest.raises(
        RefusedError, match="its definition of a person is one value of the column 'user_id', not one value of the column 'trip_id'"
    ):
        ledger.pay("people", [PEOPLE], persons("trip_id"), ZcdpBudget("1/4"), mechanism="top_down")


@pytest.mark.parametrize("number", [3, 99])
def test_a_newer_ledger_is_refused_and_left_alone(path, number):
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {number}")
    before = path.read_bytes()
    for action in (Ledger(path).accounts, lambda: Ledger(path).open("new", ["ee" * 32], RECORDS)):
        with pytest.raises(RefusedError, match="was written by a newer version of dpviz: update dpviz"):
            action()
    assert path.read_bytes() == before


@pytest.mark.parametrize("change", ["UPDATE dataset SET spent = 'epsilon 0, delta 0'", "DELETE FROM draw", "PRAGMA user_version = 2"])
def test_an_altered_old_ledger_is_refused(path, change):
    with closing(sqlite3.connect(path)) as db:
        db.execute(change)
        db.commit()
    with pytest.raises(RefusedError, match="altered"):
        Ledger(path).accounts()


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_process_killed_while_it_brings_the_ledger_up_to_date_changes_nothing(path):
    """Its pages were written over the ledger already; the journal that it left brings the old ledger back."""
    before = path.read_bytes()
    code = """
with ledger._file.writing() as db:
    db.execute("PRAGMA cache_size = 1")
    db.executemany("INSERT INTO seen VALUES (?)", [(f"{number:064x}",) for number in range(2000)])
    os.kill(os.getpid(), signal.SIGKILL)
"""
    run(code, path, code_expected=-signal.SIGKILL)
    assert path.read_bytes() != before, "half of it is on the disk"
    assert Ledger(path).account("visits").spent["epsilon"] == Fraction(13, 30)
    assert (version(path), path.read_bytes()) == (1, before)
    assert Ledger(path).pay("visits", [VISITS], RECORDS, PureBudget("1/10"), mechanism="htf")[1].id == 5


@pytest.mark.skipif(os.name != "posix", reason="forks are POSIX's")
def test_processes_that_bring_it_up_to_date_at_once_agree(path):
    """Six draw at once; the cap has room for five more."""
    code = f"""{FORKS}
draw = lambda number: attempt(lambda: ledger.pay("visits", [MARK], RECORDS, PureBudget("17/150"), mechanism="htf")[1].id)
for answer in together(6, draw):
    print(json.dumps(answer))
"""
    answers = run(code, path)
    assert sorted(answer for answer in answers if isinstance(answer, int)) == [5, 6, 7, 8, 9]
    assert sum("would be exceeded" in answer for answer in answers if isinstance(answer, str)) == 1
    assert Ledger(path).account("visits").left["epsilon"] == 0
    assert Ledger(path).account("people").spent == {"rho": 1}
