"""A receipt as the manifest states it, in exact strings, and back again."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

from dpviz.privacy.accounts import exact_amount
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.receipt import Receipt, Step

Facts = dict[str, Any]

PURE, APPROX, ZCDP = "pure differential privacy", "approximate differential privacy", "zero-concentrated differential privacy"
SEQUENTIAL, INSTEAD = "adds to the other steps", "in place of later steps, on paths that end here"
COMPOSITION = "The amounts of the steps add up; within a step the counted places are disjoint, so one unit pays once."
PARTS = ("epsilon", "delta", "rho")
CURRENCIES = {"ε": "epsilon", "ρ": "rho"}


def amount(value: Fraction | None) -> Facts | None:
    """A number as an exact string, and as the nearest decimal for people; None stays None."""
    return None if value is None else {"exact": str(value), "decimal": _decimal(value)}


def privacy_facts(receipt: Receipt) -> Facts:
    """The guarantee: variant, unit, neighbours, bound, budget, conversion, and what is not protected."""
    return {
        "variant": {PureBudget: PURE, ApproxBudget: APPROX, ZcdpBudget: ZCDP}[type(receipt.total)],
        "unit": receipt.unit,
        "unit_definition": receipt.unit_definition or None,
        "neighbouring_relation": receipt.neighbours,
        "contribution_bound": receipt.contributions,
        **_budget_facts(receipt.total),
        "converted_rho": amount(None if receipt.converted is None else receipt.converted.rho),
        "conversion": receipt.conversion,
        "spent": _budget_facts(receipt.spent),
        "unprotected": list(receipt.unprotected),
    }


def accounting_facts(receipt: Receipt) -> Facts:
    """What was spent on what."""
    return {
        "currency": CURRENCIES[receipt.currency],
        "composition": COMPOSITION,
        "available": amount(receipt.available),
        "used": amount(receipt.used),
        "steps": [_step_facts(step) for step in receipt.steps],
        "notes": list(receipt.notes),
    }


def receipt_of(privacy: Facts, accounting: Facts) -> Receipt:
    """The receipt that was stated.

    Raises:
        BudgetError: amounts that do not add up.
    """
    converted = privacy["converted_rho"]
    return Receipt(
        total=_budget(privacy),
        steps=tuple(_step(facts) for facts in accounting["steps"]),
        unit=privacy["unit"],
        neighbours=privacy["neighbouring_relation"],
        contributions=privacy["contribution_bound"],
        unprotected=tuple(privacy["unprotected"]),
        notes=tuple(accounting["notes"]),
        converted=None if converted is None else ZcdpBudget(_exact(converted)),
        conversion=privacy["conversion"],
        unit_definition=privacy.get("unit_definition") or "",  # version 1.0 did not state it
    )


def ledger_facts(text: str | None) -> Facts | None:
    """An amount as the ledger writes it, with the parts that a budget is stated with; None stays None."""
    if text is None:
        return None
    parts = exact_amount(text)
    return {name: amount(parts.get(name)) for name in PARTS}


def stated_amount(facts: Facts) -> str:
    """What `ledger_facts` stated, for people: decimals; a delta of 0 is left out.

    >>> stated_amount(ledger_facts("epsilon 3/2, delta 0"))
    'epsilon 1.5'
    """
    known = {name: facts[name]["decimal"] for name in PARTS if facts[name] is not None}
    return ", ".join(f"{name} {value:.9g}" for name, value in known.items() if value or name != "delta")


def _decimal(value: Fraction) -> float:
    """The nearest floating-point number; the largest one beyond them."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max


def _budget_facts(budget: Budget) -> Facts:
    return {name: amount(getattr(budget, name, None)) for name in PARTS}


def _budget(privacy: Facts) -> Budget:
    if privacy["variant"] == ZCDP:
        return ZcdpBudget(_exact(privacy["rho"]))
    epsilon = _exact(privacy["epsilon"])
    return PureBudget(epsilon) if privacy["variant"] == PURE else ApproxBudget(epsilon, _exact(privacy["delta"]))


def _exact(facts: Facts) -> Fraction:
    return Fraction(facts["exact"])


def _step_facts(step: Step) -> Facts:
    return {
        "purpose": step.purpose,
        "level": step.level,
        "amount": amount(step.amount),
        "delta": amount(step.delta),
        "sensitivity": amount(step.sensitivity),
        "noise": step.noise,
        "scale": amount(step.scale),
        "counts": step.counts,
        "composition": INSTEAD if step.instead else SEQUENTIAL,
    }


def _step(facts: Facts) -> Step:
    return Step(
        purpose=facts["purpose"],
        amount=_exact(facts["amount"]),
        sensitivity=_exact(facts["sensitivity"]),
        noise=facts["noise"],
        scale=_exact(facts["scale"]),
        level=facts["level"],
        counts=facts["counts"],
        delta=_exact(facts["delta"]),
        instead=facts["composition"] == INSTEAD,
    )
