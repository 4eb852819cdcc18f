"""What leaves the app: the words of a publication, its bundle, and what is said of a release that is not published yet."""

from importlib import import_module
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.pages.points import state
from dpviz.app.payment.release_files import check_texts
from dpviz.errors import DpvizError, SettingError
from dpviz.mechanisms import RegionTree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.kept import kept_draws
from dpviz.publishing.order import Order
from dpviz.publishing.private_data import fingerprints_of
from dpviz.publishing.publish import draw
from dpviz.release.manifest import TRUST_MODEL
from tests.app.published import TEXTS, TYPED, at_payment, made, payment, read_back, write_texts
from tests.app.seen import account, captions, entries, errors, fine, good, scenes, texts
from tests.app.start import CURATE, CURATE_TRIPS, points_app, trips_app
from tests.app.walk import truth_switch
from tests.release_cases import areas_on, assert_same, regions_with_shapes


class TestWords:
    def test_a_missing_one_is_named_and_locks_the_button(self):
        app = at_payment()
        for missing in ("name", "curator", "description"):
            assert f"Still missing: {missing}" in captions(write_texts(app, **{missing: "  "}))
            assert app.get("download_button")[0].disabled
        assert "Still missing" not in captions(write_texts(app))
        assert not app.get("download_button")[0].disabled

    @pytest.mark.parametrize(("name", "most"), [("curator", 200), ("description", 4000), ("region", 200)])
    def test_one_that_is_too_long_is_refused(self, name, most):
        with pytest.raises(SettingError, match=f"at most {most:,} characters"):
            check_texts(TYPED | {name: "x" * (most + 1)})

    def test_an_address_that_is_none_on_the_web_is_refused_at_its_field(self):
        assert "url must begin with https" in errors(write_texts(at_payment(), url="ftp:x"))
        with pytest.raises(SettingError, match="url must begin"):
            check_texts(TYPED | {"url": "ftp:x"})


class TestBundle:
    def test_it_says_what_was_paid_for_and_holds_the_release_bit_for_bit(self, tmp_path):
        app = at_payment()
        bundle = made(payment(app), licence="CC BY 4.0")
        manifest = bundle.manifest
        assert manifest["data_product"] == {**TEXTS, "region": "", "intended_use": "", "trust_model": TRUST_MODEL, "licence": "CC BY 4.0"}
        dataset = manifest["dataset"]
        assert (dataset["draws"], dataset["spent"]["epsilon"]["exact"]) == (1, "1/2")
        assert [dataset["cap"][name]["exact"] for name in ("epsilon", "delta")] == ["10", "1/10000"]
        assert not manifest["implementation"]["tuning"]["truth_seen"]
        names = [each["name"] for each in manifest["files"]]
        assert names == ["partitions.parquet", "levels.parquet", "partitions.csv", "levels.csv", "manifest.schema.json", "report.html"]
        assert_same(read_back(bundle, tmp_path), payment(app).release)
        assert [entry.published for entry in entries()] == [None], "its download publishes it"

    def test_that_the_truth_was_looked_at_is_published(self):
        app = at_payment()
        fine(truth_switch(app).set_value(True).run())
        assert made(payment(app)).manifest["implementation"]["tuning"]["truth_seen"]

    def test_no_truth_is_used(self, monkeypatch):
        app = at_payment()
        monkeypatch.setitem(vars(state.RELEASES), "evaluate", Mock(side_effect=AssertionError("the truth was looked at")))
        made(payment(fine(app.run())))
        assert not account().truth_seen

    def test_a_word_that_cannot_be_written_or_a_full_disk_cost_nothing_and_lose_nothing(self, monkeypatch):
        app = at_payment()
        with pytest.raises(DpvizError, match="control character"):
            made(payment(app), name="a\x07b")
        module = import_module("dpviz.app.payment.release_files")
        with monkeypatch.context() as patch:
            patch.setattr(module.publish, "write", Mock(side_effect=DpvizError("the disk is full.")))
            with pytest.raises(DpvizError, match="the disk is full"):
                made(payment(app))
        assert [entry.id for _, entry in kept_draws(Ledger())] == [1] == [entry.id for entry in entries()]
        assert made(payment(app)).archive

    def test_a_release_of_areas_that_the_command_line_kept_is_published_on_any_page(self, tmp_path):
        areas = areas_on(regions_with_shapes())
        budgets = {"budget": PureBudget(1), "cap": PureBudget(2)}
        order = Order(data=areas, mechanism=RegionTree(), dataset="homes", fingerprints=fingerprints_of(areas), **budgets)
        paid = draw(order, Ledger(), keeps=True)
        app = fine(points_app(CURATE).text_input(key="earlier dataset").set_value("homes").run())
        assert "All levels are usable, down to the 4 regions of town, with noise of " in texts(app)
        assert len(scenes(app)) == 2, "the declared map, and the one of what waits"
        assert_same(read_back(made(app.session_state["recovered draws"][1]), tmp_path), paid.release)


def release():
    from dpviz.app.pages.release import release_page  # noqa: PLC0415 - only this function's text runs
    from dpviz.families import FAMILIES  # noqa: PLC0415

    release_page({name: name for name in FAMILIES})


@pytest.mark.parametrize(("start", "link", "page"), [(points_app, CURATE, "points"), (trips_app, CURATE_TRIPS, "trips")])
def test_its_old_address_leads_to_the_drawer_that_publishes(monkeypatch, start, link, page):
    went = []
    monkeypatch.setattr("streamlit.switch_page", went.append)
    app = AppTest.from_function(release)
    key = {"points": "config"}.get(page, f"{page} config")
    app.session_state[key] = start(link).session_state[key]
    good(app.run())
    assert went == [page]
    assert app.session_state[key].view.drawer == "How good"
