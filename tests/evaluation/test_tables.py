"""Summaries, the frontier, tables that are read again, and the figures of each workload."""

import io
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpviz.errors import BudgetError, InputError, SettingError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.rows import make_rows
from dpviz.evaluation.study import accounting_of, trip_figures, with_true_counts
from dpviz.evaluation.tables import csv_text, finished_runs, frontier, parse_rows, summary, tidy
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.mechanisms import ExactKdtree, FittedTree, Identity, PathTree, Quadtree, StabilityHistogram, TopDown
from tests.evaluation.test_compare import COMMUTERS, CROWD, study


def test_summaries_have_intervals_of_the_mean_over_repeats():
    which = study(repeats=5)
    table = tidy(which, compare(which))
    found = summary(table)
    values = table.query("label == 'tree' and epsilon == 2")["mae"].to_numpy()
    row = found.query("label == 'tree' and epsilon == 2 and figure == 'mae'").iloc[0]
    low, high = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (row["runs"], row["mean"], row["low"], row["high"]) == (5, pytest.approx(values.mean()), pytest.approx(low), pytest.approx(high))
    assert row["p10"] == pytest.approx(np.quantile(values, 0.1))
    assert (row["least"], row["most"]) == (min(values), max(values))
    figures = {"n3", "mae", "mean20", "median20", "false_positives", "false_negatives", "partitions", "seconds"}
    assert set(found["figure"]) == figures
    single = summary(tidy(study(repeats=1), compare(study(repeats=1))))
    assert single["low"].isna().all()
    assert not len(summary(tidy(which, [])))


def test_the_frontier_is_what_nothing_beats():
    rows = [("a", 1, 5.0), ("b", 1, 4.0), ("a", 2, 4.5), ("b", 2, 6.0), ("a", 3, 3.0), ("exact", 1, 0.1)]
    points = pd.DataFrame(rows, columns=["label", "epsilon", "mean"]).assign(private=[True] * 5 + [False])
    best = frontier(points)
    assert list(zip(best["label"], best["epsilon"], strict=True)) == [("b", 1), ("a", 3)]


def test_every_row_says_what_it_comes_from_also_one_of_an_older_table():
    which = study(mechanisms={"exact": ExactKdtree(height=3), "cells": Identity()}, repeats=1)
    rows = pd.DataFrame(compare(which))
    assert (rows["private"] == (rows["label"] == "cells")).all()
    older = pd.concat([rows.iloc[:1], rows.iloc[1:].drop(columns="status")])
    for table in (rows, tidy(which, rows), tidy(which, older), tidy(which, rows.drop(columns="status")), summary(tidy(which, rows))):
        assert set(table.loc[table["label"] == "cells", "status"]) == {"SIMULATION: not private"}
        assert set(table.loc[table["label"] == "exact", "status"]) == {"NOT PRIVATE"}


def test_errors_of_points_come_apart():
    which = study(parts=True, repeats=1, epsilons=(10**6,), mechanisms={"tree": Quadtree(height=1), "cells": Identity()})
    coarse, cells = compare(which)
    assert coarse["noise"] == pytest.approx(0, abs=1e-3)
    assert coarse["uniformity"] == pytest.approx(coarse["mae"], abs=1e-3)
    assert coarse["uniformity"] > 1
    assert cells["uniformity"] == pytest.approx(0, abs=1e-9)
    assert with_true_counts(study().release(study().runs()[0]), CROWD).count[0] == 500


def test_the_accounting_of_each_mechanism_of_trips_is_stated_also_for_earlier_rows():
    mechanisms = {"fitted": FittedTree(), "top": TopDown(), "histogram": StabilityHistogram(), "paper": TopDown(accounting="paper")}
    which = study(data=COMMUTERS, mechanisms=mechanisms, epsilons=(1,), delta="1e-8", repeats=1, workloads=("division",))
    rows = list(compare(which))
    assert "accounting" not in rows[0]
    table = tidy(which, rows)
    assert table.set_index("label")["accounting"].to_dict() == {"fitted": "exact", "top": "tight", "histogram": "", "paper": "paper"}
    assert "accounting" not in summary(table)["figure"].tolist()
    pd.testing.assert_frame_equal(tidy(which, table), table)
    several = replace(COMMUTERS, contributions=2, unit="person")
    assert [accounting_of(mechanism, several) for mechanism in mechanisms.values()] == ["tight", "tight", "", "paper"]
    assert "accounting" not in tidy(study(), compare(study())).columns


def test_both_noises_are_compared_at_equal_epsilon_and_delta():
    mechanisms = {name: Quadtree(height=2) for name in ("Laplace", "Gaussian")}
    which = study(mechanisms=mechanisms, gaussian=("Gaussian",), epsilons=(1,), delta="1e-6", repeats=2)
    table = tidy(which, compare(which))
    assert table.groupby("label")["delta"].unique().map(list).to_dict() == {"Laplace": [0.0], "Gaussian": [1e-6]}
    assert table.groupby("label")["accounting"].unique().map(list).to_dict() == {"Laplace": [""], "Gaussian": ["exact"]}
    laplace, gaussian = (which.release(run) for run in which.runs()[:2])
    assert [{step.noise for step in made.receipt.steps} for made in (laplace, gaussian)] == [{"discrete Laplace"}, {"discrete Gaussian"}]
    alone = study(mechanisms={"tree": Quadtree(height=2)}, epsilons=(1,), repeats=2)
    np.testing.assert_array_equal(alone.release(alone.runs()[0]).count, laplace.count, "its noise is that of a study without the other")
    with pytest.raises(BudgetError, match="needs a delta"):
        study(mechanisms=mechanisms, gaussian=("Gaussian",), epsilons=(1,))
    with pytest.raises(BudgetError, match="one kind of noise"):
        study(mechanisms={"tree": PathTree()}, gaussian=("tree",), epsilons=(1,), delta="1e-6")
    with pytest.raises(SettingError, match="no label of a mechanism"):
        study(gaussian=("grid",), delta="1e-6")


def test_errors_of_trips_come_apart_and_add_up():
    which = study(data=COMMUTERS, mechanisms={"top": TopDown()}, epsilons=("0.1",), delta="1e-8", repeats=1, workloads=("levels", "sizes"))
    rows = pd.DataFrame(make_rows(which, which.runs()[0])).set_index("workload")
    assert (rows["noise"] + rows["suppression"]).to_numpy() == pytest.approx(rows["mae"].to_numpy())
    assert rows.loc["county", "suppression"] > 0
    sizes = rows[rows.index.str.startswith("size")]
    assert sizes["questions"].sum() == rows.loc["county", "questions"]
    assert (sizes["mae"] * sizes["questions"]).sum() == pytest.approx(rows.loc["county", "mae"] * rows.loc["county", "questions"])
    pairs = evaluate_trips(which.release(which.runs()[0]), COMMUTERS).compare(3)
    nothing = trip_figures(pairs[:0], COMMUTERS)
    assert set(nothing.values()) == {0}


class TestParsing:
    """The content of a table that was downloaded, read and checked column by column."""

    @pytest.fixture(scope="class", name="content")
    @classmethod
    def content_of_a_study(cls):
        which = study(repeats=2)
        return csv_text(tidy(which, compare(which)).assign(link="sample=la"))

    def test_what_is_read_is_what_was_written_and_the_link_is_no_figure(self, content):
        which = study(repeats=2)
        table = parse_rows(content.encode())
        assert finished_runs(which, table) == {run.id for run in which.runs()}
        pd.testing.assert_frame_equal(summary(tidy(which, table)), summary(tidy(which, table.drop(columns="link"))))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda table: table.drop(columns="run"), "lacks the columns run."),
            (lambda table: table.drop(columns=["run", "label"]), "lacks the columns run, label."),
            (lambda table: table.iloc[:0], "has no rows"),
            (lambda table: table.assign(study=["a", *table["study"][1:]]), "Column study: the rows must all belong to one study"),
            (lambda table: table.assign(run=["", *table["run"][1:]]), "Column run: row 1 is empty"),
            (lambda table: table.assign(mae=["much", *table["mae"][1:]]), "Column mae: every value must be a number"),
            (lambda table: table.assign(mae=math.inf), "Column mae: every value must be a number"),
            (lambda table: table.assign(private=1), "Column private: every value must be True or False"),
            (lambda table: table.assign(remark="good"), "Column remark: every value must be a number"),
            (lambda table: pd.concat([table, table["mae"]], axis=1), "The column mae is there twice"),
        ],
    )
    def test_a_malformed_table_is_refused_and_its_column_named(self, content, change, message):
        table = change(pd.read_csv(io.StringIO(content), dtype={"study": str, "run": str}))
        with pytest.raises(InputError, match=message):
            parse_rows(table.to_csv(index=False).encode())

    @pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"a,b\n1\n"])
    def test_what_is_no_table_is_refused(self, content):
        with pytest.raises(InputError, match="cannot be read as a table"):
            parse_rows(content)
