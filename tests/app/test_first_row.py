"""Forget my data: what a session knew is gone from it, what was spent is not."""

import dataclasses
import gc
import types

import pytest

from dpviz.app import cached
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release
from tests.app.release_walk import PAID, publish, write_texts
from tests.app.walk import CURATE, by_record, captions, entries, fine, go, good, labelled, pages_app, points_app, press_draw

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
    private = [type(each).__name__ for each in found if isinstance(each, PointCounts | Flows | Release | FlowRelease)]
    digest = cached.digest_of(PLACES)
    texts = [each.decode("latin1") if isinstance(each, bytes) else each for each in found if isinstance(each, str | bytes)]
    return private + [text[:60] for text in texts if any(word in text for word in (*WORDS, digest))]


def busy():
    """A session that has uploaded, named, drawn, looked, typed and published."""
    app = pages_app("points", CURATE)
    app.segmented_control(key="source").set_value("upload").run()
    app.file_uploader(key="file").set_value(("homes.csv", PLACES, "text/csv")).run()
    app.selectbox(key="frame").set_value("Contiguous United States")
    by_record(app.text_input(key="crs").set_value("EPSG:4326").run())
    labelled(app.text_input, "Name of the dataset").set_value("My dataset")
    labelled(app.number_input, "Cap, ε").set_value(5.0).run()
    fine(press_draw(app))
    fine(labelled(app.toggle, "Show curator-only truth").set_value(True).run())
    for role, content in (("regions", REGIONS), ("trips", TRIPS)):
        app.session_state[f"{role} uploaded"] = ("homes.csv", content)
    go(app, "trips")
    fine(app.segmented_control(key="trips source").set_value("upload").run())
    fine(labelled(app.segmented_control, "Mode").set_value("Curate").run())
    by_record(app)
    labelled(app.text_input, "Name of the dataset").set_value("My dataset of trips")
    labelled(app.number_input, "Cap, ε").set_value(5.0).run()
    fine(press_draw(app))
    go(app, "release")
    fine(labelled(app.segmented_control, "What").set_value(PAID).run())
    return fine(publish(write_texts(app, name="My publication")))


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    """One busy session for the tests that only look at it before and after."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPVIZ_LEDGER", str(tmp_path_factory.mktemp("forget") / "ledger.sqlite"))
        app = busy()
        before = leaks(app)
        forgotten = good(app.button(key="forget release").click().run())
        yield before, forgotten, len(entries())


def test_before_the_session_is_full_of_private_things(worked):
    before, _, _ = worked
    assert {"PointCounts", "Flows", "Release", "FlowRelease"} <= set(before)
    assert all(any(word in text for text in before) for word in WORDS)


def test_afterwards_nothing_of_it_is_left(worked):
    _, app, _ = worked
    assert leaks(app) == []
    assert "Forgotten" in app.success[0].value
    assert [button.label for button in app.button] == ["Start again"]
    assert dict(app.query_params) == {}


def test_the_ledger_keeps_what_was_spent(worked):
    assert worked[2] == 2


def test_pages_start_afresh():
    app = pages_app("points", CURATE)
    fine(press_draw(app))
    good(app.button(key="forget config").click().run())
    app = fine(labelled(app.button, "Start again").click().run())
    assert app.segmented_control(key="mode").value == "Teach"
    assert not app.success
    assert leaks(app).count("Release") == 0
    assert "ε 0.5. The next draw makes it ε 1," in captions(points_app(CURATE))


def test_a_file_is_read_again_afterwards(monkeypatch):
    reads, real = [], cached.read_points

    def counted(*args, **options):
        reads.append(1)
        return real(*args, **options)

    monkeypatch.setattr(cached, "read_points", counted)

    def load(app):
        app.segmented_control(key="mode").set_value("Curate").run()
        app.segmented_control(key="source").set_value("upload").run()
        app.file_uploader(key="file").set_value(("homes.csv", PLACES, "text/csv")).run()
        app.selectbox(key="frame").set_value("Contiguous United States")
        return by_record(fine(app.text_input(key="crs").set_value("EPSG:4326").run()))

    app = load(pages_app("points", CURATE))
    fine(app.run())
    assert len(reads) == 1
    good(app.button(key="forget config").click().run())
    load(fine(app.run()))
    assert len(reads) == 2


def test_uploaded_files_are_dropped_by_the_server(monkeypatch):
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager  # noqa: PLC0415

    dropped = []
    monkeypatch.setattr(MemoryUploadedFileManager, "remove_session_files", lambda self, session: dropped.append(session))
    app = pages_app("points", CURATE)
    good(app.button(key="forget config").click().run())
    assert len(dropped) == 1


def test_another_session_is_not_touched():
    one, two = pages_app("points", CURATE), pages_app("points", CURATE)
    fine(press_draw(one))
    fine(press_draw(two))
    good(one.button(key="forget config").click().run())
    fine(two.run())
    assert "Release" in leaks(two)


def test_the_button_stands_where_private_data_are():
    assert "Forget my data" in {button.label for button in pages_app("points", CURATE).button}
    assert "Forget my data" not in {button.label for button in points_app().button}
