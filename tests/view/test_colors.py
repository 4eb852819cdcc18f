"""Colour scales, their legends, and palettes: distinct for all kinds of colour vision, with contrast on both themes."""

import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.amounts import format_short
from dpviz.view.charts import COLORS, DASHES, GREY, MARKS, to_hex
from dpviz.view.colors import ACCENT, FALSE_NEGATIVE, FALSE_POSITIVE, Scale, scale_top_of
from dpviz.view.looks import MORE_COLORS, MORE_DASHES
from dpviz.view.trips_drawing import ARRIVING_COLOR, LEAVING_COLOR
from tests.colors import EYES, contrast, difference, lab

NUMBERS = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30)


def scale(kind="density", **other):
    return Scale(kind=kind, top=100.0, title="people per km²", **other)


@pytest.mark.parametrize("kind", ["density", "signed"])
def test_zero_is_faint_the_top_is_strong_and_beyond_the_ends_is_like_the_ends(kind):
    colors = scale(kind).colors([0, 1, 100, 1e300, -100, -1e300])
    assert (colors.shape, colors.dtype) == ((6, 4), np.uint8)
    assert colors[0, 3] < 30 < colors[1, 3] < colors[2, 3] == 235
    assert (colors[2] == colors[3]).all()
    assert (colors[4] == colors[5]).all()
    assert (colors[2] != colors[4]).any()


@given(NUMBERS, st.sampled_from(["density", "signed"]), st.booleans())
def test_stronger_numbers_are_never_fainter(values, kind, dark):
    values = sorted(map(abs, values))
    alpha = scale(kind, dark=dark).colors(values)[:, 3].astype(int)
    assert (np.diff(alpha) >= 0).all()
    assert (scale(kind, dark=dark).colors([-value for value in values])[:, 3] == alpha).all()


TOPS = [([], 1), ([0, 0], 1), ([3], 5), ([-70], 100), ([200] * 9, 200), ([0.012], 0.02), ([*[3.0] * 999, 1e9], 5)]  # one outlier


@pytest.mark.parametrize(("values", "top"), TOPS)
def test_a_top_is_a_round_number_that_nearly_covers_the_values(values, top):
    assert scale_top_of(values) == pytest.approx(top)


def test_short_numbers():
    values, texts = [0, -45_000, 2.5e7, 9.5, 1234.5, 0.004], ["0", "−45k", "25M", "9.5", "1,234", "0.004"]
    assert list(map(format_short, values)) == texts


def test_marks_have_the_two_colours_of_false_positives_and_negatives():
    nothing, positive, negative = scale("marks").colors([0, 1, 2])
    assert nothing[3] < 50
    assert tuple(positive[:3]) == FALSE_POSITIVE == (213, 94, 0)
    assert tuple(negative[:3]) == FALSE_NEGATIVE == (0, 114, 178)


THEMES = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
PAGES = {theme: THEMES[theme]["backgroundColor"] for theme in ("light", "dark")}
APART, FAR_APART = 12, 25  # CIELAB; a difference of 2.3 is just noticed side by side
SEEN = 2.2  # contrast to the page of thick lines and large marks, which differ in dash and shape as well; texts need 4.5


def test_configurations_differ_in_colour_for_all_kinds_of_colour_vision_and_in_more_than_colour():
    pairs = {pair: difference(*pair) for pair in itertools.combinations(MORE_COLORS, 2)}
    assert min(pairs.values()) > APART, min(pairs, key=pairs.get)
    assert len(COLORS) == len(DASHES) == len(MARKS)
    for ways in (MORE_COLORS, map(tuple, MORE_DASHES), MARKS):
        looks = list(ways)
        assert len(set(looks)) == len(looks)


@pytest.mark.parametrize("theme", PAGES)
def test_every_colour_has_contrast_and_texts_and_links_can_be_read(theme):
    for color in (*MORE_COLORS, GREY, ACCENT, to_hex(FALSE_POSITIVE), to_hex(FALSE_NEGATIVE)):
        assert contrast(color, PAGES[theme]) > SEEN
    for name in ("textColor", "grayTextColor", "linkColor"):
        assert contrast(THEMES[theme][name], PAGES[theme]) > 4.5
    assert contrast(THEMES[theme]["primaryColor"], "#ffffff") > 4.2


def test_pairs_that_mean_opposites_are_far_apart():
    assert difference(to_hex(FALSE_POSITIVE), to_hex(FALSE_NEGATIVE)) > FAR_APART
    assert difference(ACCENT, MORE_COLORS[1]) > FAR_APART  # parts of an error
    for dark in (False, True):
        assert difference(to_hex(LEAVING_COLOR[dark]), to_hex(ARRIVING_COLOR[dark])) > FAR_APART


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", ["density", "signed"])
def test_below_zero_looks_like_nothing_above(kind, dark):
    below, above = (shades(scale(kind, dark=dark), np.linspace(least, 100, 12) * sign) for least, sign in ((20, -1), (5, 1)))
    assert min(difference(*pair) for pair in itertools.product(below, above)) > APART


def shades(scale, values):
    return [to_hex(tuple(color[:3].tolist())) for color in scale.colors(values)]


@pytest.mark.parametrize("dark", [False, True])
def test_lightness_is_monotone_in_density_for_all_kinds_of_colour_vision(dark):
    colors = shades(scale(dark=dark), np.linspace(0, 100, 12))
    for eyes in EYES:
        steps = np.diff([lab(color, eyes)[0] for color in colors]) * (1 if dark else -1)
        assert steps.min() > -0.5
        assert steps.sum() > 10
