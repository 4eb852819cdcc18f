import math

import numpy as np
import pytest

from dpviz.evaluation.attacks.game import guess_bound
from dpviz.evaluation.attacks.homes import count_discs, guess_area, guess_home, home_log_odds
from dpviz.lessons import finding_home
from dpviz.lessons.one_person import LAPLACE, Noise
from dpviz.privacy.entropy import Entropy

CELLS = np.stack(np.divmod(np.arange(64), 8)[::-1], axis=1)


def test_the_true_home_is_in_every_disc_and_each_disc_is_the_cells_near_enough():
    for seed in range(20):
        home = finding_home.choose_home(seed)
        moved = finding_home.jitter(home, 30, 1.0, Entropy.seeded(seed))
        discs = count_discs(moved, np.array([home]), 1000.0, finding_home.cell_size())
        assert discs.tolist() == [30]
    gap = [math.hypot(max(abs(column - 3) - 0.5, 0), max(abs(row - 4) - 0.5, 0)) for column, row in CELLS]
    assert count_discs(np.array([[3, 4]]), CELLS, 2.2).tolist() == [int(each < 2.2) for each in gap]


def test_points_from_elsewhere_do_not_hide_the_home():
    points = np.array([[2, 2], [3, 3], [2, 3], [7, 7]])
    assert guess_home(points, CELLS, CELLS[:, 1] // 4 * 2 + CELLS[:, 0] // 4, 1.2) == 0


def test_beliefs_in_homes_are_ratios_of_exact_probabilities():
    tables, others, epsilon, shift = [np.array([0, 0, 1]), np.arange(3)], [np.array([5, 1]), np.array([3, 2, 1])], [0.4, 0.8], 3
    noisy = [np.array([7, 0]), np.array([4, 4, -1])]
    odds = home_log_odds(noisy, others, tables, epsilon, shift)
    laws = [Noise(kind=LAPLACE, epsilon=each / shift) for each in epsilon]

    def chance(area):
        parts = [
            law.probabilities(seen - known - shift * (np.arange(len(known)) == (-1 if area is None else table[area])))
            for law, seen, known, table in zip(laws, noisy, others, tables, strict=True)
        ]
        return math.prod(np.concatenate(parts).tolist())

    assert odds == pytest.approx([math.log(chance(area) / chance(None)) for area in range(3)])


def test_the_lesson_and_its_game_release_the_same_numbers_and_keep_the_bound():
    _, known, shares = finding_home.levels()
    assert sum(shares) == pytest.approx(1)
    home, points = finding_home.choose_home(1), 20
    release = finding_home.release_privately(home, points, 1.0, 1)
    assert [step.amount for step in release.receipt.steps if step.amount] == pytest.approx([share for share in shares if share])
    assert (release.receipt.unit, release.receipt.contributions) == ("person", points)
    excess = release.noisy[release.tree.at_depth(3)] - known[3]
    assert abs(excess.sum() - points) < 6 * math.sqrt(64 * 2) * points / shares[3]
    assert finding_home.play_private(points, 1.0).keeps(guess_bound(64, 1.0))
    assert finding_home.play_jittered(points, 2.0).passes(0.8)


def test_too_little_noise_for_the_person_passes_the_bound():
    """Noise for one record, while the person has five of them: the record's epsilon is not the person's."""
    rng, truth = np.random.default_rng(1), np.random.default_rng(2).integers(0, 64, 20_000)
    counts = 5 * (np.arange(64) == truth[:, None])
    noise = rng.geometric(1 - math.exp(-1), counts.shape) - rng.geometric(1 - math.exp(-1), counts.shape)
    odds = home_log_odds([counts + noise], [np.zeros(64, np.int64)], [np.arange(64)], [5.0], 5)
    said = guess_area(odds, rng.random(odds.shape))
    assert (said == truth).mean() > 5 * guess_bound(64, 1.0)
