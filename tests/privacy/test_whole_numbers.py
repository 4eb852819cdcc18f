import math
import timeit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from dpviz.errors import InputError, SettingError
from dpviz.privacy import whole_numbers
from dpviz.privacy.budget import ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian
from dpviz.privacy.whole_numbers import nearest_in_groups, nearest_whole_numbers

BY_HAND = [
    ([0, -1, 1], 2, 1, [0, 0, 2]),
    ([-5, -3, -8], 40, 19, [14, 16, 10]),
    ([4, 4, 4, 4], 13, 1, [3, 3, 3, 4]),
    ([1, 1, 1, 1, 1, 50], 40, 10, [0, 0, 0, 0, 0, 40]),
]


def algorithm_4(x: list[int], c: int) -> list[int]:
    """IntOpt as printed, entry by entry, with a stable sort."""
    b, s = len(x), c - sum(x)
    z = [max(-(-s // b), -value) for value in x]
    t = max(abs(value) for value in z)
    todo = [i for i in sorted(range(b), key=lambda i: x[i]) if z[i] > -x[i]]
    j = 0
    while sum(z) > s:
        z[todo[j]] = max(z[todo[j]] - (sum(z) - s), -x[todo[j]], -t)
        j = (j + 1) % len(todo)
        if j == 0 and sum(z) > s:
            todo = [i for i in todo if z[i] > -x[i]]
            t += max(1, (sum(z) - s) // len(todo))
    return [value + change for value, change in zip(x, z, strict=True)]


def least_distance(x: list[int], c: int) -> int:
    """The least d such that whole numbers within d of x, none below 0, can add up to c."""
    low, high = -1, max(abs(value) for value in x) + c
    while high - low > 1:
        d = (low + high) // 2
        fits = min(x) + d >= 0 and sum(max(0, value - d) for value in x) <= c <= sum(value + d for value in x)
        low, high = (low, d) if fits else (d, high)
    return high


def together(groups: list[tuple[list[int], int]], **how: str) -> list[list[int]]:
    sizes = np.array([len(x) for x, _ in groups], np.int64)
    starts = np.cumsum(sizes) - sizes
    x = np.array([value for x, _ in groups for value in x], np.int64)
    y = nearest_in_groups(x, starts, np.array([c for _, c in groups], np.int64), **how)
    return [part.tolist() for part in np.split(y, starts[1:])] if groups else y.tolist()


def alone(x: list[int], c: int, **how: str) -> list[int]:
    return nearest_whole_numbers(np.array(x, np.int64), total=c, **how).tolist()


def distance(x: list[int], y: list[int]) -> int:
    return max(abs(after - before) for before, after in zip(x, y, strict=True))


def random_groups(seed: int, number: int, most: int = 40) -> list[tuple[list[int], int]]:
    """Ties, noise, counts, all negative and all zero; totals of 0, a few, about the sum, and far above."""
    rng, groups = np.random.default_rng(seed), []
    for _ in range(number):
        b, scale = int(rng.integers(1, most + 1)), int(rng.choice([0, 1, 3, 20, 1000, 10**9]))
        x = np.rint(rng.laplace(0, scale, b)).astype(np.int64) if rng.random() < 0.5 else rng.integers(-scale, scale + 1, b)
        kind = rng.integers(5)
        x = -np.abs(x) if kind == 0 else x + int(rng.integers(0, 3)) * scale if kind == 1 else x
        about = max(0, int(x.sum() + rng.integers(-3, 4)))
        total = [0, rng.integers(0, 6), rng.integers(0, scale * b + 1), about, np.abs(x).sum() + rng.integers(0, 3 * scale + 1)]
        groups.append((x.tolist(), int(total[rng.integers(5)])))
    return groups


def families(largest: int = 40, most: int = 8) -> st.SearchStrategy[list[tuple[list[int], int]]]:
    numbers = st.integers(-largest, largest) | st.integers(-3, 3)
    return st.lists(st.tuples(st.lists(numbers, min_size=1, max_size=most), st.integers(0, 2 * largest) | st.integers(0, 3)), max_size=6)


@pytest.mark.parametrize(("x", "c", "least", "expected"), BY_HAND)
def test_cases_worked_out_by_hand(x, c, least, expected):
    assert alone(x, c) == expected
    assert distance(x, expected) == least_distance(x, c) == least
    assert distance(x, alone(x, c, order="descending")) == least
    assert distance(x, alone(x, c, distance="solver")) == least


def test_random_groups_are_algorithm_4_and_none_lies_nearer():
    groups = random_groups(1, 4_000)
    nearest = together(groups)
    assert nearest == [algorithm_4(x, c) for x, c in groups]
    for order in whole_numbers.ORDERS:
        assert_valid(groups, together(groups, order=order))
    huge = [([2**59, -(2**59), 2**59 - 1, 5], 2**60 - place) for place in range(200)]
    assert together(huge) == [algorithm_4(x, c) for x, c in huge], "running sums over many huge groups stay exact"
    apart = [([2**59] * 4, 2**60)] * 20 + [([1] * 1000, 1000)]
    assert together(apart) == [[2**58] * 4] * 20 + [[1] * 1000], "sums are refused by group, not over all groups"


@settings(deadline=None, max_examples=60)
@given(families() | families(2**59, 6), st.sampled_from(["chebyshev", "euclidean"]), st.sampled_from(whole_numbers.ORDERS))
def test_groups_solved_together_are_the_groups_solved_alone_and_huge_numbers_are_solved_exactly(groups, metric, order):
    solved = together(groups, distance=metric, order=order)
    assert solved == [alone(x, c, distance=metric, order=order) for x, c in groups]
    if (metric, order) == ("chebyshev", "ascending"):
        assert solved == [algorithm_4(x, c) for x, c in groups]


@pytest.mark.parametrize("metric", ["chebyshev", "euclidean"])
@pytest.mark.parametrize("order", whole_numbers.ORDERS)
def test_numbers_too_wide_for_one_key_are_sorted_alike_and_the_size_of_the_blocks_changes_nothing(monkeypatch, metric, order):
    groups = random_groups(2, 600)
    expected = together(groups, distance=metric, order=order)
    for limit, sizes in {"_KEY_BITS": [0], "_BLOCK": [1, 7, 10**9]}.items():
        for size in sizes:
            with monkeypatch.context() as changed:
                changed.setattr(whole_numbers, limit, size)
                assert together(groups, distance=metric, order=order) == expected


def test_lowering_large_entries_first_keeps_more_entries_above_zero_at_the_same_distance():
    assert alone([0, -1, 1], 2, order="descending") == [1, 0, 1]
    assert alone([4, 4, 4, 4], 13, order="descending") == [3, 3, 3, 4]
    small, large = (together(random_groups(4, 1500), order=order) for order in whole_numbers.ORDERS)
    assert sum(np.count_nonzero(y) for y in large) > 1.2 * sum(np.count_nonzero(y) for y in small)


def assert_valid(groups: list[tuple[list[int], int]], solved: list[list[int]], *, nearest: bool = True) -> None:
    """Sums are kept, none is negative, and the distance is the least if it is to be."""
    for (x, c), y in zip(groups, solved, strict=True):
        assert sum(y) == c
        assert min(y) >= 0
        assert not nearest or distance(x, y) == least_distance(x, c)


@pytest.mark.parametrize("order", whole_numbers.ORDERS)
def test_moving_one_unit_between_entries_never_makes_squares_smaller(order):
    """Then no other whole numbers have smaller squares, for squares are convex."""
    groups = [*random_groups(5, 1000), ([2**59, -(2**59), 2**59 - 1, 5], 2**60 - 3)]
    solved = together(groups, distance="euclidean", order=order)
    assert_valid(groups, solved, nearest=False)
    for (x, _), y in zip(groups, solved, strict=True):
        raising = min(2 * (after - before) + 1 for before, after in zip(x, y, strict=True))
        lowering = min((2 * (before - after) + 1 for before, after in zip(x, y, strict=True) if after), default=math.inf)
        assert raising + lowering >= 0


def test_equal_entries_are_lowered_in_the_order_of_their_places_by_squares_too():
    assert alone([4, 4, 4, 4], 13, distance="euclidean") == [3, 3, 3, 4]
    assert alone([5, 1, 7, 1, 3], 15, distance="euclidean") == [5, 0, 7, 0, 3]
    assert alone([5, 1, 7, 1, 3], 15, distance="euclidean", order="descending") == [4, 1, 6, 1, 3]


def test_the_solver_reaches_the_least_distance_and_the_same_numbers_every_time():
    groups = [(x, c) for x, c in random_groups(6, 120, 64) if least_distance(x, c) <= 10**4]
    solved = together(groups, distance="solver")
    assert_valid(groups, solved)
    assert together(groups, distance="solver", order="descending") == solved


@pytest.mark.parametrize("z", [None, [1, 1, 1], [-2, -1, 0], [0, -3, 0]], ids=["none", "another sum", "below 0", "not the least"])
def test_an_answer_of_the_solver_that_breaks_the_rules_is_refused(monkeypatch, z):
    answer = None if z is None else np.array([*z, 0.0])
    monkeypatch.setattr(optimize, "milp", lambda *_, **__: optimize.OptimizeResult(x=answer))
    with pytest.raises(SettingError, match=r'found no whole numbers; the distance "chebyshev" minimises the same'):
        alone([0, 4, 4], 5, distance="solver")


def test_where_the_solver_misses_the_least_distance_it_is_run_again_without_it(monkeypatch):
    answers, solve = [optimize.OptimizeResult(x=np.array([-2.0, -1.0, 0.0, 0.0]))], optimize.milp
    monkeypatch.setattr(optimize, "milp", lambda *problem, **rules: answers.pop() if answers else solve(*problem, **rules))
    assert alone([4, 4, 4], 9, distance="solver") == [3, 3, 3]
    assert not answers


@pytest.mark.parametrize(
    ("x", "starts", "text"),
    [
        (np.zeros(65, int), [0], "at most 64 numbers in a group and 50,000 in all"),
        (np.zeros(50_002, int), np.arange(0, 50_002, 2), "at most 64 numbers in a group and 50,000 in all"),
        (np.array([2**40, 0]), [0], "changes up to about 10,000,000"),
    ],
)
def test_the_solver_refuses_what_would_take_it_too_long_or_too_far(x, starts, text):
    with pytest.raises(SettingError, match=text + r'; the distance "chebyshev" minimises the same and has no such limit\.'):
        nearest_in_groups(x, starts, np.ones(len(starts), int), distance="solver")


@pytest.mark.parametrize("metric", whole_numbers.DISTANCES)
def test_no_groups_and_no_numbers_give_no_numbers(metric):
    nothing = np.empty(0, np.int64)
    for y in (nearest_in_groups(nothing, nothing, nothing, distance=metric), nearest_whole_numbers(nothing, total=0, distance=metric)):
        assert y.shape == (0,)
        assert y.dtype == np.int64


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64, np.int64])
def test_any_whole_dtype_gives_int64_and_inputs_are_left_alone(kind):
    x, starts, totals = np.array([120, 3, 100, 7], kind), np.array([0, 2]), np.array([200, 5], kind if kind != np.int8 else np.int16)
    for array in (x, starts, totals):
        array.flags.writeable = False
    y = nearest_in_groups(x, starts, totals)
    assert y.dtype == np.int64
    assert y.tolist() == [159, 41, 5, 0]
    assert nearest_whole_numbers(x[:2], total=np.int16(200)).tolist() == [159, 41]


REFUSED = {
    "A total above 0 needs at least one number": [([], 1)],
    "The numbers must have an integer dtype; whole floats": [([1.0, 2.0], 3)],
    "The numbers must have an integer dtype": [([True, False], 1), ([2**70, 1], 3)],
    "The numbers must have one dimension": [([[1, 2]], 3), (5, 5)],
    r"A total must lie between 0 and 2\*\*60": [([1, 2], -1), ([1, 2], 2**60 + 1)],
    "The total must be a whole number": [([1, 2], 3.0), ([1, 2], True)],
    r"The numbers must lie within 2\*\*60 of zero": [([2**60 + 1, 2], 3), ([-(2**63), 2], 3), (np.array([2**63, 2], np.uint64), 3)],
    r"add up to at most 2\*\*62": [([2**60, -(2**60), 2**60, 2**60], 2**60)],
}
GROUPS_REFUSED = {
    "2 starts and 1 totals were given": [([0, 2], [1])],
    "every number must belong to a group": [([], [])],
    "The first group must begin at 0": [([1, 2], [1, 1])],
    "Every group must hold at least one number": [([0, 0], [1, 1]), ([0, 3], [1, 1]), ([0, 2, 1], [1, 1, 1])],
    "A total must be at least 0": [([0, 1], [1, -1])],
    "The totals must have an integer dtype": [([0, 1], [1.0, 1.0])],
    "The starts must have an integer dtype": [([0.0, 1.0], [1, 1])],
    r"The totals must lie within 2\*\*60 of zero": [([0, 1], [1, 2**60 + 1])],
}


@pytest.mark.parametrize(("x", "total", "text"), [(*case, text) for text, cases in REFUSED.items() for case in cases])
def test_one_group_refuses(x, total, text):
    with pytest.raises(InputError, match=text):
        nearest_whole_numbers(np.array(x), total=total)


@pytest.mark.parametrize(("starts", "totals", "text"), [(*case, text) for text, cases in GROUPS_REFUSED.items() for case in cases])
def test_groups_refuse(starts, totals, text):
    with pytest.raises(InputError, match=text):
        nearest_in_groups(np.array([4, 5, 6]), np.array(starts), np.array(totals))


@pytest.mark.parametrize("name", ["distance", "order"])
def test_unknown_distances_and_orders_are_refused(name):
    with pytest.raises(SettingError, match=f"The {name} must be one of"):
        alone([1, 2], 3, **{name: "other"})


@pytest.mark.benchmark
@pytest.mark.parametrize("order", whole_numbers.ORDERS)
@pytest.mark.parametrize("metric", ["chebyshev", "euclidean"])
def test_two_and_a_half_million_numbers_in_thirty_thousand_groups_take_less_than_their_noise(capsys, metric, order):
    rng = np.random.default_rng(8)
    sizes, totals = rng.integers(57, 110, 30_000), rng.integers(0, 51, 30_000)
    starts, budget, entropy = np.cumsum(sizes) - sizes, ZcdpBudget("0.00125"), Entropy.seeded(9)
    counts = np.zeros(sizes.sum(), np.int64)
    counts[starts] = totals
    x = discrete_gaussian(counts, budget, entropy)
    noise = min(timeit.repeat(lambda: discrete_gaussian(counts, budget, entropy), number=1, repeat=3))
    ours = min(timeit.repeat(lambda: nearest_in_groups(x, starts, totals, distance=metric, order=order), number=1, repeat=5))
    with capsys.disabled():
        print(f"\n{x.size:,} numbers, {metric}, {order}: {ours:.4f} s, {ours / noise:.2f} of their noise ({noise:.4f} s)", end="")
    assert ours < noise
