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


def test_currencies_follow_the_kind_of_cap_and_only_budgets_have_a_cost():
    assert terms(PureBudget(1)).currency == terms(ApproxBudget(1, 0.1)).currency == "epsilon, delta"
    assert terms(ZcdpBudget(1)).currency == "rho"
    assert terms(PureBudget(1)).limit == terms(ApproxBudget(1, 0)).limit
    with pytest.raises(BudgetError, match="is needed"):
        terms(PureBudget(1)).cost(0.5)


@pytest.mark.parametrize(
    ("cap", "budget", "reason"),
    [
        (ZcdpBudget(1), ApproxBudget(0.1, 1e-8), r"which .* does not bound: use a ZcdpBudget, .*: here rho 0\.000\d+\), or"),
        (ZcdpBudget(1), ApproxBudget("1e-100", "1e-100"), "does not bound"),
        (ZcdpBudget(1), ApproxBudget(10**15, 0.999), "does not bound"),
        (PureBudget(1), ZcdpBudget(0.1), "before a delta is chosen: use an ApproxBudget"),
        (ApproxBudget(1, 0.1), ZcdpBudget(0.1), "before a delta is chosen"),
    ],
)
def test_a_budget_that_does_not_fit_the_currency_is_refused_with_the_reason(cap, budget, reason):
    with pytest.raises(RefusedError, match=reason):
        terms(cap).cost(budget)


@pytest.mark.parametrize(
    ("error", "change"),
    [
        *((SettingError, {"neighbours": wrong}) for wrong in ("", "one\nother", None)),
        *((SettingError, {"unit": unit, "person": "user_id"}) for unit in ("record", "trip")),
        *((SettingError, {"unit": "person", "person": wrong}) for wrong in ("two\nlines", "x" * 121)),
        (SettingError, {"unit": "household"}),
        (BudgetError, {"cap": 1.0}),
        (BudgetError, {"cap": PureBudget(Fraction(1, 10**1001))}),
    ],
)
def test_terms_that_make_no_sense_are_refused(error, change):
    with pytest.raises(error):
        Terms(**{"unit": "record", "neighbours": "replace one", "cap": PureBudget(1)} | change)


@pytest.mark.parametrize("passed", [ApproxBudget(Fraction(3, 10) + Fraction(1, 10**90), 0), ApproxBudget(0.2, 2e-6)])
def test_the_cap_can_be_met_exactly_and_neither_epsilon_nor_delta_can_pass_it(passed):
    known = account(ApproxBudget(1, 2e-6), epsilon="7/10", delta="1/1000000")
    assert known.left == {"epsilon": Fraction(3, 10), "delta": Fraction(1, 10**6)}
    assert known.after(ApproxBudget(0.3, 1e-6)) == known.terms.limit
    with pytest.raises(RefusedError, match=r"cap of 'visits'.* left: epsilon 0\.3, delta 1e-6 \(of epsilon 1, delta 2e-6\)"):
        known.after(passed)


def test_what_is_said_to_be_left_can_be_spent():
    known = account(PureBudget(1), epsilon="1/3", delta=0)
    assert format_budget(known.left, zero_delta=True) == "epsilon 0.666666666, delta 0"
    assert known.after(PureBudget("0.666666666"))["epsilon"] < 1


def test_sums_and_single_budgets_of_too_many_digits_are_refused():
    known = account(PureBudget(1), epsilon=Fraction(1, 7**4720), delta=0)
    with pytest.raises(RefusedError, match="has too many digits to store"):
        known.after(PureBudget(Fraction(1, 11**90)))
    for budget in (PureBudget(Fraction(1, 10**101)), ApproxBudget(1, Fraction(1, 7**200)), ZcdpBudget(Fraction(1, 11**999))):
        with pytest.raises(BudgetError, match="100 digits"):
            amount_of(budget)


ALTERED = {
    (PureBudget, "epsilon"): [Fraction(-5), Fraction(0), Fraction(10**16), 0.5, True],
    (ApproxBudget, "delta"): [Fraction(-1, 10), Fraction(1)],
    (ZcdpBudget, "rho"): [Fraction(-1, 2), "1/2"],
}


@pytest.mark.parametrize(("kind", "name", "value"), [(*place, value) for place, values in ALTERED.items() for value in values])
def test_budgets_altered_into_what_none_can_be_are_refused(kind, name, value):
    budget = kind(1, 0) if kind is ApproxBudget else kind(1)
    object.__setattr__(budget, name, value)
    for action in (amount_of, account(PureBudget(1), epsilon=0, delta=0).after):
        with pytest.raises(BudgetError, match="altered"):
            action(budget)


@few
@given(budgets)
def test_budgets_survive_their_text(budget):
    text = exact_text(amount_of(budget))
    assert budget_of(exact_amount(text)) == budget
    assert "." not in text


@pytest.mark.parametrize(
    ("unit", "person", "words"),
    [
        ("record", "", "-"),
        ("person", "name", "one value of the column 'name'"),
        ("person", "", "what the curator vouches for, without a column"),
        ("person", None, "not known (an older version did not note it)"),
    ],
)
def test_what_a_person_is_is_stated_in_words_also_where_an_older_version_did_not_store_it(unit, person, words):
    assert Terms(unit=unit, neighbours="replace one", cap=PureBudget(1), person=person).person_text == words
