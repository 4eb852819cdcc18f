"""Links of 28 November 2026 open, drafts are refused; what made both is beside the other files of that day (tests/publishing/before)."""

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
from tests.app.seen import captions, fine
from tests.app.start import pages_app
from tests.often import often
from tests.publishing.test_before import BEFORE, LATER_SETTINGS

LINKS = json.loads((BEFORE / "links.json").read_text("utf-8"))
DRAFTS = json.loads((BEFORE / "drafts.json").read_text("utf-8"))


@pytest.mark.parametrize("page", often(list(DRAFTS), 1))
def test_a_draft_of_before_is_refused_in_one_sentence_and_nothing_of_it_is_used(ledger_path, tmp_path, page):
    shutil.unpack_archive(BEFORE / "ledger.zip", tmp_path / "before")
    shutil.copytree(tmp_path / "before" / "ledger.sqlite.drafts", Path(f"{ledger_path}.drafts"))
    app = fine(pages_app(page, DRAFTS[page]))
    (said,) = [each.value for each in app.warning]
    assert "is damaged, or of another version of dpviz, and was not opened" in said
    assert "itself is never kept" not in captions(app)


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
