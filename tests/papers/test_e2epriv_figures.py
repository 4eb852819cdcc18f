"""Claims of the paper on private tuning: each flips where its opposite is planted, and a small run has verdicts and charts."""

from functools import cache

import pytest

from dpviz.papers.e2epriv import TUNING_SETS, figure_11c
from dpviz.papers.e2epriv_figures import E2EPRIV
from dpviz.papers.figures import run_figure
from tests.often import often
from tests.papers.planted import all_claims, assert_flips, crossed, with_seeds

LEVEL = {"Heuristic": 1.0, "E2EPriv": 0.9, "Tuned": 0.8, "Leaky": 0.7, "BestNonPriv": 0.3}


def measured(table):
    """With an error per method that grows as queries and budgets shrink."""
    smaller = 1 / table.get("size", 0.1) / table.get("epsilon", 1.0)
    return with_seeds(table.assign(error=0.1 * table["method"].map(LEVEL) * smaller, spread=None), "error")


@cache
def tables():
    grids = crossed(side=[10, 30, 60, 100])
    grids = grids.assign(error=grids["side"].map({10: 4.0, 30: 2.0, 60: 1.0, 100: 1.5}), spread=None, heuristic=grids["side"] == 30)
    return {
        "5": with_seeds(grids, "error"),
        "10": measured(crossed(data=[*TUNING_SETS], method=[*LEVEL], size=[0.1, 0.3, 0.8])),
        "11a": measured(crossed(epsilon=[0.2, 1.0], method=[*LEVEL], size=[0.1])),
        "11b": measured(crossed(share=[0.2, 0.25, 0.5, 0.75], method=["E2EPriv", "Tuned"], size=[0.1, 0.8])),
        "11c": figure_11c().assign(seed=1),
    }


REVERSALS = {
    ("5", 0): ("side == 60", 3),
    ("5", 1): ("side == 30", 0.5),
    ("10", 0): ("data == 'storage' and method == 'E2EPriv'", 1.5),
    ("10", 1): ("data == 'gowalla' and method == 'E2EPriv'", 2),
    ("10", 2): ("method == 'E2EPriv'", 1.5),
    ("10", 3): ("data == 'gowalla' and size == 0.1 and method == 'Leaky'", 2),
    ("10", 4): ("data == 'landmark' and method == 'BestNonPriv'", 4),
    ("10", 5): ("data == 'landmark' and size == 0.1", 10),
    ("10", 6): ("method == 'Tuned' and size == 0.8", 10),
    ("11a", 0): ("method == 'E2EPriv' and epsilon == 0.2", 2),
    ("11a", 1): ("method == 'Leaky' and epsilon == 1", 10),
    ("11b", 0): ("share == 0.5 and size == 0.8", 1.5),
    ("11c", 0): ("bound == 'response' and side == 60", 3),
    ("11c", 1): ("sanity == 0.1", 1e6),
    ("11c", 2): ("bound == 'overlap'", 1.01),
}
"""Rows by figure and claim, and the factor of their errors, or sensitivities, that plants the opposite of the claim."""


def test_every_claim_has_a_planted_reversal():
    assert REVERSALS.keys() == all_claims(E2EPRIV)


@pytest.mark.parametrize(("figure", "number"), REVERSALS)
def test_a_planted_reversal_flips_the_claim(figure, number):
    column = "sensitivity" if figure == "11c" else "error"
    assert_flips(E2EPRIV.figures[figure], number, tables()[figure], column, *REVERSALS[figure, number])


@pytest.mark.parametrize(("figure", "titles"), often([("10", 3), ("5", 1), ("11b", 2), ("11c", 1)], 1))
def test_there_is_a_chart_per_data_set_or_method(figure, titles):
    charts = E2EPRIV.figures[figure].draw(tables()[figure])
    assert len({chart.title["text"] for chart in charts}) == len(charts) == titles


@pytest.mark.slow
@pytest.mark.parametrize("key", E2EPRIV.figures)
def test_a_small_run_has_a_verdict_on_every_claim(key):
    figure = E2EPRIV.figures[key]
    run = run_figure(E2EPRIV, figure, seeds=1)
    assert [verdict.seeds for verdict in run.verdicts] == [1] * len(figure.claims)
    assert run.charts()
