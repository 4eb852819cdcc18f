"""Colour scales, their legends, and palettes: distinct for all kinds of colour vision, with contrast on both themes."""

import itertools
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.amounts import format_short
from dpviz.view.charts import CAPTION, COLORS, DARK, DASHES, GREY, LIGHT, MARKS, to_hex
from dpviz.view.colors import ACCENT, DENSITY, ERRORS, FALSE_NEGATIVE, FALSE_POSITIVE, PAPER, Scale, occupied_top, scale_top_of
from dpviz.view.looks import MORE_COLORS, MORE_DASHES
from dpviz.view.trips_drawing import ARRIVING_COLOR, LEAVING_COLOR
from tests.colors import EYES, contrast, difference, lab

NUMBERS = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30)


def scale(kind="density", **other):
    return Scale(kind=kind, top=100.0, title="people per km²", **other)


KINDS = ["density", "error", "signed"]
NUMBERS_OF_ALL_KINDS = given(NUMBERS, st.sampled_from([*KINDS, "marks"]), st.booleans())


@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_ends_is_like_the_ends(kind):
    colors = scale(kind).colors([0, 1, 100, 1e300, -100, -1e300])
    assert (colors.shape, colors.dtype) == ((6, 4), np.uint8)
    assert (colors[0] != colors[2]).any()
    assert (colors[2] == colors[3]).all()
    assert (colors[4] == colors[5]).all()
    assert (colors[2] != colors[4]).any()


@NUMBERS_OF_ALL_KINDS
def test_no_ground_shines_through(values, kind, dark):
    values = np.abs(values) % 3 if kind == "marks" else values
    colors = scale(kind, dark=dark).colors(values)
    assert (colors[:, 3] == 255).all()
    assert (scale(kind, dark=dark).make_pale(colors)[:, 3] == 255).all()


@pytest.mark.parametrize("dark", [False, True])
def test_an_error_of_zero_is_nearly_paper(dark):
    assert (np.abs(scale("signed", dark=dark).colors([0])[0, :3].astype(int) - PAPER[dark]) < 25).all()


TOPS = [([], 1), ([0, 0], 1), ([3], 5), ([-70], 100), ([200] * 9, 200), ([0.012], 0.02), ([*[3.0] * 999, 1e9], 5)]  # one outlier


@pytest.mark.parametrize(("values", "top"), TOPS)
def test_a_top_is_a_round_number_that_nearly_covers_the_values(values, top):
    assert scale_top_of(values) == pytest.approx(top)


TOPS_OF_OCCUPIED = [([], 1), ([0, 0, -4], 1), ([3], 3), ([0] * 999 + [213.4], 220), ([np.nan, 0.0123], 0.013), ([*[3.0] * 999, 1e9], 3)]


@pytest.mark.parametrize(("values", "top"), TOPS_OF_OCCUPIED)
def test_the_top_of_what_is_occupied_is_its_largest_value_but_for_one_in_two_hundred_to_two_digits(values, top):
    assert occupied_top(values) == pytest.approx(top)


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=30))
def test_a_top_is_at_most_a_tenth_above_the_values_and_empty_parts_change_nothing(values):
    top = occupied_top(values)
    assert max(values) * (1 - 1e-6) <= top <= 1.1 * max(values) * (1 + 1e-6)
    assert occupied_top([*values, *[0.0] * 500], [*[2.0] * len(values), *[9.0] * 500]) == top


def test_a_top_goes_by_area():
    assert occupied_top([5, 1000], [1000, 1]) == 5


def test_short_numbers():
    values, texts = [0, -45_000, 2.5e7, 9.5, 1234.5, 0.004], ["0", "−45k", "25M", "9.5", "1,234", "0.004"]
    assert list(map(format_short, values)) == texts


def test_marks_have_the_two_colours_of_false_positives_and_negatives():
    nothing, positive, negative = scale("marks").colors([0, 1, 2])
    assert tuple(nothing[:3]) == PAPER[False]
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


# Lengths of the path of colours that maps of counts had until 2026-11, in CIELAB, by whether the page is dark and by colour vision: from 0
# to 213.4 people per km2, below which 99.5 % of the occupied squares of level 6 of the sample la_residents lie, in 255 equal steps of the
# square root. They were drawn with cividis to 500, which was the top of that scale, with an alpha of 20 + 215 min(1.6 strength, 1) of 255
# over the grey of maps, (242, 245, 246) or (26, 33, 37).
PATHS_BEFORE = {
    (False, "all cones"): 82.8,
    (False, "no long"): 71.3,
    (False, "no middle"): 70.8,
    (True, "all cones"): 84.6,
    (True, "no long"): 69.3,
    (True, "no middle"): 70.1,
}
MOST_PEOPLE = 213.4
STEPS = np.linspace(0, MOST_PEOPLE**0.5, 256) ** 2
LEAST_CHROMA, INK = 18, 0.97  # CIELAB; beyond this strength colours are nearly black


def look_at(colors, eyes):
    return np.array([lab(to_hex(tuple(color[:3])), eyes) for color in colors.tolist()])


@pytest.mark.parametrize(("dark", "eyes"), PATHS_BEFORE)
def test_counts_pass_through_two_and_a_half_times_as_many_colours_as_before(dark, eyes):
    drawn = Scale(kind="density", top=occupied_top([MOST_PEOPLE]), title="", dark=dark)
    path = np.linalg.norm(np.diff(look_at(drawn.colors(STEPS), eyes), axis=0), axis=1).sum()
    assert path >= 2.5 * PATHS_BEFORE[dark, eyes]


@pytest.mark.parametrize("dark", [False, True])
def test_no_count_is_nearly_grey_but_the_ink_of_the_strongest_ones(dark):
    strength = np.linspace(0, INK, 100)
    colors = scale(dark=dark).colors(100 * (1 - strength if dark else strength) ** 2)
    assert np.hypot(*look_at(colors, "all cones")[:, 1:].T).min() > LEAST_CHROMA


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", ["density", "error"])
def test_lightness_is_monotone_for_all_kinds_of_colour_vision(kind, dark):
    colors = scale(kind, dark=dark).colors(100 * np.linspace(0, 1, 64) ** 2)
    for eyes in EYES:
        steps = np.diff(look_at(colors, eyes)[:, 0]) * (1 if dark else -1)
        assert steps.min() > 0
        assert steps.sum() > 75


def test_errors_are_of_another_hue_than_counts_and_for_all_kinds_of_colour_vision_than_high_ones():
    counts, errors = look_at(scale().colors(100 * np.linspace(0.1, 0.95, 40) ** 2), "all cones"), look_at(ERRORS[1:-1], "all cones")
    assert min(np.linalg.norm(counts - error, axis=1).min() for error in errors) > 30
    for eyes in EYES:
        dense, other = (look_at(ramp, eyes) for ramp in (DENSITY, ERRORS))
        assert np.linalg.norm(dense[4:-1, None] - other[None, 1:-1], axis=-1).min() > APART


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_captions_of_pictures_can_be_read(theme):
    assert contrast(theme.caption, theme.background) >= 4.5
    assert contrast(theme.text, theme.background) >= 4.5


def test_texts_in_charts_can_be_read_in_both_themes():
    assert re.findall(r"'(#\w{6})' : '(#\w{6})'", CAPTION.to_dict()["expr"]) == [(LIGHT.caption, DARK.caption)]
    sources = (Path(__file__).parents[2] / "dpviz").rglob("*.py")
    assert [path.name for path in sources if re.search(r"mark_text\([^)]*GREY", path.read_text("utf-8"))] == []


@pytest.mark.parametrize(("theme", "orange"), [("light", "#9b4519"), ("dark", "#f2a56d")])
def test_captions_of_pages_can_be_read_in_orange_too(theme, orange):
    style = (Path(__file__).parents[2] / "dpviz" / "app" / "__init__.py").read_text("utf-8")
    opacity = float(re.search(r'stCaptionContainer"\] \{ opacity: ([\d.]+)', style)[1])
    page, *texts = (np.array(list(bytes.fromhex(color[1:]))) for color in (PAGES[theme], THEMES[theme]["textColor"], orange))
    for text in texts:
        seen = np.round(page + opacity * (text - page)).astype(int).tolist()
        assert contrast(to_hex(seen), PAGES[theme]) >= 4.5


def test_captions_of_reports_and_notebooks_can_be_read():
    found = 0
    for name in ("report.css", "notebook.css"):
        text = (Path(__file__).parents[2] / "dpviz" / "view" / name).read_text("utf-8")
        for paper, soft in re.findall(r"--paper: (#\w{6}).*?--soft: (#\w{6})", text):
            assert contrast(paper, soft) >= 4.5
            found += 1
    assert found == 4
