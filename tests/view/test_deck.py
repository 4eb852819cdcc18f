"""The deck: small, without addresses of other servers; partitions with plain values only, and a picture that is the right way up."""

import base64
import io
import json
import math
import re

import numpy as np
import pydeck
import pytest
from PIL import Image

from dpviz.space.domain import Domain
from dpviz.view.basemap import corner_coordinates, map_bounds
from dpviz.view.deck import CompactDeck, deck, domain_view, partitions, picture
from tests.charts import plain

LOS_ANGELES = Domain(bounds=(-118.62, 33.74, -117.86, 34.37), crs="EPSG:4326", order=4)
PLANE = Domain(bounds=(0, 0, 200, 100), crs=None, order=4)
METRES = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=4)
WORLD = Domain(bounds=(-180, -90, 180, 90), crs="EPSG:4326", order=4)
DOMAINS = pytest.mark.parametrize("domain", [LOS_ANGELES, PLANE, METRES, WORLD], ids=["degrees", "plane", "metres", "world"])


def made(domain, *, tooltip=None, dark=False):
    return deck([pydeck.Layer("PolygonLayer", [], id="partitions")], domain, tooltip=tooltip, dark=dark)


def text_of(domain, **options):
    return made(domain, **options).to_json()


def test_the_style_is_a_placeholder_since_streamlit_puts_an_online_basemap_in_place_of_an_empty_style():
    for dark in (False, True):
        assert json.loads(text_of(LOS_ANGELES, dark=dark))["mapStyle"] == "__MAP_STYLE__"
    assert made(LOS_ANGELES).map_provider is None
    assert made(PLANE)._tooltip is False
    assert made(PLANE, tooltip="<b>{n}</b>")._tooltip["html"] == "<b>{n}</b>"


@DOMAINS
def test_the_deck_is_small_the_same_each_time_and_names_no_server(domain):
    text = text_of(domain)
    assert text_of(domain) == text
    assert not re.search("http|//|mapbox|carto|www.|tile", text.lower())
    assert json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=True) == text
    assert len(text) < 1_000_000


def test_it_is_the_same_deck_as_pydecks_own():
    layer = pydeck.Layer("PolygonLayer", [{"p": [[0, 0], [1, 1]]}], id="partitions", get_polygon="p")
    options = {"layers": [layer], "map_provider": None, "initial_view_state": pydeck.ViewState(1, 2, 3)}
    assert json.loads(CompactDeck(**options).to_json()) == json.loads(pydeck.Deck(**options).to_json())


def test_layers_lie_over_land_and_under_borders_with_stable_names():
    for dark in (False, True):
        layers = json.loads(text_of(LOS_ANGELES, dark=dark))["layers"]
        assert [layer["id"] for layer in layers] == ["land", "partitions", "countries", "states", "domain"]
        assert not any(layer.get("pickable") for layer in layers if layer["id"] != "partitions")
    assert [layer["id"] for layer in json.loads(text_of(PLANE))["layers"]] == ["partitions", "domain"]


@DOMAINS
@pytest.mark.parametrize(("width", "height"), [(900, 600), (300, 700)])
def test_the_whole_domain_fits_the_window(domain, width, height):
    view = domain_view(domain, width, height)
    west, south, east, north = map_bounds(domain)
    per_radian = 512 * 2**view.zoom / (2 * math.pi)
    top, bottom = (math.asinh(math.tan(math.radians(latitude))) * per_radian for latitude in (north, south))
    assert math.radians(east - west) * per_radian <= width
    assert top - bottom <= height
    assert math.radians(east - west) * per_radian > 0.85 * width or top - bottom > 0.85 * height
    middle = math.asinh(math.tan(math.radians(view.latitude))) * per_radian
    assert middle == pytest.approx((top + bottom) / 2, abs=1)
    assert view.longitude == pytest.approx((west + east) / 2)


def test_a_plane_lies_around_the_null_island_where_maps_hardly_distort():
    assert map_bounds(PLANE) == pytest.approx((-0.5, -0.25, 0.5, 0.25))


SQUARE = Domain(bounds=(0, 0, 8, 8), crs=None, order=3)
NORTH = Domain(bounds=(0, 0, 60, 80), crs="EPSG:4326", order=3)
WHOLE = np.array([[0, 0, 8, 8]], np.int32)


def image_of(layer):
    text = layer.image.strip("'")
    assert text.startswith("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text.split(",", 1)[1]))))


def block(rows, columns, side):
    colors = np.zeros((side, side, 4), np.uint8)
    colors[rows, columns] = (255, 0, 0, 255)
    return colors


def test_a_partition_is_a_polygon_with_its_colour_and_fields_in_plain_types_and_layers_keep_their_names():
    layer = partitions(SQUARE, WHOLE, np.array([[1, 2, 3, 4]], np.uint8), {"i": [7], "n": ["12"]})
    assert layer.data == [{"p": [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]], "c": [1, 2, 3, 4], "i": 7, "n": "12"}]
    assert plain(layer.data)
    assert (layer.id, layer.type) == ("partitions", "PolygonLayer")
    assert picture(SQUARE, block(0, 0, 8)).id == "picture"
    assert partitions(SQUARE, WHOLE, np.zeros((1, 4), np.uint8), {}, name="truth").id == "truth"


def test_a_picture_has_every_row_and_a_block_in_the_south_west_at_its_bottom_left():
    layer = picture(SQUARE, block(slice(0, 2), slice(0, 4), 8))
    image = image_of(layer)
    assert layer.bounds == [-0.5, -0.5, 0.5, 0.5]
    red = image[:, :, 0] == 255
    rows, columns = np.nonzero(red)
    height, width = red.shape
    assert rows.min() == pytest.approx(height * 3 / 4, abs=1)
    assert (rows.max(), columns.min(), columns.max()) == (height - 1, 0, width // 2 - 1)
    colors = np.zeros((1024, 1024, 4), np.uint8)
    colors[:, :, 0], colors[:, :, 1] = np.arange(1024)[:, None] % 256, np.arange(1024)[:, None] // 256
    image = image_of(picture(SQUARE, colors)).astype(int)
    seen = image[:, 0, 0] + 256 * image[:, 0, 1]
    assert np.abs(seen[::-1] - np.arange(1024)).max() <= 1


def test_rows_are_stretched_as_the_web_map_stretches_them():
    layer = picture(NORTH, block(slice(4, 8), slice(0, 8), 8))
    red = image_of(layer)[:, 0, 0] == 255
    mercator = np.arcsinh(np.tan(np.radians([0.0, 40.0, 80.0])))
    assert red.mean() == pytest.approx((mercator[2] - mercator[1]) / mercator[2], abs=2e-3)
    assert red[0]
    assert not red[-1]


def test_corners_go_round_from_the_south_west():
    for domain in (SQUARE, NORTH, METRES):
        corners = corner_coordinates(domain, WHOLE)[0]
        assert np.sign(corners - corners.mean(axis=0)).tolist() == [[-1, -1], [1, -1], [1, 1], [-1, 1]]
    assert corner_coordinates(METRES, WHOLE)[0, 0] == pytest.approx([12.457, 45.125], abs=0.05)
