"""Shapes of regions: checked, repaired, dissolved upwards, and a point in each on the globe."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.space.regions import Regions, dissolve
from tests.space.nested import map_of, parents_of, paths, squares
from tests.space.test_regions import refusal

few = settings(max_examples=12, deadline=None, derandomize=True, database=None)
ROWS = [["n", "n1"], ["n", "n2"], ["s", "s1"], ["s", "s2"]]
LEVELS = ["level 1", "level 2"]
BOX = shapely.box(0, 0, 1, 1)
BOW = shapely.from_wkt("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))")
SPIKED = shapely.from_wkt("POLYGON ((0 0, 2 0, 3 0, 2 0, 2 2, 0 2, 0 0))")


def regions_with(geometry, crs="EPSG:4326"):
    return Regions.from_table(map_of(ROWS, geometry, crs), levels=LEVELS)


@few
@given(paths(most_children=4), st.randoms(use_true_random=False))
def test_outlines_are_unions_of_the_leaves(rows, random):
    """Squares, some of them overlapping, apart, or doubled: whatever way is faster, the union is the same."""
    geometry = squares(len(rows), columns=4)
    for place in range(len(geometry)):
        shift, stretch = random.choice([(0, 1), (0, 1), (0.3, 1), (0, 0.5), (-1, 1), (0, 1.2)])
        geometry[place] = shapely.affinity.scale(shapely.affinity.translate(geometry[place], shift), stretch, stretch)
    regions = Regions.from_table(map_of(rows, geometry, "EPSG:32633"), levels=[f"level {k + 1}" for k in range(len(rows[0]))])
    for level in range(regions.depth + 1):
        above = regions.ancestors(level)
        for place, outline in enumerate(regions.outlines(level)):
            own = shapely.union_all([shape for shape, parent in zip(geometry, above.tolist(), strict=True) if parent == place])
            assert outline.is_valid
            assert outline.symmetric_difference(own).area <= 1e-9 * own.area


def union_of(*shapes):
    return dissolve(gpd.GeoSeries(shapes, crs="EPSG:32633"), np.zeros(len(shapes), np.int32), 1)[0]


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-6, -1e-12, -1e-6])
def test_edges_that_nearly_meet_are_dissolved_too(gap):
    union = union_of(BOX, shapely.box(1 + gap, 0, 2, 1), shapely.box(0, 1 - gap, 2, 2))
    assert union.is_valid
    assert union.area == pytest.approx(4, abs=1e-5)


def test_polygons_that_are_equal_or_lie_in_or_around_another_make_no_holes():
    wide, within = shapely.box(0, 0, 3, 3), shapely.box(1, 1, 2, 2)
    assert union_of(BOX, BOX).equals(BOX)
    assert union_of(wide, within).equals(wide)
    assert union_of(wide.difference(within), within).equals(wide)


@pytest.mark.parametrize("wrong", [shapely.Polygon(), BOX, BOW, shapely.box(0, 0, 2, 2)])
def test_a_fast_union_that_is_wrong_is_not_taken(wrong, monkeypatch):
    monkeypatch.setattr(shapely, "coverage_union_all", lambda shapes: wrong)  # older GEOS cancels edges that lie on each other
    assert union_of(BOX, shapely.box(1, 0, 2, 1)).equals(shapely.box(0, 0, 2, 1))


@pytest.mark.parametrize(("broken", "area"), [(BOW, 2.0), (SPIKED, 4.0)])
def test_polygons_that_cross_themselves_are_repaired(broken, area):
    assert not broken.is_valid
    regions = regions_with([broken, *squares(4)[1:]])
    repaired = regions.outlines(2)[0]
    assert (repaired.is_valid, repaired.area) == (True, area)
    assert repaired.geom_type in ("Polygon", "MultiPolygon")
    assert np.isfinite(regions.centres(2)).all()


FLAT = shapely.from_wkt("POLYGON ((0 0, 1 1, 2 2, 0 0))")
WRONG = {
    "without a shape": [[shape, *squares(4)[1:]] for shape in (None, shapely.Polygon())],
    "mixes polygons and points": [[shapely.Point(0, 0), *squares(4)[1:]]],
    "neither polygons nor points": [
        [shapely.LineString([(0, 0), (1, 1)]), *squares(4)[1:]],
        [shapely.MultiPoint([(0, 0), (1, 1)])] * 4,
        [shapely.GeometryCollection([BOX])] * 4,
    ],
    "without area": [[FLAT, *squares(4)[1:]]],
    "not finite": [[shapely.Point(x, 0), *[shapely.Point(0, 0)] * 3] for x in (np.inf, np.nan)],
    "are x and y swapped": [[shapely.Point(40, -120)] * 4],
}


@pytest.mark.parametrize("words", WRONG)
def test_shapes_that_make_no_sense_are_refused(words):
    for geometry in WRONG[words]:
        assert words in refusal(lambda geometry=geometry: regions_with(geometry))


def test_geometry_needs_the_crs_of_a_map_the_same_on_all_levels():
    for crs, words in ((None, "no CRS"), ("EPSG:5703", "no positions on a map"), ("EPSG:4978", "no positions on a map")):
        assert words in refusal(lambda crs=crs: regions_with(squares(4), crs))
    one, coarse = regions_with(squares(4)), gpd.GeoSeries(squares(2), crs="EPSG:4269")
    parts = {name: getattr(one, name) for name in ("levels", "ids", "parent", "names")}
    assert "different CRS" in refusal(lambda: Regions(**parts, geometry=(coarse, one.geometry[1])))
    assert "must be a GeoSeries" in refusal(lambda: Regions(**parts, geometry=(None, np.array(squares(4), object))))


def test_a_frame_without_geometry_has_none():
    regions = regions_with([None] * 4)
    assert regions.geometry == (None, None)
    assert regions.outlines(1) is None
    assert regions.centres(1) is None
    frame = gpd.GeoDataFrame(pd.DataFrame(ROWS, columns=LEVELS))
    assert Regions.from_table(frame, levels=LEVELS).geometry == (None, None)


def test_shapes_follow_their_regions_whatever_the_order_of_the_rows():
    frame = map_of(ROWS, squares(4, columns=2)).iloc[[3, 0, 2, 1]].set_index(pd.Index([7, 7, 8, 9]))
    regions = Regions.from_table(frame, levels=LEVELS)
    assert regions.ids[1].tolist() == ["s2", "s1", "n1", "n2"]
    assert shapely.equals(regions.outlines(2).to_numpy(), np.array(squares(4, columns=2))[[3, 2, 0, 1]]).all()


def test_points_have_no_outlines_nor_heights_and_larger_regions_lie_amidst_them():
    regions = regions_with([shapely.Point(x, y) for x, y in ((0, 0), (2, 0), (10, 10), (10, 30))])
    assert regions.outlines(2) is None
    assert regions.outlines(0) is None
    assert regions.centres(2).tolist() == [[0, 0], [2, 0], [10, 10], [10, 30]]
    assert regions.centres(1).tolist() == [[1, 0], [10, 20]]
    assert regions.centres(0).tolist() == [[5.5, 10]]
    regions = regions_with([shapely.Point(k, k, 9) for k in range(4)])
    assert not regions.geometry[1].has_z.any()


def test_centres_are_degrees_inside_the_regions_and_places_off_the_globe_are_refused():
    regions = regions_with(squares(4, columns=2, side=1000.0), "EPSG:32633")
    for level in (1, 2):
        inside = gpd.GeoSeries(gpd.points_from_xy(*regions.centres(level).T), crs="EPSG:4326").to_crs("EPSG:32633")
        assert shapely.contains(regions.outlines(level).to_numpy(), inside.to_numpy()).all()
    off = regions_with([shapely.Point(1e30, 1e30)] * 4, "EPSG:32633")
    assert "has no longitude" in refusal(lambda: off.centres(2))
    local = regions_with(squares(4), 'ENGCRS["a",EDATUM["b"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]')
    assert "has no longitude" in refusal(lambda: local.centres(2))


def with_shapes(shapes):
    """A row per region, each with its shape if there is one for its id."""
    table = parents_of(ROWS)
    return gpd.GeoDataFrame(table, geometry=np.array([shapes.get(region) for region in table["region_id"]], object), crs="EPSG:4326")


def test_levels_may_have_shapes_of_their_own_and_points_stand_below_or_above_polygons():
    leaves = dict(zip(["n1", "n2", "s1", "s2"], squares(4, columns=2), strict=True))
    wide = {"n": shapely.box(0, 0, 5, 1), "s": shapely.box(0, 1, 5, 2)}
    both = Regions.from_parents(with_shapes(leaves | wide))
    assert both.outlines(1)[0].equals(wide["n"])
    assert both.outlines(0)[0].equals(shapely.box(0, 0, 5, 2))
    finer = Regions.from_parents(with_shapes(leaves))
    assert finer.outlines(1)[0].equals(shapely.box(0, 0, 2, 1))
    coarser = Regions.from_parents(with_shapes(wide))
    assert coarser.outlines(2) is coarser.centres(2) is None
    assert coarser.outlines(1)[1].equals(wide["s"])
    below = Regions.from_parents(with_shapes(wide | dict.fromkeys(leaves, shapely.Point(1, 1))))
    assert below.outlines(1)[0].equals(wide["n"])
    assert below.outlines(2) is None
    above = Regions.from_parents(with_shapes(dict.fromkeys(leaves, BOX) | dict.fromkeys(wide, shapely.Point(9, 9))))
    assert above.outlines(1)[0].equals(BOX), "a point is no outline: the polygons below are dissolved"
    assert above.centres(1).tolist() == [[9, 9], [9, 9]]
    assert "without a shape" in refusal(lambda: Regions.from_parents(with_shapes(wide | {"n1": BOX})))
