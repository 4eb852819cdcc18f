"""The deepest pile of rectangles, against a table of all places."""

import tracemalloc

import numpy as np
import pytest

from dpviz.mechanisms.expected_error import deepest


def by_table(rectangles, weight, side) -> int:
    table = np.zeros((side, side), int)
    for (west, south, east, north), each in zip(rectangles, weight, strict=True):
        table[south:north, west:east] += each
    return max(int(table.max()), 0)


@pytest.mark.parametrize("number", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("side", [1, 2, 3, 8, 21])
def test_it_is_the_largest_entry_of_a_table_of_all_places(number, side):
    rng = np.random.default_rng(100 * number + side)
    for _ in range(20):
        rectangles = rng.integers(0, side + 1, (number, 4))
        for weight in (np.ones(number, int), rng.integers(-3, 4, number)):
            assert deepest(rectangles, weight) == by_table(rectangles, weight, side)
        assert deepest(rectangles) == by_table(rectangles, np.ones(number, int), side)


def test_rectangles_that_only_touch_are_not_deep_and_those_without_an_inside_count_nowhere():
    assert deepest(np.array([[0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4]])) == 1
    assert deepest(np.array([[3, 3, 3, 5], [5, 1, 2, 9]])) == 0
    assert deepest(np.array([[0, 0, 9, 9]] * 5), np.array([1, 1, -1, 1, -4])) == 0


def test_coordinates_may_be_as_large_and_as_many_as_they_like():
    corner = np.random.default_rng(1).integers(0, 2**23, (2**14, 2))
    tracemalloc.start()
    try:
        found = deepest(np.concatenate([corner, corner + 2**22], axis=1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 2**14 / 8 < found < 2**14 / 3
    assert peak < 100 * 2**20
