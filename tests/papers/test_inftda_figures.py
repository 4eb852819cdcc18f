"""Claims of the InfTDA paper: each flips where its opposite is planted, and a small run has verdicts and charts."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpviz.papers.figures import run_figure
from dpviz.papers.inftda import METHODS
from dpviz.papers.inftda_figures import INFTDA
from tests.often import often
from tests.papers.planted import all_claims, assert_flips, crossed, with_seeds

RATE = {"InfTDA": 10.0, "TDA-l2": 20.0, "TDA-linf": 20.0, "VanillaGauss": 30.0, "SH": 1e-12}
SECONDS = {"SH": 0.1, "InfTDA": 1.0, "TDA-l2": 2.0, "TDA-linf": 9.0}


def finished(table):
    table = with_seeds(table.assign(between="x"), "mean").astype({"stage": "Int64"})
    return table.assign(minimum=table["mean"], maximum=table["mean"])


def errors(stages, **keys):
    """Largest errors: SH's fall downwards to a tenth of InfTDA's or less, VanillaGauss's are between, others grow to 100 / epsilon."""
    table = crossed(**keys, stage=range(stages + 1))
    up = stages - table["stage"]
    sparse = table["data"].str.contains("sparse") if "data" in keys else False
    steep = np.where(sparse, 0.01 * 5.0**up, 0.1 * 40.0**up)
    level = np.select([table["method"].eq("SH"), table["method"].eq("VanillaGauss")], [steep, 0.5 * 2.0**up], 0.9**up)
    wrong = table["method"].eq("TDA-linf") & table.get("data", "").eq("random_sparse") if "data" in keys else False
    return table.assign(measure="max_error", mean=100 / table["epsilon"] * level * (1 + wrong))


def rates(**keys):
    table = crossed(**keys)
    alike = table["data"].eq("binary_sparse") & table["method"].ne("SH") if "data" in keys else False
    return table.assign(measure="false_discovery", mean=np.where(alike, 15.0, table["method"].map(RATE)))


def times(**keys):
    table = crossed(**keys)
    return table.assign(measure="seconds", stage=None, mean=table["method"].map(SECONDS) * table["epsilon"] ** 0.1)


@cache
def tables():
    sets, few = ["binary_complete", "binary_sparse", "random_sparse"], {"epsilon": [1.0, 10.0], "method": [*METHODS]}
    country = {"epsilon": [0.1, 1.0, 10.0], "method": ["SH", "InfTDA", "TDA-l2"]}
    of_country = [errors(6, **country), rates(**country, stage=range(7)), times(**country)]
    return {
        "3": finished(pd.concat(of_country, ignore_index=True)),
        "4": finished(errors(8, data=sets, **few)),
        "5": finished(rates(data=sets[1:], **few, stage=[4, 8])),
        "6": finished(times(data=sets, epsilon=[1.0, 10.0], method=["InfTDA", "TDA-l2", "TDA-linf"])),
    }


ERRORS, TIMES = "measure == 'max_error'", "measure == 'seconds'"
REVERSALS = {
    ("3", 0): ("method == 'SH' and stage == 4", 1e-4),
    ("3", 1): (f"{ERRORS} and method == 'SH' and stage == 6", 20),
    ("3", 2): (f"{ERRORS} and method == 'SH' and stage == 6", 5),
    ("3", 3): (f"{ERRORS} and method == 'InfTDA' and stage == 6", 0.1),
    ("3", 4): (f"{ERRORS} and method == 'TDA-l2' and stage == 4", 2),
    ("3", 5): ("measure == 'false_discovery' and method == 'TDA-l2' and stage == 2", 0.3),
    ("3", 6): (f"{ERRORS} and epsilon == 0.1", 2),
    ("3", 7): (f"{TIMES} and method == 'SH'", 20),
    ("3", 8): (f"{TIMES} and method == 'TDA-l2'", 0.1),
    ("3", 9): (f"{TIMES} and epsilon == 10", 0.1),
    ("4", 0): ("data == 'binary_complete' and method == 'SH'", 1e-9),
    ("4", 1): ("data == 'random_sparse' and method == 'SH'", 20),
    ("4", 2): ("method == 'SH' and stage == 2", 1e-9),
    ("4", 3): ("method == 'TDA-l2' and stage == 8", 2),
    ("4", 4): ("method == 'TDA-linf'", 0.3),
    ("4", 5): ("data == 'binary_sparse' and method == 'TDA-linf'", 2),
    ("5", 0): ("method == 'VanillaGauss'", 0.2),
    ("5", 1): ("data == 'binary_sparse' and method == 'InfTDA'", 0.5),
    ("5", 2): ("method == 'SH'", 1e13),
    ("6", 0): ("method == 'TDA-linf'", 0.01),
    ("6", 1): ("method == 'TDA-l2' and epsilon == 1", 0.01),
}
"""Rows by figure and claim, and the factor of their means that plants the opposite of the claim."""


def test_every_claim_has_a_planted_reversal():
    assert REVERSALS.keys() == all_claims(INFTDA)


@pytest.mark.parametrize(("figure", "number"), REVERSALS)
def test_a_planted_reversal_flips_the_claim(figure, number):
    assert_flips(INFTDA.figures[figure], number, tables()[figure], "mean", *REVERSALS[figure, number])


@pytest.mark.parametrize(("figure", "titles"), often([("6", 3), ("3", 7), ("4", 6), ("5", 4)], 1))
def test_there_is_a_chart_per_set_and_budget(figure, titles):
    charts = INFTDA.figures[figure].draw(tables()[figure])
    assert len({chart.title["text"] for chart in charts}) == len(charts) == titles


@pytest.mark.slow
@pytest.mark.parametrize("key", INFTDA.figures)
def test_a_small_run_has_a_verdict_on_every_claim(key):
    figure = INFTDA.figures[key]
    run = run_figure(INFTDA, figure, seeds=1)
    assert [verdict.seeds for verdict in run.verdicts] == [1] * len(figure.claims)
    assert run.charts()
