"""Colour scales: their ends, zero and negative numbers, and legends."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.amounts import format_short
from dpviz.view.colors import FALSE_NEGATIVE, FALSE_POSITIVE, Scale, scale_top_of

NUMBERS = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30)


def scale(kind="density", **other):
    return Scale(kind=kind, top=100.0, title="people per km²", **other)


def brightness(color):
    return color[:3].astype(int).sum()


@pytest.mark.parametrize("kind", ["density", "signed"])
def test_zero_is_faint_and_the_top_is_strong(kind):
    colors = scale(kind).colors([0, 1, 100])
    assert colors.shape == (3, 4)
    assert colors.dtype == np.uint8
    assert colors[0, 3] < 30 < colors[1, 3] < colors[2, 3] == 235


@pytest.mark.parametrize("kind", ["density", "signed"])
def test_beyond_the_ends_is_like_the_ends(kind):
    colors = scale(kind).colors([100, 1e300, -100, -1e300])
    assert (colors[0] == colors[1]).all()
    assert (colors[2] == colors[3]).all()
    assert (colors[0] != colors[2]).any()


def test_strong_densities_stand_out_on_either_page():
    light, dark = scale().colors([1, 100]), scale(dark=True).colors([1, 100])
    assert brightness(light[1]) < brightness(light[0])
    assert brightness(dark[1]) > brightness(dark[0])


def test_counts_below_zero_have_a_colour_of_their_own():
    red, green, blue, _ = scale().colors([-30.0])[0].astype(int)
    assert red > green < blue
    red, green, blue, _ = scale("signed").colors([-60.0])[0].astype(int)
    assert red > green > blue


def test_marks_are_vermilion_and_blue():
    nothing, positive, negative = scale("marks").colors([0, 1, 2])
    assert nothing[3] < 50
    assert tuple(positive[:3]) == FALSE_POSITIVE == (213, 94, 0)
    assert tuple(negative[:3]) == FALSE_NEGATIVE == (0, 114, 178)


@given(NUMBERS, st.sampled_from(["density", "signed"]), st.booleans())
def test_stronger_numbers_are_never_fainter(values, kind, dark):
    values = sorted(map(abs, values))
    alpha = scale(kind, dark=dark).colors(values)[:, 3].astype(int)
    assert (np.diff(alpha) >= 0).all()
    assert (scale(kind, dark=dark).colors([-value for value in values])[:, 3] == alpha).all()


@given(NUMBERS)
def test_a_top_is_a_round_number_that_nearly_covers_the_values(values):
    top = scale_top_of(values)
    assert re.fullmatch(r"[125]e[+-]\d+", f"{top:.0e}")
    largest = max(map(abs, values))
    assert top == 1.0 or top <= 10.1 * largest
    assert len(values) > 2 or largest == 0 or top >= 0.995 * min(map(abs, values))


@pytest.mark.parametrize(("values", "top"), [([], 1), ([0, 0], 1), ([3], 5), ([-70], 100), ([200] * 9, 200), ([0.012], 0.02)])
def test_tops(values, top):
    assert scale_top_of(values) == pytest.approx(top)


def test_one_outlier_does_not_make_the_other_colours_faint():
    assert scale_top_of([*[3.0] * 999, 1e9]) == 5


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (-45_000, "−45k"), (2.5e7, "25M"), (9.5, "9.5"), (1234.5, "1,234"), (0.004, "0.004")]
)
def test_short_numbers(value, text):
    assert format_short(value) == text


@pytest.mark.parametrize("kind", ["density", "signed", "marks"])
def test_legends_escape_their_title(kind):
    html = Scale(kind=kind, top=1.0, title="<img src=x> & people").legend()
    assert "<img" not in html
    assert "&lt;img src=x&gt; &amp; people" in html


def test_a_density_legend_shows_below_zero_only_where_it_occurs():
    assert "below zero" in scale().legend()
    assert "below zero" not in scale().legend(negatives=False)
    assert "below zero" not in scale("signed").legend()
    assert "0 <span" in scale().legend()
    assert "−100 <span" in scale("signed").legend()
    assert "100 and more" in scale("signed").legend()


def test_a_legend_of_marks_names_both():
    html = scale("marks").legend()
    assert "released, nothing there" in html
    assert "something there, released as empty" in html
    assert html.count("dpviz-mark") == 2
