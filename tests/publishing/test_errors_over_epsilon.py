"""Errors over ε: those of other runs at the ε of a run, fewer with more budget, the same each time, and never those of private records."""

from unittest import mock

import numpy as np
import pytest

import dpviz as dv
from dpviz.errors import SettingError
from dpviz.evaluation.metrics import presence_errors
from dpviz.publishing import errors_over_epsilon as module
from dpviz.publishing.errors_over_epsilon import ErrorsOverEpsilon, errors_over_epsilon, levels_over_epsilon
from dpviz.publishing.guessed_records import PublicGuess, count_no_records, guess_records
from dpviz.publishing.public_guess import TOWNS

DOMAIN = dv.Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=6)
TOWN_RECORDS = PublicGuess(records=20_000, spread=TOWNS)
POINTS = guess_records(count_no_records(dv.PathTree(), DOMAIN), TOWN_RECORDS)
TRIPS, AREAS = dv.load_sample("us_flights"), dv.load_sample("made_up_city")
CASES = {
    "path_tree": (dv.PathTree(), POINTS, 4),
    "quadtree": (dv.Quadtree(height=6), POINTS, 6),
    "quadtree, finer squares": (dv.Quadtree(height=3), POINTS, 6),
    "top_down": (dv.TopDown(), TRIPS, 2),
    "region_tree": (dv.RegionTree(), AREAS, 3),
}
OF_A_RUN, STEPS = 0.5, (0.1, 0.4, 2.0)
CALLS = 20


def measure(mechanism, data, level):
    """Means over 20 seeds: of the error of an average part, and of the share of empty parts (of trips, of released ones) that is false."""
    budget = dv.ApproxBudget(str(OF_A_RUN), "1e-8") if data.family == "trips" else dv.PureBudget(str(OF_A_RUN))
    squared, false = [], []
    for stream in dv.Entropy.seeded(77).spawn(CALLS):
        release = mechanism.release(data, budget, stream)
        if data.family == "trips":
            evaluation = dv.evaluate(release, data)
            row, average = evaluation.by_stage.iloc[2 * level], evaluation.true_level(level).count.mean()
            squared.append((row["rms_error_present"] / average) ** 2)
            false.append(row["false_discovery"] / 100)
            continue
        is_points = data.family == "points"
        true = data.blocks(level).ravel() if is_points else data.level_counts()[level]
        released = release.blocks(level).ravel() if is_points else release.count[release.nodes(level)]
        squared.append(((released - true) ** 2).mean() / true.mean() ** 2)
        false.append(presence_errors(released, true)["false_positives"] / max((true == 0).sum(), 1))
    return np.sqrt(np.mean(squared)), np.mean(false)


@pytest.mark.parametrize("name", CASES)
def test_at_the_epsilon_of_a_run_errors_are_those_of_other_runs_and_they_fall_with_the_budget(name):
    found = errors_over_epsilon(*CASES[name], public=True, epsilons=STEPS)
    error, false = measure(*CASES[name])
    assert found.error_at(OF_A_RUN) == pytest.approx(error, rel=0.1)
    assert found.false_share_at(OF_A_RUN) == pytest.approx(false, abs=0.1)
    assert (np.diff(found.error) < 0).all()
    assert ((found.false_share >= 0) & (found.false_share <= 1)).all()


@pytest.mark.parametrize("name", ["quadtree", "top_down", "region_tree"])
def test_all_levels_at_once_have_the_errors_of_one_level_alone(name):
    mechanism, data, level = CASES[name]
    levels = levels_over_epsilon(mechanism, data, epsilons=STEPS)
    alone = errors_over_epsilon(*CASES[name], public=True, epsilons=STEPS)
    assert list(levels) == list(range(len(levels)))
    assert levels[level].error == pytest.approx(alone.error, rel=0.05)
    assert levels[level].false_share == pytest.approx(alone.false_share, abs=0.1)


def test_a_measured_run_stands_in_place_of_what_is_expected_at_its_epsilon_alone():
    known = ErrorsOverEpsilon(epsilon=np.array([0.1, 1.0]), error=np.array([0.4, 0.04]), false_share=np.array([0.5, 0.1]))
    joined = known.joined_to(1.0, 0.05, np.nan)
    assert joined.epsilon.tolist() == [0.1, 1.0]
    assert joined.error.tolist() == [0.4, 0.05]
    assert joined.false_share.tolist() == [0.5, 0.1]
    assert known.joined_to(0.01, 3.0, 0.6).error.tolist() == [3.0, 0.4, 0.04]
    assert known.joined_to(0.5, np.nan, 0.6) is known
    unknown = known.joined_to(0.01, 3.0, np.nan)
    assert np.isnan(unknown.false_share[0])


def test_the_same_question_has_the_same_answer_and_another_seed_another_one():
    ask = {"public": True, "epsilons": (1, 0.1)}
    one, again, other = (errors_over_epsilon(*CASES["path_tree"], seed=seed, **ask) for seed in (5, 5, 6))
    assert one.epsilon.tolist() == [0.1, 1.0]
    assert (one.error == again.error).all()
    assert (one.false_share == again.false_share).all()
    assert (one.error != other.error).any()


def test_with_a_guess_errors_are_those_that_expected_errors_states_and_no_record_plays_a_part():
    mechanism, level = dv.Quadtree(height=5), 5
    other = dv.PointCounts.from_xy([-118.0] * 9_000, [34.0] * 9_000, domain=DOMAIN)
    found, empty = (
        errors_over_epsilon(mechanism, data, level, guess=TOWN_RECORDS, epsilons=STEPS) for data in (other, POINTS.without_records())
    )
    assert (found.error == empty.error).all()
    assert (found.false_share == empty.false_share).all()
    table = dv.expected_errors(mechanism, DOMAIN, dv.PureBudget("0.4"), records=20_000, spread=TOWNS).by_level.set_index("level")
    assert found.error[1] == pytest.approx(table.loc[level, "error"] / table.loc[level, "average"])
    assert found.false_share[1] == pytest.approx(table.loc[level, "false_share"])


def test_private_data_need_a_guess_and_public_ones_have_none():
    for ask in ({}, {"public": True, "guess": TOWN_RECORDS}):
        with (
            mock.patch.object(module, "compare_releases", side_effect=AssertionError("looked at")),
            pytest.raises(SettingError, match="public"),
        ):
            errors_over_epsilon(dv.Quadtree(height=5), POINTS, 5, **ask)


@pytest.mark.parametrize(
    ("level", "epsilons"), [(7, STEPS), (-1, STEPS), (5, (1.0,)), (5, (1.0, 1.0)), (5, (0, 1)), (5, (1, np.inf)), (5, ())]
)
def test_levels_and_epsilons_out_of_range_are_refused(level, epsilons):
    with pytest.raises(SettingError):
        errors_over_epsilon(dv.Quadtree(height=5), POINTS, level, public=True, epsilons=epsilons)


def test_it_can_be_stopped():
    with pytest.raises(InterruptedError):
        errors_over_epsilon(*CASES["quadtree"], public=True, before_run=mock.Mock(side_effect=[0, 0, 0, InterruptedError]))


def test_between_two_values_noise_alone_is_a_straight_line_and_beyond_nothing_is_known():
    known = ErrorsOverEpsilon(epsilon=np.array([0.1, 1.0]), error=np.array([0.5, 0.05]), false_share=np.array([0.5, 0.1]))
    assert known.error_at([0.1, 0.25, 1.0]) == pytest.approx([0.5, 0.2, 0.05])
    assert np.isnan(known.error_at([0.09, 1.1])).all()
    assert known.false_share_at(0.1**0.5) == pytest.approx(0.3)
    exact = ErrorsOverEpsilon(epsilon=known.epsilon, error=np.zeros(2), false_share=np.zeros(2))
    assert exact.error_at(0.5) == pytest.approx(0, abs=1e-8)


def test_without_any_record_there_is_no_average_to_compare_with():
    found = errors_over_epsilon(dv.Quadtree(height=5), POINTS.without_records(), 5, public=True, epsilons=STEPS)
    assert np.isnan(found.error).all()
    assert np.isnan(found.error_at(0.5))


@pytest.mark.parametrize("lean", [False, True])
def test_errors_in_some_slots_are_those_of_their_counts(lean):
    """An average block has as many visits as three hours say. Its noise is that of any release, and lean counts are better in blocks."""
    city, slots, mechanism = dv.load_sample("city_by_hour"), ("07", "08", "09"), dv.CrossTree(lean=lean)
    errors = levels_over_epsilon(mechanism, city, epsilons=(0.5, 1), slots=slots)
    for level, known in errors.items():
        release = mechanism.release(city, dv.PureBudget("0.5"), dv.Entropy.seeded(3)).in_slots(slots)
        average = city.in_slots(slots).count.sum() / city.regions.size(level)
        spread = np.sqrt((release.stddev(level) ** 2).mean())
        if lean and city.regions.size(level) > 30:
            wrong = release.count[release.nodes(level)] - city.in_slots(slots).level_counts()[level]
            assert np.sqrt(np.mean(wrong**2)) < spread
            spread = np.sqrt(np.mean(wrong**2))
        assert known.error_at(0.5) == pytest.approx(spread / average, rel=0.2 if lean else 0.02)


def test_of_made_up_records_which_lie_evenly_over_slots_errors_are_those_of_the_noise():
    city, budget = dv.load_sample("city_by_hour"), dv.PureBudget("0.5")
    found = dv.expected_errors(dv.CrossTree(), city.without_records(), budget, records=2000).by_level
    noise = dv.CrossTree().expected_pair_errors(city.frame, budget)
    assert found["error"].to_numpy() == pytest.approx([each.stddev for each in noise])
