"""Accounts: terms, what a draw costs in each currency, exact texts, and what people are shown as remaining."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.amounts import format_budget
from dpviz.errors import BudgetError, RefusedError, SettingError
from dpviz.privacy.accounts import Account, Terms, amount_of, budget_of, exact_amount, exact_text
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget

few = settings(max_examples=40, deadline=None, derandomize=True)
positive = st.fractions(Fraction(1, 10**12), 10**6)
budgets = st.one_of(
    st.builds(PureBudget, positive),
    st.builds(ZcdpBudget, positive),
    st.builds(ApproxBudget, positive, st.fractions(0, Fraction(999, 1000))),
)


def terms(cap, unit="record"):
    return Terms(unit=unit, neighbours="add or remove one", cap=cap)


def account(cap, **spent):
    exact = {name: Fraction(value) for name, value in spent.items()}
    return Account(name="visits", terms=terms(cap), spent=exact, draws=1, created="2026-01-01T00:00:00+00:00", truth_seen=False)


@pytest.mark.parametrize(
    ("cap", "budget", "cost"),
    [
        (PureBudget(1), PureBudget(0.3), {"epsilon": "3/10", "delta": "0"}),
        (PureBudget(1), ApproxBudget(0.3, 1e-8), {"epsilon": "3/10", "delta": "1/100000000"}),
        (ApproxBudget(1, 1e-6), PureBudget("1/3"), {"epsilon": "1/3", "delta": "0"}),
        (ZcdpBudget(1), ZcdpBudget(0.1), {"rho": "1/10"}),
        (ZcdpBudget(1), PureBudget("1/3"), {"rho": "1/18"}),
        (ZcdpBudget(1), ApproxBudget("1/3", 0), {"rho": "1/18"}),
    ],
)
def test_a_draw_costs_exactly_its_budget_in_the_currency(cap, budget, cost):
    assert terms(cap).cost(budget) == {name: Fraction(value) for name, value in cost.items()}


def test_pure_epsilon_in_rho_costs_what_the_conversion_of_budgets_says():
    assert terms(ZcdpBudget(1)).cost(PureBudget(0.7))["rho"] == PureBudget(0.7).to_zcdp().rho


@pytest.mark.parametrize(
    ("cap", "budget", "reason"),
    [
        (ZcdpBudget(1), ApproxBudget(0.1, 1e-8), "which .* does not bound: use a ZcdpBudget"),
        (PureBudget(1), ZcdpBudget(0.1), "before a delta is chosen: use an ApproxBudget"),
        (ApproxBudget(1, 0.1), ZcdpBudget(0.1), "before a delta is chosen"),
    ],
)
def test_a_budget_that_does_not_fit_the_currency_is_refused_with_the_reason(cap, budget, reason):
    with pytest.raises(RefusedError, match=reason):
        terms(cap).cost(budget)


def test_currencies_follow_the_kind_of_cap():
    assert terms(PureBudget(1)).currency == terms(ApproxBudget(1, 0.1)).currency == "epsilon, delta"
    assert terms(ZcdpBudget(1)).currency == "rho"
    assert terms(PureBudget(1)).limit == terms(ApproxBudget(1, 0)).limit


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"unit": "household"}, SettingError),
        ({"neighbours": ""}, SettingError),
        ({"neighbours": "one\nother"}, SettingError),
        ({"neighbours": None}, SettingError),
        ({"cap": 1.0}, BudgetError),
        ({"cap": PureBudget(Fraction(1, 10**1001))}, BudgetError),
    ],
)
def test_terms_that_make_no_sense_are_refused(change, error):
    with pytest.raises(error):
        Terms(**{"unit": "record", "neighbours": "replace one", "cap": PureBudget(1)} | change)


def test_the_cap_can_be_met_exactly_and_passed_by_nothing():
    known = account(PureBudget(1), epsilon="7/10", delta=0)
    assert known.left == {"epsilon": Fraction(3, 10), "delta": 0}
    assert known.after(PureBudget(0.3)) == {"epsilon": 1, "delta": 0}
    with pytest.raises(RefusedError, match="cap of 'visits'"):
        known.after(PureBudget(Fraction(3, 10) + Fraction(1, 10**90)))


@pytest.mark.parametrize("passed", [ApproxBudget(0.2, 2e-6), ApproxBudget(0.4, 1e-9)])
def test_either_of_epsilon_and_delta_is_enough_to_refuse(passed):
    known = account(ApproxBudget(1, 2e-6), epsilon="7/10", delta="1/1000000")
    assert known.after(ApproxBudget(0.3, 1e-6)) == known.terms.limit
    with pytest.raises(RefusedError, match=r"left: epsilon 0\.3, delta 1e-6 \(of epsilon 1, delta 2e-6\)"):
        known.after(passed)


def test_what_is_said_to_be_left_can_be_spent():
    known = account(PureBudget(1), epsilon="1/3", delta=0)
    assert format_budget(known.left, zero_delta=True) == "epsilon 0.666666666, delta 0"
    assert known.after(PureBudget("0.666666666"))["epsilon"] < 1


def test_round_amounts_are_written_as_people_write_them():
    assert format_budget(account(PureBudget(10), epsilon=0, delta=0).left, zero_delta=True) == "epsilon 10, delta 0"


def test_sums_too_long_to_be_exact_are_refused():
    known = account(PureBudget(1), epsilon=Fraction(1, 7**4720), delta=0)
    with pytest.raises(RefusedError, match="has too many digits to store"):
        known.after(PureBudget(Fraction(1, 11**90)))


@pytest.mark.parametrize(
    "budget", [PureBudget(Fraction(1, 10**101)), ApproxBudget(1, Fraction(1, 7**200)), ZcdpBudget(Fraction(1, 11**999))]
)
def test_a_single_budget_of_very_many_digits_is_refused_at_once(budget):
    with pytest.raises(BudgetError, match="100 digits"):
        amount_of(budget)


ALTERED = [
    (PureBudget, "epsilon", Fraction(-5)),
    (PureBudget, "epsilon", Fraction(0)),
    (PureBudget, "epsilon", Fraction(10**16)),
    (PureBudget, "epsilon", 0.5),
    (PureBudget, "epsilon", True),
    (ApproxBudget, "delta", Fraction(-1, 10)),
    (ApproxBudget, "delta", Fraction(1)),
    (ZcdpBudget, "rho", Fraction(-1, 2)),
    (ZcdpBudget, "rho", "1/2"),
]


@pytest.mark.parametrize(("kind", "name", "value"), ALTERED)
def test_budgets_altered_into_what_none_can_be_are_refused(kind, name, value):
    budget = kind(1, 0) if kind is ApproxBudget else kind(1)
    object.__setattr__(budget, name, value)
    with pytest.raises(BudgetError, match="altered"):
        amount_of(budget)
    with pytest.raises(BudgetError, match="altered"):
        account(PureBudget(1), epsilon=0, delta=0).after(budget)


@few
@given(budgets)
def test_budgets_survive_their_text(budget):
    text = exact_text(amount_of(budget))
    assert budget_of(exact_amount(text)) == budget
    assert "." not in text


def test_only_budgets_are_taken():
    with pytest.raises(BudgetError, match="is needed"):
        terms(PureBudget(1)).cost(0.5)


def test_what_a_person_is_is_stated_in_words_also_where_an_older_version_did_not_store_it():
    texts = [
        Terms(unit=unit, neighbours="replace one", cap=PureBudget(1), person=person).person_text
        for unit, person in (("record", ""), ("person", "name"), ("person", ""), ("person", None))
    ]
    assert texts == [
        "-",
        "one value of the column 'name'",
        "what the curator vouches for, without a column",
        "not known (an older version did not note it)",
    ]
