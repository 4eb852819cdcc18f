"""Shares of regions in polygons, against slow definitions: by area, and by the weight of public points and polygons."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

from dpviz.errors import DomainError
from dpviz.samples.areas import load_area_sample
from dpviz.space.area_shares import areas_km2, leaf_shares
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions

CRS = "EPSG:3857"
LEAVES = [shapely.box(0, 0, 4, 4), shapely.box(4, 0, 8, 4), shapely.box(0, 4, 8, 8)]
REGIONS = Regions.from_polygons(gpd.GeoSeries(LEAVES, crs=CRS))
QUERIES = np.array(
    [
        shapely.box(0, 0, 8, 8),
        shapely.box(0, 0, 5, 4),
        shapely.box(3, 3, 5, 5),
        shapely.box(4, 0, 8, 4),
        shapely.box(-2, 0, 2, 4),
        shapely.box(20, 20, 21, 21),
        shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(7, 7, 8, 8)]),
        shapely.Polygon([(1, 1), (7, 2), (3, 7)]),
    ]
)


def test_shares_are_those_of_the_area():
    share, covered = leaf_shares(REGIONS, QUERIES)
    for query, (row, inside) in enumerate(zip(share.toarray(), covered, strict=True)):
        common = np.array([leaf.intersection(QUERIES[query]).area for leaf in LEAVES])
        np.testing.assert_allclose(row, common / shapely.area(LEAVES))
        assert inside == pytest.approx(common.sum() / QUERIES[query].area)


def test_whole_regions_count_whole_in_spite_of_rounding():
    city = load_area_sample("made_up_city").regions
    district = city.outlines(1)
    share, covered = leaf_shares(city, np.asarray(district.to_crs(3857).to_crs(4326).to_numpy(), object))
    np.testing.assert_array_equal(share.toarray().round(9), city.ancestors(1)[None, :] == np.arange(city.size(1))[:, None])
    assert covered.min() > 0.999


def slow_share(weights, leaf, query, column):
    """The share of a leaf's weight that is in the query, piece by piece."""
    total = inside = 0.0
    for shape, weight in zip(weights.geometry, column, strict=True):
        if shape.geom_type == "Point":
            total += weight * shape.intersects(leaf)
            inside += weight * (shape.intersects(leaf) and shape.intersects(query))
        else:
            total += weight * shape.intersection(leaf).area / shape.area
            inside += weight * shape.intersection(leaf).intersection(query).area / shape.area
    return inside / total if total else leaf.intersection(query).area / leaf.area


PLACES = gpd.points_from_xy([0.9, 3.5, 4.5, 6, 30], [0.9, 3.5, 1, 1.3, 30])
POINTS = gpd.GeoDataFrame({"weight": [5.0, 1.0, 2.0, 0.0, 9.0]}, geometry=PLACES, crs=CRS)
BUILT = gpd.GeoDataFrame({"weight": [5.0, 1.0]}, geometry=[shapely.box(3, 3, 4.5, 4.2), shapely.box(6, 0, 7, 3)], crs=CRS)


@pytest.mark.parametrize("weights", [POINTS, BUILT, POINTS[["geometry"]], BUILT[["geometry"]]], ids=["points", "polygons", "ones", "areas"])
def test_cut_regions_are_divided_by_public_weights(weights):
    points = (weights.geom_type == "Point").all()
    column = weights["weight"] if "weight" in weights else np.ones(len(weights)) if points else weights.area
    share, _ = leaf_shares(REGIONS, QUERIES, weights.to_crs(4326) if points else weights)
    for query, row in enumerate(share.toarray()):
        for leaf, found in zip(LEAVES, row, strict=True):
            area = leaf.intersection(QUERIES[query]).area / leaf.area
            wanted = area if area in (0, 1) else slow_share(weights, leaf, QUERIES[query], column)
            assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (POINTS.set_crs(None, allow_override=True), "with a CRS"),
        (POINTS.geometry, "must be a GeoDataFrame"),
        (POINTS.assign(weight=-1.0), "at least 0"),
        (POINTS.assign(weight=np.nan), "finite"),
        (gpd.GeoDataFrame(geometry=[shapely.LineString([(0, 0), (1, 1)])], crs=CRS), "points only, or valid polygons only"),
    ],
)
def test_weights_of_another_form_are_refused(weights, words):
    with pytest.raises(DomainError, match=words):
        leaf_shares(REGIONS, QUERIES, weights)


def test_areas_are_those_of_the_ellipsoid():
    domain = Domain(bounds=(0, 40, 16, 56), crs="EPSG:4326", order=3)
    squares = Regions.squares(domain, zooms=(3,))
    column, row = np.array([list(map(int, text.split("/")[1:])) for text in squares.ids_of(1)]).T
    wanted = domain.areas_km2(np.stack([column, row, column + 1, row + 1], axis=1))
    np.testing.assert_allclose(areas_km2(squares), wanted, rtol=2e-3)
    with pytest.raises(DomainError, match="no polygons"):
        areas_km2(Regions.squares(Domain(bounds=(0, 0, 1, 1), crs=None, order=1), zooms=(1,)))
