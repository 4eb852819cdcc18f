"""The panes of a release of trips: regions and arcs as the browser reads them, and that the truth is in them only if it was passed."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dpviz.mechanisms import FittedTree, TopDown
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.trips import load_trip_sample
from dpviz.view.canvas import Scene
from dpviz.view.trips_canvas import areas_of, bounds_of, make_pane, names_of_dots, released_scene
from dpviz.view.trips_drawing import (
    AREAS,
    NOT_LISTED,
    SHOWN_TRIPS,
    TripsMapSettings,
    as_measured,
    choose_public_tops,
    draw_trips,
)
from tests.scenes import unpack
from tests.view.trips_cases import grid, random_trips, released


@pytest.fixture(scope="module")
def case():
    return released(random_trips(grid(), pairs=60), epsilon=0.3)


@pytest.fixture(scope="module")
def listed():
    trips = random_trips(grid())
    return FittedTree(false_discovery=0.05).release(trips, ApproxBudget(1, "1e-8"), Entropy.seeded(1))


def drawing_of(case, *, truth=True, **view):
    view = TripsMapSettings(**({"level": 2} | view))
    return draw_trips(case[0], view, case[1].true_level(view.level) if truth else None)


def message(release, *drawings):
    """A message with a pane of each drawing, as it is read."""
    areas = {name: part for place, drawing in enumerate(drawings) for name, part in areas_of(drawing, str(place)).items()}
    panes = tuple(make_pane(drawing, areas=str(place), about="one run") for place, drawing in enumerate(drawings))
    return unpack(Scene(bounds=bounds_of(release), areas=areas, panes=panes, description="Trips.", dark=False).pack())


def corners_of(arrays, name):
    """The outer ring of each polygon, as the browser builds it."""
    corners = arrays[f"{name} corners"].reshape(-1, 2)
    starts = arrays[f"{name} rings"][arrays[f"{name} polygons"]]
    return [corners[a:b] for a, b in pairwise(starts)]


def true_of(case, region, *, level=2):
    """Trips from, to or within a region, each counted once."""
    truth = case[1].true_level(level)
    return truth.count[(truth.origin == region) | (truth.destination == region)].sum()


def test_arcs_begin_and_end_at_centres_that_lie_in_their_regions(case):
    drawing = drawing_of(case)
    header, arrays = message(case[0], drawing)
    centres = arrays["0 0 centres"].reshape(-1, 2)
    assert centres == pytest.approx(case[0].tree.origins.centres(2), abs=1e-4)
    for region, ring in zip(arrays["0 0 owner"], corners_of(arrays, "0 0"), strict=True):
        west, south, east, north = *ring.min(axis=0), *ring.max(axis=0)
        assert west < centres[region, 0] < east
        assert south < centres[region, 1] < north
    assert header["panes"][0]["arcs"]["count"] == drawing.drawn == len(arrays["0 origin"])
    assert arrays["0 origin"].tolist() == drawing.arcs.origin.tolist()
    assert arrays["0 destination"].tolist() == drawing.arcs.destination.tolist()
    assert arrays["0 color"].reshape(-1, 4).tolist() == drawing.arcs.color.tolist()
    assert arrays["0 width"] / 10 == pytest.approx(drawing.arcs.width, abs=0.06)
    assert arrays["0 dashed"].tolist() == drawing.arcs.dashed.tolist()
    assert arrays["0 dots 0"] / 10 == pytest.approx(drawing.areas[0].dots, abs=0.06)


def test_texts_name_the_ends_and_have_the_truth_only_where_it_was_passed(case):
    names = case[0].tree.origins.names_of(2)
    for truth in (True, False):
        drawing = drawing_of(case, truth=truth)
        header, _ = message(case[0], drawing)
        first = header["panes"][0]["arcs"]["texts"][0].split("\n")
        assert first[0] == f"{names[drawing.arcs.origin[0]]} to {names[drawing.arcs.destination[0]]}"
        assert ("true" in str(header["panes"][0]["arcs"]["texts"])) == truth
        assert ("true" in str(header["areas"])) == truth


def test_where_trips_end_in_other_regions_a_pane_has_both():
    case = released(random_trips(grid(), destinations=grid(4, 4, shapes="points", west=-90)))
    header, arrays = message(case[0], drawing_of(case))
    assert header["panes"][0]["areas"] == ["0 0", "0 1"]
    assert (len(arrays["0 dots 0"]), len(arrays["0 dots 1"])) == (24, 16)
    assert header["panes"][0]["legend"]["dots"][0][2].endswith(" leaving or arriving")
    assert len(arrays["0 1 owner"]) == 0, "points have no polygons"


class TestAreas:
    def test_regions_are_coloured_by_all_their_trips_and_there_are_no_arcs(self, case):
        drawing = drawing_of(case, shown="True", marks=AREAS, dark=True)
        header, arrays = message(case[0], drawing)
        assert header["panes"][0]["arcs"] is None
        assert header["panes"][0]["legend"]["title"] == "trips of a region"
        light = arrays["0 fill 0"].reshape(-1, 4).astype(int).sum(axis=1)
        totals = np.array([true_of(case, region) for region in range(24)])
        assert light[np.argmax(totals)] == light.max() > light[np.argmin(totals)]

    def test_states_are_areas_and_airports_are_circles_which_the_legend_says(self):
        release = TopDown().release(load_trip_sample("us_flights"), ApproxBudget(1, "1e-6"), Entropy.seeded(1))
        states, airports = (draw_trips(release, TripsMapSettings(level=level, marks=AREAS)) for level in (2, 3))
        assert (bool(states.areas[0].shapes.polygons), states.legend.title) == (True, "trips of a region")
        assert not airports.areas[0].shapes.polygons
        assert airports.legend.title == "trips of a region; one circle per airport"

    def test_an_error_has_two_signs(self, case):
        drawing = drawing_of(case, shown="Error", marks=AREAS)
        sums = case[0].sums(2, 2)
        for region in range(24):
            given = sums.count[(sums.origin == region) | (sums.destination == region)].sum() - true_of(case, region)
            red, _, blue, _ = drawing.areas[0].color[region].tolist()
            assert given == 0 or (blue > red) == (given > 0)

    def test_false_positives_are_a_share_of_a_regions_released_pairs(self, case):
        drawing = drawing_of(case, shown="False positives", marks=AREAS)
        table = case[1].compare(2)
        table = table[table["released"] > 0]
        wrong = np.zeros(24)
        for region in range(24):
            ends = (table["origin"] == region).astype(int) + (table["destination"] == region)
            wrong[region] = ends[table["true"] == 0].sum() / max(ends.sum(), 1)
        assert wrong.max() > 0.2
        light = drawing.areas[0].color.astype(int).sum(axis=1)
        assert light[np.argmax(wrong)] == light.min() < light[np.argmin(wrong)]

    def test_what_is_not_listed_is_a_share_of_each_region_and_nothing_of_a_release_without_a_list(self, listed, case):
        drawing = draw_trips(listed, TripsMapSettings(level=2, shown=NOT_LISTED))
        rest = listed.unlisted_trips(2, 0).at(np.arange(24, dtype=np.int32), np.zeros(24, np.int32))
        assert drawing.legend.title == "of a region's trips, in pairs that are not listed, %"
        assert make_pane(drawing, areas="0", about="").title == "Trips in pairs that are not listed"
        light = drawing.areas[0].color.astype(int).sum(axis=1)
        assert light[np.argmax(rest)] < light.max()
        for release, level in ((case[0], 2), (listed, 1)):
            assert draw_trips(release, TripsMapSettings(level=level, shown=NOT_LISTED)).view.shown == "Released"


def test_public_scales_are_those_of_the_truth_whatever_is_released(case):
    view = TripsMapSettings(level=2)
    truth, other = case[1].true_level(2), released(random_trips(grid(), pairs=60), epsilon=0.3, seed=2)[0]
    tops = [choose_public_tops(release, truth, view) for release in (case[0], other)]
    assert tops[0] == tops[1]
    more = replace(truth, count=truth.count * 1000)
    assert choose_public_tops(case[0], more, view).trips == pytest.approx(1000 * tops[0].trips)
    legends = [drawing_of(case, shown=shown, tops=tops[0]).legend for shown in SHOWN_TRIPS[:2]]
    assert legends[0].lines == legends[1].lines


def test_as_measured_a_release_shows_the_numbers_before_they_were_made_whole(listed):
    raw = as_measured(listed)
    assert raw.to_frame(2)["count"].tolist() == listed.to_frame(2)["count_noisy"].tolist()
    assert raw.half_step_sums is None


def test_dots_are_named_the_largest_first_and_outlines_are_not():
    case = released(random_trips(grid(shapes="points")))
    drawing = drawing_of(case)
    names = names_of_dots(drawing)
    assert names[0][0] == drawing.areas[0].texts.title[np.argmax(drawing.areas[0].dots)]
    assert len({name for name, *_ in names}) == len(names)
    assert names_of_dots(drawing_of(released(random_trips(grid())))) == []


def test_places_are_named_in_regions_alone():
    release = TopDown().release(load_trip_sample("us_flights"), ApproxBudget(1, "1e-6"), Entropy.seeded(1))
    names = {name for name, *_ in released_scene(release, draw_trips(release, TripsMapSettings(level=2)), height=400).places}
    assert {"Chicago", "Denver", "Miami", "Seattle", "Washington"} <= names
    assert not {"Thunder Bay", "Toronto", "Havana", "Monterrey", "Ciudad Juárez"} & names
