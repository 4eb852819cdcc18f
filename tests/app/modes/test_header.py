"""Forget my data: what a session knew is gone from it, what was spent is not."""

import dataclasses
import gc
import types
from unittest.mock import Mock

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from dpviz.app.session import cached
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from tests.app.published import write_texts
from tests.app.seen import captions, drawn, entries, fine, good, labelled
from tests.app.start import CURATE, STATES, points_app, uploaded
from tests.app.walk import by_record, choose, go, name_dataset, press_draw, to_mode, truth_switch

PLACES = b"lon,lat,note\n-118.2,34.1,canary7\n-80.25,25.5,canary7\n"
REGIONS = b"id,lat,lon,name\ncanaryA,50,8,Aberg\ncanaryB,51,9,Bdorf\n"
TRIPS = b"origin,dest,count\ncanaryA,canaryB,500\ncanaryB,canaryA,900\n"
TESTING = "$$STREAMLIT_INTERNAL"  # what AppTest keeps for itself
WORDS = ("canary", "homes.csv", "My dataset", "My publication")


def everything(start):
    """Every object that can be reached from `start`, what functions close over included; code, classes and modules left out."""
    seen, todo = {}, [start]
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, type | types.ModuleType):
            continue
        seen[id(each)] = each
        if isinstance(each, types.FunctionType):
            todo += [*(each.__closure__ or ()), *(each.__defaults__ or ())]
        else:
            todo += gc.get_referents(each)
    return list(seen.values())


def leaks(app):
    """What a session's state still holds of private data, of what was made of them, and of what was typed."""
    state = app.session_state._state
    while hasattr(state, "_state"):
        state = state._state
    parts = {part.name: getattr(state, part.name) for part in dataclasses.fields(state)}
    parts["_old_state"] = {name: value for name, value in state._old_state.items() if not name.startswith(TESTING)}
    found = everything(list(parts.values()))
    private = [type(each).__name__ for each in found if isinstance(each, PointCounts | TripCounts | PointRelease | TripRelease)]
    digest = cached.digest_of(PLACES)
    texts = [each.decode("latin1") if isinstance(each, bytes) else each for each in found if isinstance(each, str | bytes)]
    return private + [text[:60] for text in texts if any(word in text for word in (*WORDS, digest))]


def forget(app, page="config"):
    return good(app.button(key=f"forget {page}").click().run())


def test_what_a_busy_session_knew_is_gone_and_what_it_spent_stays():
    """A session that has uploaded, named, drawn, looked, typed and published."""
    app = choose(uploaded(b"lon,lat\n1,2\n"), PLACES)
    fine(press_draw(name_dataset(app, "My dataset", 5.0)))
    fine(truth_switch(app).set_value(True).run())
    for role, content in (("regions", REGIONS), ("trips", TRIPS)):
        app.session_state[f"{role} uploaded"] = ("homes.csv", content)
    go(app, "trips")
    fine(app.segmented_control(key="trips source").set_value("upload").run())
    fine(labelled(app.segmented_control, "Mode").set_value("Curate").run())
    fine(press_draw(name_dataset(app, "My dataset of trips", 5.0)))
    fine(write_texts(app, name="My publication"))
    before = leaks(app)
    assert {"PointCounts", "TripCounts", "PointRelease", "TripRelease"} <= set(before)
    assert all(any(word in text for text in before) for word in WORDS)
    forget(app, "trips config")
    assert leaks(app) == []
    assert "Forgotten" in app.success[0].value
    assert [button.label for button in app.button] == ["Start again"]
    assert dict(app.query_params) == {}
    assert len(entries()) == 2


@pytest.mark.slow
def test_pages_start_afresh_and_another_session_is_not_touched(monkeypatch):
    monkeypatch.setattr(MemoryUploadedFileManager, "remove_session_files", dropped := Mock())
    app, other = fine(press_draw(points_app(CURATE))), fine(press_draw(points_app(CURATE)))
    forget(app)
    assert dropped.call_count == 1, "the server drops uploaded files"
    app = fine(labelled(app.button, "Start again").click().run())
    assert app.segmented_control(key="mode").value == "Teach"
    assert not app.success
    assert leaks(app).count("PointRelease") == 1, "the run of the public sample that Teach begins with"
    assert drawn(app).release.simulation
    assert "Forget my data" not in {button.label for button in app.button}, "it stands where private data are"
    assert "PointRelease" in leaks(fine(other.run()))
    assert "ε 1. The next draw makes it ε 1.5," in captions(points_app(CURATE))


@pytest.mark.slow
def test_a_file_is_read_again_afterwards(monkeypatch):
    monkeypatch.setattr(cached, "count_files", reads := Mock(wraps=cached.count_files))
    app = fine(uploaded(PLACES, link={"mode": "Curate"}).run())
    assert reads.call_count == 1
    fine(forget(app).run())
    to_mode(app, "Curate").segmented_control(key="source").set_value("upload").run()
    choose(app, PLACES).selectbox(key="frame").set_value(STATES)  # all as it was before
    by_record(good(app.text_input(key="crs").set_value("EPSG:4326").run()))
    assert reads.call_count == 2
