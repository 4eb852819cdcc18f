"""Drafts of Curate: a reload loses nothing but the data, another session finds nothing, and nothing of a file is kept."""

import json
import os
from pathlib import Path

import pytest

from tests.app.seen import captions, errors, fine, good, labelled, missing
from tests.app.start import CURATE, PLACES, pages_app, query_of, uploaded
from tests.app.walk import go, name_dataset, protect, ready_to_pay, say_how_many
from tests.often import often


def kept(ledger_path):
    return sorted(Path(f"{ledger_path}.drafts").glob("*.json"))


def filled():
    app = uploaded(PLACES, "secret homes.csv", unit=None)
    protect(app, "note", 3)
    return fine(say_how_many(name_dataset(app, "Homes 2024")))


def reloaded(link):
    return pages_app("points", link)


def test_after_a_reload_only_the_file_is_missing_and_is_asked_for_by_name():
    app = filled()
    again = fine(reloaded(query_of(app)))
    assert again.session_state["config"].draft.source == "upload"
    assert "Choose secret homes.csv again" in captions(again)
    assert missing(again)[0] == "Choose a file of points."
    again.session_state["uploaded"] = ("secret homes.csv", PLACES)
    fine(again.run())
    assert missing(again) == []
    assert labelled(again.selectbox, "Person").value == "note"
    assert labelled(again.number_input, "Records per person, at most").value == 3
    assert again.selectbox(key="frame").value == "Contiguous United States"
    assert labelled(again.text_input, "Name of the dataset").value == "Homes 2024"
    assert labelled(again.number_input, "Cap, ε").value == 10
    assert not ready_to_pay(again).button(key="draw").disabled


def test_an_answer_is_kept_before_the_page_has_run_to_its_end(monkeypatch):
    app = filled()
    field = next(each for each in app.number_input if each.label.startswith("How many records that count")).set_value(777)
    with monkeypatch.context() as broken:
        broken.setattr("dpviz.app.modes.curate.show_expected", lambda *_: 1 / 0)
        field.run()
    assert reloaded(query_of(app)).session_state["config"].draft.guess.records == 777


def test_a_reload_keeps_the_level_that_is_shown():
    again = reloaded(query_of(filled()) | {"zoom": "3"})
    assert again.session_state["config"].draft.source == "upload"
    assert again.session_state["config"].view.level == 3


def test_another_file_has_no_unit_of_the_one_before():
    again = reloaded(query_of(filled()))
    again.session_state["uploaded"] = ("others.csv", PLACES + b"1,2,more\n")
    good(again.run())
    assert labelled(again.radio, "Whom to protect").value is None


@pytest.mark.parametrize("draft", often([{}, {"draft": "../../etc/passwd"}, {"draft": "0" * 32}, {"draft": "x"}], 2))
def test_without_the_word_in_the_address_nothing_is_found(draft):
    filled()
    app = fine(reloaded(CURATE | {"sample": "gaussian_cluster"} | draft))
    assert "secret" not in captions(app)
    assert app.session_state["config"].draft.source == "sample"


def test_a_draft_is_private_and_holds_no_cell(ledger_path):
    filled()
    (path,) = kept(ledger_path)
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert oct(path.parent.stat().st_mode & 0o777) == "0o700"
    text = path.read_text("utf-8")
    assert not [cell for cell in ('secret"', "hidden", "quiet", "-118.2", "25.5") if cell in text]
    assert json.loads(text)["pages"]["points"]["draft"]["uploaded"]["data"]["points"] == "secret homes.csv"


def test_old_drafts_go_and_forgetting_removes_the_own_one(ledger_path):
    app = filled()
    (path,) = kept(ledger_path)
    old = path.with_name("0" * 32 + ".json")
    old.write_text("{}")
    os.utime(old, (0, 0))
    labelled(app.number_input, "Cap, ε").set_value(7.0)
    fine(app.run())
    assert kept(ledger_path) == [path]
    good(app.button(key="forget config").click().run())
    assert kept(ledger_path) == []


def test_a_draft_that_was_damaged_is_left_alone(ledger_path):
    app = filled()
    (path,) = kept(ledger_path)
    path.write_text('{"choices": 3')
    assert errors(fine(reloaded(query_of(app)))) == ""


def test_teach_has_no_draft_in_its_address():
    app = filled()
    good(app.segmented_control(key="mode").set_value("Teach").run())
    assert "draft" not in query_of(good(go(app, "points")))
