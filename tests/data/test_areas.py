"""Records in regions: a point is in one leaf or in none, counts agree with geopandas, and nothing private in errors or texts."""

import pickle
from dataclasses import replace
from unittest.mock import Mock

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data import leaf_regions
from dpviz.data.areas import AreaCounts
from dpviz.data.empty import NONE_IN_REGIONS
from dpviz.data.leaf_regions import leaf_finder
from dpviz.data.points import PointCounts
from dpviz.errors import DomainError, InputError
from dpviz.samples.areas import load_area_sample
from dpviz.space.borders import borders_of
from dpviz.space.domain import Domain
from dpviz.space.region_builders import H3Cells
from dpviz.space.regions import Regions
from tests.area_cases import records_of, true_sums
from tests.trip_cases import regular

few = settings(max_examples=20, deadline=None, derandomize=True)
CRS = "EPSG:3857"
TABLE = pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]})
TRACTS = Regions.from_table(TABLE, levels=["district", "tract"])
GAPPED = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1), shapely.box(3, 0, 4, 1)]
"""Two squares that share a border, a gap, and a third one."""
HIDDEN = "4711.4711"


def regions_of(polygons, crs=CRS) -> Regions:
    return Regions.from_polygons(gpd.GeoSeries(list(polygons), crs=crs))


def per_leaf(areas: AreaCounts) -> list[int]:
    return areas.level_counts()[-1].tolist()


def refused(call, *errors) -> str:
    with pytest.raises(errors or InputError) as refusal:
        call()
    assert refusal.value.__cause__ is None
    text = str(refusal.value)
    assert HIDDEN not in text
    return text


# Where a point belongs.


@pytest.mark.parametrize(
    ("x", "y", "leaf"),
    [
        (0.5, 0.5, 0),
        (1.5, 0.5, 1),
        (1.0, 0.5, 1),
        (1.0, 0.0, 1),
        (2.0, 0.5, 1),
        (4.0, 1.0, 2),
        (2.5, 0.5, None),
        (0.5, 1.5, None),
        (-1e9, 0.5, None),
    ],
)
def test_a_point_is_in_one_region_that_contains_it_or_in_none(x, y, leaf):
    """Regions include their borders; a common border belongs to the one east of it; gaps and the surroundings to none."""
    areas = AreaCounts.from_xy([x], [y], regions=regions_of(GAPPED), bad_rows="drop")
    assert per_leaf(areas) == [int(number == leaf) for number in range(3)]
    assert areas.outside == areas.dropped == (leaf is None)


@few
@given(st.integers(0, 10**6))
def test_every_point_is_counted_once_or_left_out(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.choice([0.0, 0.25, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 9.0], 40), rng.choice([0.0, 0.5, 1.0, 2.0], 40)
    areas = AreaCounts.from_xy(x, y, regions=regions_of(GAPPED))
    assert areas.count.sum() + areas.outside == 40


def test_counts_are_those_of_a_spatial_join():
    regions = load_area_sample("made_up_city").regions
    west, south, east, north = regions.geometry[-1].total_bounds
    x, y = np.random.default_rng(1).uniform([[west - 0.01], [south - 0.01]], [[east + 0.01], [north + 0.01]], (2, 5000))
    points = gpd.GeoDataFrame(geometry=gpd.points_from_xy(x, y), crs="EPSG:4326")
    leaves = gpd.GeoDataFrame({"block": regions.ids_of(3)}, geometry=regions.geometry[-1])
    joined = gpd.sjoin(points, leaves)["block"].value_counts().reindex(regions.ids_of(3), fill_value=0)
    areas = AreaCounts.from_geodataframe(points.to_crs("EPSG:3857"), regions=regions)
    assert per_leaf(areas) == joined.tolist()
    assert areas.outside == 5000 - joined.sum()


def test_level_counts_are_sums_of_leaves():
    areas = records_of(500)
    for level, counts in enumerate(areas.level_counts()):
        np.testing.assert_array_equal(counts, true_sums(areas, level))


@pytest.mark.parametrize("crs", ["EPSG:4326", None])
def test_the_squares_of_a_lattice_are_those_of_its_domain(crs):
    domain = Domain(bounds=(0, 0, 16, 8), crs=crs, order=5)
    rng = np.random.default_rng(2)
    x, y = np.r_[rng.uniform(-1, 17, 300), rng.integers(0, 17, 100)], np.r_[rng.uniform(-1, 9, 300), rng.integers(0, 9, 100)]
    regions = Regions.squares(domain, zooms=(1, 3))
    areas, points = AreaCounts.from_xy(x, y, regions=regions), PointCounts.from_xy(x, y, domain=replace(domain, order=3))
    assert (areas.outside, areas.count.sum()) == (points.outside, points.count.sum())
    for level, zoom in ((1, 1), (2, 3)):
        counts = dict(zip(regions.ids_of(level), areas.level_counts()[level].tolist(), strict=True))
        blocks = points.blocks(zoom)
        assert counts == {f"{zoom}/{column}/{row}": blocks[row, column] for column in range(2**zoom) for row in range(2**zoom)}


def test_h3_cells_are_found_by_index_and_rolled_up_by_index():
    h3 = pytest.importorskip("h3")
    regions = Regions.h3((-74.05, 40.65, -73.9, 40.85), resolutions=(5, 7, 8))
    x, y = np.random.default_rng(3).uniform([[-74.1], [40.6]], [[-73.85], [40.9]], (2, 500))
    areas = AreaCounts.from_xy([*x, np.nan, 500.0], [*y, 40.7, 40.7], regions=regions, bad_rows="drop")
    cells = [h3.latlng_to_cell(b, a, 8) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    known = [cell for cell in cells if cell in set(regions.ids_of(3))]
    assert (areas.bad, areas.outside) == (1, 1 + 500 - len(known))
    for level, resolution in ((1, 5), (2, 7), (3, 8)):
        wanted = (
            pd.Series([h3.cell_to_parent(cell, resolution) for cell in known]).value_counts().reindex(regions.ids_of(level), fill_value=0)
        )
        assert areas.level_counts()[level].tolist() == wanted.tolist()


TOWN = (-74.05, 40.65, -73.95, 40.75)


def test_the_tables_that_find_h3_cells_are_made_once_and_not_pickled(monkeypatch):
    pytest.importorskip("h3")
    regions = Regions.h3(TOWN, resolutions=(6, 7))
    monkeypatch.setattr(leaf_regions, "_POINTS_PER_CELL", 0)
    made = Mock(wraps=leaf_regions.borders_of)
    monkeypatch.setattr(leaf_regions, "borders_of", made)
    x, y = np.random.default_rng(1).uniform([[-74.1], [40.6]], [[-73.9], [40.8]], (2, 50))
    for _ in range(2):
        found = leaf_finder(regions)(x, y)
    assert made.call_count == 1
    copied = pickle.loads(pickle.dumps(leaf_finder(regions)))  # noqa: S301 - our own bytes
    assert set(vars(copied)) == {"regions"}
    np.testing.assert_array_equal(copied(x, y), found)


def test_grouped_regions_keep_the_grid_of_their_leaves():
    squares = Regions.squares(Domain(bounds=(0, 0, 16, 16), crs=None, order=4), zooms=(1, 2))
    grouped = squares.grouped([1])
    x, y = np.random.default_rng(1).uniform(0, 16, (2, 50))
    assert (grouped.depth, grouped.grid) == (3, squares.grid)
    np.testing.assert_array_equal(leaf_finder(grouped)(x, y), leaf_finder(squares)(x, y))
    assert squares.grouped([3]).grid is None, "columns of the lattice put its squares into another order"
    pytest.importorskip("h3")
    cells = Regions.h3(TOWN, resolutions=(6, 7))
    assert cells.grouped([9]).grid == cells.grid


@pytest.mark.parametrize(
    ("area", "resolution"), [(TOWN, 9), (TOWN, 6), ((10, 60, 14, 62), 5), ((10, 60, 20, 65), 3), ((0, 84, 4, 84.5), 6)]
)
def test_a_look_up_of_many_points_finds_the_same_h3_cells_as_the_package(monkeypatch, area, resolution):
    """At random places, at corners and on edges, and beside them as close as rounding permits."""
    pytest.importorskip("h3")
    regions = Regions.h3(area, resolutions=(resolution,))
    west, south, east, north = area
    rng = np.random.default_rng(4)
    x, y = rng.uniform([[west - 0.1], [south - 0.1]], [[east + 0.1], [north + 0.1]], (2, 4000))
    ends = borders_of(regions.geometry[-1].to_numpy()).ends
    chosen, share = rng.integers(0, ends.shape[1], 3000), rng.choice([0, 0.3, 0.5, 0.9], 3000)
    moved = rng.normal(0, 1, (2, 3000)) * rng.choice([0, 1e-12, 1e-8, 1e-6, 1e-4], 3000)
    edges = ends[:2, chosen] * (1 - share) + ends[2:, chosen] * share + moved
    x, y = np.r_[x, edges[0], np.nan, 500.0], np.r_[y, edges[1], 50.0, 50.0]
    wanted = regions.grid.find(regions.ids_of(1))(x, y)
    asked = []
    monkeypatch.setattr(leaf_regions, "_POINTS_PER_CELL", 0)
    monkeypatch.setattr(H3Cells, "_codes", lambda self, x, y, codes=H3Cells._codes: asked.append(len(x)) or codes(self, x, y))
    np.testing.assert_array_equal(leaf_finder(regions)(x, y), wanted)
    assert (sum(asked) == len(x) - 1) == (resolution < 4), "most are found without the package"


# People.


def test_people_keep_the_same_records_as_points_with_the_same_key():
    domain = Domain(bounds=(0, 0, 4, 4), crs=None, order=1)
    x, y = np.random.default_rng(4).uniform(0, 4, (2, 300))
    person, key = np.random.default_rng(5).integers(0, 40, 300), b"one key"
    points = PointCounts.from_xy(x, y, domain=domain, person=person, contributions=3, key=key)
    regions = Regions.squares(domain, zooms=(1,))
    areas = AreaCounts.from_xy(x, y, regions=regions, person=person, contributions=3, key=key)
    by_id = pd.DataFrame({"region": [f"1/{int(a // 2)}/{int(b // 2)}" for a, b in zip(x, y, strict=True)], "who": person})
    again = AreaCounts.from_table(by_id, regions=regions, person="who", contributions=3, key=key)
    assert areas.count.sum() == points.count.sum() <= 120
    assert (areas.unit, areas.contributions, areas.over) == ("person", 3, 300 - areas.count.sum())
    assert per_leaf(areas) == per_leaf(again), "squares of zoom 1 in Z-order are the cells of the lattice row by row"
    assert per_leaf(areas) == points.blocks(1).ravel().tolist()


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_adding_a_person_changes_at_most_m_records_all_of_them_theirs(distinct, most):
    rng, key = np.random.default_rng(6), b"key"
    table = pd.DataFrame({"region": rng.choice(["a", "b", "c"], 60), "who": rng.integers(0, 12, 60)})
    options = {"regions": TRACTS, "person": "who", "contributions": most, "distinct": distinct, "key": key}
    whole = np.array(per_leaf(AreaCounts.from_table(table, **options)))
    for who in range(12):
        without = np.array(per_leaf(AreaCounts.from_table(table[table["who"] != who], **options)))
        assert (whole >= without).all()
        assert (whole - without).sum() <= most


# Tables and arrays.


def test_a_table_of_ids_adds_up_counts():
    table = pd.DataFrame({"region": ["a", "c", " a "], "count": [2, 5, 1]})
    assert per_leaf(AreaCounts.from_table(table, regions=TRACTS)) == [3, 0, 5]
    assert per_leaf(AreaCounts.from_table(table[["region"]], regions=TRACTS)) == [2, 0, 1]
    assert per_leaf(AreaCounts.from_counts([3, 0, 5], regions=TRACTS)) == [3, 0, 5]


def test_dropped_rows_are_counted_privately():
    table = pd.DataFrame({"region": ["a", "nowhere", None, "c"], "count": [2, 3, 1, -1]})
    areas = AreaCounts.from_table(table, regions=TRACTS, bad_rows="drop")
    assert per_leaf(areas) == [2, 0, 0]
    assert (areas.dropped, areas.outside, areas.bad) == (5, 3, 2)
    assert "3" not in repr(areas).replace("3 tract", "")


def test_numbers_stand_for_their_digits_with_the_zeros_that_were_lost():
    regions = Regions.from_table(pd.DataFrame({"county": ["01001", "36061"]}), levels=["county"])
    table = pd.DataFrame({"region": [1001, 36061]})
    assert per_leaf(AreaCounts.from_table(table, regions=regions)) == [1, 1]
    plain = Regions.from_table(pd.DataFrame({"county": ["7", "36061"]}), levels=["county"])
    assert per_leaf(AreaCounts.from_table(pd.DataFrame({"region": [7, 7, 36061]}), regions=plain)) == [2, 1]


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        ({"region": ["a", HIDDEN]}, {}, "an id that is no leaf region (tract)"),
        ({"region": ["a", None]}, {}, "an id that is missing"),
        ({"place": ["a"]}, {}, "The table of records has no column 'region'."),
        ({"region": ["a"], "count": [0.5]}, {}, "no whole number"),
        ({"region": ["a"], "count": [-1]}, {}, "a number of records is at least 0"),
        ({"region": ["a"], "count": [None]}, {}, "every row needs its number of records"),
        ({"region": ["a"]}, {"person": "who"}, "has no column 'who'"),
        ({"region": ["a"], "who": [None]}, {"person": "who"}, "The person column has a missing cell"),
        ({"region": ["a"]}, {"person": ["x", "y"]}, "one entry per row"),
        ({"region": ["a"]}, {"contributions": 2}, "need a person column"),
        ({"region": ["a"]}, {"distinct": True}, "need a person column"),
        ({"region": ["a"]}, {"contributions": 0}, "contributions must be a whole number"),
        ({"region": ["a"]}, {"bad_rows": "keep"}, "bad_rows must be"),
    ],
)
def test_bad_tables_are_refused_in_one_sentence(table, options, words):
    assert words in refused(lambda: AreaCounts.from_table(pd.DataFrame(table), regions=TRACTS, **options))


def test_other_things_than_regions_are_refused():
    for other in (None, TABLE, "regions"):
        for call in (
            lambda other=other: AreaCounts.from_table(pd.DataFrame({"region": ["a"]}), regions=other),
            lambda other=other: AreaCounts.from_xy([1], [1], regions=other),
            lambda other=other: AreaCounts.from_counts([1], regions=other),
            lambda other=other: AreaCounts.from_geodataframe(gpd.GeoDataFrame(geometry=[]), regions=other),
        ):
            assert "regions must be Regions" in refused(call)
    assert "must be a DataFrame" in refused(lambda: AreaCounts.from_table([["a"]], regions=TRACTS))
    assert "one count for each of the 3 leaf regions" in refused(lambda: AreaCounts.from_counts([1, 2], regions=TRACTS))


# Regions in which points cannot be counted.


def test_regions_without_polygons_are_refused():
    assert "'tract' has no polygons" in refused(lambda: AreaCounts.from_xy([1], [1], regions=TRACTS), DomainError)


def test_overlapping_polygons_are_refused_by_name():
    twice = regions_of([shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3), shapely.box(5, 5, 6, 6)])
    text = refused(lambda: AreaCounts.from_xy([1], [1], regions=twice), DomainError)
    assert "overlap: 1 and 2." in text
    inside = regions_of([shapely.box(0, 0, 4, 4), shapely.box(1, 1, 2, 2)])
    assert "overlap: 1 and 2" in refused(lambda: AreaCounts.from_xy([1], [1], regions=inside), DomainError)
    same = regions_of([shapely.box(0, 0, 1, 1)] * 2)
    assert "overlap: 1 and 2" in refused(lambda: AreaCounts.from_xy([1], [1], regions=same), DomainError)
    many = regions_of([shapely.box(0, 0, 1 + n, 1) for n in range(5)])
    assert "and 7 more pairs" in refused(lambda: AreaCounts.from_xy([1], [1], regions=many), DomainError)


def test_slivers_from_rounding_are_no_overlap():
    slivers = regions_of([shapely.box(0, 0, 1.0001, 1), shapely.box(1, 0, 2, 1)])
    assert len(slivers.overlaps) == 0
    assert per_leaf(AreaCounts.from_xy([1.00005], [0.5], regions=slivers)) == [1, 0]
    assert len(load_area_sample("us_residents").regions.overlaps) == 0


def test_points_in_another_crs_are_reprojected_and_without_one_refused():
    points = gpd.GeoDataFrame(geometry=gpd.points_from_xy([0.5], [0.5]), crs=CRS)
    assert per_leaf(AreaCounts.from_geodataframe(points.to_crs(4326), regions=regions_of(GAPPED))) == [1, 0, 0]
    assert "has no CRS" in refused(
        lambda: AreaCounts.from_geodataframe(points.set_crs(None, allow_override=True), regions=regions_of(GAPPED))
    )
    wrong = points.set_crs(4326, allow_override=True)
    assert refused(lambda: AreaCounts.from_geodataframe(wrong, regions=regions_of(GAPPED))) == NONE_IN_REGIONS
    assert AreaCounts.from_geodataframe(wrong, regions=regions_of(GAPPED), bad_rows="drop").outside == len(points)
    assert not len(AreaCounts.from_geodataframe(wrong.iloc[:0], regions=regions_of(GAPPED)).count)
    lines = gpd.GeoDataFrame(geometry=[shapely.LineString([(0, 0), (1, 1)])], crs=CRS)
    assert "points only" in refused(lambda: AreaCounts.from_geodataframe(lines, regions=regions_of(GAPPED)))
    assert "geometry column" in refused(lambda: AreaCounts.from_geodataframe(pd.DataFrame({"x": [1]}), regions=regions_of(GAPPED)))


def test_columns_of_a_geodataframe_are_named():
    frame = gpd.GeoDataFrame({"who": ["x", "x"], "n": [2, 1]}, geometry=gpd.points_from_xy([0.5, 1.5], [0.5, 0.5]), crs=CRS)
    regions = regions_of(GAPPED)
    assert per_leaf(AreaCounts.from_geodataframe(frame, regions=regions, count="n")) == [2, 1, 0]
    assert AreaCounts.from_geodataframe(frame, regions=regions, count="none", person="who").count.sum() == 1
    assert "has no column 'person'" in refused(lambda: AreaCounts.from_geodataframe(frame, regions=regions, person="person"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"leaf": np.array([1, 0], np.int32)}, "ascending"),
        ({"leaf": np.array([0, 3], np.int32)}, "indices of leaf regions"),
        ({"leaf": np.array([0], np.int32)}, "same length"),
        ({"count": np.array([1, 0])}, "at least 1"),
        ({"count": np.array([2**53, 1])}, "at most 2"),
        ({"count": np.array([0.5, 1.0])}, "whole numbers"),
        ({"unit": "trip"}, "unit must be"),
        ({"dropped": 3, "outside": 1}, "add up to dropped"),
        ({"contributions": 0}, "contributions must be"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, words):
    parts = {"regions": TRACTS, "leaf": np.array([0, 2], np.int32), "count": np.array([1, 2])}
    assert words in refused(lambda: AreaCounts(**parts | change))


def test_a_leaf_holds_at_most_so_many_that_no_row_decides_whether_the_rest_can_be_used():
    table = pd.DataFrame({"region": ["a", "b"], "count": [2**60, 1]})
    areas = AreaCounts.from_table(table, regions=TRACTS)
    assert per_leaf(areas) == [10**9, 1, 0]
    assert areas.over > 0


def test_regions_of_one_leaf_and_no_records():
    areas = AreaCounts.from_xy([], [], regions=regions_of([shapely.box(0, 0, 1, 1)]))
    assert per_leaf(areas) == [0]
    assert AreaCounts.from_table(pd.DataFrame({"region": []}), regions=regular(2)).dropped == 0
