"""Drafts and links of 28 November 2026 open today; what made them is beside the other files of that day, in tests/publishing/before."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from dpviz.app.pages.compare.state import CompareConfig
from dpviz.app.session.widgets import check_link
from dpviz.app.state.kinds import KINDS
from dpviz.app.state.links import read_link
from dpviz.errors import SettingError
from tests.app.parts import flat
from tests.app.seen import captions, fine, labelled, missing
from tests.app.start import AREA_REGIONS, JOURNEYS, PLACES, REGIONS, VISITS, pages_app
from tests.publishing.test_before import BEFORE, LATER_SETTINGS

LINKS = json.loads((BEFORE / "links.json").read_text("utf-8"))
DRAFTS = json.loads((BEFORE / "drafts.json").read_text("utf-8"))
FILES = {
    "points": {"uploaded": ("homes.csv", PLACES)},
    "trips": {"regions uploaded": ("homes.csv", REGIONS), "trips uploaded": ("trips.csv", JOURNEYS)},
    "areas": {"areas regions uploaded": ("regions.csv", AREA_REGIONS), "areas uploaded": ("visits.csv", VISITS)},
}
PERSONS = {"points": "note", "trips": "rider", "areas": "visitor"}


@pytest.mark.parametrize("page", DRAFTS)
def test_a_draft_keeps_all_but_the_files(ledger_path, tmp_path, page):
    shutil.unpack_archive(BEFORE / "ledger.zip", tmp_path / "before")
    shutil.copytree(tmp_path / "before" / "ledger.sqlite.drafts", Path(f"{ledger_path}.drafts"))
    app = fine(pages_app(page, DRAFTS[page]))
    assert all(f"Choose {name} again" in captions(app) for name, _ in FILES[page].values())
    for slot, file in FILES[page].items():
        app.session_state[slot] = file
    fine(app.run())
    assert missing(app) == []
    assert labelled(app.selectbox, "Person").value == PERSONS[page]
    assert labelled(app.text_input, "Name of the dataset").value == f"{page} 2026"
    assert labelled(app.number_input, "Cap, ε").value == 7
    assert [number.value for number in app.number_input if number.label.endswith("per person, at most")] == [1 if page == "trips" else 3]


@pytest.mark.parametrize("page", LINKS)
def test_a_link_says_what_it_said(page):
    link, opens = LINKS[page]["link"], LINKS[page]["opens"]
    if any(f'"{name}"' in link.get("settings", "") for name in LATER_SETTINGS):
        link, opens = ({name: value for name, value in each.items() if name != "settings"} for each in (link, opens))
        if page == "compare":
            assert check_link(CompareConfig, LINKS[page]["link"])[1] == ["settings"]
        else:
            with pytest.raises(SettingError, match=r"^Not understood in this link: settings\. Nothing of it was used\."):
                read_link(KINDS[page], LINKS[page]["link"])
    found = asdict(check_link(CompareConfig, link)[0]) if page == "compare" else flat(read_link(KINDS[page], link))
    assert {part: json.loads(json.dumps(found[part])) for part in opens} == opens
