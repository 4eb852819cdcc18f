"""One question has one verb, the same arguments, the same columns and one meaning for points, areas and trips."""

import inspect
from functools import cache

import numpy as np
import pandas as pd
import pytest

import dpviz as dv
from dpviz.errors import DomainError
from dpviz.release.intervals import STDDEVS, half_widths_of_released
from tests.release.test_files import WORDS
from tests.release_cases import area_release, trip_release

GRID = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
NUMBERS = ["count", "count_noisy", "stddev", "ci_low", "ci_high", "all_low", "all_high"]
EPSILON = "0.05"
"""So small that many counts are hidden by noise, and their intervals would reach below 0."""


def regions():
    table = pd.DataFrame({"state": np.repeat(["A", "B"], 8), "town": [f"t{town:02d}" for town in range(16)]})
    return dv.Regions.from_table(table, levels=["state", "town"])


@cache
def made(family, noise, seed=1):
    """A release of 300 records of a family, with noise of a kind."""
    rng, entropy = np.random.default_rng(3), dv.Entropy.seeded(seed)
    towns = regions()
    if family == "points":
        data = dv.PointCounts.from_xy(*rng.uniform(0, 16, (2, 300)), domain=GRID)
    elif family == "areas":
        data = dv.AreaCounts.from_table(pd.DataFrame({"region": rng.choice(towns.ids_of(2), 300)}), regions=towns)
    else:
        ends = {"origin": rng.choice(towns.ids_of(2)[:6], 300), "destination": rng.choice(towns.ids_of(2)[:6], 300)}
        data = dv.TripCounts.from_table(pd.DataFrame(ends), regions=towns)
    if family == "trips":
        mechanism = {"gaussian": dv.FlatGaussian(), "fitted": dv.FittedTree(), "laplace": dv.StabilityHistogram()}[noise]
        return mechanism.release(data, dv.ApproxBudget("1" if noise == "laplace" else EPSILON, "1e-3"), entropy)
    mechanism = dv.Quadtree(height=4) if family == "points" else dv.RegionTree()
    return mechanism.release(data, dv.PureBudget(EPSILON) if noise == "laplace" else dv.ApproxBudget(EPSILON, "1e-6"), entropy)


CASES = [*((family, noise) for family in ("points", "areas") for noise in STDDEVS), *(("trips", kind) for kind in (*STDDEVS, "fitted"))]


@pytest.fixture(params=CASES, ids="-".join)
def case(request):
    return request.param


@pytest.fixture
def release(case):
    return made(*case)


def question(release, level=None):
    """The arguments by which `answer` is asked for every row of `to_frame`, and the rows."""
    table = release.to_frame(level)
    if "origin" in table:
        number = 2 if level is None else level
        return table, (table["origin"], table["destination"]), {"levels": (number, number)}
    if "region" in table:
        return table, (table["region"].tolist(),), {"level": level}
    return table, (table.geometry.bounds.to_numpy(),), {}


def test_the_kind_of_noise_has_a_name(case, release):
    assert release.noise == ("laplace" if case[1] == "laplace" else "gaussian")


def test_verbs_have_the_same_arguments(release):
    for verb, arguments in {"to_frame": "level", "stddev": "level", "interval": "level joint", "same_as": "other"}.items():
        assert list(inspect.signature(getattr(release, verb)).parameters) == arguments.split(), verb
    for verb, argument in {"answer": "spread", "answer_interval": "joint"}.items():
        parameter = inspect.signature(getattr(release, verb)).parameters[argument]
        assert (parameter.kind, parameter.default) == (parameter.KEYWORD_ONLY, False), verb


def test_tables_have_the_same_columns_and_the_finest_level_is_the_usual_one(release):
    finest = release.to_frame()
    for level in range(3):
        table = release.to_frame(level)
        assert [name for name in table if name in NUMBERS] == NUMBERS
        assert set(table["status"]) == {release.status}
        assert table.attrs | {"private": False, "simulation": True} == table.attrs
        assert release.stddev(level).tolist() == table["stddev"].tolist()
        for names, joint in ((["ci_low", "ci_high"], False), (["all_low", "all_high"], True)):
            np.testing.assert_array_equal(np.column_stack(release.interval(level, joint=joint)), table[names])
    pd.testing.assert_frame_equal(pd.DataFrame(finest), pd.DataFrame(release.to_frame(4 if "partition_id" in finest else 2)))
    assert release.stddev().tolist() == finest["stddev"].tolist()
    with pytest.raises(DomainError):
        release.to_frame(9)


def test_an_interval_is_as_wide_as_its_noise_says_around_an_unbiased_centre_and_ends_at_0(release):
    table = release.to_frame()
    if "origin" in table:
        possible = release.tree.size(release.tree.height)
        centre, width = table["count_noisy"], half_widths_of_released(release.noise, table["stddev"], len(table), possible)
    else:
        centre, width = release.centre[release.nodes()], STDDEVS[release.noise] * table["stddev"]
    np.testing.assert_array_equal(table["ci_low"], np.maximum(np.floor(centre - width), 0))
    np.testing.assert_array_equal(table["ci_high"], np.maximum(np.ceil(centre + width), 0))


def test_a_count_is_what_is_released_and_no_interval_reaches_below_0(release):
    found = 0
    for level in range(3):
        table, asked, options = question(release, level)
        np.testing.assert_allclose(release.answer(*asked, **options), table["count"], atol=1e-6)
        np.testing.assert_allclose(release.answer(*asked, **options, spread=True)[1], table["stddev"])
        for joint, names in ((False, ["ci_low", "ci_high"]), (True, ["all_low", "all_high"])):
            ends = np.column_stack(release.answer_interval(*asked, **options, joint=joint))
            np.testing.assert_array_equal(ends, table[names])
            assert not (ends < 0).any()
            found += int((ends[:, 0] == 0).sum())
    assert found


def test_intervals_that_hold_at_once_are_wider(release):
    table = release.to_frame()
    known = table.dropna(subset=NUMBERS[2:])
    assert len(known)
    assert (known["all_low"] <= known["ci_low"]).all()
    assert (known["all_high"] > known["ci_high"]).all()


def test_a_verdict_grades_the_levels(release):
    found = dv.verdict(release)
    assert len(found.levels) >= 3
    assert isinstance(found.headline, str)


def test_other_noise_is_another_release_and_the_same_noise_the_same(case, release):
    made.cache_clear()
    again, other = made(*case), made(*case, seed=2)
    assert release.same_as(release)
    assert again is not release
    assert again.same_as(release)
    assert not other.same_as(release)
    assert not release.same_as(None)


def test_a_release_that_was_read_is_the_same(tmp_path):
    points = dv.Quadtree(height=3).release(dv.PointCounts.from_xy([1, 2], [3, 4], domain=GRID), dv.PureBudget(1), dv.Entropy.system())
    for number, release in enumerate((points, area_release(), trip_release())):
        folder = tmp_path / str(number)
        dv.write_release(release, folder, dv.describe(release, WORDS))
        assert dv.read_release(folder).same_as(release)
