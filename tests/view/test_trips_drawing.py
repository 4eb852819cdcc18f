"""What maps of trips show: which data reach the browser, which decide the scales and the arcs, and scales that several maps share."""

import math
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dpviz.errors import DomainError
from dpviz.mechanisms import MECHANISMS as REGISTRY
from dpviz.mechanisms import FittedTree
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.trip_release import PairSums
from dpviz.samples.trips import load_trip_sample
from dpviz.view.colors import FALSE_NEGATIVE, FALSE_POSITIVE, PAPER
from dpviz.view.trips_canvas import released_scene
from dpviz.view.trips_drawing import (
    AREAS,
    ARRIVING_COLOR,
    BELOW_ZERO_COLOR,
    DOT_COLOR,
    LEAVING_COLOR,
    MOST_ARCS,
    PAIR_FILTERS,
    SHOWN_TRIPS,
    TripsMapSettings,
    choose_tops,
    draw_trips,
    has_geometry,
    merge_tops,
)
from dpviz.view.trips_layers import LARGEST_DOT, SMALLEST_DOT
from tests.view.trips_cases import MECHANISMS, grid, layers_of, random_trips, released

BYTES = 5_000_000
HOSTILE = "</b><script>alert(1)</script>{t}"


@pytest.fixture(scope="module", params=MECHANISMS)
def case(request):
    return released(random_trips(grid()), request.param)


@pytest.fixture(scope="module")
def noisy():
    """A budget so small that there are false positives and false negatives."""
    return released(random_trips(grid(), pairs=60), epsilon=0.3)


def mapped(case, *, truth=None, **view):
    view = TripsMapSettings(**({"level": 2} | view))
    return draw_trips(case[0], view, case[1].true_level(view.level) if truth is True else truth)


def words_of(legend):
    """All words of a legend."""
    drawn = (*legend.lines, *legend.dashed, *legend.dots, *legend.marks)
    return " ".join([legend.title, legend.low, legend.top, *(text for *_, text in drawn)])


def arcs_of(picture):
    return layers_of(picture)["arcs"]


def ends_of(picture):
    return {(row["o"], row["z"]) for row in arcs_of(picture)}


def number(text):
    """What a text of the map says, as a number."""
    return int(text.replace(",", "").replace("−", "-"))


def counts_of(picture):
    """The numbers of the arcs, in the order in which they are drawn."""
    return [number(row["t"].removeprefix("released ").split(" ")[0]) for row in arcs_of(picture)]


def scaled(truth, factor, plus=0):
    return replace(truth, count=truth.count * factor + plus)


@pytest.mark.parametrize(("level", "shown", "dark"), [*zip([1, 2, 2, 1], SHOWN_TRIPS, [True, True, False, False], strict=True)])
def test_every_view_is_complete_and_small_and_loads_nothing(case, level, shown, dark):
    picture = mapped(case, truth=True, level=level, shown=shown, dark=dark, chosen=1)
    scene = released_scene(case[0], picture, height=400)
    messages = b"".join(scene.pack().values())
    assert len(messages) < BYTES
    assert b"://" not in messages
    assert (scene.may_save, scene.panes[0].chosen) == (False, (1,))
    assert all(math.isfinite(number) for row in arcs_of(picture) for number in (*row["b"], row["w"]))
    assert shown.lower() in picture.description
    assert picture.drawn == len(arcs_of(picture)) <= picture.total


def test_arcs_are_light_where_they_begin(case):
    rows = arcs_of(mapped(case))
    assert rows
    for row in rows:
        assert row["o"] != row["z"]
        assert row["a"][:3] == row["b"][:3]
        assert 0 < row["a"][3] < row["b"][3] / 3


def test_the_largest_released_pairs_are_drawn_and_the_largest_last_and_small_ones_can_be_left_out(case):
    table = case[0].to_frame(2)
    table = table[table["origin"] != table["destination"]]
    picture = mapped(case, top=20)
    assert counts_of(picture) == sorted(table["count"].nlargest(20))
    widths = [row["w"] for row in arcs_of(picture)]
    assert widths == sorted(widths)
    assert (picture.drawn, picture.total) == (20, len(table))
    assert picture.note.startswith(f"Showing 20 of {len(table):,} pairs with released trips, the largest first.")
    picture = mapped(case, least=40, unit="flights")
    assert min(map(abs, counts_of(picture))) >= 40
    assert picture.drawn < picture.total
    assert "from 40 flights on" in picture.note


def test_negative_and_uncertain_pairs_have_looks_of_their_own_are_counted_and_can_be_drawn_alone(case):
    release, everything = case[0], arcs_of(mapped(case, top=5000))
    at, low = release.stages[4], release.stage_interval(4, joint=True)[0]
    known = {(o, z): (c, a > 0) for o, z, c, a in zip(*map(np.ndarray.tolist, (at.origin, at.destination, at.count, low)), strict=True)}
    looks = {"above zero": set(), "below zero": set(), "certain": set()}
    for row in everything:
        count, certain = known[row["o"], row["z"]]
        assert row["d"] != certain, "dashed where the interval contains 0"
        looks["certain" if certain else "below zero" if count < 0 else "above zero"].add(tuple(row["b"][:3]))
    certain = [(known[row["o"], row["z"]][0], sum(row["b"][:3])) for row in everything if known[row["o"], row["z"]][1]]
    assert certain == sorted(certain, key=lambda pair: (pair[0], -pair[1])), "the largest come last and are the darkest"
    assert certain[0][1] > certain[-1][1]
    assert looks["below zero"] <= {BELOW_ZERO_COLOR[False]}
    assert len(looks["above zero"]) == 1
    assert not looks["above zero"] & (looks["certain"] | looks["below zero"])
    pairs = [known[row["o"], row["z"]] for row in everything]
    negative, uncertain = sum(count < 0 for count, _ in pairs), sum(not certain for _, certain in pairs)
    assert f"Of {uncertain - negative:,}{' more' if negative else ''} the interval contains 0" in mapped(case).note
    assert (f"{negative:,} are below zero, by noise" in mapped(case).note) == (negative > 0)
    assert ("by noise; none of them is drawn" in mapped(case, top=3).note) == (negative > 0)
    assert "the interval contains 0; none of them is drawn" in mapped(case, top=3).note
    few, many = (mapped(case, top=top).legend for top in (3, 5000))
    assert ([text for *_, text in few.dashed], [text for *_, text in many.dashed]) == ([], ["may be 0"])
    assert ("below zero, by noise" in words_of(mapped(case, top=5000).legend)) == (negative > 0) == (release.mechanism == "flat_gaussian")
    numbers = {"above zero": len(pairs) - negative, "below zero": negative, "certain": len(pairs) - uncertain, "all": len(pairs)}
    assert {kind: mapped(case, pairs=kind, top=5000).drawn for kind in PAIR_FILTERS} == numbers


def test_note_and_tooltips_say_how_much_is_not_listed():
    trips = random_trips(grid())
    release = FittedTree(false_discovery=0.05).release(trips, ApproxBudget(1, "1e-8"), Entropy.seeded(1))
    rest = release.unlisted_trips(0, 0).count.sum()
    assert f"{rest:,} trips are in pairs that are not listed" in mapped((release,), level=2).note
    areas = layers_of(mapped((release,), level=2))["regions"]
    starting = [number(found) for row in areas for found in re.findall(r"start here [^;]*; ([\d,]+) of them not listed", row["t"])]
    assert sum(starting) == rest
    rests = [
        found
        for row in areas
        for found in re.findall(r"not listed \(95 %, all at once: ([\d,]+) to [\d,]+\)(, not told apart from 0)?", row["t"])
    ]
    assert len(rests) >= len(starting) > 0
    assert all((low == "0") == bool(words) for low, words in rests)
    index = np.arange(release.tree.origins.size(2), dtype=np.int32)
    unlisted = release.is_unlisted((2, 2), index, index)
    assert unlisted.any()
    assert {row["i"] for row in areas if "do both" not in row["t"]} == set(index[unlisted].tolist())
    arcs = arcs_of(mapped((release,), level=1, top=5000))
    assert any("of them in pairs that are not listed" in row["t"] for row in arcs)


def test_at_most_5_000_arcs_are_drawn():
    picture = mapped(released(random_trips(grid(20, 20), pairs=9000), "flat_gaussian"), top=10**9)
    assert picture.drawn == MOST_ARCS < picture.total


def test_the_tooltip_shows_the_numbers_of_the_release(case):
    release, evaluation = case
    at, names, truth = release.stages[4], release.tree.origins.names_of(2), evaluation.true_level(2)
    pairs = zip(at.origin.tolist(), at.destination.tolist(), at.count.tolist(), *release.stage_interval(4, joint=True), strict=True)
    numbers = {(origin, destination): rest for origin, destination, *rest in pairs}
    for row in arcs_of(mapped(case, truth=True, unit="flights")):
        count, low, high = numbers[row["o"], row["z"]]
        true = truth.at(np.array([row["o"]], np.int32), np.array([row["z"]], np.int32))[0]
        assert row["n"] == f"{names[row['o']]} to {names[row['z']]}"
        assert row["t"] == f"released {count:,} flights (95 %, all at once: {low:,.0f} to {high:,.0f})".replace("-", "−")
        assert row["e"] == f"true {true:,}, error {count - true:+,}".replace("-", "−")


def test_truth_goes_to_the_browser_only_where_it_was_given(case):
    own = released_scene(case[0], mapped(case), height=400).pack()
    for shown in SHOWN_TRIPS:
        picture = mapped(case, shown=shown)
        assert not any("e" in row for rows in layers_of(picture).values() for row in rows)
        assert "true" not in words_of(picture.legend) + picture.note
        assert released_scene(case[0], picture, height=400).pack() == own


def test_neither_the_released_map_nor_any_scale_depends_on_the_truth(case):
    truth, own = case[1].true_level(2), mapped(case)

    def looks(picture):
        rows = [row | {"e": None} for rows in layers_of(picture).values() for row in rows]
        return rows, picture.legend, picture.note, picture.description, picture.drawn, picture.total

    for other in (truth, scaled(truth, 1000, 7)):
        assert looks(mapped(case, truth=other)) == looks(own)
    for shown, chosen in product(SHOWN_TRIPS, (None, 3)):
        options = {"shown": shown, "chosen": chosen, "top": 30}
        assert mapped(case, truth=truth, **options).legend == mapped(case, truth=scaled(truth, 1000), **options).legend


def test_the_true_map_draws_the_largest_true_pairs_on_the_released_scale(case):
    truth = case[1].true_level(2)
    other = truth.origin != truth.destination
    picture = mapped(case, truth=True, shown="True", top=15)
    drawn = truth.at(*(np.array([row[key] for row in arcs_of(picture)], np.int32) for key in "oz"))
    assert sorted(drawn) == sorted(truth.count[other])[-15:]
    assert [number(row["e"].split(", error")[0].removeprefix("true ")) for row in arcs_of(picture)] == drawn.tolist()
    assert picture.total == other.sum()
    assert picture.legend == replace(mapped(case, truth=True, top=15).legend, dashed=())
    assert not any(row["d"] for row in arcs_of(picture))


def test_errors_have_two_signs_and_the_largest_are_drawn(noisy):
    picture = mapped(noisy, truth=True, shown="Error", top=40)
    table = noisy[1].compare(2)
    table = table[table["origin"] != table["destination"]]
    errors = [number(row["e"].split("error ")[1]) for row in arcs_of(picture)]
    assert [row["b"][2] > row["b"][0] for row in arcs_of(picture)] == [error > 0 for error in errors]
    assert [*map(abs, errors)] == sorted(table["error"].abs().nlargest(40))
    assert "released minus true, trips per pair" in words_of(picture.legend)
    assert "are not the true ones" in picture.note


def test_false_positives_and_negatives_are_marked_and_come_first(noisy):
    table = noisy[1].compare(2)
    table = table[table["origin"] != table["destination"]]
    picture = mapped(noisy, truth=True, shown="False positives", top=5000)
    colors = {FALSE_POSITIVE: "false positive", FALSE_NEGATIVE: "false negative", (128, 128, 128): "true positive"}
    for color, kind in colors.items():
        expected = {tuple(row) for row in table.loc[table["kind"] == kind, ["origin", "destination"]].itertuples(index=False)}
        assert expected
        assert {(row["o"], row["z"]) for row in arcs_of(picture) if tuple(row["b"][:3]) == color} == expected
    assert {row["t"] for row in arcs_of(picture) if tuple(row["b"][:3]) == FALSE_NEGATIVE} == {"released 0 trips"}, "no interval"
    numbers = table["kind"].value_counts()
    few = mapped(noisy, truth=True, shown="False positives", top=numbers["false positive"] + numbers["false negative"])
    assert {tuple(row["b"][:3]) for row in arcs_of(few)} == {FALSE_POSITIVE, FALSE_NEGATIVE}
    counts = (
        f"Of all between two regions, {numbers['false positive']:,} are false positives and {numbers['false negative']:,} false negatives."
    )
    assert counts in picture.note


@pytest.mark.parametrize("shown", SHOWN_TRIPS)
def test_of_a_chosen_region_both_directions_are_drawn_and_nothing_else(case, shown):
    everything = ends_of(mapped(case, truth=True, shown=shown, top=5000))
    picture = mapped(case, truth=True, shown=shown, top=5000, chosen=5)
    assert ends_of(picture) == {pair for pair in everything if 5 in pair}
    name = case[0].tree.origins.names_of(2)[5]
    assert f"Only those from or to {name}." in picture.note
    assert f"from or to {name}" in picture.description
    if shown in ("Released", "True"):
        for row in arcs_of(picture):
            full = ARRIVING_COLOR[False] if row["z"] == 5 else LEAVING_COLOR[False]
            pale = tuple((value + paper) // 2 for value, paper in zip(full, PAPER[False], strict=True))
            assert tuple(row["b"][:3]) in ((full, pale, BELOW_ZERO_COLOR[False]) if shown == "Released" else (full,))
        assert "arriving" in words_of(picture.legend)


def test_tooltips_of_regions_show_trips_that_start_there_that_end_there_and_that_do_both(case):
    release, evaluation = case
    truth = evaluation.true_level(2)
    released_pairs = release.sums(2, 2)
    for row in layers_of(mapped(case, truth=True, unit="flights"))["regions"]:
        for text, sums in ((row["t"], released_pairs), (row["e"].removeprefix("true: "), truth)):
            own, other = sums.origin == row["i"], sums.destination == row["i"]
            numbers = [sums.count[own].sum(), sums.count[other].sum(), sums.count[own & other].sum()]
            facts = re.sub(r"^released | \(95 %, all at once: [\d,]+ to [\d,]+\)| flights| here| do", "", text).replace(";", ",")
            every = numbers[0] + numbers[1] - numbers[2]
            assert facts == f"{every:,} in all, {numbers[0]:,} start, {numbers[1]:,} end, {numbers[2]:,} both".replace("-", "−")
        assert "(95 %" not in row["e"]
        assert row["n"] == release.tree.origins.names_of(2)[row["i"]]


@pytest.mark.parametrize("mechanism", REGISTRY.of("trips"))
def test_totals_of_regions_have_intervals_where_every_pair_was_measured_and_the_note_says_what_they_mean(mechanism):
    release = REGISTRY.of("trips")[mechanism]().release(random_trips(grid()), ApproxBudget(1, "1e-8"), Entropy.seeded(1))
    picture = mapped((release,))
    texts, note = [row["t"] for row in layers_of(picture)["regions"]], picture.note
    known = mechanism in ("fitted_tree", "flat_gaussian")
    assert all(
        bool(re.search(r"start here \(95 %, all at once: [\d,]+ to [\d,]+\); [\d,−]+ trips end here \(95 %", text)) == known
        for text in texts
    )
    assert "hold for all numbers of their kind at once" in note
    assert ("without an interval has an unknown error" in note) != known
    assert ("can lie outside its interval" in note) == (mechanism == "fitted_tree")
    coarse = arcs_of(mapped((release,), level=1))
    assert all(("(95 %" in row["t"]) == (mechanism != "stability_histogram") for row in coarse)


@pytest.mark.parametrize("shapes", ["polygons", "points"])
def test_under_arcs_the_area_of_a_dot_is_in_proportion_to_what_leaves_its_region_and_the_legend_has_its_scale(shapes):
    case = released(random_trips(grid(shapes=shapes), pairs=500))
    picture, sums = mapped(case), case[0].sums(2, 2)
    leaving = np.bincount(sums.origin, sums.count * (sums.origin != sums.destination), 24)
    radii = np.array([row["r"] for row in layers_of(picture)["regions"]])
    sized = (radii > SMALLEST_DOT) & (radii < LARGEST_DOT)
    assert sized.sum() > 10
    ((_, radius, words),) = picture.legend.dots
    assert words.endswith(" leaving")
    assert radii[sized] ** 2 / leaving[sized] == pytest.approx(radius**2 / (choose_tops(case[0], picture.view).dot / 4))
    assert {tuple(row["c"]) for row in layers_of(picture)["regions"]} == {(*DOT_COLOR[False], 255)}


def test_dots_of_true_totals_are_on_the_released_scale_and_coloured_regions_have_none(case):
    truth = scaled(case[1].true_level(2), 10**6)
    assert {row["r"] for row in layers_of(mapped(case, truth=truth, shown="True"))["regions"]} == {LARGEST_DOT}
    assert {row["r"] for row in layers_of(mapped(case, marks=AREAS))["regions"]} == {None}


def test_names_are_not_escaped_twice_nor_in_notes_which_the_page_escapes():
    picture = mapped(released(random_trips(grid(name=HOSTILE))), chosen=0)
    assert layers_of(picture)["regions"][0]["n"].replace("\u2060", "") == f"{HOSTILE} 0"
    assert HOSTILE in picture.note


def test_regions_without_outlines_are_points_sized_by_their_trips():
    release = released(random_trips(grid(shapes="points")))[0]
    drawing = draw_trips(release, TripsMapSettings(level=2, chosen=4))
    assert drawing.areas[0].shapes.are_dots
    rows = {row["i"]: row for row in layers_of(drawing)["regions"]}
    assert sorted(rows) == list(range(24))
    assert draw_trips(release, TripsMapSettings(level=1)).areas[0].shapes.are_dots


def test_regions_without_geometry_and_unknown_levels_views_and_regions_are_refused(case):
    assert [has_geometry(grid(shapes=shapes), 1) for shapes in (None, "points", "polygons")] == [False, True, True]
    with pytest.raises(DomainError, match="matrix"):
        draw_trips(released(random_trips(grid(shapes=None)))[0], TripsMapSettings(level=1))
    for wrong in ({"level": 0}, {"level": 3}, {"shown": "All"}, {"chosen": 24}, {"chosen": -1}):
        with pytest.raises(DomainError):
            mapped(case, **wrong)


def test_trips_between_two_geographies_have_a_layer_for_each():
    regions, ends = grid(), grid(4, 4, west=-80, name="Port")
    case = released(random_trips(regions, destinations=ends))
    picture = mapped(case, truth=True)
    layers = layers_of(picture)
    assert list(layers) == ["regions", "ends", "arcs"]
    assert all("start here" in row["t"] and "end here" not in row["t"] for row in layers["regions"])
    assert all("end here" in row["t"] and "start here" not in row["t"] for row in layers["ends"])
    rows = arcs_of(picture)
    assert any(row["o"] == row["z"] for row in rows)
    np.testing.assert_allclose(picture.areas[1].shapes.centres, ends.centres(2), atol=1e-4)
    assert all(row["o"] == 2 for row in arcs_of(mapped(case, chosen=2)))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_data_without_trips_give_a_map_without_arcs(mechanism):
    case = released(random_trips(grid(), pairs=0), mechanism)
    for shown in SHOWN_TRIPS:
        picture = mapped(case, truth=True, shown=shown)
        assert picture.drawn == len(arcs_of(picture))
        assert mechanism != "top_down" or picture.note.startswith("Showing 0 of 0 pairs")


@pytest.mark.slow
def test_a_map_of_all_us_counties_is_small_and_has_all_regions():
    case = released(load_trip_sample("us_commuters"), epsilon=10)
    for level, shown in ((1, "False positives"), (2, "Released"), (3, "False positives")):
        options = {"truth": True, "level": level, "shown": shown, "top": MOST_ARCS, "unit": "commuters"}
        for chosen in (1, None):
            picture = mapped(case, chosen=chosen, **options)
            assert sum(map(len, released_scene(case[0], picture, height=400).pack().values())) < BYTES
            assert set(picture.areas[0].shapes.owner) == set(range(case[0].tree.origins.size(level)))


def test_a_missing_pair_is_zero_in_the_truth(case):
    nothing = PairSums(origin=np.zeros(0, np.int32), destination=np.zeros(0, np.int32), count=np.zeros(0, np.int64), width=24)
    rows = arcs_of(mapped(case, truth=nothing, shown="False positives"))
    assert {tuple(row["b"][:3]) for row in rows} == {FALSE_POSITIVE}
    assert mapped(case, truth=nothing, shown="True").drawn == 0


def test_a_map_ends_its_scales_where_its_release_does_and_several_share_the_larger_of_each():
    both = [released(random_trips(grid(), pairs=pairs)) for pairs in (20, 300)]
    own = [choose_tops(release, TripsMapSettings(level=2)) for release, _ in both]
    for case, tops in zip(both, own, strict=True):
        for shown in ("Released", "True"):
            assert mapped(case, truth=True, tops=tops, shown=shown).legend == mapped(case, truth=True, shown=shown).legend
    shared = merge_tops(own)
    assert (shared.arcs, shared.trips) == (max(tops.arcs for tops in own), max(tops.trips for tops in own))
    assert merge_tops(own[:1]) == own[0]
    pictures = [mapped(case, tops=replace(shared, trips=2 * shared.trips)) for case in both]
    assert pictures[0].legend == pictures[1].legend
    few, alone = ({(row["o"], row["z"]): row["w"] for row in arcs_of(picture)} for picture in (pictures[0], mapped(both[0])))
    assert all(width <= alone[pair] for pair, width in few.items())
