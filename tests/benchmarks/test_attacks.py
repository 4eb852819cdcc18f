"""Success of each attack on what is published today and on private releases of the same data: pytest -n0 -s -m benchmark."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from dpviz.evaluation.attacks.game import Success, count_wins, gaussian_log_odds, guess_bound, membership_bound
from dpviz.lessons import averaging, differencing, finding_home, reconstruction
from dpviz.lessons.success import SEEDS, describe_success
from dpviz.mechanisms.disclosure_control import NEAREST
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian

pytestmark = pytest.mark.benchmark

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
RUNS = 4000
"""Private releases per seed: success differs from its bound by about a hundredth at epsilon 0.1, and the interval must be shorter."""
RELEASES = 4
HOME_PARTS, HOME_RUNS, POINTS = 25, 400, 20


def play_homes(epsilon: float) -> Success:
    """The game of homes in parts, whose arrays fit in memory."""
    parts = [finding_home.play_private.__wrapped__(POINTS, epsilon, HOME_RUNS, seed) for seed in range(100, 100 + HOME_PARTS)]
    return Success(wins=sum(part.wins for part in parts), games=sum(part.games for part in parts))


def play_ledger(epsilon: float) -> Success:
    """The game on four releases of epsilon / 4 each, all that a ledger capped at epsilon allows."""
    return averaging.play.__wrapped__(averaging.UNCAPPED, epsilon / RELEASES, 5, RELEASES, RUNS)[RELEASES - 1]


ATTACKS: dict[str, tuple[Callable[[], Success], Callable[[float], Success], Callable[[float], float]]] = {
    "differencing: 3 tables, counts below 5 hidden | record": (
        partial(differencing.play_hidden, 5, 3),
        lambda epsilon: differencing.play_private(5, 3, epsilon, RUNS),
        membership_bound,
    ),
    "reconstruction: 12 tables rounded to 3 | record": (
        partial(reconstruction.play_rounded, 12, 3, NEAREST),
        lambda epsilon: reconstruction.play_private(12, epsilon, RUNS),
        membership_bound,
    ),
    "averaging: 30 releases rounded to 5; 4 until the cap | record": (
        lambda: averaging.play(averaging.ROUNDED, 1.0, 5, 30, 1)[29],
        play_ledger,
        membership_bound,
    ),
    "home: 20 points jittered by 2 km; 64 areas | person": (
        partial(finding_home.play_jittered, POINTS, 2.0),
        play_homes,
        partial(guess_bound, finding_home.SIDE**2),
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_success_on_the_contrast_passes_and_on_the_private_release_keeps_what_epsilon_allows(name):
    today, private, bound = ATTACKS[name]
    contrast = today()
    print(f"\n{name}: NOT PRIVATE {describe_success(contrast)}, {contrast.games} seeds")
    for epsilon in EPSILONS:
        found = private(epsilon)
        low, high = found.interval()
        print(
            f"  epsilon {epsilon:g}: {100 * found.rate:.2f} % ({100 * low:.2f} to {100 * high:.2f}), at most {100 * bound(epsilon):.2f} %,"
            f" {found.games:,} games over {SEEDS} seeds"
        )
        assert found.keeps(bound(epsilon))
    assert contrast.games == SEEDS
    assert contrast.passes(bound(1.0))


def test_success_with_delta_keeps_what_epsilon_and_delta_allow():
    """Differencing of three tables with Gaussian noise, which share (1, 1e-6)."""
    budget = ApproxBudget(1, "1e-6")
    rho, games = budget.to_zcdp().rho / 3, SEEDS * RUNS
    truth = np.random.default_rng(1).integers(0, 2, games).astype(np.bool_)
    noisy = discrete_gaussian(np.repeat(truth.astype(np.int64), 3), ZcdpBudget(rho), Entropy.seeded(2)).reshape(games, 3)
    found = count_wins(gaussian_log_odds(noisy, np.zeros(3, np.int64), [float(1 / (2 * rho))] * 3) >= 0, truth)
    (low, high), bound = found.interval(), membership_bound(1, 1e-6)
    print(f"\ndifferencing, (1, 1e-6): {100 * found.rate:.2f} % ({100 * low:.2f} to {100 * high:.2f}), at most {100 * bound:.2f} %")
    assert found.keeps(bound)
