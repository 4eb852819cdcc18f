"""The draft file gives back the pages that it was made of, and is refused as a whole if it is old or damaged."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from dpviz.app.state.draft_file import VERSION, read_drafts, write_drafts
from dpviz.app.state.kinds import AREAS
from dpviz.app.state.page import usual_page
from dpviz.errors import SettingError
from tests.app.state.pages import FILLED, pages


@settings(max_examples=50)
@given(pages())
def test_any_page_comes_back(page):
    assert read_drafts(write_drafts({page.draft.family: page})) == {page.draft.family: page}


@pytest.mark.parametrize("page", FILLED.values(), ids=FILLED)
def test_files_texts_and_account_come_back(page):
    assert read_drafts(write_drafts({page.draft.family: page})) == {page.draft.family: page}


def changed(**parts):
    """A draft file of Areas with other parts of the draft."""
    file = json.loads(write_drafts({"areas": usual_page(AREAS)}))
    file["pages"]["areas"]["draft"] |= parts
    return json.dumps(file)


DAMAGED = {
    "empty": "",
    "no JSON": '{"version": 1',
    "of before there were versions": '{"choices": {"frame": "World"}, "files": {}, "sources": {}}',
    "a later version": json.dumps({"version": VERSION + 1, "pages": {}}),
    "a list": "[]",
    "another family": changed(family="trips"),
    "an unknown family": json.dumps({"version": VERSION, "pages": {"lines": {}}}),
    "an unknown key": changed(colour="red"),
    "an unknown mechanism": changed(runs=[{"mechanism": "magic"}]),
    "no run": changed(runs=[]),
    "a source": changed(source="mail"),
    "regions": changed(regions_from="Circles"),
    "a unit": changed(uploaded={"data": {}, "whom": "nobody"}),
    "a budget": changed(runs=[{"mechanism": "flat", "epsilon": 1e9}]),
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_what_is_old_or_damaged_is_refused_in_one_sentence(text):
    with pytest.raises(SettingError, match=r"^The draft of this page is damaged, or of another version of dpviz, .*\.$"):
        read_drafts(text)


def test_a_map_names_a_run_that_is_there():
    page = usual_page(AREAS)
    lost = replace(page, view=replace(page.view, panes=(replace(page.view.panes[0], run=1),)))
    with pytest.raises(SettingError):
        read_drafts(write_drafts({"areas": lost}))
