"""Where nobody can be: no partition and no square is drawn there, on the true map and on the released one, and grey lies over it."""

from dataclasses import replace

import numpy as np
import pytest
import shapely

import dpviz as dv
from dpviz.view.canvas import Scene
from dpviz.view.masked_area import find_masked_area
from dpviz.view.points_canvas import ReleaseView, SquaresView
from dpviz.view.points_map import color_interpolated, color_pixels
from dpviz.view.report_maps import draw_points
from dpviz.view.scene_svg import draw_svg

IS_OPEN = np.kron([[1, 1], [0, 1]], np.ones((8, 8))).astype(np.bool_)
IS_OPEN[:3, 10:] = False
DOMAIN = dv.Domain(bounds=(0, 0, 16, 16), crs="EPSG:4326", order=4, mask=dv.CellMask.from_open(IS_OPEN))
POINTS = dv.PointCounts.from_matrix(np.random.default_rng(1).poisson(20, (16, 16)), domain=DOMAIN)


@pytest.fixture(scope="module")
def release():
    return dv.Quadtree(height=3).release(POINTS, dv.PureBudget(1), dv.Entropy.seeded(1))


@pytest.mark.parametrize("level", range(4))
def test_masked_partitions_are_not_drawn_and_densities_are_those_of_open_cells(release, level):
    truth = release.tree.sums(POINTS.column, POINTS.row, POINTS.count)
    view = ReleaseView.of(release, level, unit="records", dark=False, truth=truth)
    assert len(view.rectangles) == DOMAIN.count_open_blocks(level)
    for shown in ("True", "Released"):
        pane = view.pane(shown, cells="released")
        assert len(pane.shades) == len(view.nodes)
        assert pane.note == "Grey: nobody can be there, as declared."
    squares = SquaresView.of(release, POINTS.blocks, level, dark=False)
    assert len(squares.rectangles) == len(squares.pane(cells="squares").shades) == DOMAIN.count_open_blocks(level)
    assert squares.cells().numbers["true"].sum() == POINTS.count.sum()


def test_pictures_are_transparent_where_nobody_can_be(release):
    colors, *_ = color_interpolated(release, unit="records", dark=False)
    np.testing.assert_array_equal(colors[..., 3] > 0, IS_OPEN)
    nodes = release.open_nodes(3)
    picture = color_pixels(release, nodes, np.full((len(nodes), 4), 255, np.uint8))
    np.testing.assert_array_equal(picture[..., 3] > 0, DOMAIN.open_blocks(3).repeat(2, axis=0).repeat(2, axis=1))


def test_grey_covers_the_masked_cells_alone_and_the_report_says_what_is_left_out(release):
    polygons = find_masked_area(DOMAIN)
    assert sum(shapely.Polygon(ring).area for (ring,) in polygons) == (~IS_OPEN).sum()
    assert find_masked_area(replace(DOMAIN, mask=None)) == []
    view = ReleaseView.of(release, 2, unit="records", dark=False)
    panes = (view.pane("Released", cells="a"),)
    scene = Scene(bounds=(0, 0, 16, 16), cells={"a": view.cells()}, panes=panes, description="", dark=False, masked=polygons)
    assert draw_svg(scene).count('fill-rule="evenodd"/>') >= len(polygons)
    picture = draw_points(release)
    assert "Where nobody can be, as declared, no partition is drawn" in picture.note
    assert picture.shapes == picture.body.count("</title>") == len(release.open_nodes(picture.level))
