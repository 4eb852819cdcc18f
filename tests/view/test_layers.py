"""Layers: partitions as polygons with plain values only, and a picture that is the right way up."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from dpviz.space.domain import Domain
from dpviz.view.basemap import corner_coordinates
from dpviz.view.deck import CompactDeck, partitions, picture

PLANE = Domain(bounds=(0, 0, 8, 8), crs=None, order=3)
NORTH = Domain(bounds=(0, 0, 60, 80), crs="EPSG:4326", order=3)
METRES = Domain(bounds=(300_000, 5_000_000, 308_000, 5_008_000), crs="EPSG:32633", order=3)
WHOLE = np.array([[0, 0, 8, 8]], np.int32)


def image_of(layer):
    text = layer.image.strip("'")
    assert text.startswith("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text.split(",", 1)[1]))))


def block(rows, columns, side):
    colors = np.zeros((side, side, 4), np.uint8)
    colors[rows, columns] = (255, 0, 0, 255)
    return colors


def test_a_partition_is_a_polygon_with_its_colour_and_fields():
    colors = np.array([[1, 2, 3, 4]], np.uint8)
    layer = partitions(PLANE, WHOLE, colors, {"i": [7], "n": ["12"]})
    assert layer.data == [{"p": [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]], "c": [1, 2, 3, 4], "i": 7, "n": "12"}]
    assert (layer.id, layer.type) == ("partitions", "PolygonLayer")


@pytest.mark.parametrize("domain", [PLANE, NORTH, METRES], ids=["plane", "degrees", "metres"])
def test_no_numpy_scalar_reaches_the_json(domain):
    rectangles = np.array([[0, 0, 4, 4], [4, 0, 8, 4]], np.int32)
    layer = partitions(domain, rectangles, np.full((2, 4), 9, np.uint8), {"i": np.arange(2).tolist()})
    plain = {list: None, float: None, int: None, str: None, dict: None}

    def walk(value):
        assert type(value) in plain
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(inner)

    walk(layer.data)
    assert json.loads(CompactDeck(layers=[layer], map_provider=None).to_json())["layers"][0]["id"] == "partitions"


def test_names_of_layers_stay_the_same():
    assert picture(PLANE, block(0, 0, 8)).id == "picture"
    assert partitions(PLANE, WHOLE, np.zeros((1, 4), np.uint8), {}, name="truth").id == "truth"


def test_a_block_in_the_south_west_is_at_the_bottom_left_of_the_picture():
    layer = picture(PLANE, block(slice(0, 2), slice(0, 4), 8))
    image = image_of(layer)
    assert layer.bounds == [-0.5, -0.5, 0.5, 0.5]
    red = image[:, :, 0] == 255
    rows, columns = np.nonzero(red)
    height, width = red.shape
    assert rows.min() == pytest.approx(height * 3 / 4, abs=1)
    assert (rows.max(), columns.min(), columns.max()) == (height - 1, 0, width // 2 - 1)


def test_rows_are_stretched_as_the_web_map_stretches_them():
    layer = picture(NORTH, block(slice(4, 8), slice(0, 8), 8))
    red = image_of(layer)[:, 0, 0] == 255
    mercator = np.arcsinh(np.tan(np.radians([0.0, 40.0, 80.0])))
    assert red.mean() == pytest.approx((mercator[2] - mercator[1]) / mercator[2], abs=2e-3)
    assert red[0]
    assert not red[-1]


def test_every_row_of_a_picture_is_in_it():
    colors = np.zeros((1024, 1024, 4), np.uint8)
    colors[:, :, 0], colors[:, :, 1] = np.arange(1024)[:, None] % 256, np.arange(1024)[:, None] // 256
    image = image_of(picture(PLANE, colors)).astype(int)
    seen = image[:, 0, 0] + 256 * image[:, 0, 1]
    assert np.abs(seen[::-1] - np.arange(1024)).max() <= 1


def test_corners_go_round_from_the_south_west():
    for domain in (PLANE, NORTH, METRES):
        (west_south, east_south, east_north, west_north) = corner_coordinates(domain, WHOLE)[0]
        assert west_south[0] < east_south[0]
        assert west_north[0] < east_north[0]
        assert west_south[1] < west_north[1]
        assert east_south[1] < east_north[1]
    assert corner_coordinates(METRES, WHOLE)[0, 0] == pytest.approx([12.457, 45.125], abs=0.05)
