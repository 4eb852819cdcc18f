"""Cells that touch polygons: the same as by one exact test for each cell, in time that does not grow with cells times corners."""

import numpy as np
import pytest
import shapely
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import dpviz as dv
from dpviz.space import touched_cells
from dpviz.space.touched_cells import find_touched

BOUNDS = (
    (0, 0, 8, 8),
    (-0.3, 0.1, 0.4, 0.7),
    (4.8123, 45.71, 4.9, 45.8001),
    (635_000.5, 5_060_000, 655_000, 5_080_000),
    (2**40, 0, 2**40 + 1, 1e-6),
)


def slowly(domain, shapes, order):
    """Test every cell."""
    side = 1 << order
    row, column = np.divmod(np.arange(side**2), side)
    boxes = domain.boxes(np.stack([column, row, column + 1, row + 1], axis=1) * (domain.side >> order))
    return shapely.intersects(np.asarray(shapes, object)[:, None], boxes).any(axis=0).reshape(side, side)


@st.composite
def places(draw, domain):
    """A place that is often on a line between cells, at the corner of one, or next to it by the least that floating point can say."""
    found = []
    for axis in (0, 1):
        number = draw(st.integers(-2 * 4, (domain.side + 2) * 4)) / 4
        value = float(domain.coordinates([number] * 4)[axis])
        found.append(float(np.nextafter(value, draw(st.sampled_from([value, -np.inf, np.inf])))))
    return tuple(found)


@st.composite
def polygons(draw, domain):
    """A valid polygon with or without a hole, a sliver, or several parts."""
    shapes = [shapely.Polygon(draw(st.lists(places(domain), min_size=3, max_size=7))) for _ in range(draw(st.integers(1, 3)))]
    combine = draw(st.sampled_from([shapely.union_all, shapely.intersection_all, lambda each: shapely.difference(each[0], each[-1])]))
    try:
        parts = shapely.get_parts(combine([shapely.make_valid(shape) for shape in shapes]))
    except shapely.errors.GEOSException:  # GEOS cannot combine some shapes whose corners differ by the least number above 0
        reject()
    return [shape for shape in parts if shape.geom_type in ("Polygon", "MultiPolygon") and shape.is_valid and not shape.is_empty]


@given(data=st.data(), bounds=st.sampled_from(BOUNDS), order=st.integers(1, 4), finer=st.integers(0, 1))
@settings(max_examples=300, deadline=None)
def test_they_are_those_that_one_test_for_each_cell_finds(data, bounds, order, finer):
    domain = dv.Domain(bounds=bounds, crs=None, order=order + finer)
    shapes = np.array(data.draw(polygons(domain)), object)
    np.testing.assert_array_equal(find_touched(domain, shapes, order), slowly(domain, shapes, order))


@given(seed=st.integers(0, 10_000), corners=st.integers(3, 12), order=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_between_crossing_borders_an_odd_number_of_them_is_inside(seed, corners, order):
    domain = dv.Domain(bounds=(0, 0, 8, 8), crs=None, order=6)
    shape = shapely.Polygon(np.random.default_rng(seed).uniform(-1, 9, (corners, 2)))
    np.testing.assert_array_equal(find_touched(domain, np.array([shape]), order), slowly(domain, [shapely.make_valid(shape)], order))


SQUARES = [shapely.box(column, row, column + 2.5, row + 2.5) for column in (0.25, 2.75, 5.25) for row in (0.25, 2.75, 5.25)]


@pytest.mark.parametrize(
    ("shapes", "same"),
    [
        (["POLYGON ((2 2, 2 2, 2 2, 2 2))"], ["POINT (2 2)"]),
        (["POLYGON ((1 1, 5 5, 1 1, 1 1))"], ["LINESTRING (1 1, 5 5)"]),
        (
            ["POLYGON ((1.5 1.5, 3 1.5, 3 3, 2 3, 2 7, 2 3, 1.5 3, 1.5 1.5))"],
            ["POLYGON ((1.5 1.5, 3 1.5, 3 3, 1.5 3, 1.5 1.5))", "LINESTRING (2 3, 2 7)"],
        ),
        (["POLYGON ((-1e20 -1e20, 1e20 -1e20, 1e20 1e20, -1e20 -1e20))"], ["POLYGON ((-9 -9, 99 -9, 99 99, -9 -9))"]),
        (["POLYGON ((-90 -90, 90 -90, 90 90, -90 90, -90 -90), (1.1 1.1, 6.9 1.1, 6.9 6.9, 1.1 1.1))"], None),
        ([shapely.MultiPolygon(SQUARES).wkt], [shape.wkt for shape in SQUARES]),
        (
            ["MULTIPOLYGON (((0 0, 3 0, 3 3, 0 0)), ((20 20, 23 20, 23 23, 20 20)), EMPTY)", "POLYGON EMPTY"],
            ["POLYGON ((0 0, 3 0, 3 3, 0 0))"],
        ),
        ([], []),
    ],
)
def test_so_do_points_lines_spikes_neighbours_and_what_is_far_away(shapes, same):
    domain = dv.Domain(bounds=(0, 0, 8, 8), crs=None, order=3)
    expected = slowly(domain, shapely.from_wkt(shapes if same is None else same), 3)
    np.testing.assert_array_equal(find_touched(domain, np.array(shapely.from_wkt(shapes), object), 3), expected)


def test_in_portions_they_are_the_same(monkeypatch):
    domain, done = dv.Domain(bounds=(0, 0, 8, 8), crs=None, order=5), []
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    star = shapely.Polygon((4 + np.where(np.arange(200) % 2, 1, 5) * np.array([np.cos(angle), np.sin(angle)])).T)
    shapes = np.array([star, shapely.box(0.25, 0.25, 7, 0.5)])
    expected = find_touched(domain, shapes, 5)
    monkeypatch.setattr(touched_cells, "_STEPS_AT_ONCE", 7)
    monkeypatch.setattr(touched_cells, "_PAIRS_AT_ONCE", 1)
    np.testing.assert_array_equal(find_touched(domain, shapes, 5, done.append), expected)
    np.testing.assert_array_equal(expected, slowly(domain, shapes, 5))
    assert sorted(done) == done
    assert 0 <= done[0] < done[-1] <= 1
    assert len(done) > 20


def test_too_many_steps_are_refused_before_the_first_and_a_report_may_end_the_search(monkeypatch):
    domain, shapes = dv.Domain(bounds=(0, 0, 8, 8), crs=None, order=3), np.array([shapely.box(1.5, 1.5, 6.5, 6.5)])

    def stop(_done):
        raise KeyError

    with pytest.raises(KeyError):
        find_touched(domain, shapes, 3, stop)
    monkeypatch.setattr(touched_cells, "MOST_STEPS", 3)
    with pytest.raises(dv.DomainError, match="4 rows and columns of the domain's cells, and at most 3"):
        find_touched(domain, shapes, 3, stop)
