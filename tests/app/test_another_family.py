"""The page of another family needs one description, and no edit elsewhere: `tests/mechanisms/roads_page.py` is one."""

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.families import FAMILIES
from dpviz.privacy.ledger import Ledger
from dpviz.samples import load
from tests.app.seen import captions, fine, labelled
from tests.app.start import pages_app
from tests.app.walk import ROOT, press_draw
from tests.mechanisms.roads import ROADS, SAMPLES

FAMILIES.pop("roads", None)  # which joined when its module was imported: other tests have only the families of this package


@pytest.fixture(autouse=True)
def roads(monkeypatch):
    monkeypatch.setitem(FAMILIES, "roads", ROADS)
    monkeypatch.setitem(load.SAMPLES, "coast_road", SAMPLES["coast_road"])


def counts_shown(app):
    return [table.value["count"].tolist() for table in app.get("table")]


def test_the_start_page_opens_it_and_it_shows_one_run_after_another():
    app = fine(AppTest.from_file(ROOT / "app.py", default_timeout=120).run())
    fine(labelled(app.button, "Open the roads").click().run())
    assert app.session_state["page"] == "Roads"
    assert "adding or removing one accident" in captions(app)
    first = counts_shown(app)
    assert len(first[0]) == 8
    assert counts_shown(fine(app.button(key="again").click().run())) != first
    assert app.query_params["run"] == "2"
    assert counts_shown(fine(app.button(key="undo").click().run())) == first


def test_it_pays_for_a_release_that_can_be_published():
    app = fine(press_draw(pages_app("roads", {"mode": "Curate"})))
    assert len(counts_shown(app)[0]) == 8
    (account,) = Ledger().accounts()
    assert len(Ledger().entries(account.name)) == 1
    assert "Nothing is published yet." in captions(app)
