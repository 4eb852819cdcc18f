"""A comparison with the truth is recorded in the ledger before it is made, with or without an account."""

import json

import pytest

from dpviz.cli import compare as study_command
from dpviz.privacy.ledger import Ledger
from dpviz.release.files import read_manifest
from tests.publishing.configs import POINTS, STUDY, written

OWN = {**STUDY, "data": {"points": "crowd.csv", "public": True}, "domain": {"bounds": [0, 0, 128, 128], "crs": "none", "order": 4}}


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "ledger.sqlite"))
    return Ledger()


def test_a_comparison_on_a_file_makes_its_releases_say_that_the_truth_was_seen(run, ledger, tmp_path):
    """On another domain, and before there was an account."""
    assert run("compare", written(tmp_path, OWN, "study.toml"), "--workers", 1)[0] == 0
    assert ledger.accounts() == []
    assert run("release", written(tmp_path, POINTS))[0] == 0
    assert read_manifest(tmp_path / "out")["implementation"]["tuning"]["truth_seen"]
    assert json.loads(run("ledger", "show", "--json")[1])["datasets"][0]["truth_seen"]


def test_a_comparison_afterwards_is_recorded_with_the_account(run, ledger, tmp_path):
    assert run("release", written(tmp_path, POINTS))[0] == 0
    assert not read_manifest(tmp_path / "out")["implementation"]["tuning"]["truth_seen"]
    assert run("compare", written(tmp_path, OWN, "study.toml"), "--workers", 1)[0] == 0
    assert ledger.account("crowd").truth_seen


def test_it_is_recorded_before_anything_is_compared(run, ledger, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(study_command, "compare", lambda *_, **__: seen.append(ledger._file.exists()) or iter(()))
    run("compare", written(tmp_path, OWN, "study.toml"), "--workers", 1)
    assert seen == [True]


def test_nothing_is_compared_if_it_cannot_be_recorded(run, ledger, tmp_path):
    ledger.path.write_text("no ledger")
    code, out, err = run("compare", written(tmp_path, OWN, "study.toml"), "--workers", 1)
    assert (code, out) == (1, "")
    assert "Nothing is compared, since the ledger cannot record that the true data are looked at." in err
    assert run("compare", written(tmp_path, STUDY, "study.toml"), "--workers", 1)[0] == 0, "samples are public"


def test_a_dry_run_is_not_recorded(run, ledger, tmp_path):
    assert run("release", written(tmp_path, POINTS), "--dry-run")[0] == 0
    assert not ledger.path.exists()
