"""Workloads: public questions, on lattice lines, evenly spread, the same for the same seed."""

import math
from functools import partial

import numpy as np
import pytest

from dpviz.errors import DomainError
from dpviz.space.domain import Domain
from dpviz.space.workloads import area_share, fixed_size, random_rectangles

DOMAIN = Domain(bounds=(-10.0, 20.0, 6.0, 28.0), crs=None, order=4)


DRAWS = [
    lambda seed, count=500: random_rectangles(DOMAIN, count, seed),
    lambda seed, count=500: area_share(DOMAIN, 0.1, count, seed),
    lambda seed, count=500: fixed_size(DOMAIN, 3.0, 1.0, count, seed),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_boxes_lie_on_lattice_lines_inside_the_domain_and_follow_the_seed(draw):
    boxes = draw(3)
    lines = DOMAIN.lattice(boxes)
    assert boxes.shape == (500, 4)
    assert (lines == np.rint(lines)).all()
    assert (lines[:, :2] < lines[:, 2:]).all()
    assert 0 <= lines.min() <= lines.max() <= DOMAIN.side
    assert np.array_equal(boxes, draw(3))
    assert not np.array_equal(boxes, draw(4))


def test_random_rectangles_take_every_pair_of_lines_equally_often():
    lines = DOMAIN.lattice(random_rectangles(Domain(bounds=(-10.0, 20.0, 6.0, 28.0), crs=None, order=2), 60_000, 1)) / 4
    pairs, seen = np.unique(lines[:, [0, 2]], axis=0, return_counts=True)
    assert len(pairs) == 10
    assert ((seen - 6000) ** 2 / 6000).sum() < 40


def test_shares_of_the_area_are_squares_of_cells_and_fixed_sizes_are_in_units_of_the_domain():
    lines = DOMAIN.lattice(area_share(DOMAIN, 0.06, 200, 1))
    assert (np.diff(lines[:, [0, 2]]) == round(np.sqrt(0.06) * 16)).all()
    assert np.array_equal(np.diff(lines[:, [0, 2]]), np.diff(lines[:, [1, 3]]))
    assert np.array_equal(area_share(DOMAIN, 1.0, 2, 1), np.array([DOMAIN.bounds] * 2))
    boxes = fixed_size(DOMAIN, 3.0, 1.0, 50, 1)
    assert np.allclose(boxes[:, 2:] - boxes[:, :2], [3.0, 1.0])


@pytest.mark.parametrize("wrong", [-1, 2.5, True, "5", None])
def test_counts_and_seeds_that_make_no_sense_are_refused(wrong):
    for draw in (*(partial(draw, 1) for draw in DRAWS), partial(random_rectangles, DOMAIN, 5)):
        with pytest.raises(DomainError):
            draw(wrong)


@pytest.mark.parametrize("wrong", [0.0, 17.0, -1.0, math.nan, math.inf])
def test_sizes_that_make_no_sense_are_refused(wrong):
    for draw in (partial(area_share, DOMAIN, wrong), partial(fixed_size, DOMAIN, wrong, 1.0), partial(fixed_size, DOMAIN, 1.0, wrong)):
        with pytest.raises(DomainError):
            draw(5, 1)
