import math

import numpy as np
import pytest

from dpviz.lessons import errors
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance


@pytest.mark.parametrize("placement", [errors.ANYWHERE, errors.ALIGNED])
def test_squares_have_the_size_they_are_listed_under_and_aligned_ones_stand_on_multiples_of_their_side(placement):
    for cells, boxes in errors.squares(4, placement).items():
        assert ((boxes[:, 2:] - boxes[:, :2]).prod(axis=1) == cells).all()
        assert 0 <= boxes.min() <= boxes.max() <= 16
        assert placement == errors.ANYWHERE or (boxes % math.isqrt(cells) == 0).all()


def test_draws_scatter_as_stated():
    draws = [errors.flat_and_tree(4, 0.5, draw) for draw in range(1, 81)]
    for name in (errors.FLAT, errors.TREE):
        releases = [draw[name] for draw in draws]
        stated, drawn = errors.stated_errors(releases[0], 4, errors.ANYWHERE), errors.measured_errors(releases, 4, errors.ANYWHERE)
        assert (drawn["error"] / stated["error"]).between(0.8, 1.25).all()
    shares, how = (0.1, 0.2, 0.3, 0.4), {"least_squares": True, "placement": errors.ANYWHERE}
    theory, drawn = errors.split_theory(shares, 0.5, True, errors.ANYWHERE), errors.split_draws(shares, 0.5, how, 7, 100)
    assert (drawn["error"] / theory["error"]).between(0.85, 1.18).all()


def test_the_walk_visits_every_cell_once_and_ends_at_the_sum_of_all():
    releases = errors.flat_and_tree(4, 0.5, 3)
    walk = errors.running_errors(releases, 4, 0.5)
    for name, release in releases.items():
        rows = walk[walk["series"] == name]
        assert rows["cells"].iloc[-1] == 256
        assert rows["error"].iloc[[0, -1]].tolist() == pytest.approx([release.blocks(4)[0, 0], release.count[0]])
    steps = walk[walk["series"] == errors.FLAT]["error"].diff().dropna()
    assert len(np.unique(steps.round(6))) > 3


def test_a_split_tree_spends_its_shares_and_leaves_keep_one_percent():
    assert errors.with_leaf_share((1.0, 1.0)) == (0.5, 0.5)
    shares = errors.with_leaf_share((3.0, 1.0, 0.0))
    assert (sum(shares), shares[-1]) == (pytest.approx(1), 0.01)
    assert shares[0] / shares[1] == pytest.approx(3)
    tree = errors.split_tree((0.25, 0.0, 0.75), least_squares=True)
    steps = tree.release(errors.empty_town(2), PureBudget(1), Entropy.seeded(1)).receipt.steps
    assert {step.level: float(step.amount) for step in steps} == pytest.approx({0: 0.25, 2: 0.75})


def test_theory_of_a_split_is_that_of_its_levels_and_least_squares_never_makes_it_worse():
    shares = (0.2, 0.3, 0.5)
    table = errors.split_theory(shares, 1.0, False, errors.ALIGNED).set_index("cells")["error"]
    assert table[[16, 4, 1]].tolist() == pytest.approx([math.sqrt(laplace_variance(1 / share)) for share in shares], rel=1e-6)
    plain, best = (errors.split_theory(shares, 1.0, on, errors.ANYWHERE)["error"].to_numpy() for on in (False, True))
    assert (best <= plain * (1 + 1e-9)).all()
