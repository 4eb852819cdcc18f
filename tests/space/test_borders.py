"""The repair of polygons that cross themselves, and the search for polygons that overlap: right, and never quadratic for long."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz as dv
from dpviz.space import regions
from dpviz.space.borders import common_areas, repaired_parts
from dpviz.space.regions import ENOUGH_OVERLAPS, find_overlaps


def test_parts_are_repaired_one_by_one_and_what_has_no_area_is_left_out():
    squares = shapely.MultiPolygon([shapely.box(column, row, column + 1, row + 1) for column in range(3) for row in range(3)])
    bow = shapely.Polygon([(0, 0), (4, 4), (4, 0), (0, 4)])
    spike = shapely.Polygon([(0, 0), (2, 0), (2, 2), (1, 2), (1, 5), (1, 2), (0, 2)])
    parts, owner = repaired_parts(np.array([squares, bow, spike, shapely.Polygon([(1, 1)] * 4)]))
    assert shapely.is_valid(parts).all()
    assert np.bincount(owner, shapely.area(parts), 4).tolist() == [9, 8, 4, 0]


def test_what_crosses_itself_too_often_is_refused():
    tangle = shapely.Polygon(np.random.default_rng(0).uniform(0, 1, (3_000, 2)))
    with pytest.raises(dv.DomainError, match="too tangled to be repaired"):
        repaired_parts(np.array([tangle]))


@given(seed=st.integers(0, 10_000), number=st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_overlaps_are_those_of_all_pairs(seed, number):
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 6, (number, 2, 2))
    shapes = np.array([shapely.union_all(shapely.box(*each.T, *(each + rng.integers(1, 4, (2, 2))).T)) for each in low])
    one, other = np.triu_indices(number, 1)
    overlap = shapely.area(shapely.intersection(shapes[one], shapes[other])) > 1e-3 * np.minimum(
        shapely.area(shapes[one]), shapely.area(shapes[other])
    )
    np.testing.assert_array_equal(find_overlaps(shapes), np.stack([one, other], axis=1)[overlap])


def test_the_search_for_overlaps_ends_early(monkeypatch):
    assert ENOUGH_OVERLAPS <= len(find_overlaps(np.array([shapely.box(0, 0, 1, 1)] * 2_000))) < 10 * ENOUGH_OVERLAPS
    angle = np.linspace(0, 2 * np.pi, 3_000, endpoint=False)
    star = np.where(np.arange(3_000) % 2, 0.2, 0.95) * np.array([np.cos(angle), np.sin(angle)])
    with pytest.raises(dv.DomainError, match="lie across each other"):
        find_overlaps(np.array([shapely.Polygon(star.T), shapely.Polygon((star + np.array([[0.3], [0]])).T)]))
    monkeypatch.setattr(regions, "_MOST_PAIRS", 1)
    monkeypatch.setattr(regions, "_PAIRS_AT_ONCE", 20)
    monkeypatch.setattr(regions, "_USUAL_PAIRS", 0)
    slivers = np.array([shapely.box(n, 0, n + 1.0001, 1) for n in range(9)])
    with pytest.raises(dv.DomainError, match="lie across each other"):
        find_overlaps(slivers)


def test_a_star_of_many_corners_is_cut_before_it_is_intersected_and_its_parts_add_up():
    angle = np.linspace(0, 2 * np.pi, 1200, endpoint=False)
    radius = np.where(np.arange(1200) % 2, 0.2, 0.49)
    star = shapely.Polygon(np.stack([0.5 + radius * np.cos(angle), 0.5 + radius * np.sin(angle)], axis=1))
    ring = star.difference(shapely.box(0.45, 0.45, 0.55, 0.55))
    shapes = np.array([star, shapely.box(0, 0, 0.3, 0.3), shapely.MultiPolygon([ring, shapely.box(2, 2, 3, 3)])])
    column, row = np.divmod(np.arange(64), 8)
    cells = shapely.box(column / 8, row / 8, (column + 1) / 8, (row + 1) / 8)
    shape = np.repeat([2, 0, 1], 64)
    common = common_areas(shapes, shape, np.tile(cells, 3)).reshape(3, -1)
    np.testing.assert_allclose(common.sum(axis=1), [ring.area, star.area, 0.09], rtol=1e-12)
    chosen = [0, 9, 27, 36]
    np.testing.assert_allclose(common[0, chosen], shapely.area(shapely.intersection(ring, cells[chosen])), rtol=1e-9)
