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
SHARES = [
    *[(box, 1) for box in ([0, 0, 8, 4], [1, 1, 2, 2], [3, 1, 3, 1], [8, 4, 8, 4])],  # two are points, one of them in the corner
    ([-1e-11, 0, 8, 4 + 1e-12], 1),  # an edge that was moved by rounding
    *[(box, 0) for box in ([9, 0, 10, 1], [9, 1, 9, 1], [9, 1, 9, 2], [-1e308, 0, 1e308, 4])],
    ([8, 0, 9, 4], 0),  # beside the domain
    *[([-2, 0, 2, 4], 1 / 2), ([-2, -4, 2, 4], 1 / 4), ([-8, -8, 16, 16], 32 / 576)],
    ([-4, 1, 4, 1], 1 / 2),  # a line
]


@pytest.mark.parametrize(("box", "share"), SHARES)
def test_the_share_inside_is_of_the_area_of_the_length_or_of_the_point(box, share):
    assert PLANE.coverage([box])[0] == pytest.approx(share, abs=1e-12)
    if box[0] < box[2] and box[1] < box[3] < 1e9 > box[2]:
        assert shape_coverage(PLANE, np.array([shapely.box(*box)]))[0] == pytest.approx(share, abs=1e-9)


def test_polygons_inside_that_are_empty_or_came_back_from_another_crs():
    assert shape_coverage(PLANE, np.array([shapely.Polygon()])).tolist() == [1]
    assert shape_coverage(PLANE, np.zeros(0, object)).shape == PLANE.coverage(np.zeros((0, 4))).shape == (0,)
    metres = Domain(bounds=(360_000, 3_730_000, 400_000, 3_780_000), crs="EPSG:32611", order=5)
    there = geopandas.GeoSeries([shapely.box(*metres.bounds)], crs=metres.crs).to_crs("EPSG:4326").to_crs(metres.crs)
    assert check_coverage(metres, there.to_numpy()).tolist() == pytest.approx([1], abs=1e-9)


SWAPPED = [33.8, -118.6, 34.3, -117.9]
BY_HALF = r"^1 of 2 queries reach outside the domain \(0, 0, 8, 4\), by up to 50 % of their size"
REFUSED = [
    (PLANE, [[0, 0, 1, 1], [-1, 0, 1, 1]], BY_HALF),
    (PLANE, [[100, 0, 101, 1]], "The query reaches outside .* by up to 100 %.*outside='inside_part'"),
    (LA, [SWAPPED], "Are x and y swapped?"),
    (LA, np.array([shapely.box(*SWAPPED)]), "Are x and y swapped?"),
    (LA, [[2, 48, 3, 49]], r"^(?!.*swapped)"),  # outside whether swapped or not
]


@pytest.mark.parametrize(("domain", "queries", "words"), REFUSED)
def test_a_refusal_states_how_much_is_outside_and_what_to_do(domain, queries, words):
    with pytest.raises(DomainError, match=words):
        check_coverage(domain, queries)
