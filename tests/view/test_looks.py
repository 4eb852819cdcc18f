"""Looks of configurations: two on screen always differ, hues are apart for all eyes, and charts without looks are drawn as ever."""

import itertools

import pandas as pd
import pytest

from dpviz.app.pages.compare.state import MOST_CONFIGURATIONS
from dpviz.view.looks import HUES, MOST_VARIANTS, choose_looks, look_of
from dpviz.view.study_charts import error_by_epsilon, lines_with_spread, parts_by_label, seconds_by_label
from tests.charts import found
from tests.colors import difference

NAMES = [f"c{number}" for number in range(MOST_CONFIGURATIONS)]


def test_hues_are_apart_and_the_variants_of_all_mechanisms_differ():
    assert min(difference(*pair) for pair in itertools.combinations(HUES, 2)) > 12
    every = [look_of(place, variant) for place in range(len(HUES)) for variant in range(MOST_VARIANTS)]
    assert len({(look.color, look.dash) for look in every}) == len(every)


@pytest.mark.parametrize("places", [[0] * 24, list(range(24)), [0, 15] * 12, [3, 18, 33] * 8])
def test_up_to_24_configurations_never_share_a_look(places):
    looks = choose_looks(
        {name: (place, places[:number].count(place)) for number, (name, place) in enumerate(zip(NAMES, places, strict=True))}
    )
    assert len({(look.color, look.dash) for look in looks.values()}) == MOST_CONFIGURATIONS


def test_every_chart_takes_the_looks_it_is_given():
    rows = pd.DataFrame(
        {"label": ["a", "b"], "epsilon": 1.0, "x": 1, "mean": 2.0, "low": 1.0, "high": 3.0, "least": 1.0, "most": 3.0, "runs": 2}
    )
    rows = rows.assign(stddev=0.5, private=True, figure=["noise", "noise"])
    looks, names = choose_looks({"a": (7, 0), "b": (2, 1)}), {"label": "label", "x": "level", "mean": "error"}
    columns = ("x", "label", "mean", "stddev")
    colors = [looks[name].color for name in "ab"]
    for chart in (
        error_by_epsilon(rows, rows, "error", "boxes", looks=looks),
        lines_with_spread(rows, columns, names, "title", 300, looks=looks),
        parts_by_label(rows, 1.0, "people", "boxes", looks=looks),
        seconds_by_label(rows, 1.0, looks=looks),
    ):
        scales = [color["scale"] for color in found(chart.to_dict()["layer"], "color") if isinstance(color, dict) and "scale" in color]
        assert scales
        assert all((scale["domain"], scale["range"]) == (["a", "b"], colors) for scale in scales)
