"""Terms are fixed by the first draw, and neither altered budgets nor impossible rows get past the ledger."""

import re
from fractions import Fraction

import pytest

from dpviz.errors import BudgetError, RefusedError
from dpviz.privacy.accounts import Terms
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from tests.ledgers import LOOSE, MARK, OTHER_MARK, PEOPLE, RECORDS, opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        (Terms(unit="person", neighbours="add or remove one", cap=PureBudget(1)), "its unit is record, not person"),
        (
            Terms(unit="record", neighbours="replace one", cap=PureBudget(1)),
            "its neighbouring relation is add or remove one, not replace one",
        ),
        (Terms(unit="record", neighbours="add or remove one", cap=ZcdpBudget(1)), "its currency is epsilon, delta, not rho"),
        (Terms(unit="record", neighbours="add or remove one", cap=PureBudget(2)), "its cap is epsilon 1, delta 0, not epsilon 2, delta 0"),
        (Terms(unit="record", neighbours="add or remove one", cap=ApproxBudget(1, 1e-9)), "not epsilon 1, delta 1/1000000000"),
    ],
)
def test_other_terms_are_refused_with_what_differs(path, terms, reason):
    ledger = opened(path)
    ledger.spend("visits", PureBudget("1/1000"), mechanism="quadtree")
    for name, mark in (("visits", OTHER_MARK), ("other", MARK)):
        with pytest.raises(RefusedError, match=f"'visits' was opened with other terms.*{re.escape(reason)}"):
            ledger.open(name, [mark], terms)
    assert ledger.find_by_fingerprints([OTHER_MARK]) is None, "a refusal leaves no mark"


def test_an_altered_budget_buys_nothing_back(path):
    ledger, budget = opened(path), PureBudget(1)
    ledger.spend("visits", budget, mechanism="quadtree")
    object.__setattr__(budget, "epsilon", Fraction(-5))
    with pytest.raises(BudgetError, match="altered"):
        ledger.spend("visits", budget, mechanism="quadtree")
    assert ledger.account("visits").left["epsilon"] == 0


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("draw", "budget", "epsilon -5"),
        ("draw", "budget", "epsilon 1/0"),
        ("draw", "budget", "sigma 3"),
        ("draw", "budget", "epsilon"),
        ("draw", "budget", "rho 1/10"),
        ("dataset", "cap", "epsilon 0"),
        ("dataset", "spent", "epsilon a, delta 0"),
        ("dataset", "spent", "epsilon 1/10"),
        ("dataset", "spent", "epsilon 1/5, delta 0"),
        ("dataset", "unit", "house"),
    ],
)
def test_rows_that_no_ledger_writes_are_refused(path, table, column, value):
    """Under a right seal, as a faulty or older program might have written them."""
    ledger = opened(path)
    ledger.spend("visits", PureBudget(0.1), mechanism="quadtree")
    with ledger._file.writing() as db:
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))  # noqa: S608
    for action in (
        lambda: ledger.account("visits"),
        ledger.accounts,
        lambda: ledger.open("visits", [MARK], RECORDS),
        lambda: ledger.spend("visits", PureBudget(0.1), mechanism="quadtree"),
    ):
        with pytest.raises(RefusedError, match=r"cannot be right|not the sum of its draws|does not determine"):
            action()


def test_terms_may_change_as_long_as_nothing_was_drawn(path):
    ledger = opened(path)
    ledger.note_account_truth_seen("visits")
    with pytest.raises(RefusedError, match="would be exceeded"):
        ledger.spend("visits", PureBudget(5), mechanism="quadtree")
    account = ledger.open("visits", [MARK], PEOPLE)
    assert (account.terms, account.spent, account.truth_seen) == (PEOPLE, {"rho": 0}, True)
    account = ledger.open("other", [MARK], LOOSE)
    assert (account.name, account.terms, account.left["epsilon"]) == ("visits", LOOSE, 5)
    ledger.spend("visits", PureBudget(5), mechanism="quadtree")
    with pytest.raises(RefusedError, match="first draw has fixed"):
        ledger.open("visits", [MARK], RECORDS)
    assert ledger.account("visits").terms == LOOSE


def test_a_draw_on_an_account_is_made_under_its_terms_or_not_at_all(path):
    ledger = Ledger(path)
    careful = ledger.open("visits", [MARK], RECORDS)
    loose = ledger.open("visits", [MARK], LOOSE)
    with pytest.raises(RefusedError, match="other terms"):
        ledger.spend(careful, PureBudget(1), mechanism="quadtree")
    assert ledger.spend(loose, PureBudget(1), mechanism="quadtree") == 1
