"""Receipts in rho and in (epsilon, delta): exact sums, conversions back that never promise too much, refusals."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpviz.errors import BudgetError
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.receipt import Receipt, Step


def gaussian(rho: Fraction | str, **more) -> Step:
    amount = Fraction(rho)
    return Step(purpose="counts", amount=amount, sensitivity=Fraction(2), noise="discrete Gaussian", scale=1 / amount, **more)


def laplace(epsilon: Fraction | str, delta: str = "0") -> Step:
    amount = Fraction(epsilon)
    return Step(purpose="counts", amount=amount, delta=Fraction(delta), sensitivity=Fraction(2), noise="discrete Laplace", scale=2 / amount)


def test_a_receipt_in_rho_adds_up_exactly():
    receipt = Receipt(total=ZcdpBudget(0.3), steps=(gaussian("0.1"), gaussian("0.2", level=3, counts=64)))
    assert receipt.spent == receipt.total == ZcdpBudget(0.3)
    assert (receipt.currency, receipt.available, receipt.used) == ("ρ", Fraction("0.3"), Fraction("0.3"))
    assert Receipt(total=ZcdpBudget(0.3), steps=(gaussian("0.1"),)).spent == ZcdpBudget(0.1)


def test_a_receipt_in_epsilon_and_delta_adds_both_up_exactly():
    receipt = Receipt(total=ApproxBudget(1, "1e-6"), steps=(laplace("0.4", "4e-7"), laplace("0.6", "6e-7")))
    assert receipt.spent == receipt.total
    assert (receipt.currency, receipt.available, receipt.used) == ("ε", 1, 1)
    less = Receipt(total=ApproxBudget(1, "1e-6"), steps=(laplace("0.4", "4e-7"),))
    assert less.spent == ApproxBudget("0.4", "4e-7")


def test_a_receipt_refuses_to_overspend_rho_epsilon_or_delta_by_the_smallest_amount():
    drop = Fraction(1, 10**30)
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=ZcdpBudget(1), steps=(gaussian("1"), gaussian(drop)))
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=ApproxBudget(1, "1e-6"), steps=(laplace("1", "1e-6"), laplace(drop)))
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=ApproxBudget(2, "1e-6"), steps=(laplace("1", "1e-6"), laplace("1", "1e-30")))
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=PureBudget(2), steps=(laplace("1", "1e-30"),))
    with pytest.raises(BudgetError, match="at least one step"):
        Receipt(total=ZcdpBudget(1), steps=())


@pytest.mark.parametrize("conversion", ["tight", "simple"])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-8"), ("1", "1e-5"), ("10", "1e-8")])
def test_all_of_a_converted_budget_stands_for_all_of_epsilon_and_delta(epsilon, delta, conversion):
    total = ApproxBudget(epsilon, delta)
    rho = total.to_zcdp(conversion)
    parts = rho.split([1, 2, 3])
    receipt = Receipt(total=total, steps=tuple(gaussian(part) for part in parts), converted=rho, conversion=conversion)
    assert receipt.spent == total
    assert (receipt.currency, receipt.available, receipt.used) == ("ρ", rho.rho, rho.rho)
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(
            total=total, steps=(*(gaussian(part) for part in parts), gaussian(Fraction(1, 10**40))), converted=rho, conversion=conversion
        )


@pytest.mark.parametrize("conversion", ["tight", "simple"])
@pytest.mark.parametrize("share", ["1/2", "1/100", "999999/1000000"])
def test_part_of_a_converted_budget_stands_for_less_at_the_same_delta_and_never_for_too_little(conversion, share):
    total = ApproxBudget(1, "1e-5")
    rho = total.to_zcdp(conversion)
    spent = Receipt(total=total, steps=(gaussian(rho.rho * Fraction(share)),), converted=rho, conversion=conversion).spent
    assert spent.delta == total.delta
    assert spent.epsilon <= total.epsilon
    assert spent.to_zcdp(conversion).rho >= rho.rho * Fraction(share) * (1 - Fraction(1, 10**6))
    if share != "999999/1000000":
        assert spent.epsilon < total.epsilon * Fraction("0.8")


def test_a_converted_budget_is_counted_in_its_own_currency():
    total = ApproxBudget(1, "1e-5")
    rho = total.to_zcdp()
    assert rho.rho < Fraction("0.1")
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=total, steps=(gaussian("0.5"),), converted=rho, conversion="tight")


def test_what_is_protected_and_what_is_not_is_kept_as_given():
    receipt = Receipt(
        total=ZcdpBudget(1),
        steps=(gaussian("1"),),
        unit="person",
        neighbours="replace one",
        contributions=3,
        unprotected=("the total",),
        notes=("declared",),
    )
    assert (receipt.unit, receipt.neighbours, receipt.contributions) == ("person", "replace one", 3)
    assert (receipt.unprotected, receipt.notes) == (("the total",), ("declared",))
    with pytest.raises(AttributeError):
        receipt.unit = "trip"


def test_what_is_spent_in_place_of_later_steps_is_not_added_up():
    early = replace(laplace("0.9"), replaces_later=True, level=2)
    receipt = Receipt(total=PureBudget(1), steps=(laplace("0.4"), early, laplace("0.6")))
    assert receipt.used == 1
    assert receipt.spent == receipt.total
    assert Receipt(total=PureBudget(1), steps=(laplace("0.4"), early)).spent == PureBudget("0.4")
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=PureBudget(1), steps=(early, laplace(1 + Fraction(1, 10**30))))


def test_a_reference_that_is_not_private_has_no_spent_budget_and_may_have_no_steps():
    receipt = Receipt(total=PureBudget(1), steps=(), private=False)
    assert receipt.used == 0
    with pytest.raises(BudgetError, match="NOT PRIVATE: no budget bounds"):
        _ = receipt.spent
    with pytest.raises(BudgetError, match="at least one step"):
        Receipt(total=PureBudget(1), steps=())
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=PureBudget(1), steps=(laplace("1.01"),), private=False)
