"""What pages cost the server and the browser, control by control on the samples: pytest -m benchmark prints the tables.

Seconds are printed, not checked: they are those of one computer, whatever else it does. Messages and random words are checked.
"""

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pytest
from streamlit.testing.v1 import element_tree

from dpviz.app.jobs.job import DONE
from dpviz.app.pages.compare.page import TABS as COMPARE_TABS
from dpviz.app.pages.compare.state import JOB, CompareConfig
from dpviz.app.pages.points.tabs import NAMES as POINTS_TABS
from dpviz.app.pages.trips.tabs import TAB_TITLES as TRIPS_TABS
from dpviz.app.state.values import CURATE
from dpviz.lessons import GROUPS, LESSONS
from dpviz.privacy.entropy import Entropy
from tests.app.browse import LARGEST_MESSAGE, pane_colours, until, visit
from tests.app.parts import page_with
from tests.app.seen import entries, good
from tests.app.start import pages_app
from tests.app.walk import press_draw

pytestmark = pytest.mark.benchmark
as_shown = element_tree._format_value_for_widget

TRIES = 2  # visits: a computer has other work too, and the sooner counts
PATIENCE = 120
DRAWS = ("draw", "publish", "stop study", "compare repeat", "compare picked")
CHOICES = ("selectbox", "slider", "select_slider", "checkbox", "toggle", "multiselect", "button_group")
FIELDS = ("number_input", "text_input", "text_area")
TABS = {"points": ("tab", POINTS_TABS), "trips": ("trips tab", TRIPS_TABS), "compare": ("compare tab", COMPARE_TABS)}
FIRST_TABS = {key: names[0] for key, names in TABS.values()}
PICKED = (("Path-budget tree", 2.0), ("Quadtree", 2.0), ("Uniform grid (UG)", 2.0), ("Quadtree", 0.1))
STUDY = {"steps": 2, "repeats": 2, "picked": PICKED}  # with all releases that the maps show when nothing is picked


@dataclass
class Costs:
    """The dearest of what was done on a page."""

    page: str
    controls: int = 0
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")
    words: int = 0

    def measure(self, app, what, do=lambda: None):
        """Run the page after `do`; the time is the server's own work, whatever else the computer does."""
        do()
        start = time.process_time()
        good(app.run())
        self.controls += 1
        self.slowest = max(self.slowest, (time.process_time() - start, what))
        sizes = [each.proto.ByteSize() for each in app._tree if getattr(each, "proto", None) is not None]
        self.largest = max(self.largest, (max(sizes), what))


@pytest.fixture(scope="module")
def words():
    """How many random words were taken, by anything."""
    taken, made = [], Entropy._make.__func__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Entropy, "_make", classmethod(lambda cls, source, seeds: made(cls, lambda n: taken.append(n) or source(n), seeds)))
        yield taken


def controls(app):
    """Every control that can be moved, by what finds it again."""
    found = []
    for kind in (*CHOICES, *FIELDS):
        for place, widget in enumerate(app.get(kind)):
            if not widget.disabled and not str(widget.key or "").startswith(DRAWS):
                found.append((kind, widget.key or f"{widget.label} {place}"))
    return found


def again(app, kind, name):
    return next((each for place, each in enumerate(app.get(kind)) if (each.key or f"{each.label} {place}") == name), None)


def steps(widget, kind):
    """What moves a control to another value, and what moves it back; nothing where it has but one."""
    now = widget.value
    if kind in ("text_input", "text_area"):
        return ["other", now]
    if now is None:
        return []
    if kind in ("checkbox", "toggle"):
        return [not now, now]
    if kind == "number_input":
        return [now + (widget.step or 1), now]
    if kind == "slider":
        return [type(now)(widget.max if now != widget.max else widget.min), now]
    if kind == "multiselect":
        return [now[:-1], now] if len(now) > 1 else []
    if kind == "select_slider":
        others = [value for value in values_of(widget) if value != now]
        return [others[0], now] if others else []
    shown = as_shown(widget.format_func, now)
    return [ShownRun(next(option for option in widget.options if option != shown)), ShownRun(shown)] if len(widget.options) > 1 else []


def values_of(widget):
    """The values of a slider of options, which AppTest knows by their texts only: numbers that are written as one of them."""
    texts = widget.options
    numbers = [float(text) for text in texts if re.fullmatch(r"[\d.e+-]+", text)]
    found = {}
    for number in (*range(1, 64), *numbers):
        with suppress(IndexError, KeyError, ValueError):
            found.setdefault(str(widget.format_func(number)), number)
    return [found[text] for text in texts if text in found]


class ShownRun(str):
    """An option as it is written on screen, which a control of AppTest does not write once more."""

    __slots__ = ()


@pytest.fixture(scope="module", autouse=True)
def options_as_shown():
    def format_value(write, value):
        return value if isinstance(value, ShownRun) else as_shown(write, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(element_tree, "_format_value_for_widget", format_value)
        yield


def moved(app, costs):
    """Move every control of the page somewhere else and back."""
    for kind, name in controls(app):
        widget = again(app, kind, name)
        for to in [] if widget is None else steps(widget, kind):
            if (there := again(app, kind, name)) is None:
                break
            costs.measure(app, there.label or name, partial(there.set_value, to))


def tabs(app, costs):
    key, names = TABS.get(costs.page, ("", ()))
    for name in names:
        app.session_state[key] = name
        costs.measure(app, f"tab {name}")


def data_page(at, words):
    """Points or Trips: before and after a draw, control by control, tab by tab."""
    costs, app = Costs(at), pages_app(at, {}, FIRST_TABS)
    nothing = len(words)
    good(app.button(key="draw").click().run())
    costs.measure(app, "another draw", app.button(key="draw").click)
    before = len(words)
    assert before > nothing
    tabs(app, costs)
    moved(app, costs)
    costs.words = len(words) - before
    return costs


def compare_page(words):
    costs, app = Costs("compare"), pages_app("compare", {}, {"compare config": CompareConfig(**STUDY)})
    good(app.button(key="draw").click().run())
    until(lambda: app.session_state[JOB].state == DONE, "the study", PATIENCE)
    app.session_state["compare tab"] = COMPARE_TABS[0]
    good(app.run())  # the releases of the maps are drawn again
    before = len(words)
    tabs(app, costs)
    for name in COMPARE_TABS[:4]:
        app.session_state["compare tab"] = name
        good(app.run())
        moved(app, costs)
    costs.words = len(words) - before
    return costs


def learn_page(words):
    """Every stop, first all of its controls, then gone to once more."""
    answered = {"learn answers": {stop.key: None for stop in LESSONS}}
    costs, app = Costs("learn"), pages_app("learn", {"stop": LESSONS[0].key, "path": "all"}, answered)
    lists = {stop.key: f"learn contents {name}" for name, group in GROUPS.items() for stop in group}
    for stop in LESSONS:
        costs.measure(app, f"to {stop.key}", partial(app.radio(key=lists[stop.key]).set_value, stop.key))
        moved(app, costs)
    before = len(words)
    for stop in LESSONS:
        costs.measure(app, f"back to {stop.key}", partial(app.radio(key=lists[stop.key]).set_value, stop.key))
    costs.words = len(words) - before
    return costs


def release_page(words):
    """With private data and a draw that is paid for."""
    costs, app = Costs("release"), pages_app("points", {}, {"config": page_with("points", mode=CURATE)})
    good(press_draw(app))
    app.session_state["at"] = "release"
    costs.measure(app, "to the page")
    before, drawn = len(words), len(entries())
    moved(app, costs)
    costs.words = (len(words) - before) * (len(entries()) - drawn)
    return costs


PAGES = {
    "points": partial(data_page, "points"),
    "trips": partial(data_page, "trips"),
    "compare": compare_page,
    "learn": learn_page,
    "release": release_page,
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_no_control_sends_much_or_draws_noise(page, words, capsys):
    costs = PAGES[page](words)
    with capsys.disabled():
        (seconds, slow), (size, large) = costs.slowest, costs.largest
        print(f"\n{page:8} {costs.controls:4} moves   {seconds:5.2f} s ({slow})   {size / 2**20:5.2f} MiB ({large})   {costs.words} words")
    assert costs.controls > 3
    assert costs.largest[0] < LARGEST_MESSAGE, costs.largest
    assert costs.words == 0


@pytest.mark.browser
@pytest.mark.timeout(900)
def test_when_the_first_map_is_there(chromium, serve, address, tmp_path, capsys):
    """Against a page of nothing but a title in the same run: what is above that is this app's, with its map drawn in software."""
    empty = tmp_path / "empty.py"
    empty.write_text("import streamlit as st\nst.title('empty')\n")
    opened_empty = soonest(chromium, serve(empty), "", lambda page: page.get_by_role("heading", name="empty").wait_for(), tmp_path)
    drawn = soonest(chromium, address, "points", lambda page: until(lambda: min(pane_colours(page)) > 10, "the maps"), tmp_path)
    with capsys.disabled():
        print(
            f"\nfirst map, warm server: {drawn:.2f} s from opening, {drawn / opened_empty:.1f} times an empty page's {opened_empty:.2f} s"
        )


def soonest(chromium, address, path, seen, tmp_path):
    """Seconds from opening an address until something is seen; the first visit, which warms the server, does not count."""
    times = []
    for _ in range(TRIES + 1):
        with visit(chromium, address, path, scheme="light", tmp_path=tmp_path) as (page, _):
            seen(page)
            times.append(time.time() - page.evaluate("performance.timeOrigin") / 1000)
    return min(times[1:])
