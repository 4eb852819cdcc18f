"""True counts of every stage against pandas: one groupby per stage, on the ids of the regions."""

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.flows import Flows
from dpviz.mechanisms.trips import top_down
from dpviz.mechanisms.trips.top_down import true_stages
from dpviz.space.pair_tree import PairTree
from tests.flow_cases import children_of, flows_of, random_regions, regular, table_of
from tests.space.nested import paths, regions_of

few = settings(max_examples=20, deadline=None, derandomize=True, database=None)
FIRST = ("destination", "origin")


def check(flows, first):
    """Every node of every stage: its trips, its place in its parent, and the order."""
    tree = PairTree(origins=flows.regions, destinations=flows.ends, first=first)
    table, stages = table_of(flows), true_stages(flows, tree)
    assert len(stages) == tree.height + 1
    if not len(table):
        assert [len(stage.count) for stage in stages] == [0] * len(stages)
        return
    before = None
    for number, stage in enumerate(stages):
        a, b = tree.levels(number)
        expected = table.groupby([f"origin {a}", f"destination {b}"])["count"].sum().to_dict()
        ids = zip(flows.regions.ids_of(a)[stage.origin], flows.ends.ids_of(b)[stage.destination], strict=True)
        assert dict(zip(ids, stage.count.tolist(), strict=True)) == expected
        assert len(stage.count) == len(expected)
        if before is not None:
            parents = list(zip(before.origin[stage.parent].tolist(), before.destination[stage.parent].tolist(), strict=True))
            own = list(zip(stage.origin.tolist(), stage.destination.tolist(), strict=True))
            for pair, parent, child in zip(own, parents, stage.child.tolist(), strict=True):
                assert children_of(tree, number, parent)[child] == pair
            key = list(zip(stage.parent.tolist(), stage.child.tolist(), strict=True))
            assert key == sorted(set(key)), "nodes stand in tree order"
        before = stage


@st.composite
def trips(draw):
    """Trips between the leaves of one geography, or of two of the same depth."""
    origins = draw(paths(most_depth=3))
    regions, depth = regions_of(origins), len(origins[0])
    ends = regions if draw(st.booleans()) else regions_of(draw(paths(most_depth=3).filter(lambda rows: len(rows[0]) == depth)))
    pair = st.tuples(st.integers(0, regions.size(depth) - 1), st.integers(0, ends.size(depth) - 1))
    found = draw(st.dictionaries(pair, st.integers(1, 2**40), max_size=25))
    return flows_of(regions, found, None if ends is regions else ends)


@few
@given(trips(), st.sampled_from(FIRST))
def test_stages_are_those_of_a_groupby(flows, first):
    check(flows, first)


@few
@given(trips(), st.sampled_from(FIRST))
def test_so_they_are_where_the_way_down_does_not_fit_63_bits(flows, first):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_down, "_BITS", -1)
        sort = patch_lexsort(patch)
        check(flows, first)
    assert sort.call_count == 1


def patch_lexsort(patch) -> Mock:
    """Count how often keys are sorted that do not fit 63 bits."""
    counted = Mock(side_effect=np.lexsort)
    patch.setattr(top_down.np, "lexsort", counted)
    return counted


DEEP_AND_WIDE = {
    "wide": (lambda rng: regular(300), True),
    "two wide levels": (lambda rng: regular(40, 25), True),
    "deep": (lambda rng: random_regions(rng, 9, 2), True),
    "deep and wide": (lambda rng: lopsided(14, 33), False),
    "one wide leaf": (lambda rng: lopsided(8, 257), False),
}


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("name", DEEP_AND_WIDE)
def test_deep_and_wide_trees(name, first, monkeypatch):
    rng, (make, packed) = np.random.default_rng(5), DEEP_AND_WIDE[name]
    regions = make(rng)
    leaves = regions.size(regions.depth)
    found = {(int(a), int(b)): int(n) for a, b, n in zip(*rng.integers(0, leaves, (2, 60)), rng.integers(1, 99, 60), strict=True)}
    flows, sort = flows_of(regions, found | {(leaves - 1, leaves - 1): 7, (0, 0): 3}), patch_lexsort(monkeypatch)
    true_stages(flows, PairTree(origins=regions, destinations=regions, first=first))
    assert sort.call_count == (0 if packed else 1)
    check(flows, first)


def lopsided(depth, wide):
    """Each level has one region with many children, so that the way to a leaf takes many bits on every level."""
    rows = [[]]
    for level in range(depth):
        rows = [[*path, f"{level}.{place}.{k}"] for place, path in enumerate(rows) for k in range(wide if place == len(rows) - 1 else 1)]
    return regions_of(rows)


@pytest.mark.parametrize("first", FIRST)
def test_no_trips_make_empty_stages(first):
    regions = regular(2, 3)
    check(flows_of(regions, {}), first)


def test_counts_of_2_to_the_53_stay_exact():
    regions = regular(2, 2)
    pairs = np.array([0, 3], np.int32)
    flows = Flows(regions, pairs, pairs, np.array([2**53 - 1, 1], np.int64))
    stages = true_stages(flows, PairTree(origins=regions, destinations=regions))
    assert [stage.count.sum() for stage in stages] == [2**53] * 5
    assert stages[1].count.tolist() == [2**53 - 1, 1]
