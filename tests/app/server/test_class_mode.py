"""The app of a class: samples only, whatever a link or a browser says, and limits that say what they refuse."""

import ast
import math
import threading
import time

import numpy as np
import pytest
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest, BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Common_pb2 import FileURLsRequest
from streamlit.testing.v1 import AppTest

from dpviz.app.cards import opened_config, path_files, public_guess, uploads
from dpviz.app.jobs.job import STOPPED, WAITING
from dpviz.app.jobs.study import make_study_job
from dpviz.app.pages import release
from dpviz.app.pages.compare.earlier import read_table
from dpviz.app.pages.compare.state import CompareConfig
from dpviz.app.pages.points.state import POINTS
from dpviz.app.server import class_limits, class_link
from dpviz.app.server.access import ClassDoor
from dpviz.app.server.class_limits import RUNS, STUDIES, Turns, hold_turn
from dpviz.app.server.class_link import seed_of, write_class_link
from dpviz.app.server.class_mode import ClassMode, restrict
from dpviz.app.session import cached, ledger
from dpviz.errors import RefusedError, SettingError
from dpviz.families import FAMILIES
from dpviz.lessons import LESSONS
from dpviz.privacy.ledger import Ledger
from tests.app.calls import ask, handshake
from tests.app.parts import page_with
from tests.app.seen import keys
from tests.app.server.test_access import behind, knock
from tests.app.start import FLIGHTS, PLACES, SMALL, pages_app, query_of
from tests.app.test_escaped_texts import APP
from tests.ledgers import is_empty
from tests.often import rarely


@pytest.fixture
def a_class(monkeypatch):
    """This process as the server of a class."""
    monkeypatch.setattr("dpviz.app.server.class_mode._mode", ClassMode(code="abc-def-ghij", memory=math.inf))


HOSTILE = {
    "source": "path",
    "draft": "0" * 32,
    "path": "/etc/passwd",
    "sample": "/etc/passwd",
    "order": "16",
    "size": "9000000",
}
OWN = {
    "source": "upload",
    "uploaded": ("homes.csv", PLACES),
    "path": "/etc/passwd",
    "trips path": "/etc/passwd",
    "areas path": "/etc/passwd",
}
PAGES = [
    ("points", SMALL | HOSTILE | {"sample": "gaussian_cluster", "size": "1000"}),
    rarely(("points", HOSTILE)),
    rarely(("trips", FLIGHTS | HOSTILE)),
    rarely(("areas", HOSTILE)),
    rarely(("compare", HOSTILE | {"order": "12", "steps": "1", "repeats": "1"})),
    rarely(("learn", HOSTILE | {"stop": "sums"})),
    rarely(("papers", HOSTILE)),
]


@pytest.mark.parametrize(("page", "link"), PAGES)
def test_a_page_shows_a_sample_in_teach_whatever_link_and_session_say(a_class, ledger_path, page, link):
    state = OWN | {f"{prefix}source": "path" for prefix in ("", "trips ", "areas ")}
    app = pages_app(page, link, state)
    assert not app.get("file_uploader")
    assert not [field.label for field in app.text_input if "Path" in field.label]
    assert not {"mode", "source", "trips source", "areas source", "compare source", "draw"} & set(keys(app.segmented_control))
    assert not [box for box in app.selectbox if box.label == "Engine"]
    assert page == "learn" or class_link.key_of(page.title()) in app.session_state, "the link for a class reads it"
    assert query_of(app).get("mode", "Teach") == "Teach"
    assert int(query_of(app).get("order", "1")) <= 10
    if page not in ("learn", "papers"):
        said = "Nothing of it was used" if "/etc/passwd" in link["sample"] else "A class has samples in Teach"
        said = "No data are chosen" if page == "compare" else said
        assert any(said in note.value for note in app.warning)
    assert list(ledger_path.parent.iterdir()) == [ledger_path], "no draft"
    assert is_empty(Ledger())


def test_a_configuration_in_the_session_is_cut_wherever_it_is_read(a_class):
    asked = page_with("points", mode="Curate", source="path", order=16, size=9_000_000, seed=7).draft
    assert restrict(asked) == page_with("points", order=10, size=1_000_000, seed=7).draft
    asked = page_with("trips", mode="Curate", source="upload", beside="top_down").draft
    assert restrict(asked) == page_with("trips", beside="top_down").draft
    assert restrict(CompareConfig(source="own", order=12)) == CompareConfig(order=10)
    assert restrict(CompareConfig(study_area="file")) == CompareConfig(), "the polygons would be a file of one's own"
    assert restrict(usual := page_with("points", study_area="land").draft) is usual


REFUSING = {
    "a path": lambda: path_files.path_files(None, None),
    "a count of files": lambda: path_files.count_by_path("", None, None, None),
    "an upload": lambda: uploads.ask_for_file(None, "File", ("csv",), "trips", ""),
    "bytes of a file": lambda: cached.named_file("homes.csv", PLACES),
    "a configuration": lambda: opened_config.open_text(POINTS, b""),
    "a table": lambda: read_table(b"study\n"),
    "a bundle": lambda: public_guess._choose_release(POINTS, None),
    "the ledger": ledger.open_ledger,
    "the Release page": lambda: release.release_page({}),
}


@pytest.mark.parametrize("call", REFUSING.values(), ids=list(REFUSING))
def test_what_reads_files_or_the_ledger_refuses(a_class, call):
    with pytest.raises(RefusedError, match="the app of a class, which shows samples only"):
        call()


def test_every_place_that_takes_files_or_opens_the_ledger_asks_first():
    """A new uploader, path or ledger in the app fails here until it asks `class_mode`."""
    doors, guards = {"file_uploader", "Ledger", "scheduler_of_app", "list_files"}, {"refuse_in_class", "is_class"}
    open_doors = []
    for path in sorted(APP.rglob("*.py")):
        text = path.read_text("utf-8")
        for function in ast.walk(ast.parse(text)) if any(door in text for door in doors) else ():
            if isinstance(function, ast.FunctionDef):
                used = {
                    getattr(call.func, "attr", getattr(call.func, "id", "")) for call in ast.walk(function) if isinstance(call, ast.Call)
                }
                if used & doors and not used & guards:
                    open_doors.append(f"{path.name}:{function.name}")
    assert open_doors == ["path_files.py:_engine_control"], "called by path_files alone, which refuses"


class TestLimits:
    def test_runs_take_turns_in_order_and_one_that_is_replaced_leaves_the_queue(self):
        turns, order, held = Turns(1), [], threading.Event()

        def work(number):
            with turns.take(lambda: None):
                order.append(number)

        def leave():
            raise InterruptedError

        with turns.take(lambda: None):
            threads = []
            for number in range(3):
                threads.append(threading.Thread(target=work, args=(number,)))
                threads[-1].start()
                time.sleep(0.02)
            with pytest.raises(InterruptedError), turns.take(leave):
                held.set()
        for thread in threads:
            thread.join()
        assert (order, held.is_set()) == ([0, 1, 2], False)

    def test_a_run_ends_at_its_deadline(self, a_class, monkeypatch):
        monkeypatch.setattr(RUNS, "seconds", -1.0)
        too_long = pytest.raises(RefusedError, match="longer than the 20 seconds that a class allows")
        with hold_turn(RUNS, lambda: None) as check, too_long:
            check()

    def test_full_memory_refuses_runs_studies_and_new_pages(self, monkeypatch):
        monkeypatch.setattr("dpviz.app.server.class_mode._mode", ClassMode(code=None, memory=1.0))
        monkeypatch.setattr(class_limits, "used_memory", lambda: 2.0)
        for turns in (RUNS, STUDIES):
            with pytest.raises(RefusedError, match="memory of this server is used up"), hold_turn(turns, lambda: None):
                pass
        assert class_limits.memory_is_full()

    def test_large_releases_and_studies_are_refused(self, a_class):
        with pytest.raises(SettingError, match="1,398,101 partitions; a class keeps at most 250,000"):
            class_limits.refuse_large_release(1_398_101)
        with pytest.raises(SettingError, match="501 releases; a class makes at most 500"):
            class_limits.refuse_large_study(501)

    def test_without_a_class_nothing_is_refused(self, monkeypatch):
        monkeypatch.setattr(RUNS, "seconds", -1.0)
        class_limits.refuse_large_release(10**9)
        class_limits.refuse_large_study(10**9)
        assert not class_limits.memory_is_full()
        with hold_turn(RUNS, lambda: None) as check:
            check()
        asked = page_with("points", mode="Curate", source="path", order=16).draft
        assert restrict(asked) is asked


@pytest.mark.slow
def test_a_second_study_of_a_class_waits_and_can_be_stopped_meanwhile(a_class):
    from tests.evaluation.test_compare import study  # noqa: PLC0415

    with hold_turn(STUDIES, lambda: None):
        job = make_study_job(study(), None, [])
        job.start(0.2)
        assert (job.state, job.made) == (WAITING, 0)
        job.stop()
    assert (job.state, job.error) == (STOPPED, "")


class TestDoor:
    def door(self, sessions=2, app=behind, is_full=lambda: False):
        return ClassDoor(app, hosts=["lab.example.org", "::1"], sessions=sessions, is_full=is_full)

    @pytest.mark.parametrize("host", ["lab.example.org", "LAB.example.org:8501", "lab.example.org.", "[::1]:8501"])
    def test_its_names_are_answered(self, host):
        assert knock(self.door(), "/points", host=host, origin=f"https://{host}")[2] == "inside"
        assert knock(self.door(), "/_stcore/stream", kind="websocket", host=host, origin=f"http://{host}")[0] == "websocket.accept"

    @pytest.mark.parametrize(
        "host", ["evil.example", "127.0.0.1", "lab.example.org.evil.example", "a@lab.example.org", "lab.example.org:x", "", "["]
    )
    def test_other_names_are_not(self, host):
        assert knock(self.door(), host=host)[0] == 403
        assert knock(self.door(), "/_stcore/stream", kind="websocket", host=host)[0] == "websocket.close"

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://lab.example.org:81", "http://lab.example.org.evil.example"])
    def test_other_origins_are_refused(self, origin):
        assert knock(self.door(), host="lab.example.org", origin=origin)[0] == 403
        assert knock(self.door(), "/_stcore/stream", kind="websocket", host="lab.example.org", origin=origin)[0] == "websocket.close"

    @pytest.mark.parametrize(
        "path",
        [
            *("/release", "/release/", "/_stcore/upload_file/a/b", "/_stcore/metrics", "/_stcore/script-health-check", "/app/static/a"),
            *("/auth/login", "/oauth2callback", "/component/other/a", "/points/../release", "//evil.example", "/.streamlit/config.toml"),
        ],
    )
    def test_what_is_not_named_is_not_served(self, path):
        assert knock(self.door(), path, host="lab.example.org")[0] == 404
        assert knock(self.door(), path, kind="websocket", host="lab.example.org")[0] == "websocket.close"

    @pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "OPTIONS", "PATCH"])
    def test_nothing_can_be_sent(self, method):
        for path in ("/", "/_stcore/upload_file/a/b", "/media/a.png"):
            assert knock(self.door(), path, host="lab.example.org", method=method)[0] == 404

    def test_messages_that_no_page_sends_do_not_pass(self):
        """Streamlit would clear the caches of all sessions, hand out places for uploads, or write files for coding agents."""
        allowed = [BackMsg(rerun_script=ClientState(query_string="a")), BackMsg(stop_script=True), BackMsg(app_heartbeat=True)]
        sent = [BackMsg(clear_cache=True), BackMsg(set_run_on_save=True), BackMsg(load_git_info=True), BackMsg(debug_shutdown_runtime=True)]
        sent += [BackMsg(file_urls_request=FileURLsRequest(request_id="a")), BackMsg(backend_operation_request=BackendOperationRequest())]
        for name in ("deferred_file", "dataframe_chunk", "install_skills", "dismiss_skills_nudge"):
            asked = BackendOperationRequest(request_id="a")
            getattr(asked, name).SetInParent()
            (allowed if name in ("deferred_file", "dataframe_chunk") else sent).append(BackMsg(backend_operation_request=asked))
        queue = [*(message.SerializeToString() for message in [*sent, *allowed]), b"\xff", None]
        messages, passed = iter([*({"type": "websocket.receive", "bytes": each} for each in queue), {"type": "websocket.disconnect"}]), []

        async def receive():
            return next(messages)

        async def listening(scope, receive, send):
            while (message := await receive())["type"] == "websocket.receive":
                passed.append(message["bytes"])
            await send({"type": "websocket.close"})

        knock(self.door(app=listening), "/_stcore/stream", kind="websocket", receive=receive, host="lab.example.org")
        assert passed == [message.SerializeToString() for message in allowed]

    def test_a_page_beyond_the_places_says_so_and_a_place_is_given_back(self):
        met = []

        async def crowded(scope, receive, send):
            met.append(knock(door, "/points", host="lab.example.org"))
            met.append(knock(door, "/static/a.js", host="lab.example.org")[0])
            met.append(knock(door, "/_stcore/stream", kind="websocket", host="lab.example.org")[0])
            raise ConnectionError

        door = self.door(sessions=1, app=lambda *words: (crowded if words[0]["type"] == "websocket" else behind)(*words))
        with pytest.raises(ConnectionError):
            knock(door, "/_stcore/stream", kind="websocket", host="lab.example.org")
        assert (met[0][0], "class is full" in met[0][2], *met[1:]) == (503, True, 200, "websocket.close")
        assert knock(door, "/points", host="lab.example.org")[2] == "inside"
        assert knock(self.door(is_full=lambda: True), "/points", host="lab.example.org")[0] == 503


def test_the_link_for_a_class_has_everything_but_what_is_one_person_s():
    query = {"mechanism": "quadtree", "run": "7", "camera": "[1,2,3]", "present": "True", "draft": "00"}
    link = write_class_link("https://lab.example.org/points", query, "abc-def-ghij")
    assert link == "https://lab.example.org/points?mechanism=quadtree&run=7&camera=%5B1%2C2%2C3%5D&token=abc-def-ghij"
    assert write_class_link("http://a/learn", {}, None) == "http://a/learn"


def link_to_polygons():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.pages.compare.state import CompareConfig  # noqa: PLC0415
    from dpviz.app.server import class_link  # noqa: PLC0415

    st.session_state["compare config"] = CompareConfig(study_area="file")
    class_link._show_link("Compare")


def test_no_link_for_a_class_promises_the_polygons_of_a_file():
    app = AppTest.from_function(link_to_polygons).run()
    assert not app.code
    assert "do not carry the polygons of a file" in app.caption[0].value


def test_the_link_for_a_class_names_the_seed_also_where_it_is_the_usual_one():
    shown = {"seed": CompareConfig(), "draw": LESSONS[1]()}
    assert [seed_of(config) for config in shown.values()] == [{name: str(getattr(config, name))} for name, config in shown.items()]
    assert seed_of(page_with("points").draft) == {"run": "1"}
    assert seed_of(LESSONS[0]()) == {}, "one person has no noise"


SAME = [
    ("points", SMALL | {"run": "7"}, "config first run", lambda drawn: drawn.release.count),
    rarely(("trips", FLIGHTS | {"run": "7"}, "trips config first run", lambda drawn: drawn.release.stages[-1].count)),
    rarely(("areas", {"run": "7"}, "areas config first run", lambda drawn: drawn.release.count)),
    rarely(("compare", {"seed": "7", "steps": "1", "repeats": "1"}, "compare config", None)),
    rarely(("learn", {"stop": "sums", "draw": "7"}, "learn knobs", None)),
    rarely(("papers", {"paper": "psd", "figure": "3"}, "papers config", None)),
]


@pytest.mark.parametrize(("page", "link", "slot", "numbers"), SAME)
def test_two_students_with_one_link_see_the_same_noise(a_class, page, link, slot, numbers):
    first = pages_app(page, link)
    for family in FAMILIES.values():
        family.page.runs.shared.clear()  # so that the second makes its own run
    second = pages_app(page, query_of(first))
    assert query_of(second) == query_of(first)
    one, other = (app.session_state[slot] for app in (first, second))
    if numbers is None:
        assert one == other
    else:
        assert np.array_equal(numbers(one[-1]), numbers(other[-1]))
        assert not np.array_equal(numbers(one[-1]), numbers(pages_app(page, query_of(first) | {"run": "8"}).session_state[slot][-1]))


@pytest.mark.slow
def test_the_server_answers_those_who_have_the_code_under_its_names_and_takes_nothing(dpviz_app):
    _, address, text = dpviz_app("--class", "--host", "127.0.0.1", "--host", "lab.example.org", "--sessions", "1")
    origin, _, code = address.partition("/?token=")
    assert "samples only" in text
    status, _, body = ask(origin, "/points?run=3&token=wrong-code")
    assert (status, b'name="run" value="3"' in body, b"not this code" in body) == (403, True, True)
    assert handshake(origin) == 403
    cookie = ask(origin, f"/?token={code.upper()}")[1]["Set-Cookie"].split(";")[0]
    assert [ask(origin, "/points", Cookie=cookie, **host)[0] for host in ({}, {"Host": "lab.example.org"})] == [200, 200]
    assert handshake(origin, Cookie=cookie, Origin=origin) == 101
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Host": "localhost"}):
        assert handshake(origin, Cookie=cookie, **headers) == 403
    for path in ("/release", "/_stcore/metrics", "/_stcore/upload_file/a/b", "/%2e%2e/etc/passwd"):
        assert ask(origin, path, Cookie=cookie)[0] == 404
    xsrf = "x" * 8
    sent = {"Cookie": f"{cookie}; _streamlit_xsrf={xsrf}", "X-Xsrftoken": xsrf}
    assert ask(origin, "/_stcore/upload_file/a/b", "PUT", b"zq", **sent)[0] == 404
