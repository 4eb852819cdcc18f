"""What every mechanism of every family must keep, whatever it counts: its name, and the ranges, choices and defaults of its settings."""

import math

import pytest

from dpviz.errors import SettingError
from dpviz.families import FAMILIES
from dpviz.mechanisms import MECHANISMS
from dpviz.mechanisms.base import shares_of

EVERY = {key: kind for family in FAMILIES.values() for key, kind in family.mechanisms.items()}
ROWS = pytest.mark.parametrize("mechanism", [pytest.param(kind, id=key) for key, kind in EVERY.items()])


def bad_values(rule) -> list:
    """Values that a rule must refuse: just outside its range, not finite, of another kind."""
    kind = type(rule.choices[0] if rule.choices else rule.default)
    if kind is bool:
        return ["yes", 1, 0.0]
    if kind is str:
        return ["no such choice", 3, ""]
    beyond = [] if rule.low is None else [rule.low - 1, rule.low - 0.01 * abs(rule.low or 1)]
    beyond += [] if rule.high is None else [rule.high + max(1, rule.high * 0.01)]
    if kind is tuple:
        return [*((1.0, number) for number in beyond), "1,2", 3, (math.nan,), (None,)]
    wrong = [math.nan, math.inf, -math.inf, "5", True]
    return [*beyond, *wrong, *([] if rule.optional else [None]), *([99] if rule.choices else [])]


@ROWS
def test_it_names_itself(mechanism):
    family = FAMILIES[mechanism.family]
    assert isinstance(mechanism(), family.base)
    assert family.mechanisms[mechanism.key] is mechanism
    assert mechanism.private
    assert mechanism.title
    assert mechanism.summary.endswith(".")
    assert "Source:" in mechanism.__doc__
    assert "Protects:" in mechanism.__doc__
    assert all(rule.label and rule.help for rule in mechanism.rules())


@ROWS
def test_settings_out_of_range_are_refused_by_their_label(mechanism):
    for rule in mechanism.rules():
        values = bad_values(rule)
        assert len(values) >= 3, rule.name
        for value in values:
            with pytest.raises(SettingError) as refusal:
                mechanism(**{rule.name: value})
            assert str(refusal.value).startswith(rule.label), (rule.name, value)


@ROWS
def test_the_ends_of_a_range_its_choices_and_its_default_are_accepted(mechanism):
    for rule in mechanism.rules():
        ends = () if isinstance(rule.default, tuple) else (rule.low, rule.high)
        for value in (rule.default, *rule.choices, *(end for end in ends if end is not None)):
            assert getattr(mechanism(**{rule.name: value}), rule.name) == value, rule.name


@ROWS
def test_settings_are_frozen_and_unknown_ones_refused(mechanism):
    with pytest.raises(SettingError, match="no setting 'no_such_setting'"):
        mechanism(no_such_setting=1)
    for rule in mechanism.rules():
        with pytest.raises(AttributeError):
            setattr(mechanism(), rule.name, rule.default)


@ROWS
def test_only_what_is_set_differs_from_the_defaults_and_it_builds_the_same_again(mechanism):
    assert mechanism().non_defaults() == {}
    assert mechanism.from_settings(mechanism().chosen()) == mechanism()
    with pytest.raises(SettingError, match="no setting 'no_such_setting'"):
        mechanism.from_settings({"no_such_setting": 1})


@pytest.mark.parametrize(
    ("key", "old", "new"), [("quadtree", "inside", "fill"), ("path_tree", "zero", "shrink_small"), ("flat_gaussian", "least", "threshold")]
)
def test_an_old_name_of_a_setting_is_refused_with_the_new_one(key, old, new):
    mechanism = MECHANISMS[key]
    for build in (lambda: mechanism(**{old: None}), lambda: mechanism.from_settings({old: None})):
        with pytest.raises(SettingError, match=f"no setting '{old}'.* It is called '{new}' now"):
            build()


def test_parts_of_the_budget_that_say_nothing_are_refused():
    assert shares_of([3, 1]) == [0.75, 0.25]
    for shares in ((0, 0), (-1, 2), (math.nan, 1), (math.inf, 1), (1e308, 1e308)):
        with pytest.raises(SettingError, match="shares of a split"):
            shares_of(shares)
