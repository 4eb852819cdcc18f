"""Verdicts beside the truth, by mechanism and budget, on all sets by recipe."""

import pytest

from tests.evaluation.box_coverage import RECIPES
from tests.release.judged import judge, summarise


@pytest.mark.benchmark
@pytest.mark.timeout(2_400)
def test_how_many_levels_are_called_usable_that_are_not_and_less_that_are():
    judged = judge(RECIPES)
    for by in (["mechanism"], ["epsilon"], ["set"]):
        print(summarise(judged, by).round(1).to_string())
    every = summarise(judged.assign(every="all"), ["every"]).iloc[0]
    assert every["wrong"] <= 5
    assert every["missed"] <= 15
