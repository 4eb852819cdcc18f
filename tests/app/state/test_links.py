"""A link brings back the page that it was made of, holds parameters only, and is read as a whole, with the meaning that it had."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpviz.app.state.draft import Draft
from dpviz.app.state.kinds import AREAS, KINDS, POINTS, TRIPS
from dpviz.app.state.linked import never_in_link
from dpviz.app.state.links import ask_for_file_of_link, read_link, read_linked_file, write_link
from dpviz.app.state.page import Page, usual_page
from dpviz.app.state.run import Run
from dpviz.app.state.values import LARGEST_DELTA, LARGEST_EPSILON, LARGEST_ORDER, SMALLEST_DELTA, SMALLEST_EPSILON
from dpviz.app.state.view import Pane, View
from dpviz.errors import SettingError
from dpviz.families import POINT_FAMILY
from dpviz.samples.points import POINT_SAMPLES
from dpviz.view.points_map import SHOWN
from tests.app.state.pages import FILLED, pages

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "page_links.json").read_text("utf-8"))
"""Links of 29 November 2026, with the address that each page wrote for them, or the parameters that it refused; never written again."""
NAMES = sorted({name for each in GOLDEN for name in each["link"]})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SETTINGS = sorted({rule.name for mechanism in POINT_FAMILY.choices.values() for rule in mechanism.rules()})


TEXTS = st.one_of(
    st.text(max_size=30),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        [*POINT_SAMPLES, *POINT_FAMILY.choices, *SHOWN, "Teach", "Curate", "9" * 400, "-" + "9" * 4000, "1e999", "[" * 3000, "٣"]
    ),
    st.dictionaries(st.sampled_from(SETTINGS), JSON, max_size=4).map(json.dumps),
    JSON.map(json.dumps),
)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_links_mean_what_they_meant(kind):
    seen = [each for each in GOLDEN if each["page"] == kind.name]
    assert len(seen) > 30
    for each in seen:
        if "refused" in each:
            with pytest.raises(SettingError, match=r"^Not understood in this link: .* Nothing of it was used\.") as error:
                read_link(kind, each["link"])
            assert all(name in str(error.value) for name in each["refused"])
        else:
            said = {name: text for name, text in each["address"].items() if name != "mode"}  # which no link carries any more
            assert write_link(read_link(kind, each["link"])) == said, each


@given(st.sampled_from(list(KINDS.values())), st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), TEXTS, max_size=9))
@example(POINTS, {"size": "9" * 400})
@example(POINTS, {"settings": '{"height":' + "9" * 3900 + "}"})
@example(POINTS, {"settings": '{"weights":[[1]],"split":{}}'})
@example(AREAS, {"slots": "[9,7]"})
@example(AREAS, {"slots": "[1e400,2]", "by_slot": "yes"})
@example(AREAS, {"mechanism": "cross_tree", "sample": "city_by_hour", "slots": "[7,99999]", "by_slot": "True"})
@example(AREAS, {"second": '{"mechanism":[],"settings":3,"epsilon":true,"delta":{}}'})
@example(POINTS, {"settings": '{"height":1e999}'})
def test_any_text_is_read_or_the_whole_link_refused(kind, link):
    try:
        page = read_link(kind, link | {"source": "path", "path": "/etc/passwd"})
    except SettingError:
        return
    assert page.draft.build().key == page.draft.run.mechanism
    assert page.draft.source == "sample"
    assert page.draft.mode == "Teach"
    assert page.draft.sample in kind.samples
    assert page.view.shown in kind.shown
    assert SMALLEST_EPSILON <= page.draft.run.epsilon <= LARGEST_EPSILON
    assert SMALLEST_DELTA <= page.draft.run.delta <= LARGEST_DELTA
    assert 1 <= page.draft.order <= LARGEST_ORDER
    assert page.draft.size is None or 1 <= page.draft.size <= 10_000_000
    assert read_link(kind, write_link(page)) == page


@settings(max_examples=50)
@given(pages())
def test_a_link_brings_back_what_it_was_made_from(page):
    link = write_link(page)
    assert all(isinstance(text, str) for text in link.values())
    assert read_link(page.draft.kind, link) == page


@pytest.mark.parametrize("page", FILLED.values(), ids=FILLED)
def test_nothing_private_and_no_path_is_in_a_link(page):
    draft = page.draft
    usual = usual_page(draft.kind)
    bare = Draft(family=draft.family, runs=draft.runs, **{name: getattr(draft, name) for name in ("sample", "order", "study_area")})
    assert write_link(page) == write_link(replace(page, draft=bare))
    assert read_link(draft.kind, write_link(page)).draft.source == "sample"
    words = [*("folder", "homes", "rider", "regions", "ab12", "s3cret", "City", ".csv", "geojson"), usual.draft.output.folder]
    assert not [word for word in words if word in str(write_link(page))]
    for name in never_in_link(Draft) - {"family"}:
        assert write_link(replace(page, draft=replace(draft, **{name: getattr(Draft(), name)}))) == write_link(page), name


def test_the_fields_that_no_link_may_carry_are_these():
    data = {"source", "uploaded", "by_path", "path", "opened", "domain", "outline", "regions_from", "regions", "destinations", "grid"}
    assert never_in_link(Draft) == data | {"counted_by", "categories", "family", "mode", "account", "texts", "output", "guess"}
    assert never_in_link(View) == {"drawer"}
    assert never_in_link(Run) == set()


def test_slots_of_a_link_are_a_range():
    for refused in ("[9,7]", "[7]", "[7,8,9]", "[-1,2]", "[0,65536]", "[0.5,2]", "7", "null"):
        with pytest.raises(SettingError, match="slots"):
            read_link(AREAS, {"slots": refused})
    assert read_link(AREAS, {"slots": "[0,65535]"}).view.slots == (0, 65535)


@pytest.mark.parametrize(
    "link",
    [{"source": "path"}, {"path": "/etc/passwd"}, {"uploaded": "x"}, {"public": "True"}, {"account": "x"}, {"outline": "/etc/passwd"}],
)
def test_a_link_opens_no_file_and_declares_nothing(link):
    for kind in KINDS.values():
        assert read_link(kind, link) == usual_page(kind)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_link_to_a_file_asks_for_it_by_name_and_opens_nothing(kind):
    name = "../*stops*.csv"
    asking = ask_for_file_of_link(usual_page(kind), read_linked_file({"file": name}))
    assert (asking.draft.source, asking.draft.uploaded.path, asking.draft.path, asking.draft.uploaded.digest) == ("upload", name, "", "")
    assert "file" not in write_link(asking), "only a declaration in a session names a file"
    for malformed in ("", "  ", "x" * 121):
        with pytest.raises(SettingError, match="Not understood in this link: file"):
            read_linked_file({"file": malformed})


def test_what_is_not_typed_yet_is_not_in_a_link():
    page = usual_page(POINTS)
    half = replace(page, draft=replace(page.draft, sample=None, runs=(Run(), Run(mechanism="quadtree"))))
    assert write_link(half) == {}


def test_four_maps_of_four_runs_are_in_a_link():
    first = usual_page(AREAS).draft.runs[0]
    runs = tuple(replace(first, epsilon=Fraction(1, 10**power)) for power in range(4))
    panes = tuple(Pane(run=run, shows="Released") for run in range(4))
    page = Page(draft=replace(usual_page(AREAS).draft, runs=runs), view=View(panes=panes, edited=3))
    assert read_link(AREAS, write_link(page)) == page


@pytest.mark.parametrize("panes", ["[]", '[[4,"True"]]', '[[0,"Nothing"]]', '[[true,"True"]]', "[1]", "{}", '[[0,"True"]]' + "," * 9])
def test_maps_that_make_no_sense_are_refused(panes):
    with pytest.raises(SettingError, match="panes"):
        read_link(AREAS, {"panes": panes})


def test_an_old_name_is_refused_with_todays():
    with pytest.raises(SettingError, match="'conversion' is called 'accounting' now"):
        read_link(TRIPS, {"settings": '{"conversion":"simple"}'})
