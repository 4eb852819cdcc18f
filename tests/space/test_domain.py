"""The domain: its lattice, areas and refusals."""

import math

import geopandas
import numpy as np
import pytest
import shapely
import shapely.affinity
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import CRS, Geod, Transformer

from dpviz.data.points import PointCounts
from dpviz.errors import DomainError
from dpviz.space.domain import FINEST_ORDER, Domain
from tests.strategies import domains, lattice_rectangles

few = settings(max_examples=20, derandomize=True)


@few
@given(st.data())
def test_lattice_undoes_coordinates_boxes_are_cut_to_the_domain_and_outer_lines_are_its_bounds(data):
    domain = data.draw(domains(orders=(1, 24)))
    rectangles = data.draw(lattice_rectangles(domain))
    np.testing.assert_array_equal(domain.lattice(domain.coordinates(rectangles)), rectangles)
    x, y = (sorted(data.draw(st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)))) for _ in "xy")
    west, south, east, north = domain.lattice([(x[0], y[0], x[1], y[1])])[0]
    assert 0 <= west <= east <= domain.side
    assert 0 <= south <= north <= domain.side
    whole = [0, 0, domain.side, domain.side]
    assert tuple(domain.coordinates(whole)) == domain.bounds
    np.testing.assert_array_equal(domain.lattice([domain.bounds]), [whole])
    assert shapely.area(domain.boxes([whole]))[0] == pytest.approx(math.prod(domain.cell_size) * domain.side**2)


@few
@given(domains())
def test_a_domain_is_a_value_whatever_way_its_crs_is_written(domain):
    again = Domain(bounds=list(domain.bounds), crs=domain.crs and CRS(domain.crs), order=np.int64(domain.order))
    assert again == domain
    assert hash(again) == hash(domain)
    assert Domain(bounds=(0, 0, 1, 1), crs=4326).crs == "EPSG:4326"


DEGREES, METRES = "EPSG:4326", "EPSG:32633"
WRONG = {
    "area": {"bounds": [(1, 0, 1, 2), (2, 0, 1, 2), (0, 2, 1, 1)]},
    "four numbers": {"bounds": [(0, 0, 1), (0, 0, 1, 1, 1), "abcd", None, 7]},
    "finite": {"bounds": [(math.nan, 0, 1, 1), (0, 0, math.inf, 1)]},
    "too far apart": {"bounds": [(-1e308, 0, 1e308, 1)]},
    "too close": {"bounds": [(0, 0, 1e-200, 1e-200)]},
    "finer than floating-point": {"bounds": [(1e9, 0, 1e9 + 1e-6, 1)]},
    "1 to 24": {"order": [0, -1, FINEST_ORDER + 1, 2.0, True, "10", None, math.nan]},
    "CRS": {"crs": ["EPSG:999999", "nonsense", "", 3.7]},
    "two axes on a map": {"crs": ["EPSG:4979", "EPSG:4978", "EPSG:5703", "EPSG:7415", "EPSG:9518", "+proj=geocent +ellps=WGS84"]},
}
BEYOND = [(DEGREES, bounds, "swapped") for bounds in ((-181, 0, 1, 1), (0, -91, 1, 1), (0, 0, 181, 1), (0, 0, 1, 91), (5e5, 4e6, 6e5, 5e6))]
BEYOND += [(METRES, (-size, -size, size, size), "globe") for size in (1e8, 1e9, 1e300)]


@pytest.mark.parametrize("rule", WRONG)
def test_domains_that_make_no_sense_are_refused(rule):
    for name, wrongs in WRONG[rule].items():
        for wrong in wrongs:
            with pytest.raises(DomainError, match=rule):
                Domain(**{"bounds": (0, 0, 1, 1), "crs": None} | {name: wrong})


SQUARE = shapely.box(1, 2, 3, 4)
SHAPES = [
    SQUARE,
    shapely.MultiPolygon([SQUARE]),
    shapely.segmentize(SQUARE, 0.3),
    geopandas.GeoSeries([SQUARE], crs=DEGREES),
    geopandas.GeoDataFrame(geometry=[SQUARE]),
]
NO_RECTANGLES = [
    (shapely.box(1, 2, 3, 4).difference(shapely.box(1, 2, 2, 3)), "mask_outside"),
    (shapely.affinity.rotate(SQUARE, 1), "mask_outside"),
    (SQUARE.buffer(1).difference(SQUARE), "mask_outside"),
    (shapely.Point(1, 2), "mask_outside"),
    (shapely.Polygon(), "mask_outside"),
    (geopandas.GeoSeries([SQUARE, SQUARE]), "one row"),
    (geopandas.GeoSeries([None]), "four numbers"),
    (geopandas.GeoDataFrame({"a": [1]}), "four numbers"),
    (geopandas.GeoSeries([SQUARE], crs=METRES), "another CRS"),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rectangle_along_the_axes_is_its_bounds(shape):
    assert Domain(bounds=shape, crs=DEGREES) == Domain(bounds=(1, 2, 3, 4), crs=DEGREES)


def test_a_crs_may_be_left_out_only_where_the_bounds_state_one():
    assert Domain(bounds=geopandas.GeoSeries([SQUARE], crs=METRES)).crs == METRES
    with pytest.raises(DomainError, match="crs=None for a plane"):
        Domain(bounds=SQUARE)


@pytest.mark.parametrize(("shape", "words"), NO_RECTANGLES)
def test_other_shapes_are_refused_with_what_to_write(shape, words):
    with pytest.raises(DomainError, match=words):
        Domain(bounds=shape, crs=DEGREES)


@pytest.mark.parametrize(("crs", "bounds", "rule"), BEYOND)
def test_bounds_beyond_the_globe_are_refused(crs, bounds, rule):
    with pytest.raises(DomainError, match=rule):
        Domain(bounds=bounds, crs=crs)


LOCAL = 'LOCAL_CS["site",UNIT["metre",1],AXIS["E",EAST],AXIS["N",NORTH]]'
ROTATED = "+proj=ob_tran +o_proj=longlat +o_lon_p=0 +o_lat_p=30 +lon_0=0"
SHIFTED = "+proj=utm +zone=33 +ellps=bessel +towgs84=1,2,3 +type=crs"


FRAMES = [(crs, (2, 40, 4, 42), 1) for crs in ("EPSG:4807", "ESRI:54009", LOCAL, ROTATED, SHIFTED)]
WORLDS = [("ESRI:54009", (18040095, 9020047)), ("EPSG:3857", (2.1e7, 2.1e7)), ("EPSG:3413", (1.2e7, 1.2e7))]  # with empty corners
FRAMES += [(crs, (-x, -y, x, y), 1 / 2) for crs, (x, y) in WORLDS]


@pytest.mark.parametrize(("crs", "bounds", "share"), FRAMES)
def test_every_crs_of_a_map_is_a_frame(crs, bounds, share):
    domain = Domain(bounds=bounds, crs=crs, order=4)
    assert np.isfinite(domain.areas_km2(every_cell(domain))).mean() >= share


@pytest.mark.parametrize("crs", [LOCAL, None])
def test_a_local_crs_and_a_plain_plane_have_areas_in_their_own_units(crs):
    domain = Domain(bounds=(0, 0, 8, 4), crs=crs, order=1)
    np.testing.assert_array_equal(domain.areas_km2([[0, 0, 1, 1], [0, 0, 2, 2]]), [8.0, 32.0])


NO_BOXES = [["a"], [["a", "b", "c", "d"]], [[0, 0, 1, 1], [0, 0, 1]], [[10**400, 0, 1, 1]], [0, 0, 1], [[0, 0, 1]]]
NO_BOXES += [[[0, 0, math.nan, 1]], [[0, 0, math.inf, 1]], [[1, 0, 0, 1]], [[0, 1, 1, 0]]]


@pytest.mark.parametrize("boxes", NO_BOXES)
def test_boxes_that_make_no_sense_are_refused(boxes):
    with pytest.raises(DomainError):
        Domain(bounds=(0, 0, 8, 4), crs=None, order=3).lattice(boxes)


def every_cell(domain):
    row, column = np.divmod(np.arange(domain.side**2), domain.side)
    return np.stack([column, row, column + 1, row + 1], axis=1)


def geodesic_km2(domain, rectangle):
    """The area of a rectangle's outline, many points along each edge, on the ellipsoid."""
    box = shapely.segmentize(domain.boxes(rectangle[None])[0], max(domain.cell_size) / 64)
    x, y = shapely.get_coordinates(box).T
    lon, lat = Transformer.from_crs(domain.crs, "EPSG:4326", always_xy=True).transform(x, y)
    return abs(Geod(ellps="WGS84").polygon_area_perimeter(lon, lat)[0]) / 1e6


AREAS = {
    "EPSG:2193": (1.0e6, 4.7e6, 2.6e6, 6.2e6),  # New Zealand with the Chatham Islands: over the antimeridian
    "EPSG:3031": (-3e6, -3e6, 3e6, 3e6),  # the South Pole in the middle
    "EPSG:3413": (-3e6, -3e6, 3e6, 3e6),  # the North Pole in the middle
    "EPSG:4326": (-179, -84, 179, 84),
    "EPSG:3857": (-1.9e7, -1.9e7, 1.9e7, 1.9e7),
    "EPSG:32633": (3e5, 4e6, 7e5, 7e6),
}


@pytest.mark.parametrize(("crs", "bounds"), AREAS.items())
def test_areas_agree_with_geodesic_polygons_also_over_the_antimeridian_and_at_the_poles(crs, bounds):
    domain = Domain(bounds=bounds, crs=crs, order=4)
    cells = every_cell(domain)
    np.testing.assert_allclose(domain.areas_km2(cells), [geodesic_km2(domain, cell) for cell in cells], rtol=5e-3)
    whole = domain.areas_km2(np.array([[0, 0, domain.side, domain.side]]))[0]
    assert whole == pytest.approx(domain.areas_km2(cells).sum(), rel=5e-3)


@few
@given(st.data())
def test_points_on_the_edges_are_kept_and_points_outside_dropped(data):
    domain = data.draw(domains())
    west, south, east, north = domain.bounds
    last, inf = domain.side - 1, np.inf
    points = PointCounts.from_xy([east, west, east, west], [north, south, south, north], domain=domain)
    assert sorted(zip(points.column.tolist(), points.row.tolist(), strict=True)) == [(0, 0), (0, last), (last, 0), (last, last)]
    x = [np.nextafter(west, -inf), np.nextafter(east, inf), west, east]
    y = [south, north, np.nextafter(south, -inf), np.nextafter(north, inf)]
    assert (points.dropped, PointCounts.from_xy(x, y, domain=domain).dropped) == (0, 4)
