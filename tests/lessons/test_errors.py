import math

import numpy as np
import pytest

from dpviz.lessons.errors import (
    ALIGNED,
    ANYWHERE,
    FLAT,
    TREE,
    empty_town,
    flat_and_tree,
    measured_errors,
    running_errors,
    split_draws,
    split_theory,
    split_tree,
    squares,
    stated_errors,
    with_leaf_share,
)
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance


def test_squares_have_the_size_they_are_listed_under():
    for placement in (ANYWHERE, ALIGNED):
        for cells, boxes in squares(4, placement).items():
            sides = boxes[:, 2:] - boxes[:, :2]
            assert (sides.prod(axis=1) == cells).all()
            assert boxes.min() >= 0
            assert boxes.max() <= 16


def test_squares_on_the_lines_stand_on_multiples_of_their_side():
    for cells, boxes in squares(4, ALIGNED).items():
        assert (boxes % math.isqrt(cells) == 0).all()


@pytest.mark.parametrize("placement", [ANYWHERE, ALIGNED])
def test_flat_noise_grows_with_the_root_of_the_number_of_cells(placement):
    flat = flat_and_tree(4, 0.5, 1)[FLAT]
    table = stated_errors(flat, 4, placement)
    assert table["error"].to_numpy() == pytest.approx(np.sqrt(table["cells"] * laplace_variance(2.0)))


@pytest.mark.parametrize("name", [FLAT, TREE])
def test_draws_scatter_as_stated(name):
    releases = [flat_and_tree(4, 0.5, draw)[name] for draw in range(1, 81)]
    stated, drawn = stated_errors(releases[0], 4, ANYWHERE), measured_errors(releases, 4, ANYWHERE)
    ratio = (drawn["error"] / stated["error"]).to_numpy()
    assert ((ratio > 0.8) & (ratio < 1.25)).all()


def test_the_walk_visits_every_cell_once_and_ends_at_the_sum_of_all():
    releases = flat_and_tree(4, 0.5, 3)
    walk = running_errors(releases, 4, 0.5)
    for name, release in releases.items():
        rows = walk[walk["series"] == name]
        assert rows["cells"].iloc[-1] == 256
        assert rows["error"].iloc[-1] == pytest.approx(release.count[0])
        first = release.blocks(4)[0, 0]
        assert rows["error"].iloc[0] == pytest.approx(first)
    steps = walk[walk["series"] == FLAT]["error"].diff().dropna()
    assert len(np.unique(steps.round(6))) > 3


def test_leaves_keep_one_percent_and_the_rest_keeps_its_proportions():
    assert with_leaf_share((1.0, 1.0)) == (0.5, 0.5)
    shares = with_leaf_share((3.0, 1.0, 0.0))
    assert sum(shares) == pytest.approx(1)
    assert shares[-1] == 0.01
    assert shares[0] / shares[1] == pytest.approx(3)


def test_theory_of_a_split_without_least_squares_is_that_of_its_levels():
    shares = (0.2, 0.3, 0.5)
    table = split_theory(shares, 1.0, False, ALIGNED).set_index("cells")["error"]
    for depth, cells in enumerate((16, 4, 1)):
        assert table[cells] == pytest.approx(math.sqrt(laplace_variance(1 / shares[depth])), rel=1e-6)


def test_least_squares_never_makes_theory_worse():
    shares = (0.2, 0.3, 0.5)
    plain, best = (split_theory(shares, 1.0, on, ANYWHERE)["error"].to_numpy() for on in (False, True))
    assert (best <= plain * (1 + 1e-9)).all()


def test_draws_of_a_split_scatter_as_its_theory():
    shares = (0.1, 0.2, 0.3, 0.4)
    theory = split_theory(shares, 0.5, True, ANYWHERE)["error"].to_numpy()
    drawn = split_draws(shares, 0.5, {"least_squares": True, "placement": ANYWHERE}, 7, 100)["error"].to_numpy()
    assert ((drawn / theory > 0.85) & (drawn / theory < 1.18)).all()


def test_a_split_tree_spends_its_shares():
    release = split_tree((0.25, 0.0, 0.75), least_squares=True).release(empty_town(2), PureBudget(1), Entropy.seeded(1))
    amounts = {step.level: float(step.amount) for step in release.receipt.steps}
    assert amounts == pytest.approx({0: 0.25, 2: 0.75})
