"""The map of declared regions: shapes and escaped names of a level, one sentence on the error, the same first view for each level."""

import numpy as np
import pandas as pd
import pytest

from dpviz.space.regions import Regions
from dpviz.view.declared_regions import find_bounds, prepare_level, regions_scene
from tests.scenes import unpack
from tests.space.nested import map_of, squares

ROWS = [["N", "N1"], ["N", "N2"], ["S", "S1"], ["S", "<b>{S2"]]
LEVELS = ["level 1", "level 2"]
NESTED = Regions.from_table(map_of(ROWS, squares(4, columns=2)), levels=LEVELS)
DOTS = Regions.from_table(map_of(ROWS, [shape.centroid for shape in squares(4, columns=2)]), levels=LEVELS)
BARE = Regions.from_table(pd.DataFrame(ROWS, columns=LEVELS), levels=LEVELS)


def scene(regions, ends, level, error, *, dark=False):
    made = regions_scene(prepare_level(regions, ends, level), find_bounds(regions, ends), error, unit="trips", dark=dark, height=300)
    return unpack(made.pack())


@pytest.mark.parametrize(("level", "size"), [(1, 2), (2, 4)])
def test_a_level_with_its_error(level, size):
    header, arrays = scene(NESTED, NESTED, level, 12.345)
    (pane,) = header["panes"]
    assert pane["title"] == f"Expected error: ± 12 trips in each pair of level {level} to level {level}"
    assert (pane["about"], pane["arcs"]) == (f"{size} regions", None)
    assert len(header["areas"]["regions 0"]["texts"]) == len(arrays["0 fill 0"]) / 4 == size
    assert header["bounds"] == scene(NESTED, NESTED, 3 - level, None)[0]["bounds"]


def test_without_an_error_nothing_is_said_of_it():
    (pane,) = scene(NESTED, NESTED, 1, None)[0]["panes"]
    assert (pane["title"], pane["legend"]["title"]) == ("The declared regions, level 1 to level 1", "")


def test_destinations_of_their_own_are_drawn_as_well():
    others = Regions.from_table(map_of([["X", "X1"], ["Y", "Y1"]], squares(2)), levels=LEVELS)
    header, arrays = scene(NESTED, others, 2, 3.0)
    (pane,) = header["panes"]
    assert (pane["areas"], pane["about"]) == (["regions 0", "regions 1"], "4 and 2 regions")
    assert len(arrays["0 fill 1"]) == 8


def test_points_are_dots_of_one_size_and_names_are_escaped():
    header, arrays = scene(DOTS, DOTS, 2, 3.0, dark=True)
    assert len(arrays["regions 0 corners"]) == 0
    assert set(arrays["0 dots 0"]) == {50}
    assert not [text for text in header["areas"]["regions 0"]["texts"] if "<b" in text or "{S" in text]


def test_regions_without_geometry_have_no_map():
    assert find_bounds(BARE, BARE) is None
    assert prepare_level(BARE, BARE, 1) is None
    others = Regions.from_table(map_of([["X", "X1"], ["Y", "Y1"]], squares(2)), levels=LEVELS)
    assert prepare_level(others, BARE, 1) is None
    assert find_bounds(BARE, others) is None


def test_fills_of_light_and_dark_pages_differ():
    light, dark = (scene(NESTED, NESTED, 1, 3.0, dark=dark)[1]["0 fill 0"] for dark in (False, True))
    assert not np.array_equal(light, dark)
