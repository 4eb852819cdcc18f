"""The tree of pairs against a slow definition: dictionaries of children, region by region."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.errors import DomainError
from dpviz.space.pair_tree import PairTree
from tests.space.nested import paths, regions_of

few = settings(max_examples=20, derandomize=True, database=None)


@st.composite
def trees(draw):
    """A tree over one geography or two of the same depth, and the paths of the leaves of both."""
    origins = draw(paths(most_depth=3))
    depth = len(origins[0])
    alone = draw(st.booleans())
    ends = origins if alone else draw(paths(most_depth=3).filter(lambda rows: len(rows[0]) == depth))
    one = regions_of(origins)
    other = one if alone else regions_of(ends)
    return PairTree(origins=one, destinations=other, first=draw(st.sampled_from(["destination", "origin"]))), origins, ends


def nodes(rows, level):
    """Regions of a level as paths from the root, in tree order."""
    return list(dict.fromkeys(tuple(path[:level]) for path in rows))


@few
@given(trees())
def test_stages_refine_one_side_at_a_time_and_reach_every_pair_once_from_the_root(drawn):
    tree, origins, ends = drawn
    depth, sides = len(origins[0]), ["origin", "destination"]
    assert (tree.height, tree.levels(0)) == (2 * depth, (0, 0))
    levels = {"origin": 0, "destination": 0}
    origin = destination = np.zeros(1, np.int32)
    for stage in range(1, tree.height + 1):
        side = tree.first if stage % 2 else sides[tree.first == "origin"]
        levels[side] += 1
        assert (tree.refined_side(stage), tree.levels(stage)) == (side, tuple(levels.values()))
        width = len(nodes(ends, levels["destination"]))
        assert tree.size(stage) == len(nodes(origins, levels["origin"])) * width
        below = tree.children(stage, origin, destination)
        origin, destination = below.origin, below.destination
        assert sorted((origin.astype(np.int64) * width + destination).tolist()) == list(range(tree.size(stage)))
    assert tree.levels(tree.height) == (depth, depth)


@few
@given(trees(), st.data())
def test_children_are_those_of_a_dictionary(drawn, data):
    tree, origins, ends = drawn
    for stage in range(1, tree.height + 1):
        above, below = tree.levels(stage - 1), tree.levels(stage)
        names = [(nodes(rows, above[side]), nodes(rows, below[side])) for side, rows in enumerate((origins, ends))]
        every = list(product(range(len(names[0][0])), range(len(names[1][0]))))
        chosen = data.draw(st.lists(st.sampled_from(every), max_size=6))
        expected = []
        for origin, destination in chosen:
            parent = names[0][0][origin], names[1][0][destination]
            options = [[name for name in names[side][1] if name[: above[side]] == parent[side]] for side in (0, 1)]
            expected.append([(names[0][1].index(a), names[1][1].index(b)) for a, b in product(*options)])
        place = np.array(chosen, np.int32).reshape(-1, 2)
        found = tree.children(stage, place[:, 0], place[:, 1])
        pairs = list(zip(found.origin.tolist(), found.destination.tolist(), strict=True))
        groups = [pairs[start : start + size] for start, size in zip(found.starts.tolist(), found.sizes.tolist(), strict=True)]
        assert groups == expected
        assert sum(map(len, groups)) == len(pairs)


def test_titles_name_both_sides():
    origins, ends = regions_of([["a", "b"]]), regions_of([["c", "d"], ["c", "e"]])
    one, other = (PairTree(origins=origins, destinations=ends, first=first) for first in ("destination", "origin"))
    expected = ["all to all", "all to level 1", "level 1 to level 1", "level 1 to level 2", "level 2 to level 2"]
    assert [one.title(stage) for stage in range(5)] == expected
    assert [other.title(stage) for stage in (1, 3)] == ["level 1 to all", "level 2 to level 1"]


def test_other_stages_trees_of_different_depth_and_another_first_side_are_refused():
    flat, deep = regions_of([["a"]]), regions_of([["a", "b"]])
    for stage in (-1, 5, 1.5):
        with pytest.raises(DomainError, match="stages 0 to 4"):
            PairTree(origins=deep, destinations=deep).levels(stage)
    with pytest.raises(DomainError, match="same depth"):
        PairTree(origins=flat, destinations=deep)
    with pytest.raises(DomainError, match="first must be one of destination, origin"):
        PairTree(origins=flat, destinations=flat, first="time")
