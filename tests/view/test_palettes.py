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

THEMES = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
PAGES = {theme: THEMES[theme]["backgroundColor"] for theme in ("light", "dark")}
# Machado, Oliveira, Fernandes, IEEE TVCG 2009: what is left of linear RGB without one kind of cone
EYES = {
    "all cones": np.eye(3),
    "no long": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no middle": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "no short": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
WHITE = XYZ.sum(axis=1)
APART, FAR_APART = 12, 25  # CIELAB; a difference of 2.3 is just noticed side by side
SEEN = 2.2  # contrast to the page of thick lines and large marks, which differ in dash and shape as well; texts need 4.5


def linear(color):
    parts = np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(color, eyes):
    x, y, z = (
        np.cbrt(part) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116
        for part in XYZ @ np.clip(EYES[eyes] @ linear(color), 0, 1) / WHITE
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(one, other):
    """The smallest difference of two colours over all kinds of colour vision."""
    return min(float(np.linalg.norm(lab(one, eyes) - lab(other, eyes))) for eyes in EYES)


def contrast(one, other):
    dark, light = sorted(float(XYZ[1] @ linear(color)) for color in (one, other))
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_itself():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert difference("#ff0000", "#ff0000") == 0
    assert np.linalg.norm(lab("#ffffff", "all cones") - [100, 0, 0]) < 0.01
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
