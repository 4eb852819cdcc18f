"""Errors that are expected before a payment, with a public guess of how many records there are, and what plays no part in them."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpviz as dv
from dpviz.errors import InputError, SettingError
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.publishing import simulated_errors
from dpviz.publishing.dry_run import WantedError
from dpviz.publishing.guessed_records import DENOMINATOR, PublicGuess, count_no_records, guess_records
from dpviz.publishing.public_guess import EVEN, RELEASED, TOWNS
from dpviz.release.squares import block_boxes, expected_error
from dpviz.samples.trips import load_trip_sample
from tests.often import often

CITY = dv.Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=7)
FLIGHTS = load_trip_sample("us_flights").regions
PURE, APPROX = dv.PureBudget("1/2"), dv.ApproxBudget(1, "1e-6")


def regions(residents=(100, 300, 0, 600)):
    table = pd.DataFrame({"state": ["A", "A", "B", "B"], "town": ["a", "b", "c", "d"], "residents": residents})
    return dv.Regions.from_table(table, levels=["state", "town"], denominator="residents")


def other_runs(mechanism, made_up, budget, runs=12):
    return [mechanism.release(made_up, budget, stream) for stream in dv.Entropy.seeded(99).spawn(runs)]


@pytest.mark.parametrize("mechanism", often([dv.PathTree(), dv.UniformGrid(), dv.PrivTree(), dv.Quadtree(height=5), dv.AdaptiveGrid()], 2))
def test_errors_of_squares_are_those_of_other_runs_on_records_that_lie_as_guessed(mechanism):
    guess = {"records": 100_000, "spread": TOWNS}
    table = dv.expected_errors(mechanism, CITY, PURE, **guess).by_level.set_index("level")
    made_up = guess_records(count_no_records(mechanism, CITY), PublicGuess(**guess))
    runs = other_runs(mechanism, made_up, PURE)
    for zoom in (3, 5, 7):
        true = made_up.blocks(zoom)
        squared = np.mean([(release.blocks(zoom) - true) ** 2 for release in runs], axis=0)
        assert table.loc[zoom, "error"] == pytest.approx(np.sqrt(squared.mean()), rel=0.3), zoom
        boxes = block_boxes(CITY, zoom, *np.divmod(np.arange(4**zoom), 1 << zoom))
        known = [(np.sqrt(noise**2 + cut.variance), each.answer(boxes)) for each in runs[:4] for noise, cut in [each.error_parts(boxes)]]
        is_right = np.sqrt(squared) <= 0.4 * true
        useful = np.mean([(is_right.ravel() & (stddev <= 0.4 * answer)).sum() for stddev, answer in known])
        assert table.loc[zoom, "useful"] == pytest.approx(useful, rel=0.25, abs=60 if zoom == 7 else 4), zoom
        widths = np.diff([each.answer_interval(boxes) for each in runs[:4]], axis=1) / 2
        cut_at_0 = 1 if zoom < 7 else 1.7  # these lower ends are at least 0
        assert np.sqrt(np.mean(widths**2)) / 1.25 <= table.loc[zoom, "interval"] <= 1.5 * cut_at_0 * np.sqrt(np.mean(widths**2)), zoom
        assert table.loc[zoom, "average"] == 100_000 / 4**zoom
        assert table.loc[zoom, "stddev"] <= table.loc[zoom, "error"] * 1.001


@pytest.mark.parametrize(
    "mechanism",
    often([dv.FittedTree(false_discovery=0.05), dv.TopDown(), dv.FittedTree(), dv.StabilityHistogram(), dv.FlatGaussian()], 2),
    ids=lambda mechanism: f"{mechanism.key} {getattr(mechanism, 'false_discovery', None)}",
)
def test_errors_of_pairs_are_those_of_other_runs_and_so_is_how_many_are_useful(mechanism):
    table = dv.expected_errors(mechanism, FLIGHTS, APPROX, records=400_000, pairs=5_000).by_level.set_index("level")
    made_up = guess_records(count_no_records(mechanism, FLIGHTS), PublicGuess(records=400_000, pairs=5_000))
    runs = other_runs(mechanism, made_up, APPROX, 20)
    for level in (2, 3):
        found = [evaluate_trips(release, made_up).compare(level) for release in runs]
        error = np.sqrt(np.mean(np.concatenate([each["error"] ** 2 for each in found])))
        assert table.loc[level, "error"] == pytest.approx(error, rel=0.1), level
        each_pair = pd.concat(each[each["true"] > 0] for each in found).groupby(["origin", "destination"])
        wrong = np.sqrt(each_pair["error"].apply(lambda errors: (errors**2).mean()))
        assert table.loc[level, "useful"] == pytest.approx(int((wrong <= 0.4 * each_pair["true"].first()).sum()), rel=0.1), level
        released = np.mean([(release.stages[2 * level].count != 0).sum() for release in runs])
        assert table.loc[level, "released"] == pytest.approx(released, rel=0.05), level


def test_squares_that_are_right_by_luck_are_of_no_use_and_intervals_allow_for_what_lies_inside_partitions():
    """Records lie evenly, and large partitions split them well over their squares: but no released number says so."""
    table = dv.expected_errors(dv.Quadtree(height=3), CITY, PURE, records=400_000).by_level.set_index("level")
    assert table.loc[3, "useful"] == 64
    assert table.loc[7, "error"] < 0.4 * table.loc[7, "average"]
    assert table.loc[7, "useful"] < 0.1 * 4**7
    assert table.loc[3, "interval"] == pytest.approx(np.log(20) / np.sqrt(2) * table.loc[3, "stddev"]), "squares that cut nothing"
    assert table.loc[7, "interval"] > 10 * table.loc[7, "stddev"]


@pytest.mark.parametrize("mechanism", [dv.UniformGrid(), dv.PathTree()], ids=lambda each: each.key)
def test_squares_with_one_record_are_of_no_use_where_the_release_answers_a_fifth_of_it(mechanism):
    """The error that a reader knows is small beside the one record, but not beside the answer, which is far from that record."""
    domain = replace(CITY, order=8)
    table = dv.expected_errors(mechanism, domain, dv.PureBudget(1), records=5_000, spread=TOWNS).by_level.set_index("level")
    assert table.loc[8, "interval"] < 0.4 * 1.96 * 1.7, "small beside one record"
    assert table.loc[[6, 7, 8], "useful"].max() < 10
    assert table.loc[3, "useful"] > 50


def test_where_a_run_has_few_partitions_there_are_more_runs():
    runs = []
    for mechanism, records in ((dv.PathTree(), 3_000), (dv.PathTree(), 3_000_000), (dv.Quadtree(height=3), 3_000)):
        with mock.patch.object(type(mechanism), "release", autospec=True, side_effect=type(mechanism).release) as release:
            dv.expected_errors(mechanism, CITY, PURE, records=records)
        runs.append(release.call_count)
    assert runs == [8, 2, 1]


def test_an_error_of_few_records_is_about_that_of_other_runs():
    found = dv.find_epsilon(dv.UniformGrid(), CITY, 30, level=2, records=3_000, spread=TOWNS)
    made_up = guess_records(count_no_records(dv.UniformGrid(), CITY), PublicGuess(records=3_000, spread=TOWNS))
    squared = [
        (release.blocks(2) - made_up.blocks(2)) ** 2
        for release in other_runs(dv.UniformGrid(), made_up, dv.PureBudget(str(found.epsilon)), 60)
    ]
    assert found.error <= 30
    assert np.sqrt(np.mean(squared)) == pytest.approx(found.error, rel=0.25)


def test_regions_are_useful_where_a_public_density_puts_enough_records():
    towns = regions()
    for spread, useful in ((EVEN, 4), (DENOMINATOR, 3)):
        table = dv.expected_errors(dv.RegionTree(), towns, PURE, records=4_000, spread=spread).by_level
        assert table["useful"].tolist()[-1] == useful
        assert table["numbers"].tolist() == [1, 2, 4]
    other = dv.expected_errors(dv.RegionTree(), regions((0, 0, 0, 5)), PURE, records=4_000, spread=DENOMINATOR).by_level
    assert other["useful"].tolist() == [1, 1, 1], "equal regions with another denominator are another question"
    hidden = dv.expected_errors(dv.FlatAreas(threshold=1_500), towns, PURE, records=4_000, spread=DENOMINATOR).by_level
    assert hidden[["useful", "released"]].values.tolist()[-1] == [1, 1], "hidden counts are of no use"


@pytest.mark.parametrize("mechanism", [dv.PathTree(), dv.RegionTree(), dv.TopDown()], ids=lambda each: each.key)
def test_records_and_their_number_play_no_part(mechanism):
    if mechanism.family == "points":
        budget, frame = PURE, CITY
        data = dv.PointCounts.from_xy([-118.2] * 5_000, [34.0] * 5_000, domain=CITY)
    else:
        budget, frame = (PURE, regions()) if mechanism.family == "areas" else (APPROX, regions())
        rows = {"region": ["a"] * 5_000} if mechanism.family == "areas" else {"origin": ["a"] * 5_000, "destination": ["d"] * 5_000}
        data = (dv.AreaCounts if mechanism.family == "areas" else dv.TripCounts).from_table(pd.DataFrame(rows), regions=frame)
    for records in (None, 3_000):
        of_data, of_frame = (dv.expected_errors(mechanism, each, budget, records=records) for each in (data, frame))
        pd.testing.assert_frame_equal(of_data.by_level, of_frame.by_level)
        assert ("useful" in of_data.by_level) == (records is not None), "no number is filled in"
    assert not of_data.receipt.private or of_data.receipt.total == budget


def test_a_question_is_answered_once_and_can_be_stopped():
    ask = {"records": 7_001, "spread": TOWNS}
    calls = []

    def stop():
        calls.append(1)
        if len(calls) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        dv.expected_errors(dv.PathTree(), CITY, PURE, **ask, before_run=stop)
    found = dv.expected_errors(dv.PathTree(), CITY, PURE, **ask)
    with mock.patch.object(simulated_errors, "guess_records", side_effect=AssertionError("simulated again")):
        again = dv.expected_errors(dv.PathTree(), CITY, PURE, **ask, before_run=stop)
    pd.testing.assert_frame_equal(found.by_level, again.by_level)
    assert len(calls) == 3


def test_a_guess_that_does_not_fit_is_refused():
    trips = count_no_records(dv.TopDown(), regions())
    for options, text in (
        ({"records": 0}, "records must be a whole number"),
        ({"records": 10, "pairs": 0}, "pairs must be a whole number"),
        ({"records": 10, "spread": "anywhere"}, "spread"),
        ({"records": 10, "spread": RELEASED}, "that release is given"),
        ({"records": 10, "spread": TOWNS}, "not as towns do"),
        ({"records": 10, "spread": DENOMINATOR, "pairs": 3}, "lie evenly"),
        ({"records": 10, "pairs": 17}, "There are 16 pairs"),
        ({"spread": "x"}, "give their number, too"),
        ({"pairs": 3}, "give their number, too"),
    ):
        with pytest.raises(SettingError, match=text):
            dv.expected_errors(dv.TopDown(), regions(), APPROX, **options)
    with pytest.raises(SettingError, match="no denominator"):
        guess_records(replace(trips, regions=FLIGHTS, destinations=FLIGHTS), PublicGuess(records=5, spread=DENOMINATOR))
    with pytest.raises(SettingError, match="Only trips"):
        dv.expected_errors(dv.PathTree(), CITY, PURE, records=5, pairs=5)
    three = (regions(), regions(), regions())
    for mechanism, frame in ((dv.PathTree(), regions()), (dv.TopDown(), CITY), (dv.RegionTree(), three[:2]), (dv.TopDown(), three)):
        with pytest.raises(InputError, match=r"needs (a Domain|Regions|Regions or a pair \(origins, destinations\)) as its frame"):
            dv.expected_errors(mechanism, frame, PURE)
    for unbuilt in ("path_tree", dv.PathTree, None):
        for ask in (lambda each: dv.expected_errors(each, CITY, PURE), lambda each: dv.find_epsilon(each, CITY, 5, level=3)):
            with pytest.raises(SettingError, match=r'Give a built mechanism, .* dpviz.MECHANISMS\["path_tree"\]\(\), not'):
                ask(unbuilt)
    with pytest.raises(InputError, match=r"dv.expected_errors\(mechanism, frame, budget\)"):
        expected_error(dv.PathTree(), 3)


def test_made_up_trips_lie_like_a_density_or_an_earlier_release():
    towns = regions((0, 300, 0, 600))
    trips = count_no_records(dv.TopDown(), towns)
    like_residents = guess_records(trips, PublicGuess(records=9_000, spread=DENOMINATOR))
    assert {*zip(like_residents.origin.tolist(), like_residents.destination.tolist(), strict=True)} == {(1, 1), (1, 3), (3, 1), (3, 3)}
    assert like_residents.count.tolist()[-1] == pytest.approx(4_000, rel=0.1)
    counts = pd.DataFrame({"origin": ["a", "c"], "destination": ["b", "d"], "count": [9_000, 3_000]})
    budget = dv.ApproxBudget(50, "1e-6")
    release = dv.TopDown().release(dv.TripCounts.from_table(counts, regions=towns), budget, dv.Entropy.system())
    like = guess_records(trips, PublicGuess(records=1_200, spread=RELEASED, like=release))
    assert (like.origin.tolist(), like.destination.tolist()) == ([0, 2], [1, 3])
    assert like.count.tolist() == pytest.approx([900, 300], abs=60)
    table = dv.expected_errors(dv.TopDown(), towns, APPROX, records=1_200, like=release).by_level
    assert table["useful"].iloc[-1] == 2
    states = dv.Regions.from_table(pd.DataFrame({"state": ["A", "B"]}), levels=["state"])
    coarse = pd.DataFrame({"origin": ["A"], "destination": ["B"], "count": [9_000]})
    earlier = dv.FlatGaussian(threshold=50).release(dv.TripCounts.from_table(coarse, regions=states), budget, dv.Entropy.system())
    inside = guess_records(trips, PublicGuess(records=1_200, spread=RELEASED, like=earlier))
    assert (inside.origin.tolist(), inside.destination.tolist()) == ([0, 0, 1, 1], [2, 3, 2, 3])


def test_made_up_people_have_bounds_and_bounded_trips_are_exactly_so_many():
    people = count_no_records(dv.TopDown(), regions(), 3)
    assert (people.unit, people.contributions, people.exactly) == ("person", 3, True)
    one, three = (dv.expected_errors(dv.RegionTree(), regions(), PURE, contributions=m).by_level["stddev"] for m in (1, 3))
    assert (three > 2 * one).all()
    assert count_no_records(dv.TopDown(), (regions(), towns := regions((1, 1, 1, 1)))).destinations is towns


def test_find_epsilon_takes_a_frame_and_a_number():
    found = dv.find_epsilon(dv.FlatGaussian(), FLIGHTS, 20, level=3, delta=1e-6)
    assert dv.expected_errors(dv.FlatGaussian(), FLIGHTS, dv.ApproxBudget(str(found.epsilon), "1e-6")).by_level["stddev"].iloc[-1] <= 20
    with pytest.raises(SettingError, match="level"):
        dv.find_epsilon(dv.PathTree(), CITY, 5)
    with pytest.raises(SettingError, match=r"no 'record'; there are level, delta, gaussian, records, .*Did you mean 'records'\?"):
        dv.find_epsilon(dv.PathTree(), CITY, 5, level=3, record=1000)
    for beside in ({"level": 99}, {"records": 1000}):
        with pytest.raises(SettingError, match="A WantedError says all"):
            dv.find_epsilon(dv.PathTree(), CITY, WantedError(error=5, level=3), **beside)


def test_whole_numbers_of_numpy_are_numbers_of_records_and_pairs():
    guess = PublicGuess(records=np.int64(1000), pairs=np.int32(3))
    assert guess == PublicGuess(records=1000, pairs=3)
    assert (type(guess.records), type(guess.pairs)) == (int, int)
    for other in (True, np.True_, 1000.0, "1000", None):
        with pytest.raises(SettingError, match="records must be a whole number from 1"):
            PublicGuess(records=other)


@pytest.mark.parametrize(
    ("mechanism", "frame", "wanted", "level"),
    [(dv.StabilityHistogram(), regions(), 60, 1), (dv.TopDown(), regions(), 30, 2), (dv.UniformGrid(), CITY, 40, 4)],
    ids=lambda each: getattr(each, "key", ""),
)
def test_with_a_guess_find_epsilon_reaches_the_error_that_expected_errors_states(mechanism, frame, wanted, level):
    guess = {"records": 20_000} | ({"pairs": 16} if mechanism.family == "trips" else {})
    found = dv.find_epsilon(mechanism, frame, wanted, level=level, delta=1e-6, **guess)
    budgets = {"trips": lambda epsilon: dv.ApproxBudget(epsilon, "1e-06"), "points": dv.PureBudget}
    tables = [
        dv.expected_errors(mechanism, frame, budgets[mechanism.family](str(epsilon)), **guess).by_level.set_index("level")
        for epsilon in (found.epsilon, found.epsilon / 3)
    ]
    errors = [table.loc[level, "error"] for table in tables]
    assert found.error == pytest.approx(errors[0])
    assert errors[0] <= wanted < errors[1]
    assert "20,000 made-up records, which lie evenly" in found.note
