"""`dpviz mechanisms`: what there is, and how a configuration sets it."""

import json

from dpviz.families import FAMILIES
from dpviz.mechanisms import PathTree


def test_every_mechanism_is_listed_under_its_data(run):
    code, out, _ = run("mechanisms")
    assert code == 0
    assert all(key in out for family in FAMILIES.values() for key in family.mechanisms)
    listed = json.loads(run("mechanisms", "--json")[1])
    assert {name: [entry["key"] for entry in entries] for name, entries in listed.items()} == {
        name: list(family.mechanisms) for name, family in FAMILIES.items()
    }


def test_a_mechanism_lists_each_setting_with_default_range_and_condition(run):
    _, out, _ = run("mechanisms", "path_tree")
    assert 'growth = 1.26 (from 1 to 4; matters with split = "growing")' in out
    assert "least_squares = true" in out
    settings = json.loads(run("mechanisms", "path_tree", "--json")[1])["settings"]
    assert [setting["name"] for setting in settings] == [rule.name for rule in PathTree.rules()]


def test_names_that_are_nearly_right_are_proposed(run):
    assert "Did you mean 'quadtree'?" in run("mechanisms", "quadtre")[2]
    assert "Did you mean 'quadtree'?" in run("audit", "quadtre")[2]
    assert "Did you mean 'release'?" in run("relase", "x.toml")[2]
