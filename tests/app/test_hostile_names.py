"""Files full of hostile names on every page: none reaches Streamlit as it stands where that reads Markdown, HTML or expressions."""

import re

import pytest

from dpviz.app.pages.compare.page import TABS as COMPARE_TABS
from dpviz.app.pages.compare.state import JOB, CompareConfig, replace
from dpviz.app.pages.trips.tabs import TAB_TITLES as TABS
from dpviz.view.escape import markdown
from tests.app.parts import changed_page, page_with
from tests.app.published import made, payment, write_texts
from tests.app.seen import good, labelled
from tests.app.start import STATES, box_of, pages_app
from tests.app.test_compare_page import finished
from tests.app.walk import choose, name_dataset, open_drawer, open_tab, press_draw, protect, public
from tests.hostile import LEVELS, NAMES, points_file, regions_file, trips_file
from tests.often import rarely

# Fields of Streamlit's messages by what is done with them. Whatever is in none of these is taken for Markdown.
STANDING = {
    *("selectbox.options", "selectbox.placeholder", "selectbox.raw_value", "json.body", "number_input.placeholder"),
    *("multiselect.options", "multiselect.raw_values", "multiselect.placeholder", "arrow_data_frame.columns"),
    *("text_input.value", "text_input.default", "text_input.placeholder"),
    *("text_area.value", "text_area.default", "text_area.placeholder"),
    "code.code_text",
}
OF_STREAMLIT = re.compile(r"(\.|_)(id|form_id|key|format|url|mark|accept_file|icon|element_id|query_param_key|file_urls_json)$|\.user_key$")
PICTURES = {"vega_lite_chart.spec", "bidi_component.json"}  # see tests/view/test_escape.py
MARKUP = r"<img|<script|onerror=[^&]*>|\{n\}"


def strings(message, path):
    """(path, text) of every text of a message, however deep."""
    for field, value in message.ListFields():
        name = f"{path}.{field.name}"
        values = list(value.values()) if hasattr(value, "values") and callable(value.values) else value
        for each in values if isinstance(values, list) or hasattr(values, "append") else [values]:
            if isinstance(each, str):
                yield name, each
            elif hasattr(each, "ListFields"):
                yield from strings(each, name)


def shown(app):
    """(path, text) of every text of a page."""
    for node in app._tree:
        proto = getattr(node, "proto", None)
        if proto is not None:
            yield from strings(proto, getattr(node, "type", "block"))


def raw(text, names):
    """Names that stand in a text as they are, of those that must not; a backslash before their first sign is one of the door's."""
    return [name for name in names if markdown(name) != name and re.search(rf"(?<!\\){re.escape(name)}", text)]


def checked(app, names=NAMES):
    """The page, after a look at all of its texts."""
    seen = set()
    for path, text in shown(good(app)):
        seen |= {name for name in names if markdown(name) in text}
        if path == "html.body":
            assert not re.search(MARKUP, text)
        elif path not in STANDING | PICTURES and not OF_STREAMLIT.search(path):
            assert raw(text, names) == [], (path, text)
    return seen


def hostile_trips(**how):
    app = pages_app("trips", {}, {"trips config": page_with("trips", source="upload", **how)})
    good(app.file_uploader(key="regions file").set_value((f"{NAMES[0]}.geojson", regions_file(), "application/geo+json")).run())
    good(labelled(app.checkbox, "This file is already public").check().run())
    levels = next(each for each in app.multiselect if each.label.startswith("Columns of ids"))
    good(levels.set_value(list(LEVELS)).run())
    good(app.file_uploader(key="trips file").set_value((f"{NAMES[1]}.csv", trips_file(), "text/csv")).run())
    return good(public(app).check().run())


@pytest.mark.slow
def test_regions_and_levels_on_every_tab_and_level_of_the_trips_page():
    second = page_with("trips", mechanism="flat_gaussian", settings={}).draft.run
    app = hostile_trips(left="Second run", second=second)
    seen = checked(app)
    for level, tabs in enumerate((TABS[1:3], TABS), start=1):
        app.session_state["trips config"] = changed_page(app.session_state["trips config"], level=level)
        seen |= checked(app.run())
        for name in tabs:
            seen |= checked(open_tab(app, name))
    seen |= checked(open_drawer(app, "Data")) | checked(open_drawer(app, "Split"))
    seen |= checked(open_drawer(app, "Map").selectbox(key="region").set_value(5).run())
    seen |= checked(open_tab(app, "Region"))
    assert {*LEVELS, NAMES[10]} <= seen  # every second name lies in the first of the coarse regions


@pytest.mark.slow
def test_compare_with_regions_of_ones_own():
    config = CompareConfig(kind="Trips", source="own", low=1.0, high=1.0, steps=1, repeats=2)
    app = hostile_trips()
    app.session_state["at"], app.session_state["compare config"] = "compare", config
    checked(app.run())
    app.button(key="draw").click().run()
    assert finished(app).session_state[JOB].made
    app.session_state["compare config"] = replace(config, picked=(("TopDown (InfTDA)", 1.0),))
    for name in COMPARE_TABS:
        app.session_state["compare tab"] = name
        checked(app.run())


@pytest.mark.parametrize(
    ("mode", "typed"), [("Teach", ()), rarely(("Curate", NAMES[:3])), rarely(("Curate", NAMES))], ids=["Teach", "some", "all"]
)
def test_columns_and_what_is_typed_on_the_points_page(mode, typed):
    app = pages_app("points", {}, {"config": page_with("points", mode=mode, source="upload", order=4, domain=box_of(STATES))})
    choose(app, points_file(), f"{NAMES[0]}.csv")
    checked(app)
    for name in (*NAMES[:4], "EPSG:4326"):
        app.text_input(key="crs").set_value(name)
        checked(app.run())
    labelled(app.selectbox, "How many records does a row stand for?").set_value(NAMES[0])
    checked(app.run())
    labelled(app.selectbox, "How many records does a row stand for?").set_value("none")
    checked(protect(app, NAMES[8]))
    if mode == "Curate":
        for name in typed:
            labelled(app.text_input, "Name of the dataset").set_value(name)
            labelled(app.number_input, "Cap, ε").set_value(2.0)
            checked(app.run())
        checked(press_draw(app))


def test_a_dataset_and_a_curator_s_words_until_they_are_published():
    app = pages_app(
        "points",
        {"sample": "gaussian_cluster", "size": "1000", "order": "5", "mechanism": "quadtree", "settings": '{"height":3}', "mode": "Curate"},
    )
    name_dataset(app)
    labelled(app.text_input, "Name of the dataset").set_value(NAMES[0])
    app = press_draw(good(app.run()))
    seen = checked(app)
    places = ("name", "curator", "description", "region", "intended_use")
    words = dict(zip(places, (NAMES[0], NAMES[3], NAMES[4], NAMES[6], NAMES[7]), strict=True))
    checked(write_texts(app, **words))
    bundle = made(payment(app), **words)
    app.session_state["bundles"] = {payment(app).entry: bundle}
    assert NAMES[0] in seen | checked(app.run())
    assert "<img" not in bundle.report.decode()
