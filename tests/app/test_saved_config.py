"""Save this configuration: the command line makes from it the release that the page shows, and pays from the same account."""

import json
import tomllib

import pytest

import dpviz as dv
from dpviz.__main__ import main
from dpviz.app.saved_config import configuration
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.publishing.config import from_tables
from tests.app.walk import (
    CURATE,
    FLIGHTS,
    PLACES,
    SMALL,
    entries,
    fine,
    good,
    labelled,
    name_dataset,
    points_app,
    press_draw,
    protect,
    trips_app,
)

TRIPS = FLIGHTS | {"mode": "Curate"}


def saved(app, key="config"):
    """What the button would hand out, with a curator's name filled in."""
    data, how = app.session_state[f"loaded {key}"]
    from dpviz.app.ledger import Funding  # noqa: PLC0415
    from dpviz.privacy.ledger import Ledger  # noqa: PLC0415

    known = Ledger().find_by_fingerprints(data.fingerprints)
    purse = Funding(name=known.name, cap=None, account=known, problem=None)
    return configuration(data, how.built(), how.budget(), purse).replace('curator = ""', 'curator = "City office"')


def released(text, folder, capsys):
    """The folder that the command line makes of a configuration."""
    (folder / "release.toml").write_text(text, "utf-8")
    assert main(["release", str(folder / "release.toml"), "--json"]) == 0, capsys.readouterr().err
    return dv.read_release(folder / "release"), json.loads(capsys.readouterr().out)


def test_a_sample_of_points_is_reproduced(tmp_path, capsys):
    app = fine(press_draw(points_app(CURATE | {"epsilon": "0.3", "settings": '{"height":3,"split":"uniform"}'})))
    release, _ = released(saved(app), tmp_path, capsys)
    drawn = app.session_state["drawn Curate"][-1].release
    assert release.settings == drawn.settings
    assert release.domain == drawn.domain
    assert release.receipt == drawn.receipt
    assert [entry.budget for entry in entries()] == [PureBudget("0.3")] * 2


def test_an_uploaded_file_pays_from_the_account_that_it_has(tmp_path, capsys):
    app = points_app(CURATE)
    good(app.segmented_control(key="source").set_value("upload").run())
    good(app.file_uploader(key="file").set_value(("homes.csv", PLACES, "text/csv")).run())
    app.selectbox(key="frame").set_value("Contiguous United States")
    app.text_input(key="crs").set_value("EPSG:4326").run()
    protect(app, "note")
    fine(press_draw(name_dataset(app)))
    (tmp_path / "homes.csv").write_bytes(PLACES)
    release, _ = released(saved(app), tmp_path, capsys)
    assert release.receipt == app.session_state["drawn Curate"][-1].release.receipt
    assert release.receipt.unit == "person"
    assert len(entries()) == 2


def test_a_path_is_saved_whole(tmp_path, capsys):
    file = tmp_path / "data" / "homes.csv"
    file.parent.mkdir()
    file.write_bytes(PLACES)
    app = points_app(CURATE)
    app.segmented_control(key="source").set_value("path").run()
    app.text_input(key="path").set_value(str(file)).run()
    app.selectbox(key="frame").set_value("Contiguous United States")
    app.text_input(key="crs").set_value("EPSG:4326").run()
    fine(press_draw(name_dataset(app)))
    assert tomllib.loads(saved(app))["data"]["points"] == str(file)
    released(saved(app), tmp_path, capsys)
    assert len(entries()) == 2


def test_trips_of_files_are_reproduced(tmp_path, capsys):
    app = trips_app(TRIPS)
    for role, name, body in (
        ("regions", "homes.csv", b"id,lat,lon,name\nA1,50,8,Aberg\nA2,51,9,Bdorf\nB1,52,9,Cburg\n"),
        ("trips", "trips.csv", b"origin,dest,count\nA1,A2,500\nA2,B1,40\nB1,B1,900\n"),
    ):
        app.session_state[f"{role} uploaded"] = (name, body)
        (tmp_path / name).write_bytes(body)
    app.segmented_control(key="trips source").set_value("upload").run()
    labelled(app.text_input, "Group by the first characters of the id").set_value("1").run()
    fine(press_draw(name_dataset(fine(app))))
    release, _ = released(saved(app, "trips config"), tmp_path, capsys)
    drawn = app.session_state["trips drawn Curate"][-1].releases[0]
    assert [step.amount for step in release.receipt.steps] == [step.amount for step in drawn.receipt.steps]
    assert (release.receipt.unit, release.receipt.neighbours) == (drawn.receipt.unit, drawn.receipt.neighbours)
    assert [release.tree.size(stage) for stage in range(5)] == [drawn.tree.size(stage) for stage in range(5)]
    assert [entry.budget for entry in entries()] == [ApproxBudget(1, "1e-8")] * 2


@pytest.mark.parametrize("start", [lambda: points_app(CURATE), lambda: trips_app(TRIPS), points_app, trips_app])
def test_both_pages_offer_it_in_both_modes(start):
    assert "Save this configuration" in [button.label for button in start().download_button]


def test_a_reference_has_none():
    assert not points_app(SMALL | {"mechanism": "exact_kdtree", "settings": "{}"}).download_button


def test_in_teach_the_cap_is_left_to_the_curator():
    app = points_app(CURATE)
    data, how = app.session_state["loaded config"]
    config = from_tables(tomllib.loads(configuration(data, how.built(), how.budget(), None)))
    assert config.dataset.cap() is None
    assert config.publication.curator == ""
