"""Save this configuration: the command line makes from it the release that the page shows, and pays from the same account."""

import json
import tomllib

import pytest

import dpviz as dv
from dpviz.__main__ import main
from dpviz.app.session.ledger import Funding
from dpviz.app.session.saved_config import write_configuration
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.config import from_tables
from tests.app.seen import drawn, entries, fine, keys, trips_drawn
from tests.app.start import CURATE, CURATE_TRIPS, FLIGHTS, JOURNEYS, REGIONS, SMALL, points_app, trips_app, trips_uploaded
from tests.app.walk import open_drawer, press_draw


def saved(app, key="config"):
    """What the button would hand out, with a curator's name filled in."""
    made = drawn(app) if key == "config" else trips_drawn(app)
    data, how = made.data, made.draft
    known = Ledger().find_by_fingerprints(data.fingerprints)
    funding = Funding(name=known.name, cap=None, account=known, problem=None)
    return write_configuration(data, how, funding).replace('curator = ""', 'curator = "City office"')


def released(text, folder, capsys):
    """The release that the command line makes of a configuration, and what it says."""
    (folder / "release.toml").write_text(text, "utf-8")
    assert main(["release", str(folder / "release.toml"), "--json"]) == 0, capsys.readouterr().err
    return dv.read_release(folder / "release"), json.loads(capsys.readouterr().out)


def test_a_sample_of_points_is_reproduced(tmp_path, capsys):
    app = fine(press_draw(points_app(CURATE | {"epsilon": "0.3", "settings": '{"height":3,"split":"uniform"}'})))
    release, _ = released(saved(app), tmp_path, capsys)
    made = drawn(app).release
    assert (release.settings, release.domain) == (made.settings, made.domain)
    assert release.receipt == made.receipt
    assert [entry.budget for entry in entries()] == [PureBudget("0.3")] * 2


def test_trips_of_files_are_reproduced(tmp_path, capsys):
    (tmp_path / "homes.csv").write_bytes(REGIONS)
    (tmp_path / "trips.csv").write_bytes(JOURNEYS)
    app = fine(press_draw(fine(trips_uploaded())))
    release, _ = released(saved(app, "trips config"), tmp_path, capsys)
    made = trips_drawn(app).release
    assert [step.amount for step in release.receipt.steps] == [step.amount for step in made.receipt.steps]
    assert (release.receipt.unit, release.receipt.neighbours) == (made.receipt.unit, made.receipt.neighbours)
    assert [release.tree.size(stage) for stage in range(5)] == [made.tree.size(stage) for stage in range(5)]
    assert [entry.budget for entry in entries()] == [ApproxBudget("0.05", "1e-8")] * 2


@pytest.mark.parametrize(("start", "link"), [(points_app, CURATE), (trips_app, CURATE_TRIPS), (points_app, SMALL), (trips_app, FLIGHTS)])
def test_both_pages_offer_it_in_both_modes(start, link):
    app = start(link)
    if link in (SMALL, FLIGHTS):
        open_drawer(app, "Method")
    assert "Save this configuration" in [button.label for button in app.download_button]


def test_a_reference_has_none():
    app = points_app(SMALL | {"mechanism": "exact_kdtree", "settings": "{}"})
    assert "save points" not in keys(app.download_button)


def test_in_teach_the_cap_is_left_to_the_curator():
    app = press_draw(points_app(CURATE))
    data, how = drawn(app).data, drawn(app).draft
    config = from_tables(tomllib.loads(write_configuration(data, how, None)))
    assert config.dataset.cap() is None
    assert config.publication.curator == ""
