"""The Learn page: every stop opens, its controls move it, its address carries it, and reset brings it back."""

import time

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.app.learn_page import describe
from dpviz.app.session import read_link
from dpviz.lessons import LESSONS
from dpviz.lessons.lesson import MOST_DRAWS
from dpviz.lessons.split import HEIGHT, PRESETS, SOURCES
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import load_sample
from dpviz.view.charts import STAMP, picture
from tests.app.learn_walk import BY_KEY, KEYS, address, at, charts, described, learn_app, moved, settings, sizes
from tests.app.walk import ROOT, fine, good, keys, labelled
from tests.often import often

HOSTILE = ["", "nan", "inf", "-1", "1e999", "999999999", "True and", "<script>", "../../etc/passwd", "0," * 3000, "1,2", "None", "é" * 50]
MOVABLE = [
    (stop.key, rule.name)
    for stop in LESSONS
    for rule in stop.rules()
    if rule.name != "draw" and not isinstance(rule.default, tuple) and rule.when is None
]
LARGEST_MESSAGE = 1_500_000
MOST_RELEASES = 40


def stop_of(key):
    return BY_KEY[key]


class TestStops:
    @pytest.mark.parametrize("key", KEYS)
    def test_it_opens_with_described_charts_of_modest_size(self, key):
        app = fine(learn_app(stop=key))
        assert address(app) == {"stop": key}
        assert app.header[0].value == f"{KEYS.index(key) + 1}. {stop_of(key).title}"
        told = described(app)
        assert len(told) >= 1
        assert all(len(each) > 40 for each in told)
        assert len(app.metric) >= 3
        assert all(
            widget.label for kind in ("slider", "select_slider", "selectbox", "toggle", "radio", "button") for widget in app.get(kind)
        )
        print(f"\n{key}: {sizes(app) / 1000:.0f} kB")
        assert sizes(app) < LARGEST_MESSAGE


@pytest.mark.benchmark
def test_a_stop_costs_at_most_forty_releases(capsys):
    """Processor time of a stop, and of any of its controls, over that of one quadtree of 200,000 people, in one run."""
    points, stops = load_sample("la_residents"), [stop_of(key) for key in KEYS]
    unit = min(seconds(lambda: Quadtree(height=8).release(points, PureBudget(0.5), Entropy.seeded(1))) for _ in range(3))
    for stop in stops:
        first = seconds(lambda: stop().show()) / unit  # noqa: B023
        choices = [{rule.name: rule.choices[0]} for rule in stop.rules() if rule.choices]
        again = max((seconds(lambda: stop(**choice).show()) / unit for choice in choices), default=0)  # noqa: B023
        with capsys.disabled():
            print(f"\n{stop.key}: first {first:.1f}, a control at most {again:.1f} releases")
        assert first < MOST_RELEASES
        assert again < MOST_RELEASES


def seconds(do):
    start = time.process_time()
    do()
    return time.process_time() - start


class TestControls:
    @pytest.mark.parametrize("key", often(KEYS, 3))
    def test_each_moves_the_stop_and_its_address_which_opens_the_same_and_reset_brings_all_back(self, key):
        app = learn_app(stop=key)
        for name in (name for stop, name in MOVABLE if stop == key):
            before = moved(app, name)
            assert getattr(settings(app), name) != before
            assert address(app)[name] == str(getattr(settings(app), name))
            assert address(app)["stop"] == key
        other = learn_app(**address(app))
        assert (at(other), settings(other)) == (key, settings(app))
        assert [metric.value for metric in other.metric] == [metric.value for metric in app.metric]
        good(app.button(key="learn reset").click().run())
        assert settings(app) == stop_of(key)()
        assert address(app) == {"stop": key}

    @pytest.mark.parametrize("key", [key for key in KEYS if any(rule.name == "draw" for rule in stop_of(key).rules())])
    def test_drawing_again_shows_other_noise(self, key):
        app = learn_app(stop=key)
        before = charts(app)
        good(app.button(key="learn draw").click().run())
        assert settings(app).draw == 2
        assert address(app) == {"stop": key, "draw": "2"}
        assert charts(app) != before
        good(app.button(key="learn reset").click().run())
        assert charts(app) == before

    def test_the_number_of_the_draw_begins_again_at_its_end(self):
        app = learn_app(stop="sums", draw=str(MOST_DRAWS))
        assert settings(app).draw == MOST_DRAWS
        good(app.button(key="learn draw").click().run())
        assert settings(app).draw == 1


class TestSplit:
    def test_a_preset_is_quoted_with_its_source(self):
        app = learn_app(stop="split")
        for name, source in SOURCES.items():
            good(app.selectbox(key="learn split preset").set_value(name).run())
            assert settings(app).levels == PRESETS[name]
            assert any(source in caption.value for caption in app.caption)
        good(app.selectbox(key="learn split preset").set_value("leaf").run())
        assert settings(app).levels == PRESETS["leaf"]
        assert not any("Source" in caption.value for caption in app.caption)

    def test_a_typed_share_is_taken_from_the_others(self):
        app = learn_app(stop="split", levels=",".join(["1"] * (HEIGHT + 1)))
        good(app.number_input(key="learn share 0").set_value(50.0).run())
        assert settings(app).levels == pytest.approx((0.5, *[0.1] * HEIGHT), abs=1e-3)
        assert labelled(app.number_input, "zoom 0, %").value == pytest.approx(50)
        assert app.selectbox(key="learn split preset").value is None

    @pytest.mark.parametrize("levels", ["0,0,0,0,0,0", "1,1,1", "nan,1,1,1,1,1", "-1,1,1,1,1,1", "2,1,1,1,1,1", "a,b"])
    def test_shares_that_are_none_are_refused(self, levels):
        app = fine(learn_app(stop="split", levels=levels))
        assert settings(app) == stop_of("split")()


class TestAddress:
    @pytest.mark.parametrize("key", KEYS)
    def test_hostile_parameters_fall_back_to_the_defaults(self, key):
        stop = stop_of(key)
        for text in HOSTILE:
            link = {rule.name: text for rule in stop.rules()}
            found = read_link(stop, {**link, "stop": key, "other": text})
            assert found == stop()
        app = fine(learn_app(stop=key, **{rule.name: "<script>" for rule in stop.rules()}))
        assert settings(app) == stop()
        assert address(app) == {"stop": key}

    @pytest.mark.parametrize("stop", often(["ONE_PERSON", "split&draw=2", *HOSTILE], 4))
    def test_an_unknown_stop_is_the_first(self, stop):
        assert at(fine(learn_app(stop=stop))) == KEYS[0]

    def test_settings_of_other_stops_do_not_matter(self):
        app = learn_app(stop="leak", prior="3", person="7")
        assert settings(app).person == 7
        assert address(app) == {"stop": "leak", "person": "7"}


class TestWalk:
    def test_next_and_previous_lead_through_all_stops_and_back(self):
        app = learn_app()
        for key in KEYS[1:]:
            good(app.button(key="learn next top").click().run())
            assert at(app) == key
        assert app.button(key="learn next bottom").disabled
        good(app.button(key="learn previous bottom").click().run())
        assert at(app) == KEYS[-2]

    def test_the_contents_lead_anywhere_and_every_stop_keeps_its_settings(self):
        app = learn_app(stop="one_person", prior="90")
        good(app.radio(key="learn contents").set_value("releases").run())
        assert address(app) == {"stop": "releases"}
        good(app.radio(key="learn contents").set_value("one_person").run())
        assert settings(app).prior == 90
        assert address(app) == {"stop": "one_person", "prior": "90"}

    def test_going_back_makes_nothing_again(self, monkeypatch):
        made = []
        for stop in LESSONS[:2]:
            show = stop.show
            monkeypatch.setattr(stop, "show", lambda self, show=show: made.append(self.key) or show(self))
        app = learn_app()
        good(app.button(key="learn next top").click().run())
        good(app.button(key="learn previous top").click().run())
        good(app.run())
        assert made == KEYS[:2]

    def test_the_start_page_and_the_navigation_lead_here(self):
        app = fine(AppTest.from_file(ROOT / "app.py", default_timeout=60).run())
        labelled(app.button, "Learn in short lessons").click()
        fine(app.run())
        assert "learn reset" in keys(app.button)


class TestPictures:
    @pytest.mark.parametrize("key", often(KEYS, 3))
    def test_every_stop_has_one_that_says_what_it_is(self, key):
        stop = stop_of(key)
        shown = stop().show()
        text = picture(shown.charts, stop.title, "ε: 1", "svg").decode()
        assert text.startswith("<svg")
        assert STAMP in text
        assert stop.title in text.replace("&amp;", "&")
        assert "http" not in text.replace("http://www.w3.org/", "")

    def test_png_is_one(self):
        stop = stop_of("interval")
        assert picture(stop().show().charts, stop.title, "ε: 1", "png").startswith(b"\x89PNG")

    def test_a_dark_page_gives_a_dark_one(self):
        stop = stop_of("interval")
        shown = stop().show()
        light, dark = (picture(shown.charts, stop.title, "x", "svg", dark=dark).decode() for dark in (False, True))
        assert 'fill="#ffffff"' in light[:600]
        assert 'fill="#101518"' in dark[:600]
        assert "#1d282e" not in dark

    def test_charts_on_screen_stay_as_they_were(self):
        stop = stop_of("one_person")
        shown = stop().show()
        before = [chart.to_dict() for chart in shown.charts]
        picture(shown.charts, stop.title, "x", "svg")
        assert [chart.to_dict() for chart in shown.charts] == before

    def test_the_buttons_are_there_and_the_settings_are_named(self):
        app = learn_app(stop="split")
        assert {"learn picture svg", "learn picture png"} <= keys(app.get("download_button"))
        about = describe(settings(app))
        assert "Privacy budget ε: 0.5" in about
        assert "0.25, 0, 0.25" in about
