import re

import numpy as np
import pytest
import shapely

from dpviz.lessons import real_map
from dpviz.lessons.maps import Cells
from dpviz.lessons.real_map import LOS_ANGELES, Area, real_cell_map
from dpviz.view.charts import picture

SANTA_MONICA_BAY, DOWNTOWN = (-118.55, 33.9), (-118.24, 34.05)
BOX = (-118.3, 34.0, -118.2, 34.1)


def one_cell():
    table = LOS_ANGELES.edges([BOX]).assign(value=3.0)
    return real_cell_map(LOS_ANGELES, Cells(table=table, title="One", value="people", low=0, high=3, description="One cell."))


def test_boxes_in_degrees_become_kilometres_around_the_middle():
    rows = LOS_ANGELES.edges([LOS_ANGELES.bounds]).iloc[0]
    assert rows.tolist() == pytest.approx([-35, -35, 35, 35], rel=0.01)
    assert LOS_ANGELES.size == pytest.approx((rows["x2"] - rows["x"], rows["y2"] - rows["y"]), abs=0.02)


def test_the_bay_is_filled_as_sea_and_the_city_is_not():
    sea, coast, _ = real_map._outlines(LOS_ANGELES)
    surface = shapely.union_all([shapely.polygons(rows[["x", "y"]].to_numpy()) for _, rows in sea.groupby("part")])
    wet, dry = (shapely.Point(*(float(part) for part in LOS_ANGELES.to_km(*place))) for place in (SANTA_MONICA_BAY, DOWNTOWN))
    assert surface.contains(wet)
    assert not surface.contains(dry)
    assert len(coast) < 1000


def test_a_hole_of_the_sea_is_left_out_of_its_filled_line():
    polygon = shapely.box(0, 0, 10, 10).difference(shapely.box(2, 2, 4, 4)).difference(shapely.box(6, 6, 9, 9))
    x, y = real_map._bridge_rings(polygon).T
    assert abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2 == pytest.approx(polygon.area)


def test_inland_there_is_no_coast_but_the_map_is_drawn():
    desert = Area(bounds=(-109.5, 36.5, -108.5, 37.5))
    sea, _, borders = real_map._outlines(desert)
    assert (len(sea), len(borders) > 0) == (0, True)
    assert real_map.real_map(desert, [], "Four corners", "Nothing.").to_dict()


@pytest.mark.parametrize(("dark", "ink"), [(False, "#1d282e"), pytest.param(True, "#e4e9eb", marks=pytest.mark.slow)])
def test_a_picture_has_coast_names_and_source_in_the_ink_of_its_theme_and_a_kilometre_is_as_long_across_as_up(dark, ink):
    svg = picture([one_cell()], "One", "none", "svg", dark=dark).decode()
    for text in ("Los Angeles", "Long Beach", "GeoNames", ink, real_map.SEA):
        assert text in svg
    across, up = (float(part) for part in re.search(r"h([\d.]+)v([\d.]+)h-[\d.]+Z\" fill=\"#2b8fb3\"", svg).groups())
    cell = LOS_ANGELES.edges([BOX]).iloc[0]
    assert across / up == pytest.approx((cell["x2"] - cell["x"]) / (cell["y2"] - cell["y"]), rel=1e-3)
