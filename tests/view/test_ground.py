"""Land and borders under a map: detailed around the area, coarse far away, and never cut."""

import json
from itertools import chain

import numpy as np
import pytest
import shapely

from dpviz.bundled import folder
from dpviz.view import ground
from dpviz.view.basemap import OUTLINES, outlines_around
from dpviz.view.ground import FINEST_DETAIL, SURROUNDINGS, ground_around
from tests.charts import plain
from tests.often import often

AREAS = {
    "Los Angeles": (-119.0, 33.6, -117.6, 34.9),
    "New York": (-74.3, 40.5, -73.6, 41.0),
    "California": (-124.5, 32.5, -114.0, 42.0),
    "contiguous US": (-124.8, 24.4, -66.9, 49.4),
    "Italy": (7.0, 37.0, 19.0, 47.0),
    "Europe": (-11.0, 35.0, 32.0, 62.0),
    "Fiji": (177.0, -19.0, 180.0, -16.0),
    "world": (-180.0, -60.0, 180.0, 78.0),
    "open ocean": (-140.0, -30.0, -139.9, -29.9),
    "one point": (2.35, 48.86, 2.35, 48.86),
}
MOST_KILOBYTES = {"Los Angeles": 70, "New York": 70, "California": 100, "world": 70, "contiguous US": 230, "open ocean": 60}


def polygons(lists):
    return np.array([shapely.Polygon(rings[0], rings[1:]) for rings in lists], object)


def land_around(area):
    """All land as one shape, and the sum of the areas of its polygons."""
    parts = polygons(ground_around(AREAS[area]).land)
    return shapely.union_all(shapely.make_valid(parts)), shapely.area(parts).sum()


def all_land():
    return shapely.union_all(shapely.from_geojson((folder("assets") / OUTLINES["land"]).read_text("utf-8")))


def extent_of(area):
    west, south, east, north = AREAS[area]
    return max(east - west, north - south)


def box_around(area, extents):
    west, south, east, north = AREAS[area]
    margin = extents * extent_of(area)
    return shapely.box(west - margin, south - margin, east + margin, north + margin)


def difference(one, other, within):
    return shapely.area(shapely.symmetric_difference(shapely.intersection(one, within), shapely.intersection(other, within)))


@pytest.mark.parametrize("area", often([area for area in AREAS if area not in ("world", "one point")], 1))
def test_land_in_and_around_the_area_is_that_of_the_detailed_outline(area):
    extent = extent_of(area)
    land, _ = land_around(area)
    detailed = shapely.union_all(outlines_around("land", AREAS[area], SURROUNDINGS * extent, extent / FINEST_DETAIL))
    assert difference(land, detailed, box_around(area, 0)) < 2e-3 * extent**2
    around = box_around(area, SURROUNDINGS)
    assert difference(land, detailed, around) < 0.01 * shapely.area(shapely.intersection(detailed, around)) + 1e-9


@pytest.mark.parametrize("area", often(["Los Angeles", "California", "contiguous US", "Italy", "Europe"], 1))
def test_there_is_no_gap_overlap_or_straight_cut_where_the_detail_changes(area):
    land, sum_of_areas = land_around(area)
    assert sum_of_areas - shapely.area(land) < 1e-4 * sum_of_areas
    rim = box_around(area, SURROUNDINGS)
    band = shapely.difference(box_around(area, SURROUNDINGS + 0.1), box_around(area, SURROUNDINGS - 0.1))
    assert difference(land, all_land(), band) < 0.02 * shapely.area(band)
    cut = shapely.intersection(shapely.boundary(land), shapely.buffer(shapely.boundary(rim), extent_of(area) * 1e-4))
    assert shapely.length(cut) < 1e-3 * shapely.length(rim)


@pytest.mark.parametrize("area", often(list(AREAS), 1))
def test_the_whole_world_is_there(area):
    land, _ = land_around(area)
    everything = shapely.box(-180, -85, 180, 85)
    assert difference(land, all_land(), everything) < 0.04 * shapely.area(all_land())
    strips = shapely.box(np.arange(-180, 180, 5), -60, np.arange(-175, 185, 5), 75)
    assert (shapely.area(shapely.intersection(land, strips)) > 0)[shapely.area(shapely.intersection(all_land(), strips)) > 2].all()


@pytest.mark.parametrize("area", often(list(AREAS), 1))
def test_the_lists_are_plain_rounded_and_can_be_drawn(area):
    found = ground_around(AREAS[area])
    rings = list(chain.from_iterable(found.land))
    assert all(plain(each) for each in (found.land, found.borders, found.states))
    corners = np.concatenate([np.array(line) for line in (*rings, *found.borders, *found.states)])
    assert np.array_equal(corners, np.round(corners, 3))
    assert (np.abs(corners) <= (180, 85)).all()
    assert min(len(ring) for ring in rings) >= 3
    assert min(len(line) for line in (*found.borders, *found.states)) >= 2
    assert not any(ring[0] == ring[-1] for ring in rings)
    assert shapely.is_valid(polygons(found.land)).mean() > 0.99


@pytest.mark.parametrize(("name", "area"), [("states", "California"), ("states", "contiguous US"), ("countries", "Italy")])
def test_borders_in_the_area_have_full_detail_and_all_others_are_there(name, area):
    found = ground_around(AREAS[area])
    lines = shapely.union_all([shapely.LineString(line) for line in (found.states if name == "states" else found.borders)])
    full = shapely.union_all(shapely.from_geojson((folder("assets") / OUTLINES[name]).read_text("utf-8")))
    inside = shapely.intersection(full, box_around(area, 0))
    near = shapely.intersection(inside, shapely.buffer(lines, 1.5 * extent_of(area) / FINEST_DETAIL))
    assert shapely.length(near) > 0.99 * shapely.length(inside)
    assert shapely.length(shapely.intersection(full, shapely.buffer(lines, 1))) > 0.99 * shapely.length(full)


@pytest.mark.parametrize("area", MOST_KILOBYTES)
def test_the_message_is_small(area):
    found = ground_around(AREAS[area])
    text = json.dumps([found.land, found.borders, found.states], separators=(",", ":"))
    assert len(text) < 1000 * MOST_KILOBYTES[area]


def test_it_is_kept():
    assert ground_around(AREAS["world"]) is ground_around(AREAS["world"])


def test_each_corner_is_kept_down_to_the_detail_at_which_it_matters():
    read = ground._read("land")
    assert read.corners.shape == (len(read.detail), 2)
    shares = [(read.detail > detail).mean() for detail in (0.0001, 0.01, 0.05, 0.2, 0.49)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.99
    assert 0.1 < shares[-1] < 0.3
