"""One transaction opens an account and pays: what is refused leaves no trace, and no account adds up different persons."""

import pytest

from dpviz.errors import BudgetError, DpvizError, RefusedError, SettingError
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from tests.ledgers import LOOSE, MARK, OTHER_MARK, RECORDS, opened

NEW_MARK = "e5" * 32


def people(person):
    return Terms(unit="person", neighbours="add or remove one", cap=PureBudget(5), person=person)


@pytest.fixture
def ledger(tmp_path):
    """A ledger whose account "visits" has a draw, and whose account "unused" has none."""
    ledger = opened(tmp_path / "ledger.sqlite")
    ledger.spend("visits", PureBudget("1/2"), mechanism="quadtree")
    ledger.open("unused", [OTHER_MARK], RECORDS)
    return ledger


def test_it_opens_the_account_and_pays(ledger):
    account, entry = ledger.pay(" new ", [NEW_MARK], LOOSE, ApproxBudget(1, "1e-6"), mechanism="kdtree", purpose="release", contributions=4)
    assert (account.name, account.terms, account.draws, account.spent["epsilon"]) == ("new", LOOSE, 1, 1)
    assert (entry.id, entry.mechanism, entry.purpose, entry.contributions, entry.budget) == (
        2,
        "kdtree",
        "release",
        4,
        ApproxBudget(1, "1e-6"),
    )
    assert ledger.entry(2) == (account, entry)
    assert ledger.find_by_fingerprints([NEW_MARK]) == account
    with pytest.raises(RefusedError, match="no such draw"):
        ledger.entry(3)


@pytest.mark.parametrize(
    ("name", "marks", "terms", "budget", "error"),
    [
        ("new", [NEW_MARK], RECORDS, PureBudget(2), RefusedError),
        ("new", [NEW_MARK], RECORDS, ZcdpBudget("1/2"), RefusedError),
        ("new", [NEW_MARK], RECORDS, 0.5, BudgetError),
        ("visits", [NEW_MARK], RECORDS, PureBudget("3/4"), RefusedError),
        ("visits", [NEW_MARK], LOOSE, PureBudget("1/4"), RefusedError),
        ("other", [MARK, NEW_MARK], RECORDS, PureBudget("3/4"), RefusedError),
        ("unused", [NEW_MARK], LOOSE, PureBudget(6), RefusedError),
        ("unused", [MARK], RECORDS, PureBudget("1/4"), RefusedError),
    ],
)
def test_what_is_refused_leaves_no_trace(ledger, name, marks, terms, budget, error):
    before = ledger.path.read_bytes()
    with pytest.raises(error):
        ledger.pay(name, marks, terms, budget, mechanism="quadtree")
    assert ledger.path.read_bytes() == before
    assert ledger.find_by_fingerprints([NEW_MARK]) is None
    assert ledger.account("unused").terms == RECORDS


def test_what_is_malformed_makes_no_ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for wrong in ({"name": "two\nlines"}, {"fingerprints": ["x"]}, {"mechanism": ""}, {"purpose": "fun"}, {"contributions": 0}):
        asked = {"name": "new", "fingerprints": [MARK], "terms": RECORDS, "budget": PureBudget("1/2"), "mechanism": "quadtree"} | wrong
        with pytest.raises(SettingError):
            ledger.pay(**asked)
    assert not ledger.path.exists()


@pytest.mark.parametrize("second", ["trip_id", ""])
def test_an_account_never_adds_up_different_persons(ledger, second):
    ledger.pay("people", [NEW_MARK], people("user_id"), PureBudget(1), mechanism="quadtree")
    for name, marks in (("people", ["f6" * 32]), ("other", [NEW_MARK])):
        with pytest.raises(RefusedError, match=r"'people' was opened with other terms.*person is one value of the column 'user_id', not "):
            ledger.pay(name, marks, people(second), PureBudget(1), mechanism="quadtree")
    assert ledger.account("people").draws == 1


def test_how_many_records_of_a_person_are_counted_may_differ(ledger):
    """A draw protects all that a person has, whatever its bound is: its noise is scaled by its own bound, and the budgets add up."""
    for most in (1, 5, 2):
        account, _ = ledger.pay("people", [NEW_MARK], people("user_id"), PureBudget(1), mechanism="quadtree", contributions=most)
    assert (account.spent["epsilon"], [entry.contributions for entry in ledger.entries("people")]) == (3, [1, 5, 2])


@pytest.mark.parametrize(("unit", "person"), [("record", "user_id"), ("trip", "user_id"), ("person", "two\nlines"), ("person", "x" * 121)])
def test_a_person_that_makes_no_sense_is_refused(unit, person):
    with pytest.raises(SettingError):
        Terms(unit=unit, neighbours="add or remove one", cap=PureBudget(1), person=person)


def test_a_look_before_there_is_an_account_is_remembered(tmp_path):
    """Also one in another process, or one at the same file on another frame."""
    Ledger(tmp_path / "ledger.sqlite").note_truth_seen([MARK, OTHER_MARK])
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert ledger.accounts() == []
    assert ledger.seen([NEW_MARK, OTHER_MARK])
    assert not ledger.seen([NEW_MARK])
    account, _ = ledger.pay("visits", [NEW_MARK, OTHER_MARK], RECORDS, PureBudget("1/2"), mechanism="quadtree")
    assert account.truth_seen
    assert not ledger.pay("others", ["f6" * 32], RECORDS, PureBudget("1/2"), mechanism="quadtree")[0].truth_seen


def test_a_look_afterwards_counts_for_the_account_and_for_all_its_marks(ledger):
    ledger.open("visits", [NEW_MARK], RECORDS)
    ledger.note_truth_seen([MARK])
    ledger.note_truth_seen([MARK])
    assert ledger.account("visits").truth_seen
    assert ledger.seen([NEW_MARK]), "the account has both marks"
    assert not ledger.account("unused").truth_seen


def test_an_account_that_was_looked_at_is_seen(ledger):
    assert not ledger.seen([MARK])
    ledger.note_account_truth_seen("visits")
    assert ledger.seen([MARK])


def test_a_look_that_is_at_two_accounts_counts_for_both(ledger):
    ledger.note_truth_seen([MARK, OTHER_MARK])
    assert [account.truth_seen for account in ledger.accounts()] == [True, True]


def test_asking_whether_the_truth_was_seen_makes_no_ledger(tmp_path):
    assert not Ledger(tmp_path / "ledger.sqlite").seen([MARK])
    assert list(tmp_path.iterdir()) == []
    for wrong in ([], ["visits.csv"]):
        with pytest.raises(DpvizError):
            Ledger(tmp_path / "ledger.sqlite").note_truth_seen(wrong)
    assert list(tmp_path.iterdir()) == []
