"""The browser's back button on the Learn page: the stop follows the address, and a fast click is not taken for it."""

from streamlit.testing.v1 import AppTest

from tests.app.learn_walk import BY_KEY, KEYS, address, at, learn_app, moved, settings
from tests.app.walk import good


def learn_or_elsewhere():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.learn_page import learn_page  # noqa: PLC0415

    if st.session_state.get("elsewhere"):
        st.write("another page")
    else:
        learn_page()


class TestGoingBack:
    def gone(self, app, **query):
        """The browser's back button: another address, no widget touched."""
        app.query_params.clear()
        app.query_params.update(query)
        return good(app.run())

    def test_the_stop_and_its_settings_follow_the_address(self):
        app = learn_app(stop="leak")
        moved(app, "person")
        person = settings(app).person
        good(app.button(key="learn next top").click().run())
        self.gone(app, stop="leak", person=str(person))
        assert (at(app), settings(app).person) == ("leak", person)
        self.gone(app, stop="leak")
        assert (at(app), settings(app).person) == ("leak", BY_KEY["leak"]().person)

    def test_back_to_the_bare_address_is_the_first_stop_and_leaves_the_address_alone(self):
        app = learn_app(stop="sums")
        self.gone(app)
        assert (at(app), address(app)) == (KEYS[0], {})
        good(app.run())
        assert (at(app), address(app)) == (KEYS[0], {})
        good(app.button(key="learn next top").click().run())
        assert address(app) == {"stop": KEYS[1]}

    def test_a_click_that_was_faster_than_the_address_wins(self):
        app = learn_app(stop="leak")
        good(app.button(key="learn next top").click().run())
        app.query_params.clear()
        app.query_params.update(stop="leak")
        good(app.button(key="learn next top").click().run())
        assert at(app) == KEYS[KEYS.index("leak") + 2]
        assert address(app) == {"stop": at(app)}

    def test_coming_from_another_page_keeps_the_stop(self):
        app = AppTest.from_function(learn_or_elsewhere, default_timeout=60)
        app.query_params.update(stop="leak", person="7")
        good(app.run())
        app.session_state["elsewhere"] = True
        self.gone(app)
        app.session_state["elsewhere"] = False
        self.gone(app)
        assert (at(app), settings(app).person) == ("leak", 7)
        assert address(app) == {"stop": "leak", "person": "7"}
