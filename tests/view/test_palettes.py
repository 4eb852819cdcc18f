"""Palettes, by computation: distinct for all kinds of colour vision, with contrast on both themes."""

import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dpviz.view.charts import COLORS, DASHES, GREY, MARKS, to_hex
from dpviz.view.colors import ACCENT, FALSE_NEGATIVE, FALSE_POSITIVE, Scale
from dpviz.view.study_charts import MORE_COLORS, MORE_DASHES
from dpviz.view.trips_map import arriving_color, leaving_color
from tests.colors import EYES, contrast, difference, lab

THEMES = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
PAGES = {theme: THEMES[theme]["backgroundColor"] for theme in ("light", "dark")}
APART, FAR_APART = 12, 25  # CIELAB; a difference of 2.3 is just noticed side by side
SEEN = 2.2  # contrast to the page of thick lines and large marks, which differ in dash and shape as well; texts need 4.5


def test_the_measure_itself():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert difference("#ff0000", "#ff0000") == 0
    assert np.linalg.norm(lab("#ffffff", "all cones") - [100, 0, 0]) < 0.01
    assert lab("#ff0000", "all cones") == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    assert difference("#d02020", "#6a6a20") < 15 < np.linalg.norm(lab("#d02020", "all cones") - lab("#6a6a20", "all cones"))


def test_configurations_differ_in_colour_for_all_kinds_of_colour_vision():
    pairs = {pair: difference(*pair) for pair in itertools.combinations(MORE_COLORS, 2)}
    assert min(pairs.values()) > APART, min(pairs, key=pairs.get)


@pytest.mark.parametrize("color", [*MORE_COLORS, GREY, ACCENT, to_hex(FALSE_POSITIVE), to_hex(FALSE_NEGATIVE)])
@pytest.mark.parametrize("theme", PAGES)
def test_every_colour_has_contrast_on_both_themes(color, theme):
    assert contrast(color, PAGES[theme]) > SEEN


@pytest.mark.parametrize("theme", PAGES)
def test_texts_and_links_of_the_theme_can_be_read(theme):
    for name in ("textColor", "grayTextColor", "linkColor"):
        assert contrast(THEMES[theme][name], PAGES[theme]) > 4.5
    assert contrast(THEMES[theme]["primaryColor"], "#ffffff") > 4.2


def test_looks_differ_in_more_than_colour():
    assert len(COLORS) == len(DASHES) == len(MARKS)
    for ways in (MORE_COLORS, map(tuple, MORE_DASHES), MARKS):
        looks = list(ways)
        assert len(set(looks)) == len(looks)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (to_hex(FALSE_POSITIVE), to_hex(FALSE_NEGATIVE)),
        (ACCENT, MORE_COLORS[1]),  # parts of an error
        (to_hex(leaving_color(dark=False)), to_hex(arriving_color(dark=False))),
        (to_hex(leaving_color(dark=True)), to_hex(arriving_color(dark=True))),
    ],
)
def test_pairs_that_mean_opposites_are_far_apart(one, other):
    assert difference(one, other) > FAR_APART


@pytest.mark.parametrize("kind", ["density", "signed"])
@pytest.mark.parametrize("dark", [False, True])
def test_below_zero_looks_like_nothing_above(kind, dark):
    scale = Scale(kind=kind, top=100.0, title="people", dark=dark)
    below, above = (shades(scale, np.linspace(least, 100, 12) * sign) for least, sign in ((20, -1), (5, 1)))
    assert min(difference(*pair) for pair in itertools.product(below, above)) > APART


def shades(scale, values):
    return [to_hex(tuple(color[:3].tolist())) for color in scale.colors(values)]


@pytest.mark.parametrize("dark", [False, True])
def test_lightness_is_monotone_in_density_for_all_kinds_of_colour_vision(dark):
    colors = shades(Scale(kind="density", top=1.0, title="people", dark=dark), np.linspace(0, 1, 12))
    for eyes in EYES:
        light = np.diff([lab(color, eyes)[0] for color in colors])
        assert (light > -0.5).all() if dark else (light < 0.5).all()
