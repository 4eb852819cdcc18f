"""Intervals of released pairs: as wide as the noise alone needs, and right on average although the pairs were chosen by their noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpviz.mechanisms import FlatGaussian
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import gaussian_variance, laplace_variance
from dpviz.release.files import read_manifest, read_release, write_release
from dpviz.release.intervals import OF_RELEASED_PAIRS, half_widths_of_released
from dpviz.release.manifest import describe, describe_contents, describe_utility
from dpviz.release.trip_release import TripRelease
from dpviz.view.help import pages
from dpviz.view.report import report_html
from tests.often import often
from tests.release.pair_coverage import CASES, LISTED, SETS, lowest, plain_interval, released_often, shares_covered
from tests.release_cases import WORDS, regions_with_shapes, trip_counts_on

RUNS = 200
EPSILONS = ("0.1", "1", "5", "10")


def outside(noise, size, reach):
    """The probability that discrete noise of a size (epsilon, or the parameter) is further from 0 than a reach, added up term by term."""
    steps = np.arange(reach + 1, reach + 200 + 40 * (1 / size if noise == "laplace" else math.sqrt(size)))
    if noise == "laplace":
        return 2 * math.tanh(size / 2) * np.exp(-size * steps).sum()
    all_steps = np.arange(-int(steps[-1]), int(steps[-1]) + 1.0)
    return 2 * np.exp(-(steps**2) / (2 * size)).sum() / np.exp(-(all_steps**2) / (2 * size)).sum()


@pytest.mark.parametrize(("released", "possible"), [(1, 1), (40, 100), (30, 2304), (5, 10**6), (0, 1000)])
@pytest.mark.parametrize(
    ("noise", "size"), [*(("laplace", e) for e in (0.02, 0.3, 1, 5, 10)), *(("gaussian", v) for v in (0.1, 0.7, 3, 50, 2000))]
)
def test_the_reach_is_the_quantile_of_the_noise_and_nothing_wider(noise, size, released, possible):
    stddev = math.sqrt(laplace_variance(1 / size) if noise == "laplace" else gaussian_variance(size))
    (reach,) = half_widths_of_released(noise, np.array([stddev]), released, possible)
    miss = 0.05 * max(released, 1) / possible
    assert reach == int(reach)
    assert outside(noise, size, reach) <= miss * (1 + 1e-6)
    assert reach == 0 or outside(noise, size, reach - 1) > miss * (1 - 1e-3)


def test_numbers_without_noise_have_no_width_and_unstated_noise_has_no_interval():
    assert half_widths_of_released("gaussian", np.array([0.0, 3.0, np.nan, 3.0]), 5, 5).tolist()[:2] == [0, 6]
    assert np.isnan(half_widths_of_released("laplace", np.array([np.nan]), 1, 1)).all()
    assert half_widths_of_released("gaussian", np.zeros(0), 0, 9).shape == (0,)
    for noise in ("laplace", "gaussian"):
        assert half_widths_of_released(noise, np.array([1e-300, 1e-13, 1e-6]), 1, 10**10).tolist() == [0, 0, 0]


@pytest.mark.parametrize("epsilon", often(EPSILONS, 1))
@pytest.mark.parametrize("name", often(CASES, ["fitted_tree, list", "fitted_tree"]))
def test_intervals_of_released_pairs_hold_on_average(name, epsilon):
    (shares,) = shares_covered(name, SETS["sparse"](), epsilon, RUNS, TripRelease.stage_interval)
    known = ~np.isnan(shares).any(axis=0)
    assert known.all() or (name == "stability_histogram" and known.tolist() == [False] * 3 + [True])
    assert (shares.mean(axis=0)[known] >= lowest(shares)[known]).all(), shares.mean(axis=0)


@pytest.mark.parametrize("name", ["fitted_tree", "flat_gaussian, from 15 on"])
def test_intervals_that_ignore_the_choice_fail_the_same_bar(name):
    (shares,) = shares_covered(name, SETS["sparse"](), "0.1" if name == "fitted_tree" else "1", RUNS, plain_interval)
    assert shares.mean(axis=0)[-1] < lowest(shares)[-1]
    assert shares.mean(axis=0)[-1] < 0.8


@pytest.mark.parametrize("epsilon", ["1", "10"])
def test_sums_that_lack_pairs_have_no_upper_end_but_their_lower_end_holds(epsilon):
    trips = SETS["sparse"]()

    def lower_end(release, stage):
        low, high = release.stage_interval(stage)
        assert np.isnan(high).all() == (stage < release.tree.height)
        return low, np.full(len(low), np.inf)

    (shares,) = shares_covered("stability_histogram", trips, epsilon, RUNS, lower_end)
    assert (shares.mean(axis=0) >= lowest(shares)).all()
    (release,) = released_often("stability_histogram", trips, epsilon, 1)
    low, high = release.answer_interval([release.tree.origins.ids_of(1)[0]], ["all"], levels=(1, 0))
    assert np.isfinite(low).all()
    assert np.isnan(high).all()
    assert "Upper ends are missing" in describe_utility(release).interval
    assert "missing for larger regions" in describe_contents(release).columns["ci_high"]


def test_files_manifest_report_notebook_and_help_say_the_same_sentence(tmp_path):
    trips = trip_counts_on(regions_with_shapes())
    release = LISTED.release(trips, ApproxBudget(1, "1e-6"), Entropy.system())
    folder = write_release(release, tmp_path / "out", describe(release, WORDS))
    manifest = read_manifest(folder)
    assert OF_RELEASED_PAIRS in manifest["utility"]["interval"]
    assert OF_RELEASED_PAIRS in manifest["contents"]["columns"]["ci_low"]
    assert OF_RELEASED_PAIRS in report_html(release, manifest).decode()
    assert OF_RELEASED_PAIRS in release._repr_html_()
    assert any(OF_RELEASED_PAIRS in section.body for section in pages()["publishing"].sections)
    read = read_release(folder)
    assert read.for_released
    assert read.same_as(release)


def test_what_earlier_manifests_describe_keeps_its_intervals():
    release = replace(FlatGaussian().release(SETS["grid"](), ApproxBudget(1, "1e-6"), Entropy.system()), for_released=False)
    for stage in range(release.tree.height + 1):
        np.testing.assert_array_equal(release.stage_interval(stage), plain_interval(release, stage))
    assert describe_utility(release).interval.startswith("count_noisy ± 1.96 stddev")
    assert describe_contents(release).intervals is None
    assert OF_RELEASED_PAIRS not in str(describe_contents(release).columns)
