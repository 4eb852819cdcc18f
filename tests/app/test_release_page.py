"""The Release page: what may be chosen, what a press spends, what is published, and that no truth is on it."""

from importlib import import_module
from unittest.mock import Mock

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import dpviz as dv
from dpviz.app.pages.points import state
from dpviz.app.pages.release import check_texts
from dpviz.app.payment.release_files import Maker
from dpviz.app.state.kinds import KINDS
from dpviz.errors import DpvizError, SettingError
from dpviz.mechanisms import RegionTree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.kept import kept_draws
from dpviz.publishing.order import Order
from dpviz.publishing.private_data import fingerprints_of
from dpviz.publishing.publish import draw, note_publication
from dpviz.release.manifest import TRUST_MODEL
from dpviz.release.trip_release import TripRelease
from tests.app.parts import page_of_link, page_with
from tests.app.release_walk import TEXTS, at_release, choose_paid, kept, publish, published, read_back, write_texts
from tests.app.seen import account, as_read, captions, entries, errors, fine, good, infos, keys, labelled, scene, texts, warnings
from tests.app.start import CURATE, CURATE_TRIPS, SMALL, pages_app, points_app
from tests.app.walk import go, open_drawer, press_draw, to_mode, truth_switch
from tests.release_cases import areas_on, assert_same, regions_with_shapes

NEVER = "neither can ever be chosen here"
MODULE = import_module("dpviz.app.pages.release")  # `dpviz.app` has a function of that name


class TestWhatCanBeChosen:
    def test_without_private_data_there_is_only_an_instruction_and_draws_in_teach_cannot_be_published(self):
        app = fine(go(press_draw(points_app(SMALL)), "release"))
        assert "load private data" in infos(app)
        assert NEVER in captions(app)
        assert keys(app.button) == {"forget release"}

    def test_without_private_data_buttons_lead_to_the_three_pages_that_load_them(self):
        def page():
            from dpviz.app.pages.release import release_page  # noqa: PLC0415

            release_page({"points": "points", "trips": "trips", "areas": "areas"})

        buttons = [button.label for button in fine(AppTest.from_function(page, default_timeout=120).run()).button]
        assert buttons[-3:] == ["Open the map", "Open the trips", "Open the areas"]

    @pytest.mark.parametrize("config", [{"mechanism": "exact_kdtree"}, {"source": "upload"}])
    def test_a_reference_or_missing_data_in_curate_are_missing_here(self, config):
        app = points_app(CURATE)
        app.session_state["config"] = page_with("points", mode="Curate", **config)
        good(app.run())
        assert "load private data" in infos(fine(go(app, "release")))

    def test_data_and_settings_are_those_of_curate_and_teach_afterwards_changes_nothing(self):
        app = points_app(CURATE | {"epsilon": "0.25"})
        fine(open_drawer(to_mode(app, "Teach"), "Method").selectbox(key="mechanism").set_value("identity").run())
        fine(go(app, "release"))
        assert "**Quadtree**, ε 0.25 (Height 4)" in texts(app)
        assert NEVER in captions(app)
        assert labelled(app.segmented_control, "What").options == ["A new draw"]

    def test_draws_of_both_pages_are_listed_newest_first(self):
        app = fine(press_draw(points_app(CURATE)))
        app.session_state["trips config"] = page_of_link(KINDS["trips"], CURATE_TRIPS)
        fine(press_draw(go(app, "trips")))
        first, second = choose_paid(fine(go(app, "release"))).selectbox(key="release draw").options
        assert "TopDown (InfTDA), ε 1, δ 1e-8, Sample us_flights" in first
        assert "Quadtree, ε 0.5, Sample gaussian_cluster of 1,000" in second


class TestDryRun:
    def test_the_expected_error_is_that_of_the_release_and_is_computed_once(self, monkeypatch):
        app = at_release(draws=1)
        table = app.dataframe[0].value
        release = kept(app)[0].paid.release
        assert table["numbers"].tolist() == [1, 4, 16, 64, 256]
        wanted = [np.sqrt((release.node_stddev[release.nodes(level)] ** 2).mean()) for level in range(5)]
        assert table["± typical noise"].tolist() == pytest.approx(wanted)
        assert "computed without a single record" in captions(app)
        monkeypatch.setattr(MODULE, "expected_errors", Mock(side_effect=DpvizError("computed again")))
        fine(write_texts(app))

    def test_settings_that_do_not_fit_are_an_error(self, monkeypatch):
        monkeypatch.setattr(MODULE, "expected_errors", Mock(side_effect=DpvizError("does not fit")))
        assert "does not fit" in errors(go(points_app(CURATE), "release"))


class TestNewDraw:
    def test_one_press_draws_once_and_publishes(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        app = fine(publish(write_texts(at_release(), licence="CC BY 4.0")))
        assert not list(tmp_path.glob("dpviz-*")), "nothing is left on the disk"
        (entry,) = entries()
        manifest = published(app).manifest
        assert (entry.purpose, entry.published) == ("release", None), "it is published by its download"
        assert [each.id for _, each in kept_draws(Ledger())] == [entry.id]
        note_publication(published(app).paid, manifest["identity"]["release_id"], Ledger())
        assert (entries()[0].published, kept_draws(Ledger())) == (manifest["identity"]["release_id"], [])
        assert manifest["data_product"] == {**TEXTS, "region": "", "intended_use": "", "trust_model": TRUST_MODEL, "licence": "CC BY 4.0"}
        dataset = manifest["dataset"]
        assert (dataset["draws"], dataset["spent"]["epsilon"]["exact"]) == (1, "1/2")
        assert [dataset["cap"][name]["exact"] for name in ("epsilon", "delta")] == ["10", "1/10000"]
        assert not manifest["implementation"]["tuning"]["truth_seen"]
        drawn, back = kept(app)[0].paid.release, read_back(app, tmp_path)
        assert (back.noisy == drawn.noisy).all()
        assert (back.count == drawn.count).all()
        assert not drawn.simulation

    def test_what_is_shown_afterwards_is_what_was_published_and_nothing_is_drawn_again(self):
        app = publish(write_texts(at_release(), name="**A** name", region="Here"))
        assert "The bundle of **A** name is made and paid for, and kept on this computer until you download it" in as_read(app.info[0])
        assert "\\*\\*A\\*\\*" in app.info[0].value
        for line in ("City office", "Who sleeps where", "Here", "quadtree", "1, this one included", "Truth looked at while tuning**: no"):
            assert line in texts(app)
        assert {download.label for download in app.download_button} == {"Download the release (zip)", "Download the report"}
        assert published(app).manifest["verdict"]["headline"] in texts(app)
        assert app.dataframe[0].value["released counts"].tolist() == [1, 4, 16, 64, 256]
        assert "report.html" in app.dataframe[1].value["file"].tolist()
        archive = published(app).archive
        for page in ("points", "release", "trips", "release"):
            fine(go(app, page))
        assert published(app).archive is archive
        fine(labelled(app.button, "Publish something else").click().run())
        assert app.text_input(key="publication curator").value == "City office"
        assert len(entries()) == 1

    def test_a_missing_text_is_named_and_costs_nothing(self):
        app = at_release()
        for missing in ("name", "curator", "description"):
            assert f"Still missing: {missing}" in captions(write_texts(app, **{missing: "  "}))
            assert app.button(key="publish").disabled
            assert entries() == []
            texts_kept = {each.key: each.value for each in (*app.text_input, *app.text_area)}
            assert all(texts_kept[f"publication {name}"] == text for name, text in TEXTS.items() if name != missing)
        assert published(publish(write_texts(app))) is not None

    @pytest.mark.parametrize(("name", "most"), [("curator", 200), ("description", 4000), ("region", 200)])
    def test_a_text_that_is_too_long_is_refused(self, name, most):
        with pytest.raises(SettingError, match=f"at most {most:,} characters"):
            check_texts({**TEXTS, "region": "", "intended_use": "", "formats": [], name: "x" * (most + 1)})

    def test_an_address_that_is_none_on_the_web_is_refused_at_its_field(self):
        assert "url must begin with https" in " ".join(each.value for each in write_texts(at_release(), url="ftp:x").error)
        with pytest.raises(SettingError, match="url must begin"):
            check_texts({**TEXTS, "url": "ftp:x", "formats": []})

    def test_a_text_that_cannot_be_published_or_a_broken_ledger_cost_nothing(self, ledger_path):
        app = publish(write_texts(at_release(), name="a\x07b"))
        assert "control character" in errors(app)
        assert (entries(), published(app)) == ([], None)
        write_texts(app)
        ledger_path.write_bytes(b"broken")
        publish(app)
        assert "no new ledger is made instead" in errors(app)
        assert published(app) is None

    def test_the_lossless_format_is_always_there(self):
        app = write_texts(at_release())
        app.multiselect(key="publication formats").set_value(["csv"])
        fine(publish(app))
        names = [each["name"] for each in published(app).manifest["files"]]
        assert names == ["partitions.parquet", "levels.parquet", "partitions.csv", "levels.csv", "manifest.schema.json", "report.html"]

    def test_a_draw_that_would_pass_the_cap_cannot_be_pressed(self):
        app = write_texts(at_release(CURATE | {"epsilon": "6"}, draws=1))
        assert app.button(key="publish").label == "Publish", "what is paid for comes first"
        fine(labelled(app.segmented_control, "What").set_value("A new draw").run())
        assert "would exceed the cap" in warnings(app)
        assert app.button(key="publish").disabled
        assert not choose_paid(app).button(key="publish").disabled

    def test_a_draw_is_kept_where_it_cannot_be_written(self, monkeypatch, tmp_path):
        app = write_texts(at_release())
        with monkeypatch.context() as patch:
            patch.setattr(MODULE.publish, "write", Mock(side_effect=DpvizError("the disk is full.")))
            publish(app)
        assert "the disk is full. The draw is paid for and kept" in errors(app)
        assert "dpviz release CONFIG --paid 1" in errors(app)
        assert [entry.id for _, entry in kept_draws(Ledger())] == [1]
        assert len(entries()) == 1
        fine(publish(choose_paid(app)))
        assert (read_back(app, tmp_path).noisy == kept(app)[0].paid.release.noisy).all()
        assert len(entries()) == 1

    def test_a_second_one_of_the_same_data_needs_a_second_choice(self):
        app = write_texts(at_release(draws=1))
        fine(labelled(app.segmented_control, "What").set_value("A new draw").run())
        assert (app.button(key="publish").label, app.button(key="publish").disabled) == ("Pay ε 0.5 and publish", True)
        (again,) = [each for each in app.checkbox if str(each.key).startswith("pay again")]
        fine(publish(good(again.check().run())))
        assert len(entries()) == 2


class TestPaidDraw:
    def test_it_is_published_as_it_was_drawn_and_costs_nothing(self, tmp_path):
        app = choose_paid(at_release(draws=2))
        assert "The cap is ε 10" in captions(app)
        assert "The next draw" not in captions(app)
        app.selectbox(key="release draw").select_index(1)
        fine(publish(write_texts(app)))
        assert len(entries()) == 2
        assert published(app).manifest["dataset"]["draws"] == 2
        assert (read_back(app, tmp_path).noisy == kept(app)[0].paid.release.noisy).all()

    def test_that_the_truth_was_looked_at_is_published(self):
        app = fine(press_draw(points_app(CURATE)))
        fine(truth_switch(app).set_value(True).run())
        app = choose_paid(fine(go(app, "release")))
        fine(publish(write_texts(app)))
        assert published(app).manifest["implementation"]["tuning"]["truth_seen"]

    def test_a_draw_whose_ledger_is_gone_is_not_published(self, ledger_path):
        app = choose_paid(at_release(draws=1))
        ledger_path.unlink()
        assert "which is not there" in errors(good(app.run()))
        assert app.button(key="publish").disabled
        Ledger.new(ledger_path)
        assert "account that paid for this draw is no longer in the ledger" in infos(good(app.run()))
        assert app.button(key="publish").disabled

    def test_no_truth_is_used_or_shown(self, monkeypatch):
        monkeypatch.setitem(vars(state.RELEASES), "evaluate", Mock(side_effect=AssertionError("the truth was looked at")))
        app = fine(publish(write_texts(at_release(CURATE | {"shown": "True"}, draws=1))))
        assert not app.toggle
        assert not any("true" in str(column).lower() for frame in app.dataframe for column in frame.value.columns)
        assert not account().truth_seen


def test_of_two_mechanisms_for_trips_the_first_is_drawn_anew_and_published(tmp_path):
    app = at_release(CURATE_TRIPS | {"beside": "flat_gaussian"}, page="trips")
    assert "flights" in captions(app)
    fine(publish(write_texts(app)))
    assert [entry.mechanism for entry in entries()] == ["top_down"]
    assert account().spent["epsilon"] == 1
    back, drawn = read_back(app, tmp_path), kept(app)[0].paid.release
    assert isinstance(back, TripRelease)
    assert all((one.count == other.count).all() for one, other in zip(back.stages, drawn.stages, strict=True))


class TestAreas:
    def test_a_release_of_areas_that_the_command_line_kept_is_published_here(self, tmp_path):
        areas = areas_on(regions_with_shapes())
        marks = fingerprints_of(areas)
        order = Order(data=areas, mechanism=RegionTree(), budget=PureBudget(1), dataset="homes", fingerprints=marks, cap=PureBudget(2))
        paid = draw(order, Ledger(), keeps=True)
        app = fine(pages_app("release", {}))
        fine(app.text_input(key="earlier dataset").set_value("homes").run())
        assert labelled(app.segmented_control, "What").options == ["A draw that is kept on this computer"]
        assert "All levels are usable, down to the 4 regions of town, with noise of " in texts(app)
        assert [pane["title"] for pane in scene(app)[0]["panes"]] == ["Released records"]
        bundle = Maker(app.session_state["recovered draws"][1], {**TEXTS, "region": "", "intended_use": "", "formats": ["csv"]}).make()
        (tmp_path / "a.zip").write_bytes(bundle.archive)
        assert_same(dv.read_release(tmp_path / "a.zip"), paid.release)
