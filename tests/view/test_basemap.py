"""Shapes of regions on a map: simplified outlines in degrees, and a first view that is not mostly ocean."""

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

from dpviz.space.regions import Regions
from dpviz.view.basemap import MOST_CORNERS, fit_bounds, prepare_shapes
from tests.charts import plain
from tests.view.trips_cases import blob, grid


def regions_of(shapes, crs="EPSG:4326"):
    table = pd.DataFrame({"area": [f"a{place}" for place in range(len(shapes))]})
    return Regions.from_table(geopandas.GeoDataFrame(table, geometry=list(shapes), crs=crs), levels=["area"])


def corners(found):
    rings = [ring for polygon in found.polygons for ring in (polygon if isinstance(polygon[0][0], list) else [polygon])]
    return sum(len(ring) for ring in rings)


def test_outlines_are_plain_rounded_open_lists_with_their_holes_and_parts_belong_to_their_region():
    ring = shapely.box(0, 0, 4, 4) - shapely.box(1, 1, 2, 2)
    parts = shapely.MultiPolygon([shapely.box(5, 0, 6, 1), shapely.box(7, 0, 8.123456, 1)])
    found = prepare_shapes(regions_of([ring, parts]), 1)
    assert found.owner == [0, 1, 1]
    assert [len(each) for each in found.polygons[0]] == [4, 4]
    assert [len(polygon) for polygon in found.polygons[1:]] == [4, 4]
    assert max(point[0] for point in found.polygons[2]) == 8.1235
    assert plain(found.polygons)


def test_other_coordinates_are_put_into_degrees_and_the_poles_are_cut_where_a_web_map_ends():
    found = prepare_shapes(regions_of([shapely.box(500_000, 0, 600_000, 100_000)], "EPSG:32633"), 1)
    assert found.polygons[0][0][0] == pytest.approx(15.9, abs=0.2)
    assert found.centres[0] == pytest.approx([15.45, 0.45], abs=0.05)
    world = regions_of([shapely.box(-10, -90, 10, 90)])
    assert {abs(point[1]) for point in prepare_shapes(world, 1).polygons[0]} == {85.05}
    assert bounds_around(world) == pytest.approx((-10, -85.05, 10, 85.05))
    assert prepare_shapes(regions_of([shapely.box(-10, 88, 10, 90)]), 1).centres[0].tolist() == [0, 85.05]


def test_many_corners_are_simplified_and_no_region_is_lost_or_become_points(monkeypatch):
    rng = np.random.default_rng(1)
    shapes = [shapely.MultiPolygon([blob(x, y, 400), blob(x, y + 0.5, 8, 1e-4)]) for x in range(30) for y in range(30)]
    assert shapely.get_num_coordinates(shapes).sum() > 3 * MOST_CORNERS
    found = prepare_shapes(regions_of(rng.permutation(shapes)), 1)
    assert corners(found) <= MOST_CORNERS
    assert set(found.owner) == set(range(900))
    monkeypatch.setattr("dpviz.view.basemap.MOST_CORNERS", 50)
    found = prepare_shapes(grid(), 2)
    assert found.polygons == []
    assert found.centres.shape == (24, 2)


def bounds_around(*regions):
    return fit_bounds(regions, 900, 560)


def test_a_few_regions_far_away_do_not_decide_the_first_view():
    x, y = (part.ravel() for part in np.meshgrid(np.linspace(-120, -70, 30), np.linspace(28, 48, 20)))
    near = shapely.points(x, y)
    far = shapely.points([-160, -158, -178, -150, -66], [20, 21, 52, 65, 18])
    assert bounds_around(regions_of([*near, *far])) == pytest.approx((-120, 28, -70, 48), abs=0.1)


def test_few_or_evenly_spread_regions_of_both_geographies_are_all_shown():
    for seed in range(3):
        places = np.random.default_rng(seed).uniform((-10, 40), (10, 55), (300, 2))
        window = bounds_around(regions_of(shapely.points(places)))
        assert window == pytest.approx((*places.min(axis=0), *places.max(axis=0)), abs=1e-6)
    assert bounds_around(regions_of(shapely.points([-100, -99, 120], [10, 11, 50]))) == pytest.approx((-100, 10, 120, 50))
    both = [grid(west=west, south=south, shapes="points") for west, south in ((0, 0), (20, 10))]
    assert bounds_around(*both) == pytest.approx((0, 0, 25, 13))


def test_the_bounds_are_fitted_also_around_a_single_point():
    bounds = bounds_around(regions_of([shapely.Point(7, 50)]))
    assert min(bounds[2] - bounds[0], bounds[3] - bounds[1]) >= 0.05 - 1e-9
