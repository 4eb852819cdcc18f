"""The deck: small, and without addresses of other servers."""

import json
import math

import pydeck
import pytest

from dpviz.space.domain import Domain
from dpviz.view.basemap import map_bounds
from dpviz.view.deck import CompactDeck, deck, domain_view

LOS_ANGELES = Domain(bounds=(-118.62, 33.74, -117.86, 34.37), crs="EPSG:4326", order=4)
PLANE = Domain(bounds=(0, 0, 200, 100), crs=None, order=4)
METRES = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=4)
WORLD = Domain(bounds=(-180, -90, 180, 90), crs="EPSG:4326", order=4)
DOMAINS = pytest.mark.parametrize("domain", [LOS_ANGELES, PLANE, METRES, WORLD], ids=["degrees", "plane", "metres", "world"])


def made(domain, *, tooltip=None, dark=False):
    return deck([pydeck.Layer("PolygonLayer", [], id="partitions")], domain, tooltip=tooltip, dark=dark)


def text_of(domain, **options):
    return made(domain, **options).to_json()


def test_the_style_is_the_sentinel_because_streamlit_puts_an_online_basemap_in_place_of_an_empty_style():
    for dark in (False, True):
        assert json.loads(text_of(LOS_ANGELES, dark=dark))["mapStyle"] == "__MAP_STYLE__"
    assert made(LOS_ANGELES).map_provider is None


@DOMAINS
def test_the_deck_names_no_server(domain):
    text = text_of(domain).lower()
    assert not any(word in text for word in ("http", "//", "mapbox", "carto", "www.", "tile"))


@DOMAINS
def test_its_json_has_no_white_space_and_is_small(domain):
    text = text_of(domain)
    assert json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=True) == text
    assert len(text) < 1_000_000


def test_it_is_the_same_deck_as_pydecks_own():
    layer = pydeck.Layer("PolygonLayer", [{"p": [[0, 0], [1, 1]]}], id="partitions", get_polygon="p")
    options = {"layers": [layer], "map_provider": None, "initial_view_state": pydeck.ViewState(1, 2, 3)}
    assert json.loads(CompactDeck(**options).to_json()) == json.loads(pydeck.Deck(**options).to_json())


def test_layers_lie_over_land_and_under_borders_with_stable_names():
    for dark in (False, True):
        layers = json.loads(text_of(LOS_ANGELES, dark=dark))["layers"]
        assert [layer["id"] for layer in layers] == ["land", "partitions", "countries", "states", "domain"]
        assert not any(layer.get("pickable") for layer in layers if layer["id"] != "partitions")
    assert [layer["id"] for layer in json.loads(text_of(PLANE))["layers"]] == ["partitions", "domain"]


@DOMAINS
@pytest.mark.parametrize(("width", "height"), [(900, 600), (300, 700)])
def test_the_whole_domain_fits_the_window(domain, width, height):
    view = domain_view(domain, width, height)
    west, south, east, north = map_bounds(domain)
    per_radian = 512 * 2**view.zoom / (2 * math.pi)
    top, bottom = (math.asinh(math.tan(math.radians(latitude))) * per_radian for latitude in (north, south))
    assert math.radians(east - west) * per_radian <= width
    assert top - bottom <= height
    assert math.radians(east - west) * per_radian > 0.85 * width or top - bottom > 0.85 * height
    middle = math.asinh(math.tan(math.radians(view.latitude))) * per_radian
    assert middle == pytest.approx((top + bottom) / 2, abs=1)
    assert view.longitude == pytest.approx((west + east) / 2)


def test_a_plane_lies_around_the_null_island_where_maps_hardly_distort():
    assert map_bounds(PLANE) == pytest.approx((-0.5, -0.25, 0.5, 0.25))


def test_the_view_and_the_outlines_come_from_the_domain_alone():
    assert text_of(LOS_ANGELES) == text_of(LOS_ANGELES)


def test_a_tooltip_is_optional():
    assert made(PLANE)._tooltip is False
    assert made(PLANE, tooltip="<b>{n}</b>")._tooltip["html"] == "<b>{n}</b>"
