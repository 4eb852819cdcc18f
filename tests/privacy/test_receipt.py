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


CURRENCIES = {
    "epsilon": (PureBudget(0.3), [laplace("0.1"), laplace("0.2", level=3, counts=64)], PureBudget(0.1), "ε", "0.3"),
    "rho": (ZcdpBudget(0.3), [step("0.1"), step("0.2", level=3, counts=64)], ZcdpBudget(0.1), "ρ", "0.3"),
    "delta": (ApproxBudget(1, "1e-6"), [laplace("0.4", "4e-7"), laplace("0.6", "6e-7")], ApproxBudget("0.4", "4e-7"), "ε", "1"),
}


@pytest.mark.parametrize(("total", "steps", "first", "currency", "used"), CURRENCIES.values(), ids=CURRENCIES)
def test_receipts_add_up_exactly_in_every_currency(total, steps, first, currency, used):
    receipt = Receipt(total=total, steps=tuple(steps))
    assert receipt.spent == receipt.total == total
    assert (receipt.currency, receipt.available, receipt.used) == (currency, Fraction(used), Fraction(used))
    assert (receipt.unit, receipt.neighbours, receipt.contributions) == ("record", "add or remove one", 1)
    assert receipt.unprotected
    assert Receipt(total=total, steps=(steps[0],)).spent == first


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
    "rho of a converted budget": (ApproxBudget(1, "1e-5"), [step(RHO.rho), step(DROP)], {"converted": RHO, "conversion": "tight"}),
}


@pytest.mark.parametrize("name", OVERSPENT)
def test_a_receipt_refuses_to_overspend_by_the_smallest_amount(name):
    total, steps, more = OVERSPENT[name]
    with pytest.raises(BudgetError, match="spend more than the budget"):
        Receipt(total=total, steps=tuple(steps), **more)
    assert RHO.rho < Fraction("0.1"), "a converted budget is counted in its own currency"


def test_a_receipt_of_nothing_is_refused():
    with pytest.raises(BudgetError, match="at least one step"):
        Receipt(total=PureBudget(1), steps=())


@pytest.mark.parametrize("conversion", ["tight", "simple"])
@pytest.mark.parametrize(("share", "most"), [("1/100", "0.8"), ("1/2", "0.8"), ("999999/1000000", "1"), ("1", "1")])
def test_part_of_a_converted_budget_stands_for_less_at_the_same_delta_and_never_for_too_little(conversion, share, most):
    total, share = ApproxBudget(1, "1e-5"), Fraction(share)
    converted = total.to_zcdp(conversion)
    receipt = Receipt(total=total, steps=(step(converted.rho * share),), converted=converted, conversion=conversion)
    assert (receipt.currency, receipt.available, receipt.used) == ("ρ", converted.rho, converted.rho * share)
    assert receipt.spent.delta == total.delta
    assert receipt.spent.epsilon <= total.epsilon * Fraction(most)
    assert receipt.spent.to_zcdp(conversion).rho >= converted.rho * share * (1 - Fraction(1, 10**6))
    assert (receipt.spent == total) == (share == 1)


def test_what_is_spent_in_place_of_later_steps_is_not_added_up():
    early = replace(laplace("0.6"), replaces_later=True, level=2)
    receipt = Receipt(total=PureBudget(1), steps=(laplace("0.4"), early, laplace("0.2"), laplace("0.4")))
    assert receipt.used == 1
    assert receipt.spent == receipt.total
    for too_much in ((laplace("0.4"), early), (laplace("0.4"), early, laplace(Fraction("0.6") - DROP))):
        with pytest.raises(BudgetError, match="later ones that it replaces"):
            Receipt(total=PureBudget(2), steps=too_much)


def test_a_reference_that_is_not_private_has_no_spent_budget_and_may_have_no_steps():
    receipt = Receipt(total=PureBudget(1), steps=(), private=False)
    assert receipt.used == 0
    with pytest.raises(BudgetError, match="NOT PRIVATE: no budget bounds"):
        _ = receipt.spent
