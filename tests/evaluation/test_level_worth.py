"""What is said of a level: the numbers of the tables of errors, which get worse, on average, as ε gets smaller."""

import math

import numpy as np
import pytest

import dpviz as dv
from dpviz.evaluation.level_worth import EMPTY, PAIRS, LevelWorth, weigh_pairs, weigh_regions, weigh_squares, write_error
from dpviz.publishing.guessed_records import PublicGuess, count_no_records, guess_records
from dpviz.publishing.public_guess import TOWNS
from dpviz.release.verdict import NOISE, ROUGH, USABLE

SEEDS = 20
DOMAIN = dv.Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=5)
POINTS = guess_records(count_no_records(dv.PathTree(), DOMAIN), PublicGuess(records=20_000, spread=TOWNS))
AREAS, TRIPS = dv.load_sample("made_up_city"), dv.load_sample("us_flights")
CASES = {
    "quadtree": (dv.Quadtree(height=5), POINTS, weigh_squares, (5, 0.5, 0.05)),
    "path_tree": (dv.PathTree(), POINTS, weigh_squares, (2, 0.1)),
    "region_tree": (dv.RegionTree(), AREAS, weigh_regions, (5, 0.5, 0.05)),
    "top_down": (dv.TopDown(), TRIPS, weigh_pairs, (0.5, 0.02)),
}


def worth(name, epsilon):
    """What each level is worth in each of 20 runs: (runs, levels) errors, and shares of those that look inhabited in vain."""
    mechanism, data, weigh, _ = CASES[name]
    budget = dv.ApproxBudget(str(epsilon), "1e-8") if mechanism.needs_delta else dv.PureBudget(str(epsilon))
    runs = [weigh(dv.evaluate(mechanism.release(data, budget, stream), data)) for stream in dv.Entropy.seeded(5).spawn(SEEDS)]
    return [np.array([[getattr(level, name) for level in run] for run in runs]) for name in ("error", "false_share")]


@pytest.mark.parametrize("name", CASES)
def test_in_expectation_a_level_is_worth_less_with_a_smaller_budget(name):
    found = [worth(name, epsilon) for epsilon in CASES[name][3]]
    errors = np.array([error.mean(axis=0) for error, _ in found])
    assert (np.diff(errors[:, 1:], axis=0) > 0).all(), errors
    false = np.array([share.mean(axis=0) for _, share in found])
    known = np.isfinite(false).all(axis=0)
    assert (false[-1, known] >= false[0, known] - 0.02).all(), false


def test_the_sentence_is_about_the_shown_level_and_its_numbers_are_those_of_the_table():
    release = dv.RegionTree().release(AREAS, dv.PureBudget("0.5"), dv.Entropy.seeded(1))
    table = dv.evaluate(release, AREAS).by_level
    worth, row = weigh_regions(dv.evaluate(release, AREAS))[3], table.iloc[3]
    assert worth.error == pytest.approx(row["rmse"] / (AREAS.count.sum() / row["regions"]))
    said = EMPTY.describe("A region (block)", worth)
    error = write_error(worth.error)
    assert said == f"A region (block) is off by {error}; {row['false_positives']:,} of {row['empty']:,} empty ones look inhabited."


def test_a_level_without_anything_empty_says_so_and_one_without_a_known_error_too():
    full = LevelWorth(average=9.0, error=math.nan, base=0, wrong=0, there=4, missed=0)
    assert EMPTY.describe("A 35 km square", full) == "A 35 km square is off by an unknown share; none is empty."
    assert PAIRS.describe("A pair", full) == "A pair is off by an unknown share; none is released."
    assert math.isnan(full.false_share)


@pytest.mark.parametrize(
    ("error", "wrong", "grade"),
    [(0.4, 0, USABLE), (0.41, 0, ROUGH), (1.0, 40, ROUGH), (1.01, 0, NOISE), (0.1, 40, ROUGH), (0.1, 200, NOISE)],
)
def test_the_grade_follows_the_limits_of_the_verdict(error, wrong, grade):
    assert LevelWorth(average=1.0, error=error, base=300, wrong=wrong, there=100, missed=10).grade == grade


def test_hidden_and_false_are_two_things_and_never_one_word():
    words = [*vars(EMPTY).values(), *vars(PAIRS).values()]
    assert not any("may be" in text or "hatched" in text or "uncertain" in text for text in words)
