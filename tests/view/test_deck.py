"""Grids of blocks as pictures that are the right way up, and corners of partitions."""

import io

import numpy as np
import pytest
from PIL import Image

from dpviz.space.domain import Domain
from dpviz.view.basemap import corner_coordinates, map_bounds
from dpviz.view.points_map import draw_picture

PLANE = Domain(bounds=(0, 0, 200, 100), crs=None, order=4)
METRES = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=4)


def test_a_plane_lies_around_the_null_island_where_maps_hardly_distort():
    assert map_bounds(PLANE) == pytest.approx((-0.5, -0.25, 0.5, 0.25))


SQUARE = Domain(bounds=(0, 0, 8, 8), crs=None, order=3)
NORTH = Domain(bounds=(0, 0, 60, 80), crs="EPSG:4326", order=3)
WHOLE = np.array([[0, 0, 8, 8]], np.int32)


def image_of(domain, colors):
    return np.asarray(Image.open(io.BytesIO(draw_picture(domain, colors))))


def block(rows, columns, side):
    colors = np.zeros((side, side, 4), np.uint8)
    colors[rows, columns] = (255, 0, 0, 255)
    return colors


def test_a_picture_has_every_row_and_a_block_in_the_south_west_at_its_bottom_left():
    image = image_of(SQUARE, block(slice(0, 2), slice(0, 4), 8))
    red = image[:, :, 0] == 255
    rows, columns = np.nonzero(red)
    height, width = red.shape
    assert rows.min() == pytest.approx(height * 3 / 4, abs=1)
    assert (rows.max(), columns.min(), columns.max()) == (height - 1, 0, width // 2 - 1)
    colors = np.zeros((1024, 1024, 4), np.uint8)
    colors[:, :, 0], colors[:, :, 1] = np.arange(1024)[:, None] % 256, np.arange(1024)[:, None] // 256
    image = image_of(SQUARE, colors).astype(int)
    seen = image[:, 0, 0] + 256 * image[:, 0, 1]
    assert np.abs(seen[::-1] - np.arange(1024)).max() <= 1


def test_rows_are_stretched_as_the_web_map_stretches_them():
    red = image_of(NORTH, block(slice(4, 8), slice(0, 8), 8))[:, 0, 0] == 255
    mercator = np.arcsinh(np.tan(np.radians([0.0, 40.0, 80.0])))
    assert red.mean() == pytest.approx((mercator[2] - mercator[1]) / mercator[2], abs=2e-3)
    assert red[0]
    assert not red[-1]


def test_corners_go_round_from_the_south_west():
    for domain in (SQUARE, NORTH, METRES):
        corners = corner_coordinates(domain, WHOLE)[0]
        assert np.sign(corners - corners.mean(axis=0)).tolist() == [[-1, -1], [1, -1], [1, 1], [-1, 1]]
    assert corner_coordinates(METRES, WHOLE)[0, 0] == pytest.approx([12.457, 45.125], abs=0.05)
