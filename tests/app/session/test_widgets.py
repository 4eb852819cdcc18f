"""A click while something is drawn stops the run at its next call into Streamlit: what is paid for must be kept by then. Links, too."""

import json
from dataclasses import asdict

import pytest
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.testing.v1 import AppTest

from dpviz.app.pages.compare.state import CompareConfig
from dpviz.app.session.widgets import Press, read_link
from dpviz.app.state import links
from dpviz.app.state.kinds import KINDS
from dpviz.errors import DpvizError
from dpviz.publishing import publish
from dpviz.view.escape import markdown
from tests.app.parts import flat
from tests.app.seen import drawn, entries, errors, fine, infos, trips_drawn
from tests.app.start import CURATE, CURATE_TRIPS, SMALL, pages_app, points_app, trips_app
from tests.app.walk import ROOT, press_draw

PAIR = CURATE_TRIPS | {"beside": "flat_gaussian"}
LINKS = json.loads((ROOT / "tests" / "golden" / "links.json").read_text("utf-8"))  # of an earlier version; never written again


def click_in_the_middle(monkeypatch, *, then=None):
    """Let every draw be interrupted as by a click: the next call into Streamlit raises. `then` is what the draw raises itself."""
    real, clicks = publish._make_release, []

    def clicked(*args, **options):
        made = real(*args, **options)
        clicks.append(get_script_run_ctx().script_requests.request_rerun(RerunData()))
        if then is not None:
            raise then
        return made

    monkeypatch.setattr(publish, "_make_release", clicked)
    return clicks


class TestClicks:
    def test_points_that_are_drawn_meanwhile_are_shown(self, monkeypatch):
        app, clicks = points_app(CURATE), click_in_the_middle(monkeypatch)
        fine(press_draw(app))
        assert clicks == [True]
        assert len(entries()) == 1
        assert drawn(app).paid.release is drawn(app).release

    @pytest.mark.slow
    def test_both_mechanisms_of_a_comparison_are_drawn_and_shown(self, monkeypatch):
        app, clicks = trips_app(PAIR), click_in_the_middle(monkeypatch)
        fine(press_draw(app))
        assert clicks == [True, True]
        assert [entry.mechanism for entry in entries()] == ["top_down", "flat_gaussian"]
        assert len(trips_drawn(app).runs) == 2

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
    page, link, opens = name.split()[0], LINKS[name]["link"], LINKS[name]["opens"]
    found = asdict(read_link(CompareConfig, link)) if page == "compare" else flat(links.read_link(KINDS[page], link))
    assert {part: json.loads(json.dumps(found[part])) for part in opens} == opens | ({"mode": "Teach"} if "mode" in opens else {})


class TestBadLinks:
    @pytest.mark.parametrize(
        ("page", "link", "text"),
        [
            ("points", {"epsilon": "much", "utm_source": "mail"}, "Not understood in this link: epsilon. Nothing of it was used."),
            (
                *("points", {"mechanism": "quadtree", "settings": '{"height":99}', "order": "0", "zoom": "x"}),
                "Not understood in this link: order, settings and zoom. Nothing of it was used.",
            ),
            ("trips", {"sample": "<b>", "mechanism": "top_down"}, "Not understood in this link: sample. Nothing of it was used."),
            ("points", {"panes": json.dumps([[0, "Released"]] * 5)}, "Not understood in this link: panes. Nothing of it was used."),
            ("areas", {"panes": '[[4,"Released"]]', "epsilon": "2"}, "Not understood in this link: panes. Nothing of it was used."),
            ("compare", {"seed": "1" * 5000, "low": "0.2"}, "Not understood in this link: seed. Used instead: seed 0."),
            ("help", {"page": "<b>"}, "Not understood in this link: page. Used instead: page start."),
            (
                *("papers", {"paper": "xyz", "figure": "10", "size": "**big**"}),  # another paper has a figure 10
                "Not understood in this link: paper, size and figure. Used instead: paper psd, size small and figure 3.",
            ),
            (
                *("learn", {"stop": "nonsense", "path": "[x](y)", "epsilon": "-1", "draw": "2"}),
                "Not understood in this link: stop, path and epsilon. Used instead: stop one_person, path short and epsilon 1.0.",
            ),
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

    def test_a_stop_of_learn_says_it_until_the_next_change(self):
        app = pages_app("learn", {"stop": "split", "path": "short", "epsilon": "<b>"})
        assert "path and epsilon" in app.warning[0].value
        app.button(key="learn next top").click().run()
        assert not app.warning


def choice_after(wait):
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.session import widgets  # noqa: PLC0415

    widgets.SECONDS_OF_OLDER_VALUES = wait
    st.session_state.setdefault("used", [])
    widgets.show_value("kind", st.session_state.get("wanted", "a"))
    st.selectbox("Kind", ["a", "b", "c"], key="kind", on_change=widgets.when_chosen("kind", st.session_state["used"].append))


@pytest.mark.parametrize(("wait", "used"), [(60.0, ["c"]), (0.0, ["a", "c"])])
def test_a_value_that_the_page_has_just_replaced_is_no_choice(wait, used, monkeypatch):
    monkeypatch.setattr("dpviz.app.session.widgets.SECONDS_OF_OLDER_VALUES", wait)
    app = AppTest.from_function(choice_after, args=(wait,)).run()
    app.session_state["wanted"] = "b"
    app.run()
    for chosen in ("a", "c"):  # the first one is what the browser still showed
        app.selectbox(key="kind").set_value(chosen).run()
    assert app.session_state["used"] == used


def a_new_page():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.session import widgets  # noqa: PLC0415

    used = st.session_state.setdefault("used", [])
    widgets.show_value("size", 2, without=1)
    st.select_slider("Size", [1, 2, 3], key="size", on_change=widgets.when_chosen("size", used.append))


@pytest.mark.parametrize(("sent", "used"), [((1, 1), [1]), ((3, 1), [3, 1]), ((1, 3, 1), [3, 1])])
def test_what_a_slider_shows_before_it_has_a_value_is_no_choice_once(sent, used):
    app = AppTest.from_function(a_new_page).run()
    for value in sent:
        app.select_slider(key="size").set_value(value).run()
    assert app.session_state["used"] == used


def looking():
    """A page with a button whose callback reads and writes the session state, in which each call would end it."""
    import streamlit as st  # noqa: PLC0415 - only this function's text runs
    from streamlit.runtime.scriptrunner import RerunData, RerunException, get_script_run_ctx  # noqa: PLC0415

    from dpviz.app.session.widgets import carry_out  # noqa: PLC0415

    def newer():
        raise RerunException(RerunData())

    def chosen():
        st.session_state["chosen"] = st.session_state.get("chosen", 0) + 1

    def interrupted():
        state = get_script_run_ctx().session_state
        look = state._yield_callback
        object.__setattr__(state, "_yield_callback", newer)
        carry_out(chosen)()
        assert state._yield_callback is newer, "events are looked for again"
        object.__setattr__(state, "_yield_callback", look)

    st.button("Choose", on_click=interrupted)


def test_no_newer_event_is_looked_for_while_a_callback_runs():
    app = AppTest.from_function(looking).run()
    for times in (1, 2):
        fine(app.button[0].click().run())
        assert app.session_state["chosen"] == times


def stopped_runs():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.session.widgets import begin_run, end_run, widget_for  # noqa: PLC0415

    begin_run()
    st.toggle("On", **widget_for("on", st.session_state.setdefault("is on", True), lambda value: st.session_state.update({"is on": value})))
    if st.session_state.setdefault("stops", 2) > 0:  # by a newer event
        st.session_state["stops"] -= 1
        st.stop()
    end_run()


def test_a_value_is_sent_again_until_a_run_that_shows_it_comes_to_its_end():
    app = AppTest.from_function(stopped_runs)
    assert [app.run().toggle[0].proto.set_value for _ in range(5)] == [True, True, True, False, False]
