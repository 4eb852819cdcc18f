"""Every small run of a figure: its claims, verdicts and seconds of one core: pytest -n0 -s -m benchmark tests/benchmarks/test_papers.py."""

import time

import pandas as pd
import pytest

from dpviz.papers.catalogue import PAPERS
from dpviz.papers.figures import SMALL

pytestmark = pytest.mark.benchmark

FIGURES = [(paper, figure) for paper in PAPERS.values() for figure in paper.figures.values()]


@pytest.mark.parametrize(("paper", "figure"), FIGURES, ids=[f"{paper.key} {figure.key}" for paper, figure in FIGURES])
def test_a_small_run_with_its_usual_seeds(paper, figure):
    start = time.process_time()
    table = pd.concat(figure.measure(SMALL), ignore_index=True)
    seconds = time.process_time() - start
    print(f"\n{paper.key} {figure.key}: {seconds:.1f} s of one core (stated: {figure.size(SMALL).seconds:g})")
    for claim in figure.claims:
        verdict = claim.judge(table, exact=figure.exact)
        _, value, low, high = verdict.decisive
        print(f"  {verdict.answer}: {value:.3g} [{low:.3g}, {high:.3g}] {claim.text}")


@pytest.mark.parametrize(("paper", "figure"), FIGURES, ids=[f"{paper.key} {figure.key}" for paper, figure in FIGURES])
def test_one_seed_of_each_larger_run(paper, figure):
    for name, size in list(figure.sizes.items())[1:]:
        start = time.process_time()
        next(figure.measure(name, 2))
        seconds = time.process_time() - start
        print(f"\n{paper.key} {figure.key}, {name}: {seconds:.1f} s for the data and one of {size.seeds} seeds (stated: {size.seconds:g})")
