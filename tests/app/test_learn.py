"""The Learn page: every stop opens, its controls move it, its address carries it, the back button is followed, and reset brings it back."""

import json

import pytest

from dpviz.app.components.code import NO_CONFIGURATION
from dpviz.app.pages.learn.page import describe
from dpviz.app.pages.learn.path import ALL, BY_KEY, PATHS, SHORT, path_of
from dpviz.app.session.widgets import read_link
from dpviz.lessons import GROUPS, LESSONS
from dpviz.lessons.lesson import MOST_DRAWS
from dpviz.lessons.split import HEIGHT, PRESETS, SOURCES
from dpviz.lessons.sums import Sums
from dpviz.view.charts import STAMP, picture
from tests.app.seen import captions, fine, good, keys, labelled
from tests.app.start import pages_app, query_of
from tests.often import often
from tests.publishing.test_code import made_by

KEYS = list(BY_KEY)
HOSTILE = ["", "nan", "inf", "-1", "1e999", "999999999", "True and", "<script>", "0," * 3000, "1,2", "0,0,0,0,0,0", "-1,1,1,1,1,1"]
WIDGETS = ("slider", "select_slider", "selectbox", "toggle", "radio", "button")


def learn_app(*, answered=True, **link):
    """The page as a link opens it; every question is answered before, unless it is to be asked."""
    return pages_app("learn", link, {"learn answers": dict.fromkeys(KEYS if answered else ())})


def pressed(app, button):
    return good(app.button(key=f"learn {button}").click().run())


def stop_lists(app):
    return [radio for radio in app.radio if radio.key.startswith("learn contents")]


def stop_list(app, key):
    """The list that has the stop of this key."""
    return next(radio for radio in stop_lists(app) if any(BY_KEY[key].title in option for option in radio.options))


def take_path(app, path):
    next(group for group in app.get("button_group") if group.key == "learn which path").set_value(path)
    return good(app.run())


def at(app):
    return app.session_state["learn at"]


def settings(app):
    return app.session_state["learn knobs"][at(app)]


def charts(app):
    return [each.proto.spec for each in app.get("vega_lite_chart")]


def movable(kind):
    """The settings of a stop that have a widget whatever the others are."""
    return [rule for rule in kind.rules() if rule.name != "draw" and not isinstance(rule.default, tuple) and rule.when is None]


def moved(app, rule):
    """Move the widget of one setting somewhere else; returns what it was before."""
    before, key = getattr(settings(app), rule.name), f"learn {at(app)} {rule.name}"
    if isinstance(rule.default, bool):
        app.toggle(key=key).set_value(not before)
    elif rule.choices:
        other = rule.choices[(rule.choices.index(before) + 1) % len(rule.choices)]
        widgets = [*app.get("button_group"), *app.selectbox, *app.select_slider]
        next(widget for widget in widgets if widget.key == key).set_value(other)
    else:
        app.slider(key=key).set_value(type(before)(rule.low if before != rule.low else rule.high))
    good(app.run())
    return before


@pytest.mark.parametrize("key", often(KEYS, PATHS[SHORT]))
def test_a_stop_opens_with_any_link_and_runs_again_with_other_noise(key):
    kind = BY_KEY[key]
    for text in HOSTILE:
        assert read_link(kind, {**dict.fromkeys([rule.name for rule in kind.rules()], text), "stop": key, "other": text}) == kind()
    app = fine(learn_app(stop=key, **{rule.name: "<script>" for rule in kind.rules()}))
    assert (settings(app), query_of(app)) == (kind(), {"stop": key})
    assert app.header[0].value == f"{PATHS[path_of(key)].index(key) + 1}. {kind.title}"
    before = charts(app)
    assert before
    assert all(len(json.loads(spec).get("description", "")) > 40 for spec in before)
    assert len(app.metric) >= 3
    assert all(widget.label for kind in WIDGETS for widget in app.get(kind))
    if any(rule.name == "draw" for rule in kind.rules()):
        pressed(app, "draw")
        assert (settings(app).draw, query_of(app)) == (2, {"stop": key, "draw": "2"})
        assert charts(app) != before


def same_charts(made, shown):
    return [chart.to_json() for chart in made] == [chart.to_json() for chart in shown]


@pytest.mark.parametrize("key", often(KEYS, 1))
def test_the_code_of_a_stop_makes_its_figure_with_the_settings_that_are_chosen(key, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    app = learn_app(stop=key)
    for rule in movable(BY_KEY[key])[:2]:
        moved(app, rule)
    if any(rule.name == "draw" for rule in BY_KEY[key].rules()):
        pressed(app, "draw")
    (code,) = [each.value for each in app.code if each.language == "python"]
    made, shown = made_by(code), settings(app).show()
    assert made["lesson"] == settings(app)
    assert same_charts(made["shown"].charts, shown.charts)
    assert capsys.readouterr().out.splitlines() == [f"{figure.label}: {figure.value}" for figure in shown.figures]
    assert len(list(tmp_path.glob(f"{key}-*.svg"))) == len(shown.charts)
    assert NO_CONFIGURATION in captions(app)


class TestControls:
    @pytest.mark.parametrize("key", often(KEYS, ["one_person", "releases"]))
    def test_each_moves_the_stop_and_its_address_and_reset_brings_all_back(self, key):
        app = learn_app(stop=key)
        charts_before = charts(app)
        for rule in movable(BY_KEY[key]):
            before = moved(app, rule)
            assert getattr(settings(app), rule.name) != before
            assert query_of(app)[rule.name] == str(getattr(settings(app), rule.name))
            assert query_of(app)["stop"] == key
        assert read_link(BY_KEY[key], query_of(app)) == settings(app)
        assert charts(pressed(app, "reset")) == charts_before
        assert settings(app) == BY_KEY[key]()
        assert query_of(app) == {"stop": key}

    def test_the_number_of_the_draw_begins_again_at_its_end(self):
        app = learn_app(stop="sums", draw=str(MOST_DRAWS))
        assert settings(app).draw == MOST_DRAWS
        assert settings(pressed(app, "draw")).draw == 1

    def test_the_split_takes_presets_with_their_source_and_typed_shares(self):
        app = learn_app(stop="split", levels=",".join(["1"] * (HEIGHT + 1)))
        good(app.number_input(key="learn share 0").set_value(50.0).run())
        assert settings(app).levels == pytest.approx((0.5, *[0.1] * HEIGHT), abs=1e-3)
        assert labelled(app.number_input, "zoom 0, %").value == pytest.approx(50)
        assert app.selectbox(key="learn split preset").value is None
        for name, source in {**SOURCES, "leaf": None}.items():
            good(app.selectbox(key="learn split preset").set_value(name).run())
            assert settings(app).levels == PRESETS[name]
            assert [each.value for each in app.caption if "Source" in each.value and source is None] == []
            assert source is None or any(source in each.value for each in app.caption)


class TestWalk:
    @pytest.mark.parametrize("path", often([SHORT, ALL], 1))
    def test_next_and_previous_lead_through_all_stops_and_make_nothing_twice(self, path, monkeypatch):
        made = []
        for stop in LESSONS:
            show = stop.show
            monkeypatch.setattr(stop, "show", lambda self, show=show: made.append(self.key) or show(self))
        stops = PATHS[path]
        app = learn_app(stop=stops[0], path=path)
        for key in stops[1:]:
            assert at(pressed(app, "next top")) == key
        assert app.button(key="learn next bottom").disabled
        assert at(pressed(app, "previous bottom")) == stops[-2]
        assert tuple(made) == stops

    def test_the_contents_lead_anywhere_and_every_stop_keeps_its_settings(self):
        app = learn_app(stop="one_person", path="all", prior="90", person="7")  # the last is no setting of this stop
        good(stop_list(app, "releases").set_value("releases").run())
        assert query_of(app) == {"stop": "releases"}
        good(stop_list(app, "one_person").set_value("one_person").run())
        assert settings(app).prior == 90
        assert query_of(app) == {"stop": "one_person", "path": "all", "prior": "90"}

    def test_an_unknown_stop_is_the_first(self):
        assert at(fine(learn_app(stop="split&draw=2"))) == KEYS[0]


class TestPaths:
    def test_each_path_has_its_numbers_and_its_order_and_the_address_carries_it(self):
        app = learn_app()
        assert (at(app), query_of(app)) == (PATHS[SHORT][0], {"stop": PATHS[SHORT][0]})
        assert len(stop_lists(app)) == 1
        pressed(app, "next top")
        assert app.header[0].value.startswith("2. ")
        take_path(app, ALL)
        assert query_of(app) == {"stop": PATHS[SHORT][1], "path": "all"}
        assert app.header[0].value.startswith(f"{KEYS.index(at(app)) + 1}. ")
        assert len(stop_lists(app)) == len(GROUPS)

    def test_a_stop_that_is_not_on_the_short_path_is_left_for_its_beginning(self):
        app = learn_app(stop="leak")
        assert query_of(app) == {"stop": "leak"}
        assert at(take_path(app, SHORT)) == PATHS[SHORT][0]
        assert query_of(app) == {"stop": PATHS[SHORT][0]}

    def test_an_unknown_path_is_that_of_the_stop(self):
        assert query_of(learn_app(stop="leak", path="short")) == {"stop": "leak"}
        assert query_of(learn_app(stop="sums", path="<script>")) == {"stop": "sums"}


ASKED = Sums


class TestQuestions:
    @pytest.fixture(autouse=True)
    def asked(self, monkeypatch):
        for name, value in {
            "question": "Who wins?",
            "choices": ("flat", "tree"),
            "right": 1,
            "answer": "Because.",
            "in_class": "Say.",
        }.items():
            monkeypatch.setattr(ASKED, name, value)

    def unanswered(self, **link):
        return learn_app(answered=False, stop=ASKED.key, **link)

    def choose(self, app, choice):
        return good(app.radio(key=f"learn answer {ASKED.key}").set_value(choice).run())

    def test_the_figure_is_shown_but_not_moved_until_a_choice_is_made_and_the_choice_stays(self):
        app = self.unanswered()
        assert (charts(app) != [], list(app.slider), list(app.metric), app.success) == (True, [], [], [])
        assert keys(app.get("download_button")) == {"learn slide svg", "learn slide png"}
        self.choose(app, 1)
        assert "Yes: tree" in app.success[0].value
        assert "Because." in [each.value for each in app.markdown]
        assert app.metric
        for button in ("next top", "previous top"):
            pressed(app, button)
        assert app.radio(key=f"learn answer {ASKED.key}").value == 1
        assert "Not yet" in self.choose(app, 0).info[0].value

    def test_a_skipped_question_shows_its_answer(self):
        app = pressed(self.unanswered(), "skip")
        assert "The answer: tree" in app.info[0].value
        assert app.metric

    def test_a_link_with_settings_shows_the_figure_as_it_was_moved_and_still_asks(self):
        app = self.unanswered(draw="3")
        assert (settings(app).draw, app.success, app.radio(key=f"learn answer {ASKED.key}").value) == (3, [], None)
        assert app.metric
        assert not pressed(app, "reset").metric


class TestGoingBack:
    def gone(self, app, **query):
        """The browser's back button: another address, no widget touched."""
        app.query_params.clear()
        app.query_params.update(query)
        return good(app.run())

    def test_the_stop_and_its_settings_follow_the_address(self):
        app = learn_app(stop="leak", person="7")
        pressed(app, "next top")
        self.gone(app, stop="leak", person="7")
        assert (at(app), settings(app).person) == ("leak", 7)
        self.gone(app, stop="leak")
        assert (at(app), settings(app)) == ("leak", BY_KEY["leak"]())

    def test_back_to_the_bare_address_is_the_first_stop_and_leaves_the_address_alone(self):
        app = self.gone(learn_app(stop="sums"))
        assert (at(app), query_of(good(app.run()))) == (KEYS[0], {})
        pressed(app, "next top")
        assert query_of(app) == {"stop": PATHS[SHORT][1]}

    def test_a_click_that_was_faster_than_the_address_wins(self):
        app = pressed(learn_app(stop="leak"), "next top")
        app.query_params.clear()
        app.query_params.update(stop="leak")
        pressed(app, "next top")
        assert at(app) == KEYS[KEYS.index("leak") + 2]
        assert query_of(app) == {"stop": at(app)}

    def test_coming_from_another_page_keeps_the_stop(self):
        app = learn_app(stop="leak", person="7")
        for page in ("help", "learn"):
            app.session_state["at"] = page
            self.gone(app)
        assert (at(app), settings(app).person) == ("leak", 7)
        assert query_of(app) == {"stop": "leak", "person": "7"}


class TestPictures:
    @pytest.mark.parametrize("key", often(KEYS, 1))
    def test_every_stop_has_one_with_its_title_and_keeps_its_charts(self, key):
        stop = BY_KEY[key]
        shown = stop().show()
        before = [chart.to_dict() for chart in shown.charts]
        text = picture(shown.charts, stop.title, "ε: 1", "svg").decode()
        assert text.startswith("<svg")
        assert STAMP in text
        assert stop.title in text.replace("&amp;", "&")
        assert "http" not in text.replace("http://www.w3.org/", "")
        assert [chart.to_dict() for chart in shown.charts] == before

    def test_png_is_one_and_a_dark_page_gives_a_dark_one(self):
        stop = BY_KEY["interval"]
        shown = stop().show()
        assert picture(shown.charts, stop.title, "ε: 1", "png").startswith(b"\x89PNG")
        light, dark = (picture(shown.charts, stop.title, "x", "svg", dark=dark).decode() for dark in (False, True))
        assert 'fill="#ffffff"' in light[:600]
        assert 'fill="#101518"' in dark[:600]
        assert "#1d282e" not in dark

    def test_the_buttons_are_there_and_the_settings_are_named(self):
        app = learn_app(stop="split")
        assert {f"learn {what} {kind}" for what in ("picture", "slide") for kind in ("svg", "png")} <= keys(app.get("download_button"))
        about = describe(settings(app))
        assert "Privacy budget ε: 0.5" in about
        assert "0.25, 0, 0.25" in about
