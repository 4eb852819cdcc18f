import math

import numpy as np
import pytest

from dpviz.evaluation.attacks.game import membership_log_odds
from dpviz.lessons import releases
from dpviz.lessons.one_person import LAPLACE, Noise
from dpviz.privacy.budget import PureBudget, ZcdpBudget


def test_evidence_is_the_ratio_of_both_laws():
    excess, noise = np.arange(-6, 8), Noise(kind=LAPLACE, epsilon=0.7)
    odds = membership_log_odds(excess[:, None], np.zeros(1, np.int64), [0.7])
    assert odds == pytest.approx(np.log(noise.probabilities(excess - 1) / noise.probabilities(excess)))


def test_beliefs_begin_blind_add_up_and_move_by_two_epsilon_a_day_at_most():
    found = releases.attack(0.5, 1)
    for belief in (found.home, found.work):
        assert belief.shape == (releases.MOST_DAYS + 1, releases.SIDE, releases.SIDE)
        assert belief.sum(axis=(1, 2)) == pytest.approx(1)
        assert belief[0] == pytest.approx(1 / releases.SIDE**2)
        ratio = np.log(belief[1:] / belief[:-1]).reshape(releases.MOST_DAYS, -1)
        assert (ratio.max(axis=1) - ratio.min(axis=1)).max() <= 2 * 0.5 + 1e-9


def test_many_releases_find_home_and_work_and_neither_few_nor_one_budget_for_all_of_them_do():
    found = releases.attack(1.0, 1)
    day = found.first_sure()
    assert found.after(releases.MOST_DAYS) == pytest.approx((1, 1), abs=1e-6)
    assert max(found.after(1)) < 0.1
    assert min(found.after(day - 1)) < 0.95 <= min(found.after(day))
    assert releases.HOME != releases.WORK
    shared = releases.attack(0.5 / (releases.TABLES * releases.MOST_DAYS), 1)
    assert max(shared.after(releases.MOST_DAYS)) < 0.03
    assert shared.first_sure() is None


def test_totals_are_basic_and_zcdp_composition():
    table = releases.composed_epsilons(0.3).pivot(index="x", columns="series", values="y")
    basic, zcdp = table[releases.BASIC], table[releases.ZCDP]
    rho = PureBudget(0.3).to_zcdp().rho * releases.TABLES * 100
    assert basic.to_numpy() == pytest.approx(0.6 * table.index)
    assert zcdp[100] == pytest.approx(float(ZcdpBudget(rho).to_approx(releases.DELTA).epsilon))
    assert releases.composed_at(0.3, 100) == pytest.approx((60, zcdp[100]))
    assert zcdp[100] <= float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / releases.DELTA))
    assert (zcdp[1] > basic[1], zcdp[100] < basic[100]) == (True, True)
