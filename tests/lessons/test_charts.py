"""Charts of the Learn page: series are told apart by everybody and on both pages, legends fit a phone, texts say what is seen."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dpviz.lessons import LESSONS
from dpviz.lessons.charts import AMBER, COLORS, GREEN, RED, Look, columns_for, curve_chart
from dpviz.lessons.consistency import _FITS, _OFF
from dpviz.lessons.maps import FILL
from dpviz.lessons.topdown import FILLS
from dpviz.view.charts import DASHES
from dpviz.view.colors import ACCENT

PAGES = ("#ffffff", "#101518")
SIGHTS = {
    "usual": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""What is seen of linear red, green and blue: Machado, Oliveira, Fernandes, IEEE TVCG 2009, severity 1."""
ALONE, WITH_A_FORM = 20.0, 12.0
"""Least distances in CIELAB; 2.3 is the least that is noticed side by side. The second is for lines with dashes, or marks of own shapes."""

LINES = {"COLORS": COLORS, "split": (RED, *COLORS[:1], *COLORS[2:])}
FORMS = {"tried and best": (AMBER, GREEN), "holds and misses": (ACCENT, RED)}
AREAS = {"family": tuple(FILLS.values()), "street": (_FITS, _OFF), "town and outline": (FILL, RED), "presence": ("#d55e00", "#0072b2")}
BARE = AREAS | {"two series, and dots without dashes": COLORS[:2]}


def linear(color):
    part = np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB of linear sRGB, D65."""
    to_xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
    x, y, z = (np.cbrt(part) if part > 0.008856 else 7.787 * part + 16 / 116 for part in to_xyz @ rgb / (0.95047, 1, 1.08883))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(first, second, sight):
    seen = (lab(np.clip(np.asarray(SIGHTS[sight]) @ linear(color), 0, 1)) for color in (first, second))
    return float(np.linalg.norm(np.subtract(*seen)))


def contrast(first, second):
    """WCAG 2.2: ratio of relative luminances."""
    low, high = sorted(0.05 + float(linear(color) @ (0.2126, 0.7152, 0.0722)) for color in (first, second))
    return high / low


def test_distances_are_those_of_the_books():
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.02)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert distance("#ff0000", "#00a000", "usual") > 5 * distance("#b04000", "#807000", "deutan")


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("name", BARE | LINES | FORMS)
def test_everybody_tells_them_apart(name, sight):
    for first, second in itertools.combinations((BARE | LINES | FORMS)[name], 2):
        assert distance(first, second, sight) > (ALONE if name in BARE else WITH_A_FORM), (first, second)


def test_lines_and_marks_stand_out_on_either_page_and_lines_have_dashes_of_their_own():
    for color, page in itertools.product({*COLORS, *itertools.chain(*LINES.values(), *FORMS.values())}, PAGES):
        assert contrast(color, page) >= 3, color
    most = max(map(len, LINES.values()))
    assert len({tuple(dash) for dash in DASHES[:most]}) == most


def encodings(spec):
    """Every encoding of a chart, however deep, but not its data."""
    if isinstance(spec, dict):
        yield from ([spec["encoding"]] if "encoding" in spec else [])
    if isinstance(spec, dict | list):
        for key, part in spec.items() if isinstance(spec, dict) else enumerate(spec):
            yield from encodings(part) if key != "datasets" else ()


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.key)
def test_every_series_of_every_lesson_has_a_checked_colour_and_a_second_look(lesson):
    checked = {frozenset(colors) for colors in (BARE | LINES | FORMS).values()}
    for spec in (chart.to_dict() for chart in lesson().show().charts):
        for encoding in encodings(spec):
            ranges = encoding.get("color", {}).get("scale", {}).get("range")
            assert not ranges or len(ranges) == 1 or any(set(ranges) <= colors for colors in checked), ranges
        text = str({key: part for key, part in spec.items() if key != "datasets"})
        assert "'color'" not in text or "strokeDash" in text or "shape" in text or "'text'" in text


@pytest.mark.parametrize(
    ("names", "columns"),
    [(("a",), 1), (("home", "work"), 2), (("kd-tree", "its noise", "its uniformity", "quadtree"), 2), (("x" * 60, "y" * 60), 1)],
)
def test_legends_get_columns_that_fit_a_phone(names, columns):
    assert columns_for(names) == columns


def test_a_line_in_a_legend_is_long_enough_to_show_its_dashes():
    table = pd.DataFrame({"x": [1, 2, 1, 2], "y": [1, 2, 2, 3], "series": ["a", "a", "b", "b"]})
    chart = curve_chart(table, Look(title="t", x="x", y="y", order=("a", "b"))).to_dict()
    legends = [each[name]["legend"] for each in encodings(chart) for name in ("color", "strokeDash") if name in each]
    assert legends
    assert all(legend["symbolSize"] >= 400 and legend["columns"] == 2 for legend in legends)
