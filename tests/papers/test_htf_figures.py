"""Claims of the HTF paper: each flips where its opposite is planted, and a small run has verdicts and charts."""

from functools import cache

import pandas as pd
import pytest

from dpviz.papers import htf
from dpviz.papers.figures import run_figure
from dpviz.papers.htf_figures import HTF
from tests.often import often
from tests.papers.planted import all_claims, assert_flips, crossed, with_seeds

FORMS, OURS = list(htf.SPLIT_EPSILONS), htf.OUR_NAME
QUERIES = ["random", "2 %", "6 %", "10 %"]
SETS = ["Los Angeles", "σ = 20, a", "σ = 100, a", "σ = 100, b"]
LEVEL = {FORMS[0]: 1.0, FORMS[1]: 1.1, OURS: 0.5}


def finished(table):
    """With columns that claims do not read."""
    others = dict.fromkeys(("n3", "mae", "mre_spread", "n3_spread", "mae_spread"), 1.0)
    return with_seeds(table.assign(**others), "mre")


def by_height(rivals):
    given = crossed(epsilon=[0.1, 0.5], method=[*rivals, *LEVEL], height=[8, 12, 16], queries=QUERIES)
    middle = given["height"].eq(12) & given["method"].isin(rivals)
    given = given.assign(estimated=False, mre=given["method"].map(LEVEL).fillna(4.0) / (1 + middle))
    found = crossed(epsilon=[0.1, 0.5], method=[*LEVEL], height=[11], queries=QUERIES)
    return finished(pd.concat([given, found.assign(estimated=True, mre=found["method"].map(LEVEL))], ignore_index=True))


def by_stop():
    own = crossed(epsilon=[0.1, 0.5], method=FORMS, stop=[10, 50, 100], queries=QUERIES)
    own = own.assign(mre=1.0 + 0.2 * own["stop"].ne(50))
    others = crossed(epsilon=[0.1, 0.5], method=["UG", "AG", OURS], queries=QUERIES).assign(stop=None)
    others = others.assign(mre=others["method"].map(LEVEL).fillna(4.0 - 4 * (others["epsilon"] - 0.1)))
    table = pd.concat([own, others], ignore_index=True)
    return finished(table.astype({"stop": "Int64"}))


def by_set():
    rivals = [*htf.kd_trees(4), *htf.quadtrees(4), *htf.grids()]
    table = crossed(data=SETS, epsilon=[0.1], method=[*LEVEL, *rivals], queries=["mixed"])
    gain = 1 + table["data"].str.startswith("σ = 100")
    return finished(table.assign(mre=table["method"].map(LEVEL).fillna(3.0 * gain)))


@cache
def tables():
    return {"3": by_height(list(htf.kd_trees(4))), "4": by_stop(), "5": by_height(list(htf.quadtrees(4))), "6": by_set()}


TREES = "method.str.contains('Tree|tree')"
REVERSALS = {
    ("3", 0): (TREES, 0.1),
    ("3", 1): (f"{TREES} and queries == '6 %' and height == 8", 0.1),
    ("3", 2): (f"{TREES} and height == 12", 10),
    ("3", 3): ("estimated", 2),
    ("3", 4): (f"method == '{OURS}'", 50),
    ("4", 0): ("method == 'AG' and epsilon == 0.5", 0.1),
    ("4", 1): ("method == 'AG' and queries == '10 %'", 0.1),
    ("4", 2): ("stop == 100 and epsilon == 0.1", 4),
    ("4", 3): ("stop == 50", 2),
    ("4", 4): (f"method == '{OURS}' and queries == '6 %'", 50),
    ("5", 0): (f"{TREES} and height == 8", 0.1),
    ("5", 1): (f"{TREES} and queries == '2 %'", 0.1),
    ("5", 2): (f"{TREES} and height == 8", 0.1),
    ("5", 3): (f"method == '{OURS}' and height == 16", 50),
    ("6", 0): ("method == 'AG' and data == 'Los Angeles'", 0.1),
    ("6", 1): ("method == 'UG' and data == 'σ = 20, a'", 10),
    ("6", 2): (f"method == '{FORMS[0]}'", 2),
    ("6", 3): (f"method == '{OURS}'", 50),
}
"""Rows by figure and claim, and the factor of their errors that plants the opposite of the claim."""


def test_every_claim_has_a_planted_reversal():
    assert REVERSALS.keys() == all_claims(HTF)


@pytest.mark.parametrize(("figure", "number"), REVERSALS)
def test_a_planted_reversal_flips_the_claim(figure, number):
    assert_flips(HTF.figures[figure], number, tables()[figure], "mre", *REVERSALS[figure, number])


@pytest.mark.parametrize(("figure", "titles"), often([("6", 3), ("3", 6), ("4", 7), ("5", 6)], 1))
def test_the_charts_are_the_paper_s_panels(figure, titles):
    """Two budgets or three stop counts with random queries, three sizes of squares, one chart by size; a panel per kind of data."""
    charts = HTF.figures[figure].draw(tables()[figure])
    assert len({chart.title["text"] for chart in charts}) == len(charts) == titles


@pytest.mark.slow
@pytest.mark.parametrize("key", HTF.figures)
def test_a_small_run_has_a_verdict_on_every_claim(key):
    figure = HTF.figures[key]
    run = run_figure(HTF, figure, seeds=1)
    assert [verdict.seeds for verdict in run.verdicts] == [1] * len(figure.claims)
    assert run.charts()
