import itertools

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.evaluation.attacks.differencing import count_by, guess_member, hide_small, recover_hidden, subtract_once
from dpviz.mechanisms.points.contrasts import SuppressedCounts
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy

TABLES = [np.arange(4), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]


@pytest.mark.parametrize("threshold", [3, 5])
def test_a_count_is_recovered_exactly_if_all_numbers_with_the_same_tables_agree_on_it(threshold):
    """Brute force over real solutions: whole ones from -9 to 9 would move a block that is not determined."""
    moves = np.array(list(itertools.product((-1, 0, 1), repeat=4)))
    for seed in range(30):
        counts = np.random.default_rng(seed).poisson(4, 4)
        published = [hide_small(count_by(table, counts), threshold) for table in TABLES]
        recovered = recover_hidden(TABLES, published)
        shown = np.concatenate([np.isfinite(table) for table in published])
        same = [move for move in moves if not np.concatenate([count_by(table, move) for table in TABLES])[shown].any()]
        free = np.abs(same).max(axis=0) > 0
        assert np.isnan(recovered).tolist() == free.tolist()
        assert (recovered[~free] == counts[~free]).all()


def test_rounds_of_subtracting_find_true_counts_and_never_more_than_follows():
    for seed in range(30):
        counts = np.random.default_rng(seed).poisson(5, 4)
        published = [hide_small(count_by(table, counts), 5) for table in TABLES]
        known = published[0]
        for _ in range(4):
            known = subtract_once(TABLES, published, known)
        found = ~np.isnan(known)
        assert (known[found] == counts[found]).all()
        assert not np.isnan(recover_hidden(TABLES, published))[found].any()


def test_cells_that_the_contrast_suppresses_come_back_from_its_totals():
    matrix = np.array([[20, 9, 8, 12], [3, 15, 9, 11], [9, 14, 30, 2], [8, 9, 10, 25]])
    release = SuppressedCounts(side=4, threshold=5).release(PointCounts.from_matrix(matrix), PureBudget(1), Entropy.seeded(1))
    tree, node, tables = release.tree, release.tree.leaves, []
    for depth in (2, 1, 0):
        tables.append(node - tree.at_depth(depth).start)
        node = tree.parent[node]
    published = [release.noisy[tree.at_depth(depth)] for depth in (2, 1, 0)]
    assert np.isnan(published[0]).sum() == 2
    truth = SuppressedCounts(side=4, threshold=2).release(PointCounts.from_matrix(matrix), PureBudget(1), Entropy.seeded(1))
    assert recover_hidden(tables, published).tolist() == truth.noisy[tree.at_depth(2)].tolist()


def test_an_unknown_count_is_a_coin():
    assert guess_member(np.array([np.nan, 4.0, 3.0]), np.array([3, 3, 3])).tolist() == [True, True, False]
