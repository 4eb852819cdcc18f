"""A choice that does not exist is refused in one way everywhere: all choices are listed, the nearest is named, the value is not quoted."""

import numpy as np
import pytest

import dpviz as dv
from dpviz.errors import check_choice

DOMAIN = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
TABLE = {"x": [1.0], "y": [2.0]}
RELEASE = dv.Quadtree(height=2).release(dv.PointCounts.from_xy([1], [2], domain=DOMAIN), dv.PureBudget(1), dv.Entropy.seeded(1))


@pytest.mark.parametrize(
    ("call", "choices", "nearest"),
    [
        (
            lambda: RELEASE.answer([[0, 0, 1, 1]], fill="Interpolate"),
            "fill must be one of uniform, interpolated, log-linear",
            "interpolated",
        ),
        (lambda: RELEASE.answer([[0, 0, 1, 1]], outside="inside"), "outside must be one of refuse, inside_part", "inside_part"),
        (lambda: dv.PointCounts.from_xy([1], [2], domain=DOMAIN, bad_rows="drpo"), "bad_rows must be one of refuse, drop", "drop"),
        (lambda: dv.read_points(TABLE, domain=DOMAIN, engine="duck"), "engine must be one of auto, numpy, duckdb, dask", "duckdb"),
        (lambda: dv.Quadtree(split="geometrical"), "must be one of geometric, uniform, leaf, custom", "geometric"),
        (lambda: dv.Kdtree(outside="nearst"), "must be one of ", "nearest"),
    ],
)
def test_a_choice_that_does_not_exist_is_named_with_all_choices_and_the_nearest(call, choices, nearest):
    with pytest.raises(dv.DpvizError, match=choices) as refused:
        call()
    assert str(refused.value).endswith(f". Did you mean {nearest!r}?")


@pytest.mark.parametrize("value", ["zq 7", None, 3, np.zeros(2), ["drop"]])
def test_other_values_are_listed_against_and_never_quoted(value):
    with pytest.raises(dv.SettingError) as refused:
        check_choice(value, ("refuse", "drop"), "bad_rows")
    assert str(refused.value) == "bad_rows must be one of refuse, drop."
