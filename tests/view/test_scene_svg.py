"""The maps of a canvas as SVG: what it says, what it shows where, and that nothing in it is a program or an address."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from dpviz.space.domain import Domain
from dpviz.view.canvas import Legend
from dpviz.view.places import ATTRIBUTION
from dpviz.view.scene_svg import draw_svg
from dpviz.view.trips_canvas import released_scene
from dpviz.view.trips_drawing import TripsMapSettings, draw_trips
from tests.hostile import NAMES
from tests.scenes import PLANE, cells_of, plain_pane, scene_of
from tests.view.trips_cases import grid, random_trips, released

SVG = "{http://www.w3.org/2000/svg}"
DEGREES = Domain(bounds=(-118.6, 33.7, -117.8, 34.3), crs="EPSG:4326", order=4)
METRES = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=4)
HALVES = [[0, 0, 8, 16], [8, 0, 16, 16]]
BAR = ("rgba(0,0,0,0.20)", "rgba(9,9,9,1.00)")
RAMP = Legend(title="per km²", low="0", top="7 and more", bar=BAR, marks=((("rgba(1,2,3,0.50)",), "pale"),))


def drawn(*panes, cells=HALVES, **options):
    return ET.fromstring(draw_svg(scene_of({"a": cells_of(cells, n=[7, 300])}, *panes, **options)))  # noqa: S314 - our own text


def texts(svg):
    return [each.text for each in svg.iter(f"{SVG}text")]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("domain", [PLANE, DEGREES, METRES], ids=["plane", "degrees", "metres"])
def test_two_maps_with_titles_legends_caption_stamp_and_no_script(domain, dark):
    panes = [replace(plain_pane(), title=title, legend=RAMP) for title in ("True", "Released")]
    words = {"title": "A city", "caption": "Believe districts.", "stamp": "Run 3, seeded: a simulation, not private."}
    names, box = [], None
    if domain is DEGREES:
        names, box = [("Angel's", -118.2, 34.0, 0.0), ("Hidden", -118.2, 34.0, 20.0)], (-118.4, 33.8, -118.2, 34.0)
    svg = drawn(*panes, domain=domain, dark=dark, places=names, box=box, **words)
    assert svg.find(f"{SVG}title").text == "A city"
    found = texts(svg)
    assert {"A city", "True", "Released", "Believe districts."} <= {*found}
    assert found.count("per km²") == found.count("7 and more") == found.count("pale") == 2
    assert found.count("Angel's") == (2 if names else 0)
    assert "Hidden" not in found
    assert found[-1] == words["stamp"] + (f"  ·  {ATTRIBUTION}" if names else "")
    assert len(list(svg.iter(f"{SVG}svg"))) == 3
    assert {each.tag.removeprefix(SVG) for each in svg.iter()} <= {
        *("svg", "g", "rect", "path", "text", "title", "desc", "style", "linearGradient", "stop")
    }


def test_every_rectangle_is_there_with_the_colour_of_its_shade():
    svg = drawn(plain_pane())
    (style,) = svg.iter(f"{SVG}style")
    rules = dict(re.findall(r"\.(c\d+)\{(.*?)\}", style.text))
    (group,) = (each for each in svg.iter(f"{SVG}g") if each.get("class") == "shapes")
    assert [rules[each.get("class")] for each in group] == ["fill:rgb(0,1,2);fill-opacity:0.01", "fill:rgb(4,5,6);fill-opacity:0.03"]
    west, east = (each.get("d") for each in group)
    boxes = [tuple(map(int, re.fullmatch(r"M(\d+) (\d+)h(\d+)v(-\d+)h-\d+z", path).groups())) for path in (west, east)]
    (left, bottom, width, height), other = boxes
    assert other == (left + width, bottom, other[2], height)
    assert width == pytest.approx(other[2], abs=1)
    assert -height == pytest.approx(2 * width, rel=0.001)


def test_a_picture_lies_over_the_whole_domain():
    svg = drawn(plain_pane(cells="", picture=b"\x89PNG"), domain=DEGREES)
    (image,) = svg.iter(f"{SVG}image")
    assert image.get("href") == "data:image/png;base64,iVBORw=="
    assert float(image.get("width")) / float(image.get("height")) == pytest.approx(0.8 / 0.6 * np.cos(np.radians(34)), rel=0.01)


@pytest.mark.parametrize("text", NAMES)
def test_a_hostile_title_is_text(text):
    svg = drawn(plain_pane(note=text), title=text, caption=text)
    assert not [each.tag for each in svg.iter() if "script" in each.tag.lower() or "foreign" in each.tag.lower()]
    assert not [name for each in svg.iter() for name in each.attrib if name.lower().startswith("on")]


def test_an_outline_is_drawn_over_the_map():
    ring = [[0.0, 0.0], [0.2, 0.0], [0.2, 0.2], [0.0, 0.0]]
    paths = [[each.get("d") for each in drawn(plain_pane(), outline=outline).iter(f"{SVG}path")] for outline in ([], [ring])]
    assert len(paths[1]) == len(paths[0]) + 1


def test_trips_are_regions_without_a_fill_then_dots_then_arcs_of_which_the_uncertain_are_dashed():
    release = released(random_trips(grid()))[0]
    drawing = draw_trips(release, TripsMapSettings(level=2))
    svg = ET.fromstring(draw_svg(released_scene(release, drawing, height=400)))  # noqa: S314 - our own text
    regions, dots, arcs = (each for each in svg.iter(f"{SVG}g") if each.get("class") == "shapes")
    assert {each.get("fill-opacity") for each in regions} == {"0"}
    assert [each.tag for each in dots] == [f"{SVG}circle"] * 24
    dashed = [each.get("stroke-dasharray") is not None for each in arcs.iter(f"{SVG}path")]
    assert dashed == drawing.arcs.dashed.tolist()
    assert 0 < sum(dashed) < len(dashed)
    assert {"may be 0", drawing.legend.dots[0][2]} <= {*texts(svg)}
