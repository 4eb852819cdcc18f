"""Receipts in epsilon, in (epsilon, delta) and in rho: exact sums, conversions back that never promise too much, refusals."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpviz.errors import BudgetError
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.receipt import Receipt, Step


def step(amount: Fraction | str, **more) -> Step:
    amount = Fraction(amount)
    return Step(
        **{"purpose": "counts", "amount": amount, "sensitivity": Fraction(2), "noise": "discrete Gaussian", "scale": 1 / amount} | more
    )


def laplace(epsilon: Fraction | str, delta: str = "0", **more) -> Step:
    return step(epsilon, noise="discrete Laplace", scale=2 / Fraction(epsilon), delta=Fraction(delta), **more)


def test_receipts_add_up_exactly_in_every_currency():
    receipt = Receipt(total=PureBudget(0.3), steps=(laplace("0.1"), laplace("0.2", level=3, counts=64)))
    assert receipt.spent == receipt.total == PureBudget(0.3)
    assert (receipt.unit, receipt.neighbours, receipt.contributions) == ("record", "add or remove one", 1)
    assert receipt.unprotected
    assert Receipt(total=PureBudget(0.4), steps=(laplace("0.1"),)).spent == PureBudget(0.1)
    receipt = Receipt(total=ZcdpBudget(0.3), steps=(step("0.1"), step("0.2", level=3, counts=64)))
    assert receipt.spent == receipt.total == ZcdpBudget(0.3)
    assert (receipt.currency, receipt.available, receipt.used) == ("ρ", Fraction("0.3"), Fraction("0.3"))
    assert Receipt(total=ZcdpBudget(0.3), steps=(step("0.1"),)).spent == ZcdpBudget(0.1)
    receipt = Receipt(total=ApproxBudget(1, "1e-6"), steps=(laplace("0.4", "4e-7"), laplace("0.6", "6e-7")))
    assert receipt.spent == receipt.total
    assert (receipt.currency, receipt.available, receipt.used) == ("ε", 1, 1)
    assert Receipt(total=ApproxBudget(1, "1e-6"), steps=(laplace("0.4", "4e-7"),)).spent == ApproxBudget("0.4", "4e-7")


RHO = ApproxBudget(1, "1e-5").to_zcdp()
DROP = Fraction(1, 10**30)
OVERSPENT = {
    "epsilon": (PureBudget(0.3), [laplace("0.1"), laplace("0.2"), laplace(DROP)], {}),
    "rho": (ZcdpBudget(1), [step("1"), step(DROP)], {}),
    "epsilon beside delta": (ApproxBudget(1, "1e-6"), [laplace("1", "1e-6"), laplace(DROP)], {}),
    "delta": (ApproxBudget(2, "1e-6"), [laplace("1", "1e-6"), laplace("1", "1e-30")], {}),
    "delta where there is none": (PureBudget(2), [laplace("1", "1e-30")], {}),
    "more in place of later steps than there is": (PureBudget(1), [replace(laplace("0.9"), replaces_later=True), laplace(1 + DROP)], {}),
    "a reference": (PureBudget(1), [laplace("1.01")], {"private": False}),
    "rho of a converted budget": (ApproxBudget(1, "1e-5"), [step("0.5")], {"converted": RHO, "conversion": "tight"}),
}


@pytest.mark.parametrize("name", OVERSPENT)
def test_a_receipt_refuses_to_overspend_by_the_smallest_amount(name):
    total, steps, more = OVERSPENT[name]
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=total, steps=tuple(steps), **more)
    assert RHO.rho < Fraction("0.1"), "a converted budget is counted in its own currency"


@pytest.mark.parametrize("total", [PureBudget(1), ZcdpBudget(1)])
def test_a_receipt_of_nothing_is_refused(total):
    with pytest.raises(BudgetError, match="at least one step"):
        Receipt(total=total, steps=())


@pytest.mark.parametrize("conversion", ["tight", "simple"])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-8"), ("1", "1e-5"), ("10", "1e-8")])
def test_all_of_a_converted_budget_stands_for_all_of_epsilon_and_delta(epsilon, delta, conversion):
    total = ApproxBudget(epsilon, delta)
    how = {"converted": total.to_zcdp(conversion), "conversion": conversion}
    rho, parts = how["converted"].rho, [step(part) for part in how["converted"].split([1, 2, 3])]
    receipt = Receipt(total=total, steps=tuple(parts), **how)
    assert receipt.spent == total
    assert (receipt.currency, receipt.available, receipt.used) == ("ρ", rho, rho)
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=total, steps=(*parts, step(Fraction(1, 10**40))), **how)


@pytest.mark.parametrize("conversion", ["tight", "simple"])
@pytest.mark.parametrize("share", ["1/2", "1/100", "999999/1000000"])
def test_part_of_a_converted_budget_stands_for_less_at_the_same_delta_and_never_for_too_little(conversion, share):
    total = ApproxBudget(1, "1e-5")
    rho = total.to_zcdp(conversion)
    spent = Receipt(total=total, steps=(step(rho.rho * Fraction(share)),), converted=rho, conversion=conversion).spent
    assert spent.delta == total.delta
    assert spent.epsilon <= total.epsilon
    assert spent.to_zcdp(conversion).rho >= rho.rho * Fraction(share) * (1 - Fraction(1, 10**6))
    if share != "999999/1000000":
        assert spent.epsilon < total.epsilon * Fraction("0.8")


def test_what_is_protected_and_what_is_not_is_kept_as_given():
    said = {"unit": "person", "neighbours": "replace one", "contributions": 3, "unprotected": ("the total",), "notes": ("declared",)}
    receipt = Receipt(total=ZcdpBudget(1), steps=(step("1"),), **said)
    assert {name: getattr(receipt, name) for name in said} == said
    with pytest.raises(AttributeError):
        receipt.unit = "trip"


def test_what_is_spent_in_place_of_later_steps_is_not_added_up():
    early = replace(laplace("0.9"), replaces_later=True, level=2)
    receipt = Receipt(total=PureBudget(1), steps=(laplace("0.4"), early, laplace("0.6")))
    assert receipt.used == 1
    assert receipt.spent == receipt.total
    assert Receipt(total=PureBudget(1), steps=(laplace("0.4"), early)).spent == PureBudget("0.4")


def test_a_reference_that_is_not_private_has_no_spent_budget_and_may_have_no_steps():
    receipt = Receipt(total=PureBudget(1), steps=(), private=False)
    assert receipt.used == 0
    with pytest.raises(BudgetError, match="NOT PRIVATE: no budget bounds"):
        _ = receipt.spent
