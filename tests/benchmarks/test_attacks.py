"""Success of each attack on what is published today and on private releases of the same data: pytest -n0 -s -m benchmark.

The noise of many private releases is drawn for the first tests, and mechanisms release the same data for the last ones. Where the success
of the best attacker is known exactly, the measured one is compared with it, too.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dpviz.data.areas import AreaCounts
from dpviz.evaluation.attacks.differencing import count_by
from dpviz.evaluation.attacks.game import (
    Success,
    count_wins,
    gaussian_log_odds,
    guess_bound,
    membership_bound,
    membership_log_odds,
    membership_success,
)
from dpviz.evaluation.attacks.homes import guess_area
from dpviz.lessons import averaging, blocks, differencing, finding_home, reconstruction
from dpviz.lessons.success import SEEDS, describe_success
from dpviz.mechanisms import FlatAreas
from dpviz.mechanisms.contrasts import NEAREST
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian
from dpviz.space.regions import Regions

pytestmark = pytest.mark.benchmark

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
RUNS = 4000
"""Private releases per seed: success differs from its bound by about a hundredth at epsilon 0.1, and the interval must be shorter."""
RELEASES = 4
HOME_PARTS, HOME_RUNS, POINTS = 25, 400, 20
CHANCE = 1e-4
"""With which a measured success may miss the exact one."""


def play_homes(epsilon: float) -> Success:
    """The game of homes in parts, whose arrays fit in memory."""
    parts = [finding_home.play_private.__wrapped__(POINTS, epsilon, HOME_RUNS, seed) for seed in range(100, 100 + HOME_PARTS)]
    return Success(wins=sum(part.wins for part in parts), games=sum(part.games for part in parts))


def play_ledger(epsilon: float) -> Success:
    """The game on four releases of epsilon / 4 each, all that a ledger capped at epsilon allows."""
    return averaging.play.__wrapped__(averaging.UNCAPPED, epsilon / RELEASES, 5, RELEASES, RUNS)[RELEASES - 1]


def exactly(counts: int, epsilon: float) -> float:
    """The success of the best attacker on counts that share epsilon."""
    return membership_success([epsilon / counts] * counts)


Attack = tuple[Callable[[], Success], Callable[[float], Success], Callable[[float], float], Callable[[float], float] | None]
ATTACKS: dict[str, Attack] = {
    "differencing: 3 tables, counts below 5 hidden | record": (
        partial(differencing.play_hidden, 5, 3),
        lambda epsilon: differencing.play_private(5, 3, epsilon, RUNS),
        membership_bound,
        partial(exactly, 3),
    ),
    "reconstruction: 12 tables rounded to 3 | record": (
        partial(reconstruction.play_rounded, 12, 3, NEAREST),
        lambda epsilon: reconstruction.play_private(12, epsilon, RUNS),
        membership_bound,
        partial(exactly, 12),
    ),
    "averaging: 30 releases rounded to 5; 4 until the cap | record": (
        lambda: averaging.play(averaging.ROUNDED, 1.0, 5, 30, 1)[29],
        play_ledger,
        membership_bound,
        partial(exactly, RELEASES),
    ),
    "home: 20 points jittered by 2 km; 64 areas | person": (
        partial(finding_home.play_jittered, POINTS, 2.0),
        play_homes,
        partial(guess_bound, finding_home.SIDE**2),
        None,
    ),
}


def percent(found: Success) -> str:
    """A success in percent with its interval, to two digits."""
    low, high = found.interval()
    return f"{100 * found.rate:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def agrees(found: Success, exact: float) -> bool:
    """Whether a measured success is the exact one, but for chance."""
    low, high = found.interval(1 - CHANCE)
    return low <= exact <= high


@pytest.mark.parametrize("name", ATTACKS)
def test_success_on_the_contrast_passes_and_on_the_private_release_keeps_what_epsilon_allows(name):
    today, private, bound, exact = ATTACKS[name]
    contrast = today()
    print(f"\n{name}: NOT PRIVATE {describe_success(contrast)}, {contrast.games} seeds")
    for epsilon in EPSILONS:
        found = private(epsilon)
        print(
            f"  epsilon {epsilon:g}: {percent(found)}, at most {100 * bound(epsilon):.2f} %,"
            f" {found.games:,} games over {SEEDS} seeds{f', exactly {100 * exact(epsilon):.2f} %' if exact else ''}"
        )
        assert found.keeps(bound(epsilon))
        assert exact is None or agrees(found, exact(epsilon))
    assert contrast.games == SEEDS
    assert contrast.passes(bound(1.0))


def test_success_with_delta_keeps_what_epsilon_and_delta_allow():
    """Differencing of three tables with Gaussian noise, which share (1, 1e-6)."""
    budget = ApproxBudget(1, "1e-6")
    rho, games = budget.to_zcdp().rho / 3, SEEDS * RUNS
    truth = np.random.default_rng(1).integers(0, 2, games).astype(np.bool_)
    noisy = discrete_gaussian(np.repeat(truth.astype(np.int64), 3), ZcdpBudget(rho), Entropy.seeded(2)).reshape(games, 3)
    found = count_wins(gaussian_log_odds(noisy, np.zeros(3, np.int64), [float(1 / (2 * rho))] * 3) >= 0, truth)
    bound = membership_bound(1, 1e-6)
    print(f"\ndifferencing, (1, 1e-6): {percent(found)}, at most {100 * bound:.2f} %")
    assert found.keeps(bound)


def test_success_on_one_release_is_what_epsilon_allows_and_no_more():
    """One noisy count attains the bound, exactly: no number of games can show that success is below it."""
    print("\naveraging: one release | record")
    for epsilon in EPSILONS:
        found, exact, bound = (
            averaging.play.__wrapped__(averaging.UNCAPPED, epsilon, 5, 1, RUNS)[0],
            exactly(1, epsilon),
            membership_bound(epsilon),
        )
        print(f"  epsilon {epsilon:g}: {percent(found)}, exactly {100 * exact:.4f} %, at most the same")
        assert exact == pytest.approx(bound, rel=1e-12)
        assert agrees(found, exact)


def play_released(people, tables, epsilon, runs):
    """Play the game of a person who is in or out on releases by a mechanism: each table by flat counts, with an equal share of epsilon.

    Args:
        people: for each seed (blocks,) the counts of others, and the person's block.
        tables: partitions of the blocks.
        epsilon: of all tables together.
        runs: how many times per seed.
    """
    each = epsilon / len(tables)
    regions = [
        Regions.from_table(pd.DataFrame({"region": [f"{name:02}" for name in range(table.max() + 1)]}), levels=["region"])
        for table in tables
    ]
    truth = np.random.default_rng(1).integers(0, 2, (len(people), runs)).astype(np.bool_)
    said = np.empty_like(truth)
    for seed, (others, block) in enumerate(people):
        known = np.array([count_by(table, others)[table[block]] for table in tables])
        for run, within in enumerate(truth[seed]):
            entropy, counts = Entropy.seeded(seed * runs + run), others + within * (np.arange(len(others)) == block)
            areas = [AreaCounts.from_counts(count_by(table, counts), regions=part) for table, part in zip(tables, regions, strict=True)]
            released = [FlatAreas().release(area, PureBudget(each), entropy).noisy[1] for area in areas]
            noisy = np.array([count[table[block]] for count, table in zip(released, tables, strict=True)])
            said[seed, run] = membership_log_odds(noisy, known, [each] * len(tables)) >= 0
    return count_wins(said.ravel(), truth.ravel())


RELEASED = {
    "differencing: 3 tables": (lambda seed: differencing.choose_person(seed, 5)[:2], blocks.chosen_tables(3), 20),
    "reconstruction: 12 tables": (lambda seed: reconstruction.choose_person(seed)[:2], blocks.chosen_tables(12), 10),
    "averaging: 4 releases": (lambda seed: reconstruction.choose_person(seed)[:2], blocks.chosen_tables(1) * RELEASES, 20),
}


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
@pytest.mark.parametrize("name", RELEASED)
def test_success_on_releases_of_the_same_tables_by_a_mechanism_is_that_of_its_noise(name, epsilon):
    choose, tables, runs = RELEASED[name]
    found, exact = play_released([choose(seed + 1) for seed in range(SEEDS)], tables, epsilon, runs), exactly(len(tables), epsilon)
    print(f"\n{name} by flat counts, epsilon {epsilon:g}: {percent(found)}, exactly {100 * exact:.2f} %")
    assert found.keeps(membership_bound(epsilon))
    assert agrees(found, exact)


@pytest.mark.parametrize(("epsilon", "runs"), [(1.0, 40), (5.0, 10)])
def test_success_on_releases_of_the_person_by_the_quadtree_is_that_of_its_noise(epsilon, runs):
    homes = [finding_home.choose_home(seed % SEEDS + 1) for seed in range(SEEDS * runs)]
    releases = (finding_home.release_privately(home, POINTS, epsilon, seed) for seed, home in enumerate(homes))
    belief = np.stack([finding_home.believe(release, POINTS, epsilon) for release in releases])
    said = guess_area(np.log(belief), np.random.default_rng(2).random(belief.shape))
    found, noise = count_wins(said, np.array([finding_home.area_of(home) for home in homes])), finding_home.play_private(POINTS, epsilon)
    print(f"\nhome by the quadtree, epsilon {epsilon:g}: {percent(found)}, noise alone {100 * noise.rate:.2f} %")
    assert found.keeps(guess_bound(finding_home.SIDE**2, epsilon))
    assert agrees(found, noise.rate)
