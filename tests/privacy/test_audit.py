"""The lower bound holds as often as it says, comes near the truth, and sees what counts alone would not show."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpviz.errors import BudgetError, SettingError
from dpviz.privacy.audit import AuditPlan, AuditResult, Neighbours, Observation, audit_neighbours, declared_guarantee, lower_bound
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace

SHORT = AuditPlan(runs=1000)


def pair(release, **options) -> Neighbours:
    """A mechanism that sees one number, run on 1 and on 0."""

    def run(value):
        return lambda entropy: Observation(numbers=release(value, entropy), **options)

    return Neighbours(words="1 or 0", one=run(1), other=run(0))


def audited(release, epsilon=1, plan: AuditPlan | None = None, **options) -> AuditResult:
    budget = epsilon if isinstance(epsilon, ApproxBudget | ZcdpBudget) else PureBudget(epsilon)
    return audit_neighbours("test", [pair(release, **options)], budget, plan or AuditPlan(runs=2000))


def laplace(value: int, entropy: Entropy, epsilon=1, n: int = 1) -> np.ndarray:
    return discrete_laplace(np.full(n, value), PureBudget(epsilon), entropy)


def counted(epsilon):
    return lambda value, entropy: {"count": float(laplace(value, entropy, epsilon)[0])}


def coin(value: int, entropy: Entropy, share: float) -> bool:
    return bool(entropy.below(10**6, 1)[0] < share * 10**6)


@pytest.mark.parametrize(
    ("happened", "against", "runs", "delta"), [(900, 300, 1000, 0.0), (40, 0, 50, 0.1), (50, 1, 50, 0.0), (500, 300, 1000, 0.03)]
)
def test_the_bound_is_that_of_the_tails_of_two_binomial_distributions_and_nothing_is_bounded_by_nothing(happened, against, runs, delta):
    level = 0.01
    found = lower_bound(happened, against, runs, delta, level)
    assert found > 0
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    low = grid[stats.binom.sf(happened - 1, runs, grid) <= level].max()
    high = grid[stats.binom.cdf(against, runs, grid) >= level].max()
    assert found == pytest.approx(math.log((low - delta) / high), abs=1e-3)
    for nothing in ((0, 0, 100, 0.0), (0, 100, 100, 0.0), (100, 100, 100, 0.0), (50, 1, 100, 0.6)):
        assert lower_bound(*nothing, 0.05) == 0


@pytest.mark.parametrize("epsilon", [1, 2])
def test_one_count_is_found_out_to_within_a_fifth_and_not_beyond(epsilon):
    found = audited(counted(epsilon), epsilon)
    assert 0.8 * epsilon < found.lower_bound <= epsilon
    assert found.passed
    assert found.event in {"count >= 1", "not: count >= 1"}


def test_several_counts_are_added_up_by_the_score():
    def path(value, entropy, n=3):
        return dict(enumerate(laplace(value, entropy, Fraction(2, 3), n).tolist()))

    found = audited(path, 2)
    assert 1.4 < found.lower_bound <= 2
    assert "score" in found.event
    assert audited(lambda value, entropy: path(value, entropy, 1), 2, SHORT).lower_bound <= 2 / 3


def test_the_bound_is_above_the_truth_no_oftener_than_the_confidence_says():
    rng, runs, times = np.random.default_rng(1), 200, 2000
    share = math.e / (1 + math.e)
    pairs, number = np.unique(rng.binomial(runs, (share, 1 - share), (times, 2)), axis=0, return_counts=True)
    level = 0.1
    above = sum(n for (a, b), n in zip(pairs.tolist(), number.tolist(), strict=True) if lower_bound(a, b, runs, 0.0, level) > 1) / times
    assert above < 2 * level + 4 * math.sqrt(0.2 * 0.8 / times)
    plans = [AuditPlan(runs=100, confidence=0.5, seed=seed) for seed in range(30)]
    assert np.mean([audited(counted(1), 1, plan).lower_bound > 1 for plan in plans]) < 0.5


def test_a_hundred_numbers_that_say_nothing_give_nothing():
    noise = lambda value, entropy: dict(enumerate(laplace(0, entropy, 1, 100).tolist()))  # noqa: E731
    assert audited(noise, 1, AuditPlan(runs=400, seed=1)).lower_bound < 0.1


def test_equal_runs_are_reported_where_noise_is_declared_and_a_constant_release_passes_where_none_is():
    constant = lambda value, entropy: {"count": 3.0}  # noqa: E731
    found = audited(constant, plan=SHORT)
    assert (found.lower_bound, found.repeated, found.passed) == (0, False, True)
    found = audited(constant, plan=SHORT, chance=0.5)
    assert (found.repeated, found.passed) == (True, False)
    assert not audited(counted(5), 5, SHORT, chance=math.tanh(2.5)).repeated
    found = audited(lambda value, entropy: counted(1)(value, Entropy.seeded(5)), plan=SHORT, chance=math.tanh(0.5))
    assert found.repeated
    assert found.lower_bound > 4, "a fixed seed gives everything away"


def test_seeds_from_a_byte_are_caught_though_single_runs_differ():
    def few(value, entropy):
        own = Entropy.seeded(int(entropy.below(256, 1)[0]) + 1000 * value)
        return dict(enumerate(laplace(0, own, Fraction(1, 100), 4).tolist()))

    found = audited(few, 1, SHORT)
    assert found.lower_bound > 2
    assert "number for number" in found.event


def test_a_draw_that_two_numbers_share_is_caught_by_their_difference():
    def shared(value, entropy, sign=-1):
        noise = laplace(0, entropy, Fraction(1, 10))[0]
        return {"with": value + noise, "without": -sign * noise}

    found = audited(shared)
    assert found.lower_bound > 4
    assert "(with) - (without)" in found.event or "(without) - (with)" in found.event
    assert audited(lambda value, entropy: shared(value, entropy, 1)).lower_bound > 4


def test_what_is_there_or_not_is_seen():
    found = audited(lambda value, entropy: {"leaf": float(laplace(0, entropy)[0])} | ({"part": 0.0} if value else {}), plan=SHORT)
    assert found.lower_bound > 4
    assert found.event.endswith("there is a part")


@pytest.mark.parametrize("turned", [False, True])
def test_either_input_may_be_the_one_that_gives_itself_away(turned):
    """An outcome of chance 0.3 on one side and 0.01 on the other: only one direction of the ratio is large."""
    release = lambda value, entropy: {"seen": float(coin(value, entropy, 0.3 if bool(value) != turned else 0.01))}  # noqa: E731
    assert 2 < audited(release, 1, AuditPlan(runs=2000, seed=1)).lower_bound < math.log(30)


def test_delta_is_allowed_for_and_no_more():
    release = lambda value, entropy: {"name": float(coin(value, entropy, 0.1)) if value else 0.0}  # noqa: E731
    assert audited(release, ApproxBudget(1, "0.12")).passed
    assert not audited(release, ApproxBudget(1, "0.01")).passed
    assert not audited(release, 1).passed


def test_a_rho_is_read_as_the_epsilon_that_it_implies():
    assert declared_guarantee(PureBudget("1/3")) == (1 / 3, 0)
    assert declared_guarantee(ApproxBudget(2, "1e-3")) == (2, 1e-3)
    epsilon, delta = declared_guarantee(ZcdpBudget("0.1"))
    assert delta == 0.01
    assert ApproxBudget(epsilon, delta).to_zcdp().rho == pytest.approx(0.1, rel=1e-6)
    with pytest.raises(BudgetError, match="PureBudget"):
        declared_guarantee(1.0)


def test_more_tests_together_need_more_evidence_each_and_the_same_seed_gives_the_same_result():
    plan = AuditPlan(runs=500, seed=3)
    one, same, other, of_many = (audited(counted(1), 1, each) for each in (plan, plan, replace(plan, seed=4), replace(plan, tests=50)))
    assert one == same
    assert one.lower_bound > of_many.lower_bound
    assert one.lower_bound != other.lower_bound


def test_the_best_of_several_neighbours_counts():
    silent = replace(pair(counted(1)), words="the same", other=pair(counted(1)).one)
    found = audit_neighbours("test", [silent, pair(counted(1)), silent], PureBudget(1), AuditPlan(runs=600))
    assert found.neighbours == "1 or 0"
    assert found.lower_bound > 0.5
    assert found.to_dict()["passed"] is True


@pytest.mark.parametrize("plan", [{"runs": 99}, {"runs": True}, {"runs": 1e3}, {"tests": 0}, {"confidence": 1.0}, {"confidence": 0}])
def test_plans_out_of_range_and_no_neighbours_are_refused(plan):
    with pytest.raises(SettingError, match=r"Runs|tests|confidence"):
        AuditPlan(**plan)
    with pytest.raises(SettingError, match="neighbouring"):
        audit_neighbours("test", [], PureBudget(1))


def test_numbers_of_which_only_one_varies_give_no_pairs():
    """Of each input one number is constant, so that no difference of two can be learned; the other one still is."""
    found = audited(lambda value, entropy: {"first": float(entropy.below(2, 1)[0]), "second": float(value)})
    assert found.lower_bound > 1
