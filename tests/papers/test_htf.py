"""The tables of HTF's figures: shape, the paper's setting, and what the paper says about them where it holds.

The slow tests print what they measured: pytest -m slow -s tests/papers/test_htf.py.
"""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import workload_errors
from dpviz.mechanisms import Identity, UniformGrid
from dpviz.papers import htf
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import POINT_SAMPLES, los_angeles
from dpviz.space.domain import Domain

ERRORS = ["mre", "n3", "mae", "mre_spread", "n3_spread", "mae_spread"]
QUERIES = ["random", "2 %", "6 %", "10 %"]


@pytest.fixture(scope="module")
def few():
    """A few residents on a coarse lattice."""
    domain = Domain(bounds=POINT_SAMPLES["la_residents"].domain.bounds, crs="EPSG:4326", order=7)
    return PointCounts.from_xy(*los_angeles(20_000), domain=domain)


@pytest.fixture(scope="module")
def crowd():
    return htf.la_points(300_000)


def shown(table, rows, columns, figure="mre"):
    found = table.pivot_table(index=rows, columns=columns, values=figure, sort=False)
    print("\n", figure, "\n", found.round(2).to_string())
    return found


def test_the_paper_s_form_spends_what_the_paper_says(few):
    form = htf.paper_htf(1e-3, stop=50)
    release = form.release(few, PureBudget("0.1"), Entropy.seeded(1))
    steps = {step.purpose: float(step.amount) for step in release.receipt.steps}
    assert steps["total, for the height"] == pytest.approx(1e-4)
    splits = [float(step.amount) for step in release.receipt.steps if step.purpose.startswith("splits")]
    assert splits == pytest.approx([1e-3] * 7)
    assert form.stop_count == 50
    assert [each.split_epsilon for each in htf.htf_forms().values()] == [5e-4, 1e-3, None]


def test_workloads_are_the_papers(few):
    found = htf.workloads(few.domain, 50)
    assert list(found) == QUERIES
    for share, boxes in zip((0.02, 0.06, 0.1), list(found.values())[1:], strict=True):
        low_high = few.domain.lattice(boxes)
        assert np.prod(low_high[:, 2:] - low_high[:, :2], axis=1) / few.domain.side**2 == pytest.approx(share, rel=0.05)
    assert len(htf.mixed(few.domain, 50)["mixed"]) == 52


def test_errors_are_means_over_releases_and_spreads_their_deviation(few):
    boxes, grid = htf.workloads(few.domain, 30)["random"], UniformGrid(side=8)
    cases = [({"method": "UG", "stop": None}, grid), ({"method": "Singular", "stop": 3}, Identity(order=3))]
    table = htf.measure_errors(few, cases, {"random": boxes}, 0.5, (2, 7))
    assert list(table.columns) == ["epsilon", "method", "stop", "queries", *ERRORS]
    streams = Entropy.seeded(7).spawn(4)[:2]
    slow = [workload_errors(grid.release(few, PureBudget("0.5"), each), few, boxes) for each in streams]
    assert table["mre"][0] == pytest.approx(np.mean([each.mean20 for each in slow]))
    assert table["mae_spread"][0] == pytest.approx(np.std([each.mae for each in slow], ddof=1))
    assert table["method"].tolist() == ["UG", "Singular"]


def test_figures_3_and_5_have_all_heights_and_the_one_that_htf_finds(few):
    options = {"epsilons": [0.5], "heights": [4, 6], "queries": 20, "repeats": 1}
    for figure, rivals in ((htf.figure_3, "KdTree"), (htf.figure_5, "Quadtree")):
        table = figure(few, **options)
        assert list(table.columns) == ["epsilon", "method", "height", "estimated", "queries", *ERRORS]
        assert table["queries"].unique().tolist() == QUERIES
        methods = [f"{rivals} (geo)", f"{rivals} (uniform)", "HTF (5e-4)", "HTF (1e-3)", "HTF (ours)"]
        assert table["method"].unique().tolist() == methods
        given, found = table[~table["estimated"]], table[table["estimated"]]
        assert set(zip(given["method"], given["height"], strict=True)) == {(name, height) for name in methods for height in (4, 6)}
        assert dict(zip(found["method"], found["height"], strict=True)) == {"HTF (5e-4)": 9, "HTF (1e-3)": 9, "HTF (ours)": 13}
        assert table["mre_spread"].isna().all()


def test_figure_4_has_a_stop_count_for_htf_only(few):
    table = htf.figure_4(few, epsilons=[0.5], stops=[10, 100], queries=20, repeats=1)
    first = table[table["queries"] == "random"]
    assert len(first) == 2 * 2 + 7
    assert set(first.loc[first["stop"].isna(), "method"]) == {htf.OUR_NAME, *htf.grids(), "Quadtree (geo)"}
    assert first["stop"].dropna().tolist() == [10, 10, 100, 100]


def test_figure_6_has_every_method_on_every_set(few):
    table = htf.figure_6({"one": few, "other": few}, height=6, queries=20, repeats=1)
    assert list(table.columns) == ["data", "epsilon", "method", "queries", *ERRORS]
    assert table.groupby(["data", "epsilon"])["method"].nunique().to_dict() == {("one", 0.1): 14, ("other", 0.1): 14}


def test_the_paper_s_sets_are_one_city_and_six_clusters():
    sets = htf.paper_sets(1000, 1000)
    assert list(sets) == ["Los Angeles", *(f"σ = {sigma}, {letter}" for sigma in (20, 50, 100) for letter in "ab")]
    assert all(points.domain.side == 1024 for points in sets.values())
    spreads = [np.std(points.column.repeat(points.count)) for name, points in sets.items() if name.endswith("a")]
    assert spreads == sorted(spreads)


@pytest.mark.slow
def test_htf_beats_kd_trees_of_every_height_for_random_queries_as_the_paper_says(crowd):
    table = htf.figure_3(crowd, epsilons=[0.5], heights=[10, 14], queries=500, repeats=2)
    error = shown(table, ["method", "estimated", "height"], "queries")["random"]
    rivals = min(error[f"KdTree ({split})", False].min() for split in ("geo", "uniform"))
    assert all(error[form, True].min() < rivals for form in htf.htf_forms())


@pytest.mark.slow
def test_our_form_beats_quadtrees_of_every_height_and_the_paper_s_only_high_ones(crowd):
    table = htf.figure_5(crowd, epsilons=[0.1], heights=[10, 16], queries=500, repeats=2)
    error = shown(table, ["method", "estimated", "height"], "queries")["random"]
    rivals = [error["Quadtree (geo)", False, height] for height in (10, 16)]
    assert error[htf.OUR_NAME, True].min() < min(rivals)
    assert all(error[form, True].min() < rivals[1] for form in htf.htf_forms())


@pytest.mark.slow
def test_the_paper_s_form_beats_flat_benchmarks_but_neither_ours_nor_ag_whatever_the_stop_count(crowd):
    table = htf.figure_4(crowd, epsilons=[0.1], queries=500, repeats=2)
    error = shown(table.assign(stop=table["stop"].fillna(0)), ["method", "stop"], "queries")["random"]
    paper = error[list(htf.SPLIT_EPSILONS)]
    assert paper.max() < error[["Singular", "Uniform", "Privelet"]].min()
    assert paper.min() > error[[htf.OUR_NAME, "AG"]].max()


@pytest.mark.slow
def test_our_form_beats_the_paper_s_on_most_sets_by_every_measure():
    table = htf.figure_6(htf.paper_sets(200_000, 100_000), queries=400, repeats=2)
    for figure in htf.FIGURES:
        error = shown(table, "method", "data", figure)
        assert (error.loc[htf.OUR_NAME] < error.loc[list(htf.SPLIT_EPSILONS)].min()).sum() >= 5
