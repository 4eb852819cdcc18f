"""A link brings back the page that it was made of, holds parameters only, and is read as a whole, with the meaning that it had."""

import ast
import json
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpviz.app.areas.state import AreasConfig
from dpviz.app.points.state import Config
from dpviz.app.session import check_link
from dpviz.app.start_page import PRESETS
from dpviz.app.state.draft import Draft
from dpviz.app.state.kinds import AREAS, KINDS, POINTS, TRIPS
from dpviz.app.state.linked import never_in_link
from dpviz.app.state.links import read_link, write_link
from dpviz.app.state.page import Page, usual_page
from dpviz.app.state.run import Run
from dpviz.app.state.values import SECOND
from dpviz.app.state.view import Pane, View
from dpviz.app.trips.state import TripsConfig
from dpviz.errors import SettingError
from dpviz.privacy.budget import exact
from tests.app.state.pages import FILLED, pages
from tests.app.test_points_state import TEXTS

CONFIGS = {"points": Config, "trips": TripsConfig, "areas": AreasConfig}
TESTS = Path(__file__).parents[2]
NAMES = sorted({field.name for kind in CONFIGS.values() for field in fields(kind)})


def run_of(config):
    amounts = {name: exact(getattr(config, name), name) for name in ("epsilon", "delta")}
    rho = None if config.rho is None else exact(config.rho, "rho")
    return Run(mechanism=config.mechanism, settings=config.settings, noise=config.noise, rho=rho, seed=config.run, **amounts)


def meaning(config):
    """The page that today's configuration stands for."""
    kind = KINDS[config.family.name]
    draft = {name: getattr(config, name) for name in ("mode", "sample", "size", "order", "study_area", "beside") if hasattr(config, name)}
    names = {field.name for field in fields(View)} - {"level"}
    view = {name: getattr(config, name) for name in names if hasattr(config, name)}
    left = Pane(run=1) if config.left == SECOND else Pane(shows=config.left)
    runs = (run_of(config), *([run_of(config.second_run())] if config.second or config.left == SECOND else []))
    usual = usual_page(kind)
    return Page(
        draft=replace(usual.draft, runs=runs, **draft),
        view=View(**view, panes=(left, Pane(shows=config.shown)), level=getattr(config, kind.level), edited=int(config.editing)),
    )


def links_of_tests():
    """Every dictionary of texts in the tests of the app, and the links of earlier versions."""
    found = [preset.link for preset in PRESETS]
    for path in (TESTS / "golden" / "links.json", TESTS / "publishing" / "before" / "links.json"):
        found += [each["link"] for each in json.loads(path.read_text("utf-8")).values()]
    for path in sorted((TESTS / "app").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Dict) and all(isinstance(each, ast.Constant) for each in (*node.keys, *node.values)):
                link = ast.literal_eval(node)
                if link and all(isinstance(each, str) for pair in link.items() for each in pair):
                    found.append(link)
    return found


def check_meaning(kind, link):
    config, refused = check_link(CONFIGS[kind.name], link)
    if refused:
        with pytest.raises(SettingError, match=r"^Not understood in this link: .* Nothing of it was used\.") as error:
            read_link(kind, link)
        assert all(name in str(error.value) for name in refused)
    else:
        assert read_link(kind, link) == meaning(config)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_link_of_the_tests_means_what_it_meant(kind):
    links = links_of_tests()
    assert len(links) > 200
    for link in links:
        check_meaning(kind, link)


@given(st.sampled_from(list(KINDS.values())), st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), TEXTS, max_size=9))
@example(POINTS, {"size": "9" * 400})
@example(POINTS, {"settings": '{"height":' + "9" * 3900 + "}"})
@example(POINTS, {"settings": '{"weights":[[1]],"split":{}}'})
@example(AREAS, {"second": '{"mechanism":[],"settings":3,"epsilon":true,"delta":{}}'})
def test_any_text_is_read_as_before_or_the_link_refused(kind, link):
    check_meaning(kind, {name: text for name, text in link.items() if name not in ("panes", "third", "fourth", "editing")})


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
    bare = Draft(family=draft.family, runs=draft.runs, **{name: getattr(draft, name) for name in ("mode", "sample", "order", "study_area")})
    assert write_link(page) == write_link(replace(page, draft=bare))
    assert read_link(draft.kind, write_link(page)).draft.source == "sample"
    words = [*("folder", "homes", "rider", "regions", "ab12", "s3cret", "City", ".csv", "geojson"), usual.draft.output.folder]
    assert not [word for word in words if word in str(write_link(page))]
    for name in never_in_link(Draft) - {"family"}:
        assert write_link(replace(page, draft=replace(draft, **{name: getattr(Draft(), name)}))) == write_link(page), name


def test_the_fields_that_no_link_may_carry_are_these():
    data = {"source", "uploaded", "by_path", "domain", "outline", "regions_from", "regions", "destinations", "grid"}
    assert never_in_link(Draft) == data | {"family", "account", "texts", "output", "guess"}
    assert never_in_link(View) == {"drawer"}
    assert never_in_link(Run) == set()


@pytest.mark.parametrize(
    "link",
    [{"source": "path"}, {"path": "/etc/passwd"}, {"uploaded": "x"}, {"public": "True"}, {"account": "x"}, {"outline": "/etc/passwd"}],
)
def test_a_link_opens_no_file_and_declares_nothing(link):
    for kind in KINDS.values():
        assert read_link(kind, link) == usual_page(kind)


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
