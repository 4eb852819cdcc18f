import math

import numpy as np
import pytest

from dpviz.lessons import releases
from dpviz.lessons.one_person import LAPLACE, Noise
from dpviz.privacy.budget import PureBudget, ZcdpBudget


def test_evidence_is_the_ratio_of_both_laws():
    excess = np.arange(-6, 8)
    noise = Noise(kind=LAPLACE, epsilon=0.7)
    assert releases.log_odds(excess, 0.7) == pytest.approx(np.log(noise.probabilities(excess - 1) / noise.probabilities(excess)))


def test_beliefs_begin_blind_add_up_and_move_by_two_epsilon_a_day_at_most():
    found = releases.attack(0.5, 1)
    for belief in (found.home, found.work):
        assert belief.shape == (releases.MOST_DAYS + 1, releases.SIDE, releases.SIDE)
        assert belief.sum(axis=(1, 2)) == pytest.approx(1)
        assert belief[0] == pytest.approx(1 / releases.SIDE**2)
        ratio = np.log(belief[1:] / belief[:-1]).reshape(releases.MOST_DAYS, -1)
        assert (ratio.max(axis=1) - ratio.min(axis=1)).max() <= 2 * 0.5 + 1e-9


def test_many_releases_find_home_and_work_and_few_do_not():
    found = releases.attack(1.0, 1)
    assert found.after(releases.MOST_DAYS) == pytest.approx((1, 1), abs=1e-6)
    assert max(found.after(1)) < 0.1
    day = found.first_sure()
    assert min(found.after(day)) >= 0.95
    assert min(found.after(day - 1)) < 0.95
    assert releases.HOME != releases.WORK


def test_one_budget_for_all_of_them_hides_both():
    found = releases.attack(0.5 / (releases.TABLES * releases.MOST_DAYS), 1)
    assert max(found.after(releases.MOST_DAYS)) < 0.03
    assert found.first_sure() is None


def test_totals_are_basic_and_zcdp_composition():
    table = releases.composed_epsilons(0.3).pivot(index="days", columns="series", values="epsilon")
    assert table[releases.BASIC].to_numpy() == pytest.approx(0.6 * table.index)
    rho = PureBudget(0.3).to_zcdp().rho * releases.TABLES * 100
    assert table[releases.ZCDP][100] == pytest.approx(float(ZcdpBudget(rho).to_approx(releases.DELTA).epsilon))
    assert releases.composed_at(0.3, 100) == pytest.approx((60, table[releases.ZCDP][100]))
    simple = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / releases.DELTA))
    assert table[releases.ZCDP][100] <= simple
    assert table[releases.ZCDP][1] > table[releases.BASIC][1]
    assert table[releases.ZCDP][100] < table[releases.BASIC][100]
