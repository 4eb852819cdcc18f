"""Workloads: public questions, on lattice lines, evenly spread, the same for the same seed."""

import numpy as np
import pytest

import dpviz as dv
from dpviz.space.domain import Domain

DOMAIN = Domain(bounds=(-10.0, 20.0, 6.0, 28.0), crs=None, order=4)


def lattice(boxes):
    return DOMAIN.lattice(boxes)


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: dv.random_rectangles(DOMAIN, 500, seed),
        lambda seed: dv.space.workloads.area_share(DOMAIN, 0.1, 500, seed),
        lambda seed: dv.space.workloads.fixed_size(DOMAIN, 3.0, 1.0, 500, seed),
    ],
)
def test_boxes_lie_on_lattice_lines_inside_the_domain_and_follow_the_seed(draw):
    boxes = draw(3)
    lines = lattice(boxes)
    assert boxes.shape == (500, 4)
    assert (lines == np.rint(lines)).all()
    assert (lines[:, :2] < lines[:, 2:]).all()
    assert lines.min() >= 0
    assert lines.max() <= DOMAIN.side
    assert np.array_equal(boxes, draw(3))
    assert not np.array_equal(boxes, draw(4))


def test_random_rectangles_take_every_pair_of_lines_equally_often():
    lines = lattice(dv.random_rectangles(Domain(bounds=(-10.0, 20.0, 6.0, 28.0), crs=None, order=2), 60_000, 1)) / 4
    pairs, seen = np.unique(lines[:, [0, 2]], axis=0, return_counts=True)
    assert len(pairs) == 10
    assert ((seen - 6000) ** 2 / 6000).sum() < 40


def test_a_share_of_the_area_is_a_square_of_lattice_cells():
    lines = lattice(dv.space.workloads.area_share(DOMAIN, 0.06, 200, 1))
    assert (np.diff(lines[:, [0, 2]]) == round(np.sqrt(0.06) * 16)).all()
    assert np.array_equal(np.diff(lines[:, [0, 2]]), np.diff(lines[:, [1, 3]]))


def test_fixed_sizes_are_in_units_of_the_domain():
    boxes = dv.space.workloads.fixed_size(DOMAIN, 3.0, 1.0, 50, 1)
    assert np.allclose(boxes[:, 2] - boxes[:, 0], 3.0)
    assert np.allclose(boxes[:, 3] - boxes[:, 1], 1.0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: dv.space.workloads.area_share(DOMAIN, 0.0, 5, 1),
        lambda: dv.space.workloads.area_share(DOMAIN, 1.1, 5, 1),
        lambda: dv.space.workloads.fixed_size(DOMAIN, 0.0, 1.0, 5, 1),
        lambda: dv.space.workloads.fixed_size(DOMAIN, 17.0, 1.0, 5, 1),
        lambda: dv.space.workloads.fixed_size(DOMAIN, float("nan"), 1.0, 5, 1),
        lambda: dv.space.workloads.fixed_size(DOMAIN, float("inf"), 1.0, 5, 1),
        lambda: dv.space.workloads.fixed_size(DOMAIN, 1.0, float("inf"), 5, 1),
        lambda: dv.space.workloads.area_share(DOMAIN, float("nan"), 5, 1),
        *(
            lambda count=count, ask=ask: ask(count)
            for count in (-1, 2.5, True, "5", None)
            for ask in (
                lambda count: dv.random_rectangles(DOMAIN, count, 1),
                lambda count: dv.space.workloads.area_share(DOMAIN, 0.1, count, 1),
                lambda count: dv.space.workloads.fixed_size(DOMAIN, 3.0, 1.0, count, 1),
                lambda seed: dv.random_rectangles(DOMAIN, 5, seed),
            )
        ),
    ],
)
def test_sizes_that_make_no_sense_are_refused(ask):
    with pytest.raises(dv.DomainError):
        ask()


def test_the_whole_domain_can_be_requested():
    assert np.array_equal(dv.space.workloads.area_share(DOMAIN, 1.0, 2, 1), np.array([DOMAIN.bounds] * 2))
