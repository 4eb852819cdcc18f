"""Masks: which cells are open, how they are counted in boxes, stretches and polygons, and how polygons make a mask."""

import itertools
from dataclasses import replace

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz as dv
from dpviz.space.grids import grid, quadtree
from dpviz.space.hilbert import Curve, cells_at
from dpviz.space.mask import open_cells
from dpviz.space.outline import Outline

DOMAIN = dv.Domain(bounds=(0, 0, 8, 8), crs=None, order=3)


def random_mask(seed, order):
    is_open = np.random.default_rng(seed).random((1 << order, 1 << order)) < 0.5
    is_open[0, 0] = True
    return dv.CellMask.from_open(is_open)


@given(seed=st.integers(0, 99), order=st.integers(1, 5), finer=st.integers(0, 2))
@settings(max_examples=30)
def test_cells_in_boxes_and_their_rectangles_are_those_of_the_definition(seed, order, finer):
    mask, lattice = random_mask(seed, order), order + finer
    boxes = np.sort(np.random.default_rng(seed).integers(0, (1 << lattice) + 1, (20, 2, 2)), axis=1).reshape(-1, 4)
    boxes = boxes[(boxes[:, :2] < boxes[:, 2:]).all(axis=1)]
    expected = np.array([mask.blocks(lattice)[south:north, west:east].sum() for west, south, east, north in boxes.tolist()], float)
    np.testing.assert_array_equal(mask.cells_in(boxes, lattice), expected)
    owner, parts = mask.rectangles_in(boxes, lattice)
    size = (parts[:, 2:] - parts[:, :2]).prod(axis=1)
    np.testing.assert_array_equal(np.bincount(owner, size, len(boxes)), expected)
    np.testing.assert_array_equal(mask.cells_in(parts, lattice), size)
    assert dv.CellMask.from_runs(order, mask.runs) == mask


def test_nodes_are_open_where_one_of_their_cells_is():
    mask, domain = random_mask(1, 3), replace(DOMAIN, order=5)
    for tree in (quadtree(domain, 4), grid(domain, 5, 7)):
        cells = open_cells(tree, mask)
        sums = [mask.blocks(5)[south:north, west:east].sum() for west, south, east, north in tree.rectangles().tolist()]
        np.testing.assert_array_equal(cells, sums)
        assert open_cells(tree, None) is tree.cells
    column, row = cells_at(np.arange(4**5), 5)
    ends = np.sort(np.random.default_rng(1).choice(4**5, 40, replace=False))
    sums = [mask.blocks(5)[row, column][first:last].sum() for first, last in itertools.pairwise(ends)]
    np.testing.assert_array_equal(mask.positions_in(Curve(order=5, first=ends[:-1].copy(), last=ends[1:].copy())), sums)


def test_a_coarser_domain_has_blocks_of_the_mask_and_one_without_masked_cells_has_none():
    mask = dv.CellMask.from_masked_cells([0, 1, 0, 1, 3], [0, 0, 1, 1, 3], order=2)
    assert replace(DOMAIN, mask=mask).mask == mask
    assert replace(DOMAIN, order=1, mask=mask).mask.open.tolist() == [[False, True], [True, True]]
    assert replace(DOMAIN, mask=dv.CellMask.from_open(np.ones((8, 8), np.bool_))) == DOMAIN
    one, other = (replace(DOMAIN, mask=dv.CellMask.from_open(mask.open)) for _ in range(2))
    assert (one, hash(one)) == (other, hash(other))
    assert one != DOMAIN


@pytest.mark.parametrize(
    "make",
    [
        lambda: dv.CellMask.from_open(np.zeros((4, 4), np.bool_)),
        lambda: dv.CellMask.from_open(np.ones((3, 3), np.bool_)),
        lambda: dv.CellMask.from_open(np.ones((4, 4), np.int64)),
        lambda: dv.CellMask.from_open(np.ones((4096, 4096), np.bool_)),
        lambda: dv.CellMask.from_masked_cells([4], [0], order=2),
        lambda: dv.CellMask.from_masked_cells([0, 0, 1, 1], [0, 1, 0, 1], order=1),
        lambda: dv.CellMask.from_runs(1, "0 5"),
        lambda: dv.CellMask.from_runs(1, "4"),
        lambda: replace(DOMAIN, mask=np.ones((8, 8), np.bool_)),
        lambda: dv.mask_outside(DOMAIN, geopandas.GeoSeries([shapely.box(9, 9, 10, 10)])),
        lambda: dv.mask_outside(DOMAIN, Outline(shapes=np.array([shapely.box(0, 0, 1, 1)]), crs="EPSG:4326")),
    ],
)
def test_what_is_no_mask_is_refused(make):
    with pytest.raises(dv.DomainError):
        make()


def test_a_cell_is_masked_only_if_no_point_of_it_is_in_the_study_area():
    """Also one that is touched on an edge, at a corner, or by a part of the area that is far smaller than a cell, is open."""
    areas = geopandas.GeoSeries([shapely.box(1, 1, 2, 2), shapely.Point(6.5, 6.5).buffer(1e-6)])
    is_open = dv.mask_outside(DOMAIN, areas).mask.open
    expected = np.zeros((8, 8), np.bool_)
    expected[0:3, 0:3] = expected[6, 6] = True
    np.testing.assert_array_equal(is_open, expected)


def test_a_second_study_area_leaves_what_both_leave_open():
    left, low = (dv.mask_outside(DOMAIN, geopandas.GeoSeries([shapely.box(*bounds)])) for bounds in ((0, 0, 3.5, 8), (0, 0, 8, 3.5)))
    both = dv.mask_outside(left, geopandas.GeoSeries([shapely.box(0, 0, 8, 3.5)])).mask
    np.testing.assert_array_equal(both.open, left.mask.open & low.mask.open)


def test_an_outline_is_reprojected_and_what_is_far_away_does_not_matter():
    domain = dv.Domain(bounds=(635_000, 5_060_000, 655_000, 5_080_000), crs="EPSG:32631", order=6)
    shapes = np.array([shapely.box(4.8, 45.7, 4.9, 45.8), shapely.box(-179, -89, -178, -88)])
    mask = dv.mask_outside(domain, Outline(shapes=shapes, crs="EPSG:4326")).mask
    inside = geopandas.GeoSeries([shapes[0]], crs="EPSG:4326").segmentize(0.001).to_crs(domain.crs)
    assert mask == dv.mask_outside(domain, inside).mask
    assert 0.2 < mask.cells_open / 64**2 < 0.5
