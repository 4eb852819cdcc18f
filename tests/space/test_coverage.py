"""How much of a query lies inside the domain, and the refusal of what does not."""

import geopandas
import numpy as np
import pytest
import shapely

from dpviz.errors import DomainError
from dpviz.space.coverage import check_coverage, shape_coverage
from dpviz.space.domain import Domain

PLANE = Domain(bounds=(0, 0, 8, 4), crs=None, order=3)
LA = Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=6)


@pytest.mark.parametrize(
    ("box", "share"),
    [
        ([0, 0, 8, 4], 1),
        ([1, 1, 2, 2], 1),
        ([-1e-11, 0, 8, 4 + 1e-12], 1),  # an edge that was moved by rounding
        ([-2, 0, 2, 4], 1 / 2),
        ([-2, -4, 2, 4], 1 / 4),
        ([9, 0, 10, 1], 0),
        ([8, 0, 9, 4], 0),  # beside the domain
        ([-8, -8, 16, 16], 32 / 576),
        ([3, 1, 3, 1], 1),  # a point
        ([8, 4, 8, 4], 1),  # a point in the corner
        ([9, 1, 9, 1], 0),
        ([-4, 1, 4, 1], 1 / 2),  # a line
        ([9, 1, 9, 2], 0),
        ([-1e308, 0, 1e308, 4], 0),
    ],
)
def test_the_share_inside_is_of_the_area_of_the_length_or_of_the_point(box, share):
    assert PLANE.coverage([box])[0] == pytest.approx(share, abs=1e-12)
    if box[0] < box[2] and box[1] < box[3] < 1e9 > box[2]:
        assert shape_coverage(PLANE, np.array([shapely.box(*box)]))[0] == pytest.approx(share, abs=1e-9)


def test_empty_polygons_lie_inside_and_no_queries_have_no_shares():
    assert shape_coverage(PLANE, np.array([shapely.Polygon()])).tolist() == [1]
    assert shape_coverage(PLANE, np.zeros(0, object)).shape == PLANE.coverage(np.zeros((0, 4))).shape == (0,)


@pytest.mark.parametrize(
    ("domain", "queries", "words"),
    [
        (PLANE, [[0, 0, 1, 1], [-1, 0, 1, 1]], r"^1 of 2 queries reach outside the domain \(0, 0, 8, 4\), by up to 50 % of their size"),
        (PLANE, [[100, 0, 101, 1]], "The query reaches outside .* by up to 100 %.*outside='inside_part'"),
        (LA, [[33.8, -118.6, 34.3, -117.9]], "Are x and y swapped?"),
        (LA, np.array([shapely.box(33.8, -118.6, 34.3, -117.9)]), "Are x and y swapped?"),
    ],
    ids=["half", "elsewhere", "swapped", "swapped polygon"],
)
def test_a_refusal_says_how_much_is_outside_and_what_to_do(domain, queries, words):
    with pytest.raises(DomainError, match=words):
        check_coverage(domain, queries)


def test_only_what_swapping_would_bring_inside_is_taken_for_swapped():
    with pytest.raises(DomainError) as refusal:
        check_coverage(LA, [[2, 48, 3, 49]])
    assert "swapped" not in str(refusal.value)


def test_a_polygon_that_came_back_from_another_crs_still_lies_inside():
    metres = Domain(bounds=(360_000, 3_730_000, 400_000, 3_780_000), crs="EPSG:32611", order=5)
    there = geopandas.GeoSeries([shapely.box(*metres.bounds)], crs=metres.crs).to_crs("EPSG:4326").to_crs(metres.crs)
    assert check_coverage(metres, there.to_numpy()).tolist() == pytest.approx([1], abs=1e-9)
