"""Budgets: exact decimals, splits that add up, refusals, conversions that never promise too much."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.errors import BudgetError
from dpviz.privacy.budget import GRAIN, ApproxBudget, PureBudget, ZcdpBudget, exact, log_delta_of, require_pure
from tests.nodes import hockey_stick

few = settings(max_examples=30, deadline=None, derandomize=True)
positive = st.fractions(Fraction(1, 10**9), 10**6, max_denominator=10**9)
weights = st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), min_size=1, max_size=12).filter(any)


MEANT = {0.1: "1/10", "0.1": "1/10", 1e-8: "1/100000000", "1/3": "1/3", 2: "2", np.float64(0.3): "3/10", np.int64(7): "7"}
MEANT |= {Fraction(5, 7): "5/7", Decimal("0.5"): "1/2", 0.30000000000000004: "30000000000000004/100000000000000000"}


@pytest.mark.parametrize(("given", "meant"), MEANT.items())
def test_a_number_means_what_a_person_reads(given, meant):
    assert exact(given, "epsilon") == Fraction(meant)
    assert PureBudget(given).epsilon == ZcdpBudget(given).rho == ApproxBudget(given, 0.1).epsilon == Fraction(meant)


NOT_POSITIVE = [0, -1, "-0.5", float("nan"), float("inf"), -float("inf"), "nan", "inf", "", "abc", "1/0", None, True, [1], 1j, np.nan]
ENORMOUS = ["1e-999999999", "1e999999999", "1e-500", "9" * 500, "1/" + "3" * 500]


@pytest.mark.parametrize("bad", NOT_POSITIVE)
@pytest.mark.parametrize(
    ("make", "name"), [(PureBudget, "epsilon"), (ZcdpBudget, "rho"), (lambda value: ApproxBudget(value, 0.1), "epsilon")]
)
def test_a_budget_that_is_no_positive_number_is_refused_by_name(make, name, bad):
    with pytest.raises(BudgetError, match=f"^{name} must be"):
        make(bad)


@pytest.mark.parametrize("text", ENORMOUS)
def test_texts_of_enormous_numbers_and_epsilons_that_protect_nothing_are_refused_at_once(text):
    with pytest.raises(BudgetError):
        PureBudget(text)
    assert PureBudget(10**15).epsilon == 10**15
    with pytest.raises(BudgetError, match="at most 1e15"):
        PureBudget(10**15 + 1)


@pytest.mark.parametrize("bad", [-1e-9, 1, 1.5, float("nan"), float("inf"), "x", True, None])
def test_a_delta_outside_zero_to_one_is_refused(bad):
    with pytest.raises(BudgetError, match=r"^delta must be"):
        ApproxBudget(1, bad)
    with pytest.raises(BudgetError, match=r"^delta must be"):
        ZcdpBudget(1).to_approx(bad)


def test_budgets_are_values():
    assert PureBudget(0.1) == PureBudget("1/10")
    assert PureBudget(1) != ZcdpBudget(1)
    assert len({PureBudget(0.5), PureBudget("1/2"), ApproxBudget(0.5, 0)}) == 2
    assert str(PureBudget(0.5)) == "epsilon 0.5"
    assert str(ZcdpBudget(0.25)) == "rho 0.25"
    assert str(ApproxBudget(1, 1e-8)) == "epsilon 1, delta 1e-08"


@few
@given(positive, weights)
def test_parts_of_a_budget_add_up_exactly_and_are_shares_rounded_down_but_for_the_last(total, given):
    for parts in (PureBudget(total).split(given), ZcdpBudget(total).split(given)):
        assert sum(parts) == total
        last = max(place for place, weight in enumerate(given) if weight > 0)
        whole = sum(exact(weight, "") for weight in given)
        for place, (part, weight) in enumerate(zip(parts, given, strict=True)):
            ideal = total * exact(weight, "") / whole
            assert (part == 0) == (weight == 0)
            if place != last:
                assert (part / (total / GRAIN)).denominator == 1
                assert 0 <= ideal - part < total / GRAIN
            else:
                assert 0 <= part - ideal + total / GRAIN <= len(given) * total / GRAIN


@pytest.mark.parametrize("bad", [[], [0], [0, 0.0], [-1, 2], [1, float("nan")], [1, float("inf")], ["x"], [None]])
def test_shares_that_say_nothing_or_round_to_nothing_are_refused(bad):
    with pytest.raises(BudgetError, match=r"[Ss]hare"):
        PureBudget(1).split(bad)
    with pytest.raises(BudgetError, match="nothing of the budget is left"):
        PureBudget(1).split([1, 1e-10])


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.1, 0.81), (1, 0.88), (10, 0.95)])
def test_the_tight_conversion_needs_less_noise_than_the_simple_one_as_stated(epsilon, ratio):
    budget = ApproxBudget(epsilon, 1e-8)
    found = math.sqrt(budget.to_zcdp("simple").rho / budget.to_zcdp().rho)
    assert found == pytest.approx(ratio, abs=0.005)
    assert PureBudget("0.3").to_zcdp() == ZcdpBudget("0.045"), "of a pure budget: half its square"


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "10", "50"])
@pytest.mark.parametrize("delta", ["1e-12", "1e-8", "1e-3", "0.3"])
@pytest.mark.parametrize("conversion", ["tight", "simple"])
def test_there_and_back_never_gains_budget(epsilon, delta, conversion):
    budget = ApproxBudget(epsilon, delta)
    rho = budget.to_zcdp(conversion)
    back = rho.to_approx(delta, conversion)
    assert back.epsilon <= budget.epsilon * (1 + Fraction(1, 10**6))
    again = ApproxBudget(back.epsilon, delta).to_zcdp(conversion)
    assert again.rho >= rho.rho * (1 - Fraction(1, 10**6))
    assert back.epsilon >= budget.epsilon * (1 - Fraction(1, 10**4))
    assert rho.to_approx(delta, "tight").epsilon <= rho.to_approx(delta, "simple").epsilon


@pytest.mark.parametrize(("rho", "epsilon"), [(0.01, 0.5), (0.1, 2.0), (1.0, 6.0), (1e-4, 0.05)])
def test_the_tight_delta_is_the_smallest_over_all_renyi_orders(rho, epsilon):
    orders = 1 + np.exp(np.linspace(-8, 12, 200_001))
    logs = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
    assert log_delta_of(rho, epsilon) == pytest.approx(logs.min(), abs=1e-6)
    assert log_delta_of(rho, epsilon) >= logs.min() - 1e-6


@pytest.mark.parametrize("epsilon", ["8", "1", "0.05", "1e-3", "1e-6", "1e-9", "1e-12"])
@pytest.mark.parametrize("delta", ["1e-8", "1e-5"])
def test_the_simple_conversion_is_the_papers_formula_rounded_towards_less_at_every_size(epsilon, delta):
    with localcontext() as context:
        context.prec = 60
        log = -Decimal(delta).ln()
        formula = ((Decimal(epsilon) + log).sqrt() - log.sqrt()) ** 2
        found = ApproxBudget(epsilon, delta).to_zcdp("simple").rho
        assert Decimal("0.99999999") < Decimal(found.numerator) / Decimal(found.denominator) / formula <= 1
        back = Decimal("0.1") + 2 * (Decimal("0.1") * log).sqrt()
        stated = ZcdpBudget("0.1").to_approx(delta, "simple").epsilon
        assert back <= Decimal(stated.numerator) / Decimal(stated.denominator)


def delta_of(variance: float, epsilon: float) -> float:
    """Smallest delta of discrete Gaussian noise for neighbours one apart."""
    reach = int(14 * math.sqrt(variance) + variance * epsilon) + 5
    weight = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    law = weight / weight.sum()
    return hockey_stick(law[1:], law[:-1], epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("conversion", ["tight", "simple"])
def test_noise_of_the_converted_budget_keeps_the_declared_delta_exactly(epsilon, delta, conversion):
    rho = ApproxBudget(epsilon, delta).to_zcdp(conversion).rho
    back = float(ZcdpBudget(rho).to_approx(delta, conversion).epsilon)
    assert 0 < delta_of(float(1 / (2 * rho)), epsilon) <= delta
    assert delta_of(float(1 / (2 * rho)), back) <= delta


def test_what_gaussian_noise_cannot_give_is_refused():
    with pytest.raises(BudgetError, match="delta = 0"):
        ApproxBudget(1, 0).to_zcdp()
    with pytest.raises(BudgetError, match="delta must be greater than 0"):
        ZcdpBudget(1).to_approx(0)
    for convert in (lambda: ApproxBudget(1, 0.1).to_zcdp("loose"), lambda: ZcdpBudget(1).to_approx(0.1, "loose")):
        with pytest.raises(BudgetError, match="'tight' or 'simple'"):
            convert()
    with pytest.raises(BudgetError, match="too small for any Gaussian noise"):
        ApproxBudget("1e-200", "1e-200").to_zcdp()
    assert log_delta_of(0.0, 1.0) == -math.inf, "no rho needs no delta"


@pytest.mark.parametrize(("epsilon", "delta"), [("1e-9", "1e-100"), ("1e-6", "1e-300"), ("1000", "1e-20")])
def test_extreme_budgets_convert_too(epsilon, delta):
    tight, simple = (ApproxBudget(epsilon, delta).to_zcdp(conversion).rho for conversion in ("tight", "simple"))
    assert 0 < simple <= tight * (1 + Fraction(1, 10**6))
    assert math.isfinite(log_delta_of(float(tight), float(epsilon)))


def test_only_pure_budgets_pass_for_pure():
    assert require_pure(PureBudget(1), "Any") == PureBudget(1)
    for budget in (ZcdpBudget(1), ApproxBudget(1, 0), 1.0, "1"):
        with pytest.raises(BudgetError, match=rf"Any takes a PureBudget\(epsilon\), that is epsilon alone, not {type(budget).__name__}"):
            require_pure(budget, "Any")


def test_budgets_are_scaled_added_and_subtracted_exactly():
    assert PureBudget(1) / 3 + PureBudget("2/3") == PureBudget(1)
    assert 0.1 * PureBudget(3) == PureBudget("3/10")
    assert ApproxBudget(2, 1e-6) / 2 == ApproxBudget(1, "1/2000000")
    assert ApproxBudget(2, 1e-6) - ApproxBudget(1, 1e-6) == ApproxBudget(1, 0)
    assert ZcdpBudget(1) - ZcdpBudget(0.9) == ZcdpBudget("1/10")


@pytest.mark.parametrize(
    "compute",
    [
        lambda: PureBudget(1) - PureBudget(1),
        lambda: ApproxBudget(2, 1e-7) - ApproxBudget(1, 1e-6),
        lambda: PureBudget(1) - ZcdpBudget(1),
        lambda: PureBudget(1) + 1,
        lambda: PureBudget(1) / 0,
        lambda: PureBudget(1) * -1,
    ],
)
def test_budgets_that_would_be_no_budget_are_refused(compute):
    with pytest.raises(BudgetError):
        compute()
