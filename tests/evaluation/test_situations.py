"""The advice in menus rests on a table that is recomputed here at small size."""

from fractions import Fraction
from itertools import groupby

import pandas as pd
import pytest

from dpviz.errors import SettingError
from dpviz.evaluation.situations import EPSILONS, FEW, SITUATIONS, begin_with, compare_in_situations, make_points
from dpviz.families import POINT_FAMILY
from dpviz.mechanisms import MECHANISMS
from dpviz.mechanisms.base import DATA_DEPENDENT, GRIDS, LOCAL, NOT_PRIVATE, RECOMMENDED, TODAY, TREES

LITTLE, MUCH = EPSILONS
GATHERED = ["one crowd", "roads", "routes of one person"]
WINS = {  # situations, epsilon, boxes: the error is at most so many times the least
    "path_tree": [(GATHERED, None, None, 1.6), ("city", None, None, 2)],
    "uniform_grid": [("few records", None, None, 1.6)],
    "privtree": [([*GATHERED, "few records"], None, "small", 2.3)],
    "htf": [(["one crowd", "roads"], None, None, 4)],
    "adaptive_grid": [(None, None, None, 7), ("city", None, None, 2)],
    "identity": [(["city", "even"], MUCH, "small", 1.6)],
    "dawa": [("even", LITTLE, "small", 1.6), ("one crowd", LITTLE, "small", 2)],
    "tuned_grid": [("even", LITTLE, None, 1.6)],
}
LOSES = {  # the same: in one of these columns the error is at least so many times the least
    "path_tree": ("even", None, None, 1.5),
    "uniform_grid": (GATHERED, None, None, 3),
    "quadtree": ("few records", LITTLE, None, 6),
    "privtree": (None, None, "large", 1.8),
    "htf": ("even", LITTLE, None, 3),
    "kdtree": ("few records", LITTLE, None, 6),
    "hilbert_tree": ("few records", LITTLE, None, 6),
    "adaptive_grid": (GATHERED, MUCH, None, 2),
    "identity": ("few records", LITTLE, "small", 5),
    "privelet": ("few records", LITTLE, "small", 20),
    "dawa": ("few records", None, "large", 3),
    "tuned_grid": (GATHERED, MUCH, None, 3),
    "tuned": (GATHERED, MUCH, None, 6),
}


@pytest.fixture(scope="module")
def table():
    return compare_in_situations({key: mechanism() for key, mechanism in MECHANISMS.of("points").items()}, order=6, repeats=2)


def times_least(table, key, situations, epsilon, boxes):
    """The errors of a mechanism in some columns, as multiples of the least error."""
    row = table.loc[key]
    names, epsilons, sizes = (row.index.get_level_values(level) for level in row.index.names)
    wanted = pd.Series(data=True, index=row.index)
    if situations is not None:
        wanted &= names.isin([situations] if isinstance(situations, str) else situations)
    if epsilon is not None:
        wanted &= epsilons == epsilon
    if boxes is not None:
        wanted &= sizes == boxes
    return row[wanted]


@pytest.mark.parametrize("key", WINS)
def test_a_mechanism_is_close_to_the_least_error_where_its_advice_says_so(table, key):
    for *columns, most in WINS[key]:
        assert times_least(table, key, *columns).max() <= most


@pytest.mark.parametrize("key", LOSES)
def test_a_mechanism_loses_where_its_advice_says_so(table, key):
    *columns, least = LOSES[key]
    assert times_least(table, key, *columns).max() >= least


def test_each_column_has_a_least_error_and_each_mechanism_a_claim(table):
    assert (table.min() == 1).all()
    assert table.columns.get_level_values("situation").unique().tolist() == list(SITUATIONS)
    assert set(LOSES) == {mechanism.key for mechanism in POINT_FAMILY.own if mechanism.advice}, "an advice says where a mechanism loses"
    assert table.loc["privelet"].min() > 2


def test_menus_go_by_groups():
    groups = [group for group, _ in groupby(mechanism.menu_group for mechanism in POINT_FAMILY.choices.values())]
    assert [group for group in groups if group] == [RECOMMENDED, TREES, GRIDS, DATA_DEPENDENT, NOT_PRIVATE, TODAY, LOCAL]


def test_the_first_choice_depends_on_the_declared_number_of_records_times_epsilon():
    assert "N ε, their number times ε, is under 3,000" in begin_with(None, 1)
    assert begin_with(FEW, 1).endswith("begin with the path-budget tree, and with a grid (UG, AG) only if records lie evenly.")
    assert begin_with(FEW - 1, 1).startswith("N ε is about 2,999, under 3,000: begin with a grid (UG, AG)")
    assert "begin with a grid" in begin_with(29_999, Fraction(1, 10))


def test_grids_are_close_to_the_path_budget_tree_or_better_where_the_page_begins_with_them(table):
    """With 4,000 records and an epsilon of 0.1, that is N ε = 400, and with records that lie evenly."""
    for situation, epsilon in (("few records", LITTLE), ("even", None)):
        ratio = times_least(table, "uniform_grid", situation, epsilon, None) / times_least(table, "path_tree", situation, epsilon, None)
        assert ratio.max() <= 1.4, situation
    assert (
        times_least(table, "path_tree", GATHERED, None, None) <= times_least(table, "privtree", GATHERED, None, None) * 1.1
    ).mean() > 0.8


def test_an_unknown_situation_is_refused_with_those_that_there_are():
    with pytest.raises(SettingError, match="one crowd"):
        make_points("a village", order=4)
