"""E2EPriv: the shape of the figures' tables, and the paper's findings."""

import pytest

from dpviz.papers.e2epriv import TUNING_SETS, figure_5, figure_10, figure_11a, figure_11b, figure_11c
from dpviz.samples.points import load_point_sample


@pytest.fixture(scope="module")
def storage():
    return load_point_sample("storage")


def test_figure_5_is_worst_at_the_ends_and_the_rule_is_not_the_best(storage):
    table = figure_5(storage, sides=(5, 30, 45, 250), repeats=6).set_index("side")
    assert table["error"].idxmin() in (30, 45)
    assert table.loc[5, "error"] > table.loc[45, "error"] < table.loc[250, "error"]
    assert table.index[table["heuristic"]].tolist() == [30]


def test_figure_10_has_a_row_per_method_and_size_and_exact_counts_are_best(storage):
    table = figure_10(storage, "storage", sizes=(0.1, 0.5), repeats=3)
    assert len(table) == 10
    error = table.pivot(index="method", columns="size", values="error")
    assert error[0.1].idxmin() == "BestNonPriv"
    assert (error[0.5] < error[0.1]).all()
    assert list(table.columns) == ["method", "size", "error", "spread"]


def test_figure_11a_falls_with_epsilon_and_11b_names_the_shares(storage):
    table = figure_11a(storage, epsilons=(0.05, 1.0), repeats=3)
    error = table.pivot(index="method", columns="epsilon", values="error").drop(index="BestNonPriv")
    assert (error[0.05] > error[1.0]).all()
    moved = figure_11b(storage, shares=(0.2, 0.75), sizes=(0.1,), repeats=3)
    assert list(moved.columns) == ["share", "method", "size", "error", "spread"]
    assert sorted(moved["method"].unique()) == ["E2EPriv", "Tuned"]
    assert len(moved) == 4


def test_figure_11c_orders_the_sensitivities_as_the_paper_does_and_clipping_is_below_all_of_them():
    table = figure_11c()
    assert table["rho"].unique().tolist() == pytest.approx([17.876, 89.38, 893.8])
    for _, part in table.groupby("sanity"):
        by = part.groupby("bound")["sensitivity"].max()
        assert by["response"] == pytest.approx(by["overlap"])
        assert by["clipped"] < by["response"] < by["largest grid"]
        assert part[part["bound"] == "response"]["sensitivity"].is_monotonic_increasing


def test_sizes_candidates_and_sanity_bounds_are_those_of_the_paper():
    found = {key: (each.size, each.sides, each.sanity) for key, each in TUNING_SETS.items()}
    assert found == {
        "storage": (8_938, (30, 40, 50, 60, 70, 80), 0.1),
        "landmark": (869_976, (200, 250, 300, 350, 400), 0.01),
        "gowalla": (6_442_841, (300, 400, 500, 600, 700, 800), 0.001),
    }
