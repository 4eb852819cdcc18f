import numpy as np
import pytest

from dpviz.evaluation.attacks.averaging import allowed_releases, rounding_log_odds
from dpviz.evaluation.attacks.game import membership_bound
from dpviz.lessons import averaging
from dpviz.mechanisms.contrasts import RANDOM, round_counts
from dpviz.privacy.entropy import Entropy


def test_evidence_of_rounding_is_the_ratio_of_frequencies():
    draws = 200_000
    for others in (6, 8, 9):
        seen = [round_counts(np.full(draws, others + more), 5, RANDOM, Entropy.seeded(others)) for more in (1, 0)]
        for multiple in (5, 10):
            into, out = ((part == multiple).mean() for part in seen)
            found = rounding_log_odds(np.array([[multiple]]), np.array([others]), 5)[0, 0]
            assert found == pytest.approx(np.log(into / out), abs=0.03) if into and out else np.isinf(found)


def test_the_sum_of_epsilon_bounds_repeated_noise_and_rounding_passes_every_bound_but_that_of_none():
    noisy, rounded = (averaging.play(name, 0.5, 5, 40, 100) for name in (averaging.UNCAPPED, averaging.ROUNDED))
    for number in (2, 4, 10):
        assert noisy[number - 1].keeps(membership_bound(0.5 * number))
    low, high = noisy[0].interval(1 - 1e-6)
    assert low <= membership_bound(0.5) <= high
    assert noisy[-1].passes(membership_bound(2.0))
    assert rounded[-1].passes(0.9)


def test_a_ledger_allows_what_the_cap_holds():
    assert [allowed_releases(0.1, 1.0), allowed_releases(0.3, 1.0), allowed_releases(2.0, 1.0)] == [10, 3, 0]
