"""Slides: of one size, with all texts, in both themes, and with every chart at its place."""

import re

import altair as alt
import pandas as pd
import pytest

from dpviz.view.charts import STAMP, finish
from dpviz.view.slides import HEIGHT, WIDTH, Slide, draw_slide


def bars(name):
    chart = alt.Chart(pd.DataFrame({"x": ["a", "b"], "y": [1, 2]})).mark_bar(clip=True).encode(x="x:N", y="y:Q")
    return finish(alt.layer(chart), name, "Two bars.", 200)


ROWS = ((bars("First"), bars("Second")), (bars("Third"),))
SLIDE = Slide(rows=ROWS, title="Bars & more", question="Which bar is longer? " * 9, settings="ε: 1", source="Nobody, 2020.")


@pytest.fixture(scope="module")
def svg():
    return draw_slide(SLIDE, "svg").decode()


def places(svg):
    """(left, top, width, height) of every chart."""
    return [tuple(map(float, each)) for each in re.findall(r'<svg x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', svg)]


def test_it_has_all_texts_and_the_charts_lie_inside_and_apart(svg):
    words = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", svg))
    assert [text for text in ("Bars &amp; more", "ε: 1.", "Nobody, 2020.", STAMP, "First", "Third") if text not in words] == []
    assert words.count("Which bar is longer?") >= 7, "some are cut by the end of a line"
    boxes = places(svg)
    assert len(boxes) == 3
    assert all(x > 0 and x + wide < WIDTH and y > 0 and y + high < HEIGHT for x, y, wide, high in boxes)
    assert boxes[0][0] + boxes[0][2] < boxes[1][0]
    assert boxes[1][1] + boxes[1][3] < boxes[2][1]


def test_names_within_a_chart_are_its_own(svg):
    names = re.findall(r'\bid="([^"]+)"', svg)
    assert len(set(names)) == len(names)
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(names)


def test_a_png_has_the_size_of_a_slide_and_a_dark_one_is_dark(svg):
    png = draw_slide(SLIDE, "png")
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (WIDTH, HEIGHT)
    assert 'fill="#ffffff"' in svg[:600]
    assert 'fill="#101518"' in draw_slide(SLIDE, "svg", dark=True).decode()[:600]
