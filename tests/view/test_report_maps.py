"""Sheets for printed maps: equal areas, whole numbers, light outlines."""

import re

import geopandas
import numpy as np
import pytest
import shapely

from dpviz.space.domain import Domain
from dpviz.view.sheet import WIDTH, make_domain_sheet, make_regions_sheet, make_sheet, project_rectangles

STATES = Domain(bounds=(-125.0, 24.0, -66.0, 50.0), crs="EPSG:4326", order=6)
METRES = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=6)
PLANE = Domain(bounds=(0, 0, 16, 8), crs=None, order=6)


def squares(domain):
    row, column = (part.ravel() for part in np.meshgrid(*[np.arange(0, domain.side, 8)] * 2))
    return np.column_stack([column, row, column + 8, row + 8])


def corners_of(path):
    """Absolute corners of a path of relative lines, one list per ring."""
    rings = []
    for start, steps in re.findall(r"M(-?\d+ -?\d+)l([-\d ]+)", path):
        first = np.array([[int(part) for part in start.split()]])
        numbers = np.array([int(part) for part in re.findall(r"-?\d+", steps)]).reshape(-1, 2)
        rings.append(np.cumsum(np.concatenate([first, numbers]), axis=0))
    return rings


@pytest.mark.parametrize("domain", [STATES, METRES, PLANE])
def test_areas_on_the_sheet_are_proportional_to_true_areas_and_the_domain_lies_on_it(domain):
    boxes = squares(domain)
    west, south, east, north = project_rectangles(domain, boxes).T
    drawn, ground = (east - west) * (north - south), domain.areas_km2(boxes)
    assert np.allclose(drawn / drawn.sum(), ground / ground.sum(), rtol=3e-3)
    sheet = make_domain_sheet(domain)
    corners = project_rectangles(domain, np.array([[0, 0, domain.side, domain.side]])).reshape(2, 2)
    (left, bottom), (right, top) = sheet.to_sheet(corners).tolist()
    assert 0 < left < right < sheet.width <= WIDTH + 1
    assert 0 < top < bottom < sheet.height
    assert bool(sheet.write_land((-130.0, 20.0, -60.0, 55.0))["states"]) == (domain is STATES)


def test_regions_keep_their_areas():
    sheet = make_regions_sheet((-100.0, 30.0, -80.0, 48.0))
    cells = geopandas.GeoSeries([shapely.box(-95, 32, -94, 33), shapely.box(-85, 45, -84, 46)], crs="EPSG:4326")
    truth = cells.to_crs("+proj=cea +ellps=WGS84").area.to_numpy()
    drawn = [shapely.Polygon(corners_of(path)[0]).area for path in sheet.write_paths(cells.segmentize(0.05).to_crs(sheet.crs))]
    assert drawn[0] / drawn[1] == pytest.approx(truth[0] / truth[1], rel=0.02)


@pytest.mark.parametrize("bounds", [(-179.0, -60.0, 179.0, 80.0), (10.0, 40.0, 10.1, 40.1)])
def test_the_world_and_a_village_have_sheets(bounds):
    sheet = make_regions_sheet(bounds)
    assert 0 < sheet.width <= WIDTH + 1
    assert sheet.height > 0
    assert ("eqearth" in sheet.crs) == (bounds[2] - bounds[0] > 300)
    assert set(sheet.write_land(bounds)) == {"land", "countries", "states"}


def test_paths_are_true_to_the_shape_and_light():
    sheet = make_sheet(None, (0.0, 0.0, 10.0, 10.0))
    circle = shapely.Point(5, 5).buffer(3, quad_segs=500)
    holed = shapely.difference(circle, shapely.box(4, 4, 6, 6))
    (path,) = sheet.write_paths(geopandas.GeoSeries([holed]))
    rings = corners_of(path)
    assert len(rings) == 2
    assert sum(map(len, rings)) < 200
    drawn = shapely.Polygon(rings[0]).area - shapely.Polygon(rings[1]).area
    assert drawn == pytest.approx(holed.area * sheet.scale**2, rel=0.01)


def test_shapes_beyond_the_sheet_or_too_small_have_no_path():
    sheet = make_sheet(None, (0.0, 0.0, 10.0, 10.0))
    shapes = geopandas.GeoSeries([shapely.box(90, 90, 91, 91), shapely.box(1, 1, 1.00001, 1.00001), shapely.box(-50, -50, 60, 60)])
    beyond, small, cut = sheet.write_paths(shapes)
    assert (beyond, small) == ("", "")
    assert np.abs(np.concatenate(corners_of(cut))).max() <= sheet.width + 100
