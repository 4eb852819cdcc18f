"""Regions that need no file: H3 cells cover the area and nest by index, squares nest in space, polygons are one level."""

from dataclasses import replace

import geopandas as gpd
import numpy as np
import pytest
import shapely

from dpviz.errors import DomainError
from dpviz.space import region_builders
from dpviz.space.domain import Domain
from dpviz.space.region_builders import H3Cells
from dpviz.space.regions import Regions

h3 = pytest.importorskip("h3")

TOWN = (-74.05, 40.65, -73.95, 40.75)
TRIANGLE = shapely.Polygon([(10.0, 50.0), (10.2, 50.01), (10.05, 50.13)])
HOLED = shapely.box(10, 50, 10.2, 50.2).difference(shapely.box(10.05, 50.05, 10.15, 50.15))


def refusal(call) -> str:
    with pytest.raises(DomainError) as refused:
        call()
    return str(refused.value)


def star_of(corners, *, inner=1.0, step=1):
    """A star of so many corners, of which every second one is nearer to its centre, or which crosses itself."""
    corner = np.arange(corners) * step
    angle, radius = 2 * np.pi * corner / corners, np.where(corner % 2, inner, 1.0)
    return shapely.Polygon(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1))


@pytest.mark.parametrize("area", [TOWN, TRIANGLE, HOLED, shapely.union(TRIANGLE, shapely.box(11, 50, 11.1, 50.1))], ids=range(4))
@pytest.mark.parametrize("resolution", [5, 8])
def test_the_cover_has_every_cell_that_touches_the_area(area, resolution):
    regions = Regions.h3(area, resolutions=(resolution,))
    known = set(regions.ids_of(1))
    shape = area if isinstance(area, shapely.Geometry) else shapely.box(*area)
    rng = np.random.default_rng(1)
    x, y = rng.uniform(shape.bounds[:2], shape.bounds[2:], (4000, 2)).T
    inside = shapely.intersects_xy(shape, x, y)
    border = [shape.boundary.interpolate(share, normalized=True) for share in np.linspace(0, 1, 500)]
    points = [*zip(x[inside].tolist(), y[inside].tolist(), strict=True), *((point.x, point.y) for point in border)]
    assert {h3.latlng_to_cell(lat, lng, resolution) for lng, lat in points} <= known
    touching = [h3.cells_to_h3shape([cell]).__geo_interface__ for cell in known]
    reach = shapely.distance([shapely.geometry.shape(cell) for cell in touching], shape)
    assert reach.max() < 0.2 * h3.average_hexagon_edge_length(resolution, unit="km") / 111, "and hardly any other"


def test_an_area_wider_than_half_the_globe_is_covered_on_its_own_side():
    area = (-100.0, 60.0, 100.0, 75.0)
    known = set(Regions.h3(area, resolutions=(2,)).ids_of(1))
    x, y = np.random.default_rng(1).uniform(area[:2], area[2:], (4000, 2)).T
    assert {h3.latlng_to_cell(lat, lng, 2) for lng, lat in zip(x.tolist(), y.tolist(), strict=True)} <= known
    assert h3.latlng_to_cell(65, 150, 2) not in known


def test_h3_cells_nest_by_index_and_coarser_shapes_are_their_own_hexagons():
    regions = Regions.h3(TOWN, resolutions=(4, 6, 8))
    assert regions.levels == ("resolution 4", "resolution 6", "resolution 8")
    assert regions.grid == H3Cells(resolution=8)
    for level, resolution in ((1, 4), (2, 6)):
        parents = [h3.cell_to_parent(cell, resolution) for cell in regions.ids_of(3)]
        assert regions.ids_of(level)[regions.ancestors(level)].tolist() == parents
        for cell, shape in zip(regions.ids_of(level), regions.outlines(level), strict=True):
            np.testing.assert_allclose(shapely.get_coordinates(shape)[:-1], np.array(h3.cell_to_boundary(cell))[:, ::-1])
    children = regions.outlines(3).union_all()
    assert not regions.outlines(2).union_all().equals(children), "cells do not nest in space"
    assert len(regions.overlaps) == 0


def test_the_area_may_have_any_crs():
    area = gpd.GeoSeries([shapely.box(*TOWN)], crs="EPSG:4326")
    flat = gpd.GeoSeries([shapely.segmentize(shapely.box(*TOWN), 0.001)], crs="EPSG:4326").to_crs("EPSG:3857")
    assert Regions.h3(area, resolutions=(7,)) == Regions.h3(TOWN, resolutions=(7,)) == Regions.h3(flat, resolutions=(7,))
    assert Regions.h3(area.to_frame("geometry"), resolutions=(7,)) == Regions.h3(TOWN, resolutions=(7,))


@pytest.mark.parametrize(
    ("area", "resolutions", "words"),
    [
        (TOWN, (9, 7), "must grow"),
        (TOWN, (), "must grow"),
        (TOWN, (7, 16), "from 0 to 15"),
        (TOWN, (7.5,), "whole numbers"),
        ((1, 2, 3), (7,), "four numbers"),
        ((170, -2, -170, 2), (7,), "west must be smaller than east"),
        ((0, 0, np.nan, 1), (7,), "four numbers"),
        ((0, 0, 200, 1), (3,), "out of range"),
        (shapely.Point(0, 0), (7,), "valid polygon"),
        ("a town", (7,), "valid polygon"),
        ((-100, 20, 100, 80), (12,), "more than 2,097,152 H3 cells"),
        ((179.5, 0, 180, 1), (4,), "180th meridian"),
        ((-180, 80, 180, 90), (2,), "contain a pole"),
        (gpd.GeoSeries([shapely.box(*TOWN)]), (7,), "no CRS"),
        (shapely.Polygon([(0, 0), (100, 1e-4), (100, 2e-4), (0, 1e-4)]), (15,), "more than 2,097,152 H3 cells"),
        (star_of(4000, inner=0.01), (9,), "more than 2,097,152 H3 cells"),
        (star_of(4000, inner=0.9), (8,), "simplify it"),
        (gpd.GeoSeries([star_of(1501, step=700)], crs="EPSG:4326"), (5,), "too tangled"),
    ],
)
def test_areas_and_resolutions_that_do_not_fit_are_refused(area, resolutions, words):
    assert words in refusal(lambda: Regions.h3(area, resolutions=resolutions))


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(region_builders.importlib, "import_module", missing)
    assert "pip install 'dpviz[h3]'" in refusal(lambda: Regions.h3(TOWN))


def test_squares_nest_in_space():
    domain = Domain(bounds=(0, 40, 16, 56), crs="EPSG:4326", order=6)
    regions = Regions.squares(domain, zooms=(1, 2, 4))
    assert [regions.size(level) for level in (1, 2, 3)] == [4, 16, 256]
    for level in (1, 2):
        for shape, leaves in zip(regions.outlines(level), regions.leaf_count(level), strict=True):
            assert shape.area == pytest.approx(leaves)
    corner = regions.outlines(3)[regions.find(["4/15/0"], 3)[0]]
    assert corner.bounds == (15.0, 40.0, 16.0, 41.0)
    assert Regions.squares(domain, zooms=(2,)) != Regions.squares(Domain(bounds=(0, 40, 16, 57), crs="EPSG:4326"), zooms=(2,))


@pytest.mark.parametrize("zooms", [(), (0, 1), (2, 2), (3, 1), (7,), (1.5,), (True,)])
def test_zooms_that_do_not_fit_are_refused(zooms):
    domain = Domain(bounds=(0, 0, 8, 8), crs=None, order=6)
    assert "zooms of squares" in refusal(lambda: Regions.squares(domain, zooms=zooms))


def test_a_list_of_polygons_is_one_level():
    polygons = gpd.GeoSeries([shapely.box(x, 0, x + 1, 1) for x in range(12)], crs="EPSG:3857")
    regions = Regions.from_polygons(polygons)
    assert (regions.levels, regions.ids_of(1)[0], regions.ids_of(1)[-1]) == (("region",), "01", "12")
    named = Regions.from_polygons(gpd.GeoDataFrame(geometry=polygons), ids=[f"p{n}" for n in range(12)], level="parish")
    assert (named.levels, named.ids_of(1)[3]) == (("parish",), "p3")
    assert "same number" in refusal(lambda: Regions.from_polygons(polygons, ids=["a"]))
    assert "at least one row" in refusal(lambda: Regions.from_polygons(polygons[:0]))
    assert "at least one row" in refusal(lambda: Regions.from_polygons([shapely.box(0, 0, 1, 1)]))
    assert "no CRS" in refusal(lambda: Regions.from_polygons(gpd.GeoSeries([shapely.box(0, 0, 1, 1)])))


def test_a_grid_with_other_cells_than_the_leaves_is_refused():
    regions = Regions.squares(Domain(bounds=(0, 0, 4, 4), crs=None, order=1), zooms=(1,))
    for grid in (H3Cells(resolution=3), Domain(bounds=(0, 0, 4, 4), crs=None, order=2), "h3"):
        assert "must be its cells" in refusal(lambda grid=grid: replace(regions, grid=grid))


def test_grouped_regions_are_found_by_their_polygons():
    domain = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", order=1)
    grouped = Regions.squares(domain, zooms=(1,)).grouped([3])
    assert (grouped.grid, grouped.depth) == (None, 2)


def test_levels_have_numbers_and_names():
    regions = Regions.squares(Domain(bounds=(0, 0, 4, 4), crs=None, order=2), zooms=(1, 2))
    assert [regions.level_number(level) for level in (0, 1, "zoom 2", 2)] == [0, 1, 2, 2]
    for level in (3, -1, True, "zoom 3", 1.0):
        assert "Levels are 0 to 2, or zoom 1, zoom 2" in refusal(lambda level=level: regions.level_number(level))


def test_squares_take_a_rectangle_with_a_crs_and_a_single_level_is_still_a_list():
    rectangle = gpd.GeoSeries([shapely.box(4, 52, 5, 53)], crs="EPSG:4326")
    assert len(Regions.squares(rectangle, zooms=(1, 2)).ids[-1]) == 16
    with pytest.raises(DomainError, match="Bounds need a CRS"):
        Regions.squares((4, 52, 5, 53), zooms=(1, 2))
    for build in (lambda: Regions.squares(rectangle, zooms=2), lambda: Regions.h3((4, 52, 5, 53), resolutions=5)):
        with pytest.raises(DomainError, match="must be a list of whole numbers"):
            build()
