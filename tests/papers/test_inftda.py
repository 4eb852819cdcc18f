"""InfTDA's figures against direct runs on a tiny set, their charts, and the paper's findings on its synthetic sets.

The slow tests print what they measured: pytest -m slow -s tests/papers/test_inftda.py.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest

from dpviz.errors import InputError, SettingError
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.mechanisms import FittedTree, TopDown
from dpviz.papers import inftda, inftda_charts
from dpviz.papers.inftda import METHODS, TOP_DOWN, figure_3, figure_4, figure_5, figure_6, measure_sets, paper_methods
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from tests.charts import assert_complete, assert_series_differ, found, rows
from tests.trip_cases import random_trips, regular, trip_counts_of

EPSILONS, REPEATS, SEED = (1, 10), 3, 5
COLUMNS = ["epsilon", "method", "measure", "stage", "between", "mean", "minimum", "maximum"]
FEW = {"epsilons": EPSILONS, "repeats": REPEATS, "seed": SEED}


@pytest.fixture(scope="module")
def tiny():
    return random_trips(np.random.default_rng(3), regular(2, 3), pairs=9, most=400)


def assert_rows_are_of_direct_runs(table, trips, methods):
    """Each row has the mean and the extremes of runs with the streams that follow from the seed."""
    table = table.dropna(subset="stage").set_index(["method", "epsilon", "measure", "stage"])
    streams = iter(Entropy.seeded(SEED).spawn(len(methods) * len(EPSILONS) * REPEATS))
    for (name, mechanism), epsilon in product(methods.items(), EPSILONS):
        releases = [mechanism.release(trips, ApproxBudget(epsilon, "1e-8"), next(streams)) for _ in range(REPEATS)]
        runs = [evaluate_trips(release, trips).by_stage for release in releases]
        for stage, measure in product(runs[0].index, set(table.index.get_level_values("measure"))):
            values = [run.loc[stage, measure] for run in runs]
            row = table.loc[name, epsilon, measure, stage]
            assert row[["mean", "minimum", "maximum"]].tolist() == pytest.approx([np.mean(values), min(values), max(values)])


def test_the_protocol_is_the_paper_s():
    assert (inftda.EPSILONS, inftda.DELTA, inftda.REPEATS) == ((0.1, 1, 10), "1e-8", 10)
    settings = {name: mechanism.non_defaults() for name, mechanism in paper_methods().items()}
    plain = {"accounting": "paper"}
    assert settings == {
        "VanillaGauss": plain,
        "SH": {"threshold": "paper"},
        "InfTDA": plain,
        "TDA-l2": {"optimiser": "euclidean", **plain},
        "TDA-linf": {"optimiser": "solver", **plain},
    }


def test_figure_3_has_the_errors_of_direct_runs_and_run_times(tiny):
    fitted = FittedTree(accounting="paper")
    table = figure_3(tiny, also={"fitted": fitted}, **FEW)
    assert table.columns.tolist() == COLUMNS
    methods = paper_methods(METHODS[1:]) | {"fitted": fitted}
    assert len(table) == len(methods) * 2 * (2 * 5 + 1)
    assert_rows_are_of_direct_runs(table, tiny, methods)
    times = table[table["measure"] == "seconds"]
    assert list(zip(times["method"], times["epsilon"], strict=True)) == list(product(methods, EPSILONS))
    assert ((times["minimum"] <= times["mean"]) & (times["mean"] <= times["maximum"])).all()
    assert times["stage"].isna().all()


def test_figure_3_is_by_default_on_a_country_without_vanilla_gauss(tiny, monkeypatch):
    monkeypatch.setattr(inftda, "made_up_country", lambda: tiny)
    names = ["SH", "InfTDA", "TDA-l2", "TDA-linf"]
    for also, more in ((None, []), (paper_methods(["VanillaGauss"]), ["VanillaGauss"])):
        assert figure_3(epsilons=[1], repeats=1, also=also)["method"].unique().tolist() == names + more


@pytest.mark.parametrize(("figure", "measure"), [(figure_4, "max_error"), (figure_5, "false_discovery")])
def test_figures_4_and_5_have_one_measure_of_each_set_with_all_methods(tiny, figure, measure):
    other = random_trips(np.random.default_rng(4), regular(3))
    table = figure({"one": tiny, "other": other}, **FEW)
    assert table.columns.tolist() == ["data", *COLUMNS]
    assert table["measure"].unique().tolist() == [measure]
    for name, trips in (("one", tiny), ("other", other)):
        assert_rows_are_of_direct_runs(table[table["data"] == name], trips, paper_methods())


def test_figure_6_has_one_run_time_per_set_variant_and_budget(tiny):
    table = figure_6({"one": tiny, "other": tiny}, epsilons=[1, 10], repeats=2, also={"descending": TopDown(lowered="largest")})
    places = zip(table["data"], table["method"], table["epsilon"], strict=True)
    assert list(places) == list(product(["one", "other"], [*TOP_DOWN, "descending"], [1, 10]))
    assert (table["minimum"] <= table["mean"]).all()
    assert table["measure"].unique().tolist() == ["seconds"]


def test_by_default_the_sets_are_the_paper_s_and_those_of_figure_5_are_sparse(monkeypatch, tiny):
    monkeypatch.setattr(inftda, "synthetic_trips", lambda *_, **__: tiny)
    six = [f"{partition}_{density}" for partition in ("binary", "random") for density in ("complete", "dense", "sparse")]
    for figure, names in ((figure_4, six), (figure_5, ["binary_sparse", "random_sparse"]), (figure_6, six)):
        assert figure(epsilons=[10], repeats=1)["data"].unique().tolist() == names


@cache
def wide_and_narrow():
    """Measures on a set with 65 children in a family, which the solver refuses, and on a small one."""
    trips = {"wide_set": trip_counts_of(regular(65), {(0, 1): 90}), "narrow": trip_counts_of(regular(2), {(0, 1): 90})}
    return measure_sets(trips, epsilons=[1, 10], repeats=2)


def test_methods_that_refuse_the_data_are_left_out_alone():
    found_methods = wide_and_narrow().groupby("data")["method"].unique()
    assert found_methods["wide_set"].tolist() == list(METHODS[:-1])
    assert found_methods["narrow"].tolist() == list(METHODS)


def test_repeated_names_no_repeats_and_two_trips_per_person_are_refused(tiny):
    with pytest.raises(SettingError, match="VanillaGauss, SH, InfTDA"):
        figure_4({"tiny": tiny}, also={"InfTDA": TopDown()})
    with pytest.raises(SettingError, match="repeats"):
        figure_3(tiny, repeats=0)
    with pytest.raises(InputError, match="one trip per person"):
        figure_3(trip_counts_of(regular(2), {(0, 1): 4}, contributions=2, unit="person", exactly=True), repeats=1)


@cache
def charts():
    table = wide_and_narrow()
    alone = table[table["data"] == "narrow"].drop(columns="data")
    drawn = {
        "3": inftda_charts.figure_3(alone, 10),
        "3 rates": inftda_charts.figure_3(alone, 1, "false_discovery"),
        "3 times": inftda_charts.figure_3(alone, measure="seconds"),
        "4": inftda_charts.figure_4(table, "wide_set", 1),
        "5": inftda_charts.figure_5(table, "narrow", 1),
        "6": inftda_charts.figure_6(table, "narrow"),
    }
    return {name: chart.to_dict() for name, chart in drawn.items()}


@pytest.mark.parametrize("name", ["3", "3 rates", "3 times", "4", "5", "6"])
def test_every_chart_is_complete_with_bars_from_least_to_largest_and_series_that_differ_in_two_ways(name):
    chart = charts()[name]
    assert_complete(chart, letters=80)
    bars, line = (layer["encoding"] for layer in chart["layer"])
    rates = name in ("3 rates", "5")
    after = "" if rates else " drawn"
    assert [bars["y"]["field"], bars["y2"]["field"], line["y"]["field"]] == [f"{each}{after}" for each in ("minimum", "maximum", "mean")]
    assert bars["y"]["title"] == line["y"]["title"]
    assert line["y"]["scale"].get("type") == (None if rates else "log")
    assert_series_differ(chart)
    assert {row["measure"] for row in rows(chart)} == {
        {"3": "max_error", "4": "max_error"}.get(name, "false_discovery" if rates else "seconds")
    }


def test_panels_are_of_one_set_and_budget_keep_the_looks_of_a_method_and_name_what_is_missing():
    chart = charts()["4"]
    assert {(row["data"], row["epsilon"]) for row in rows(chart)} == {("wide_set", 1)}
    assert chart["title"]["text"] == "Largest error by level, wide set, ε = 1, without TDA-linf"
    assert {row["epsilon"] for row in rows(charts()["6"])} == {1, 10}
    assert charts()["6"]["title"]["text"] == "Run time by budget, narrow"
    looks = [
        {name: color for scale in found(charts()[name], "color") for name, color in zip(*scale["scale"].values(), strict=True)}
        for name in "46"
    ]
    assert looks[0].items() <= looks[1].items()


def test_a_chart_of_what_is_not_in_the_table_is_refused():
    table = wide_and_narrow()
    for draw in (
        lambda: inftda_charts.figure_4(table, "elsewhere"),
        lambda: inftda_charts.figure_5(table, "narrow", 0.5),
        lambda: inftda_charts.figure_3(table, measure="mae"),
    ):
        with pytest.raises(InputError, match="no rows"):
            draw()


@pytest.fixture(scope="module")
def sparse():
    """Both sparse sets at epsilon 1, each stage's means in a row per method."""
    return measure_sets(inftda.paper_sets(["sparse"]), epsilons=[1], repeats=4)


def shown(table, data, measure):
    part = table[(table["data"] == data) & (table["measure"] == measure)]
    means = part.pivot_table(index="method", columns="stage", values="mean", sort=False)
    print("\n", data, measure, "\n", means.round(1).to_string())
    return means


@pytest.mark.slow
@pytest.mark.parametrize("data", ["binary_sparse", "random_sparse"])
def test_sh_is_best_at_the_leaves_and_worst_above_and_inftda_loses_accuracy_downwards(sparse, data):
    error = shown(sparse, data, "max_error")
    leaves = error.columns[-1]
    assert error.loc["SH", leaves] < 0.7 * error.loc[list(TOP_DOWN), leaves].min()
    assert error.loc["SH", 1] > 10 * error.loc[list(TOP_DOWN), 1].max()
    top_down = error.loc["InfTDA"]
    assert top_down[0] == 0
    assert top_down[1] < top_down[leaves // 2] < top_down[leaves]


@pytest.mark.slow
def test_inftda_has_fewer_false_positives_on_random_trees_and_as_many_on_binary_ones(sparse):
    binary, random = shown(sparse, "binary_sparse", "false_discovery"), shown(sparse, "random_sparse", "false_discovery")
    others = [name for name in METHODS if name not in ("SH", "InfTDA")]
    assert (binary.loc["SH"] == 0).all()
    assert (random.loc["SH"] == 0).all()
    assert random.loc["InfTDA", 8] + 1 < random.loc[others, 8].min()
    assert np.ptp(binary.loc[list(TOP_DOWN), 16]) < 1


@pytest.mark.slow
def test_the_solver_s_optimum_errs_more_than_inftda_on_random_trees_only(sparse):
    for data, least, most in (("random_sparse", 1.1, 1.6), ("binary_sparse", 0.9, 1.1)):
        error = shown(sparse, data, "max_error")
        finer = error.columns[len(error.columns) // 2 :]
        assert least < error.loc["TDA-linf", finer].mean() / error.loc["InfTDA", finer].mean() < most


@pytest.mark.slow
def test_vanilla_gauss_beats_sh_on_coarse_stages_of_complete_sets_which_the_solver_refuses():
    table = measure_sets(inftda.paper_sets(["complete"]), epsilons=[10], repeats=2)
    for data, coarse in (("binary_complete", 8), ("random_complete", 4)):
        error = shown(table, data, "max_error")
        assert (3 * error.loc["VanillaGauss", :coarse] < error.loc["SH", :coarse]).all()
        assert "TDA-linf" not in error.index
    assert (table.loc[table["measure"] == "false_discovery", "maximum"] == 0).all()


@pytest.mark.slow
def test_on_a_country_inftda_errs_by_about_100_trips_and_has_fewer_false_positives_and_sh_is_of_use_at_the_leaves_only():
    table = figure_3(epsilons=[1], repeats=1).assign(data="country")
    error, rate = (shown(table, "country", measure) for measure in ("max_error", "false_discovery"))
    assert error.index.tolist() == ["SH", "InfTDA", "TDA-l2"]
    assert 50 < error.loc["InfTDA", 6] < 200
    assert (error.loc["SH", :4] > 100 * error.loc["InfTDA", :4]).all()
    assert error.loc["SH", 6] < 0.7 * error.loc["InfTDA", 6]
    assert (rate.loc["InfTDA", 2:] < rate.loc["TDA-l2", 2:]).all()
