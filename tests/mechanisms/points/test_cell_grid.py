"""Medians read from a noisy grid, against looking at every grid cell that a rectangle touches."""

import numpy as np
import pytest

from dpviz.mechanisms.points.kdtree import CellGrid


def slow_median(noisy: np.ndarray, width: int, rectangle: tuple[int, int, int, int], across: bool) -> int:
    """The line of the grid inside the rectangle with the most even halves of the touched cells, else the middle."""
    west, south, east, north = rectangle
    touched = noisy[south // width : -(-north // width), west // width : -(-east // width)]
    low, high = (west, east) if across else (south, north)
    slices = touched.sum(axis=0 if across else 1)
    lines = [line for line in range(low + 1, high) if line % width == 0]
    uneven = [abs(2 * slices[: line // width - low // width].sum() - slices.sum()) for line in lines]
    return lines[uneven.index(min(uneven))] if lines else (low + high) // 2


@pytest.mark.parametrize(("cells", "width"), [(8, 4), (16, 1), (2, 16), (1, 32), (32, 1)])
def test_medians_of_rectangles_anywhere_are_the_slow_ones(cells, width):
    rng, side = np.random.default_rng(cells), cells * width
    noisy = rng.integers(-6, 20, (cells, cells))
    edges = np.sort(np.stack([rng.choice(side + 1, 2, replace=False) for _ in range(600)]).reshape(300, 2, 2), axis=2)
    rectangles = edges.transpose(0, 2, 1).reshape(300, 4)
    sides = rectangles[:, 2:] - rectangles[:, :2]
    across = (sides[:, 0] > 1) & (rng.integers(0, 2, 300) > 0)
    some = np.where(across, sides[:, 0], sides[:, 1]) > 1
    found = CellGrid.of(noisy, width).medians(rectangles[some], across[some])
    wanted = [slow_median(noisy, width, tuple(row), cut) for row, cut in zip(rectangles[some].tolist(), across[some].tolist(), strict=True)]
    assert len(wanted) > 200
    assert found.tolist() == wanted


def test_no_rectangles_have_no_medians():
    assert CellGrid.of(np.ones((4, 4), int), 2).medians(np.zeros((0, 4), int), np.zeros(0, np.bool_)).tolist() == []
