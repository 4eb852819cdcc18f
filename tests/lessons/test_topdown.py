import altair as alt
import numpy as np
import pandas as pd
import pytest

from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.lessons import topdown
from dpviz.lessons.topdown import CHEBYSHEV, EUCLIDEAN, EXTRA, FAMILY, KINDS, OPTIMISERS, country, release_country, stage_pairs

ROWS = {"true": (5, 0, 3), "noisy": (4, 2, -1), "a": (8, 0, 0), "b": (6, 1, 1)}
TABLE = pd.DataFrame(
    [(child, name, count) for name, row in ROWS.items() for child, count in enumerate(row, 1)], columns=["child", "series", "count"]
)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_pairs_of_a_stage_are_counted_as_the_evaluation_does(optimiser):
    release = release_country(optimiser, 1.0, 3)
    for stage, slow in enumerate(evaluate_trips(release, country()).by_stage.iloc):
        table = stage_pairs(release, stage)
        number = table["kind"].value_counts()
        assert (number.get(KINDS[1], 0), number.get(KINDS[2], 0)) == (slow["false_positives"], slow["false_negatives"])
        assert len(table) == slow["pairs"]
        assert len(table) - (table["true"] > 0).sum() == topdown.empty_pairs()[stage]
        assert table["true"].sum() == table["released"].sum() == country().count.sum()
    assert stage == topdown.STAGES


def test_false_positives_are_means_over_draws():
    table, draws = topdown.false_by_stage(1.0, 4), range(4, 4 + topdown.REPEATS)
    for name in OPTIMISERS:
        each = [evaluate_trips(release_country(name, 1.0, draw), country()).by_stage["false_positives"].to_numpy() for draw in draws]
        assert table.loc[table["series"] == name, "mean"].to_numpy() == pytest.approx(np.mean(each, axis=0))
    assert (table["low"] <= table["high"]).all()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_chebyshev_leaves_fewer_false_positives_on_this_country_but_sets_more_small_true_counts_to_0(epsilon):
    mean = topdown.false_by_stage(epsilon, 1).pivot_table(index="stage", columns="series", values="mean")
    assert mean[CHEBYSHEV][0] == mean[EUCLIDEAN][0] == 0
    assert mean[CHEBYSHEV][4] < 0.85 * mean[EUCLIDEAN][4]

    def missed(name):
        return sum((stage_pairs(release_country(name, 1.0, draw), 4)["kind"] == KINDS[2]).sum() for draw in range(1, 13))

    assert epsilon != 1.0 or missed(CHEBYSHEV) > missed(EUCLIDEAN)


def test_a_family_adds_up_and_is_never_negative():
    table = topdown.family(100.0, 2).pivot_table(index="child", columns="series", values="count")
    assert table["true"].tolist() == list(FAMILY)
    for name in OPTIMISERS:
        assert table[name].sum() == sum(FAMILY)
        assert table[name].min() >= 0
    change = {name: (table[name] - table["noisy"]).abs() for name in OPTIMISERS}
    assert change[CHEBYSHEV].max() <= change[EUCLIDEAN].max()
    assert (change[CHEBYSHEV] ** 2).sum() >= (change[EUCLIDEAN] ** 2).sum()


def test_what_is_wrong_about_presence_is_judged_but_not_in_the_noisy_row_and_the_chart_reads_every_number():
    rows = topdown.mark_wrong(TABLE, tuple(ROWS)).set_index(["series", "child"])
    assert rows[rows["kind"] != topdown.PLAIN]["kind"].to_dict() == {("a", "3"): topdown.MISSED, ("b", "2"): EXTRA}
    assert rows.loc[("noisy", "3"), "label"] == "−1"
    assert [rows.loc[(name, "sum"), "count"] for name in ROWS] == [8, 5, 8, 8]
    chart = topdown.family_table(TABLE, tuple(ROWS), "One family")
    assert isinstance(chart, alt.LayerChart)
    assert "b: 1: 6, 2: 1, 3: 1, sum: 8" in chart.to_dict()["description"]


def test_intopt_never_has_more_false_positives_than_least_squares_in_the_first_draws():
    names = ("true", "noisy", CHEBYSHEV, EUCLIDEAN)
    drawn = [topdown.mark_wrong(topdown.family(12.8**2, draw), names) for draw in range(1, 21)]
    first, second = (np.array([((rows["series"] == name) & (rows["kind"] == EXTRA)).sum() for rows in drawn]) for name in names[2:])
    assert (first <= second).all()
    assert first.sum() < 0.75 * second.sum()
