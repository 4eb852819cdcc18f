"""Scales of maps of trips: public; one map has its own, several maps share theirs."""

from dataclasses import replace

import pytest

from dpviz.view.trips_map import TripsMapSettings, shared_tops, tops_of, trips_map
from tests.view.trips_cases import grid, layers_of, random_trips, released

VIEW = TripsMapSettings(level=2)


@pytest.fixture(scope="module")
def both():
    """Few trips, and many."""
    return [released(random_trips(grid(), pairs=pairs)) for pairs in (20, 300)]


def widths(picture):
    return {(row["o"], row["z"]): row["w"] for row in layers_of(picture)["arcs"]["data"]}


def test_a_map_ends_its_scales_where_its_release_does(both):
    for release, evaluation in both:
        own = replace(VIEW, tops=tops_of(release, VIEW))
        assert trips_map(release, own).legend == trips_map(release, VIEW).legend
        seen = trips_map(release, replace(own, shown="True"), evaluation.true_level(2))
        assert seen.legend == trips_map(release, replace(VIEW, shown="True"), evaluation.true_level(2)).legend


def test_the_larger_of_each_is_shared(both):
    few, many = (tops_of(release, VIEW) for release, _ in both)
    shared = shared_tops([few, many])
    assert shared == shared_tops([many, few])
    assert shared.arcs == max(few.arcs, many.arcs)
    assert shared.trips == max(few.trips, many.trips)
    assert shared_tops([few]) == few


def test_maps_that_share_a_scale_have_one_legend_and_one_width_per_number(both):
    shared = shared_tops([tops_of(release, VIEW) for release, _ in both])
    pictures = [trips_map(release, replace(VIEW, tops=replace(shared, trips=2 * shared.trips))) for release, _ in both]
    assert pictures[0].legend == pictures[1].legend
    alone = widths(trips_map(both[0][0], VIEW))
    assert all(width <= alone[pair] for pair, width in widths(pictures[0]).items())
