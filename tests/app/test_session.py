"""A click while something is drawn stops the run at its next call into Streamlit: what is paid for must be kept by then. Links, too."""

import json
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module

import pytest
from streamlit.runtime.scriptrunner import RerunData, RerunException, get_script_run_ctx
from streamlit.testing.v1 import AppTest

from dpviz.app import page_state
from dpviz.app.compare.state import CompareConfig
from dpviz.app.points.state import POINTS, Config
from dpviz.app.session import Press, carry_out, read_link
from dpviz.app.trips.state import TRIPS, TripsConfig
from dpviz.errors import DpvizError
from dpviz.publishing import publish
from dpviz.view.escape import markdown
from tests.app.release_walk import at_release, kept, published, write_texts
from tests.app.release_walk import publish as press_publish
from tests.app.seen import drawn, entries, errors, fine, infos, trips_drawn
from tests.app.start import CURATE, CURATE_TRIPS, SMALL, pages_app, points_app, trips_app
from tests.app.walk import ROOT, press_draw

PAIR = CURATE_TRIPS | {"beside": "flat_gaussian"}
LINKS = json.loads((ROOT / "tests" / "golden" / "links.json").read_text("utf-8"))  # of an earlier version; never written again
KINDS = {"points": Config, "trips": TripsConfig, "compare": CompareConfig}


def click_in_the_middle(monkeypatch, *, then=None, name="_make_release"):
    """Let every draw be interrupted as by a click: the next call into Streamlit raises. `then` is what the draw raises itself."""
    real, clicks = getattr(publish, name), []

    def clicked(*args, **options):
        made = real(*args, **options)
        clicks.append(get_script_run_ctx().script_requests.request_rerun(RerunData()))
        if then is not None:
            raise then
        return made

    monkeypatch.setattr(publish, name, clicked)
    return clicks


class TestClicks:
    def test_points_that_are_drawn_meanwhile_are_shown(self, monkeypatch):
        app, clicks = points_app(CURATE), click_in_the_middle(monkeypatch)
        fine(press_draw(app))
        assert clicks == [True]
        assert len(entries()) == 1
        assert drawn(app).release is kept(app)[0].paid.release

    def test_both_mechanisms_of_a_comparison_are_drawn_and_shown(self, monkeypatch):
        app, clicks = trips_app(PAIR), click_in_the_middle(monkeypatch)
        fine(press_draw(app))
        assert clicks == [True, True]
        assert [entry.mechanism for entry in entries()] == ["top_down", "flat_gaussian"]
        assert len(trips_drawn(app).releases) == 2

    @pytest.mark.parametrize("page", ["points", "trips"])
    def test_the_release_page_knows_the_data_meanwhile(self, monkeypatch, page):
        app, desk = (points_app(CURATE), POINTS) if page == "points" else (trips_app(PAIR), TRIPS)
        seen = []
        monkeypatch.setattr(import_module(f"dpviz.app.{page}.page"), "draw", lambda *_: seen.append(desk.loaded()))
        fine(press_draw(app))
        assert [data.bundled for data, _ in seen] == [True]

    @pytest.mark.parametrize("name", ["_make_release", "write"])
    def test_what_is_published_meanwhile_is_offered(self, monkeypatch, name):
        app, clicks = write_texts(at_release()), click_in_the_middle(monkeypatch, name=name)
        fine(press_publish(app))
        assert clicks == [True]
        assert [entry.published is not None for entry in entries()] == [True]
        assert published(app).archive

    @pytest.mark.parametrize(("start", "link", "found"), [(points_app, CURATE, drawn), (trips_app, PAIR, trips_drawn)])
    def test_a_draw_that_fails_after_payment_has_an_error_that_names_it(self, monkeypatch, start, link, found):
        app = start(link)
        click_in_the_middle(monkeypatch, then=DpvizError("No noise."))
        assert "The budget is spent: draw 1" in errors(press_draw(app))
        assert len(entries()) == 1
        assert found(app) is None


def test_a_press_is_served_once():
    press, served = Press(), []
    for _ in range(2):
        press.serve(lambda: served.append(press.busy))
    assert (served, press.busy) == ([True], False)


def test_while_a_press_is_served_no_other_is_accepted_however_often_the_page_is_drawn():
    app = points_app(CURATE)
    app.session_state["press config"] = Press(taken=True, busy=True)
    for _ in range(2):
        assert "The last press is still being served" in infos(press_draw(app))
    assert entries() == []
    app.session_state["press config"].busy = False
    fine(app.run())
    assert drawn(press_draw(app)) is not None


@pytest.mark.parametrize("name", LINKS)
def test_a_link_of_an_earlier_version_opens_as_it_did(name):
    config, opens = read_link(KINDS[name.split()[0]], LINKS[name]["link"]), LINKS[name]["opens"]
    assert {part: json.loads(json.dumps(value)) for part, value in asdict(config).items() if part in opens} == opens


class TestBadLinks:
    @pytest.mark.parametrize(
        ("page", "link", "text"),
        [
            ("points", {"epsilon": "much", "utm_source": "mail"}, "Not understood in this link: epsilon. Used instead: epsilon 0.5."),
            (
                *("points", {"mechanism": "quadtree", "settings": '{"height":99}', "order": "0", "zoom": "x"}),
                "Not understood in this link: order, zoom and settings. Used instead: order 10, the usual zoom and the usual settings.",
            ),
            ("trips", {"sample": "<b>", "mechanism": "top_down"}, "Not understood in this link: sample. Used instead: sample us_flights."),
            ("compare", {"seed": "1" * 5000, "low": "0.2"}, "Not understood in this link: seed. Used instead: seed 0."),
        ],
    )
    def test_a_page_names_what_it_did_not_understand(self, page, link, text):
        assert [each.value for each in pages_app(page, link).warning] == [markdown(text)]

    def test_it_is_said_until_the_next_change_and_not_of_a_good_link(self):
        app = points_app(SMALL | {"epsilon": "much"})
        assert len(app.run().warning) == 1
        app.button(key="again").click().run()
        assert not app.warning
        assert not points_app(SMALL | {"utm_source": "mail"}).warning


def choice_after(wait):
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app import session  # noqa: PLC0415

    session.SECONDS_OF_OLDER_VALUES = wait
    st.session_state.setdefault("used", [])
    session.show_value("kind", st.session_state.get("wanted", "a"))
    st.selectbox("Kind", ["a", "b", "c"], key="kind", on_change=session.when_chosen("kind", st.session_state["used"].append))


@pytest.mark.parametrize(("wait", "used"), [(60.0, ["c"]), (0.0, ["a", "c"])])
def test_a_value_that_the_page_has_just_replaced_is_no_choice(wait, used, monkeypatch):
    monkeypatch.setattr("dpviz.app.session.SECONDS_OF_OLDER_VALUES", wait)
    app = AppTest.from_function(choice_after, args=(wait,)).run()
    app.session_state["wanted"] = "b"
    app.run()
    for chosen in ("a", "c"):  # the first one is what the browser still showed
        app.selectbox(key="kind").set_value(chosen).run()
    assert app.session_state["used"] == used


def test_a_callback_that_a_newer_event_ends_is_repeated_and_the_event_is_handed_on():
    """Streamlit ends a callback at its next call into the session state; without a repetition what was chosen would be lost."""
    events, done = [RerunException(RerunData()), RerunException(RerunData())], []
    newest = events[0]

    def callback():
        if events:
            raise events.pop()
        done.append(True)

    with pytest.raises(RerunException) as handed_on:
        carry_out(callback)()
    assert done == [True]
    assert handed_on.value is newest
    carry_out(callback)()
    assert done == [True, True]


class Interrupted(dict):
    """A session state that ends the callback at one of its calls, as Streamlit does when a newer event has arrived."""

    def __init__(self, step, **values):
        super().__init__(values)
        self.left = step

    def _count(self):
        self.left -= 1
        if self.left == 0:
            raise RerunException(RerunData())

    def __getitem__(self, key):
        self._count()
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        self._count()
        super().__setitem__(key, value)

    def get(self, key, default=None):
        self._count()
        return super().get(key, default)

    def pop(self, key, default=None):
        self._count()
        return super().pop(key, default)

    def setdefault(self, key, default=None):
        self._count()
        return super().setdefault(key, default)


@pytest.mark.parametrize("step", range(1, 20))
def test_wherever_a_newer_event_ends_them_a_change_and_its_undo_happen_once(step, monkeypatch):
    held = Interrupted(step, config=Config())
    monkeypatch.setattr(page_state.st, "session_state", held)
    for work in (lambda: POINTS.change(epsilon=3.0), lambda: POINTS.change(run=2), POINTS.undo):
        with suppress(RerunException):
            carry_out(work)()
    monkeypatch.undo()
    assert dict(held)["config"] == Config(epsilon=3.0)
    assert list(dict(held)["config history"]) == [Config()]
