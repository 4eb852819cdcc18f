"""What a browser may send from the canvas: good messages reach the page, anything else is as if nothing had been sent."""

import math
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpviz.app.components import panes as module
from dpviz.app.components.panes import FAILED, Chosen, _read_box, _read_camera, _read_chosen, _read_swipe, canvas_failed, panes

HUGE = 10**400  # a whole number in JSON that no float holds
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([HUGE, -HUGE, math.inf, -math.inf, math.nan])
ANYTHING = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5), max_leaves=12)
NUMBER = st.floats(-400, 400) | st.integers(-400, 400)


def sent_as(*names):
    """Messages with the right names and any content."""
    return ANYTHING | st.fixed_dictionaries({}, optional=dict.fromkeys(names, PLAIN | NUMBER | ANYTHING))


def all_finite(*numbers):
    return all(type(number) is float and math.isfinite(number) for number in numbers)


GOOD_BOXES = [[-118.5, 33.9, -118.1, 34.2], [-360, -90, 360, 90], [0, 0, 1, 0.5]]
GOOD_CAMERAS = [{"longitude": -118.2, "latitude": 34, "zoom": 9.5}, {"longitude": 0, "latitude": 0, "zoom": 0, "pitch": "high"}]
GOOD_CHOSEN = [
    (
        {"pane": 1, "kind": "area", "cell": 7, "longitude": -118.2, "latitude": 34},
        Chosen(pane=1, kind="area", cell=7, longitude=-118.2, latitude=34.0),
    ),
    (
        {"pane": 0, "kind": "cell", "cell": -1, "longitude": 0.5, "latitude": 0},
        Chosen(pane=0, kind="cell", cell=None, longitude=0.5, latitude=0.0),
    ),
]
GOOD_SWIPES = {0: None, 0.03: 0.03, 0.35: 0.35, 0.97: 0.97}
BAD_SWIPES = [None, "0.5", True, [], [0.5], {}, {"at": 0.5}, math.nan, math.inf, HUGE, -0.5, 0.02, 0.98, 1]
BAD_BOXES = [
    *(None, "1234", 5, True, {}, [], [[1, 2, 3, 4]], [1, 2, 3], [1, 2, 3, 4, 5], {"0": 1, "1": 2, "2": 3, "3": 4}),
    *([0, 0, 1, bad] for bad in (None, "1", True, math.nan, math.inf, HUGE, [1], {})),
    *([3, 0, 1, 1], [0, 3, 1, 1], [0, 0, 0, 1], [-400, 0, 1, 1], [0, -91, 1, 1], [0, 0, 1, 91]),
]
BAD_CAMERAS = [
    *(None, [], [1, 2, 3], "north", {}, {"longitude": 1, "latitude": 2}),
    *({**GOOD_CAMERAS[0], name: bad} for name in GOOD_CAMERAS[0] for bad in (None, "1", True, math.nan, -math.inf, HUGE, [1], {})),
    *({**GOOD_CAMERAS[0], **bad} for bad in ({"longitude": 361}, {"latitude": 86}, {"latitude": -86}, {"zoom": -1}, {"zoom": 25})),
]
BAD_CHOSEN = [
    *(None, [], [0, 1], "first", {}, {"pane": 0, "cell": 0}),
    *({**GOOD_CHOSEN[0][0], name: bad} for name in GOOD_CHOSEN[0][0] for bad in (None, "1", True, math.nan, math.inf, [1], {})),
    *({**GOOD_CHOSEN[0][0], **bad} for bad in ({"pane": -1}, {"pane": 0.5}, {"cell": 1.5}, {"longitude": HUGE})),
]


class TestReaders:
    @given(ANYTHING | st.lists(PLAIN | NUMBER, min_size=4, max_size=4))
    @example([0, 0, 1, HUGE])
    def test_a_box_is_finite_and_has_an_area_on_the_map_or_there_is_none(self, value):
        box = _read_box(value)
        if box is not None:
            west, south, east, north = box
            assert all_finite(*box)
            assert -360 <= west < east <= 360
            assert -90 <= south < north <= 90
            assert list(box) == value

    @given(sent_as("longitude", "latitude", "zoom"))
    @example({"longitude": HUGE, "latitude": 0, "zoom": 0})
    def test_a_camera_looks_at_the_map_or_there_is_none(self, value):
        camera = _read_camera(value)
        if camera is not None:
            longitude, latitude, zoom = camera
            assert all_finite(*camera)
            assert abs(longitude) <= 360
            assert abs(latitude) < 90
            assert 0 <= zoom <= 24

    @given(PLAIN | NUMBER | ANYTHING)
    @example(HUGE)
    def test_a_swipe_bar_leaves_some_of_both_maps_or_there_is_none(self, value):
        swipe = _read_swipe(value)
        assert swipe is None or swipe == 0 or 0.03 <= swipe <= 0.97

    @given(sent_as("pane", "cell", "longitude", "latitude"))
    @example({"pane": True, "cell": 0, "longitude": 0, "latitude": 0})
    @example({"pane": -7, "cell": 0, "longitude": 0, "latitude": 0})
    def test_a_chosen_rectangle_has_whole_numbers_of_at_least_zero_or_there_is_none(self, value):
        chosen = _read_chosen(value)
        if chosen is not None:
            assert type(chosen.pane) is int
            assert chosen.pane >= 0
            assert chosen.cell is None or (type(chosen.cell) is int and chosen.cell >= 0)
            assert all_finite(chosen.longitude, chosen.latitude)

    @pytest.mark.parametrize("box", GOOD_BOXES)
    def test_a_good_box_is_read(self, box):
        assert _read_box(box) == tuple(box)

    @pytest.mark.parametrize("camera", GOOD_CAMERAS)
    def test_a_good_camera_is_read(self, camera):
        assert _read_camera(camera) == (camera["longitude"], camera["latitude"], camera["zoom"])

    @pytest.mark.parametrize(("value", "chosen"), GOOD_CHOSEN)
    def test_a_good_choice_is_read(self, value, chosen):
        assert _read_chosen(value) == chosen


@pytest.fixture
def browser(monkeypatch):
    """`browser(state)` shows a scene and then sends what the session's state holds under the key; the page's functions that were called."""
    component, state = Mock(), {}
    monkeypatch.setattr(module, "_panes", component)
    monkeypatch.setattr(module, "_send_parts", Mock())
    monkeypatch.setattr(module, "st", SimpleNamespace(session_state=state))

    def send(name, sent):
        page = {"on_box": Mock(), "on_chosen": Mock(), "on_camera": Mock(), "on_swipe": Mock()}
        panes(Mock(), key="canvas", **page)
        state["canvas"] = sent
        component.call_args.kwargs[f"on_{name}_change"]()
        return {called: mock.call_args.args for called, mock in page.items() if mock.called}

    return send


GOOD = {"box": GOOD_BOXES[0], "camera": GOOD_CAMERAS[0], "chosen": GOOD_CHOSEN[0][0], "swipe": 0.35}
BAD = [
    (name, value)
    for name, values in (("box", BAD_BOXES), ("camera", BAD_CAMERAS), ("chosen", BAD_CHOSEN), ("swipe", BAD_SWIPES))
    for value in values
]


class TestMessages:
    def test_a_good_message_reaches_its_function_and_no_other(self, browser):
        expected = {"box": tuple(GOOD_BOXES[0]), "camera": (-118.2, 34.0, 9.5), "chosen": GOOD_CHOSEN[0][1], "swipe": 0.35}
        for name, sent in GOOD.items():
            assert browser(name, GOOD | {name: sent}) == {f"on_{name}": (expected[name],)}

    @pytest.mark.parametrize(("sent", "swipe"), GOOD_SWIPES.items())
    def test_the_swipe_bar_has_a_position_or_the_maps_lie_side_by_side(self, browser, sent, swipe):
        assert browser("swipe", {"swipe": sent}) == {"on_swipe": (swipe,)}

    @pytest.mark.parametrize(("name", "value"), BAD)
    def test_anything_else_calls_nothing(self, browser, name, value):
        assert browser(name, GOOD | {name: value}) == {}

    @pytest.mark.parametrize("state", [None, {}])
    @pytest.mark.parametrize("name", GOOD)
    def test_nothing_sent_calls_nothing(self, browser, name, state):
        assert browser(name, state) == {}

    def test_that_the_canvas_failed_is_remembered_and_nothing_of_what_the_browser_says_about_it(self, browser):
        assert not canvas_failed()
        assert browser("failed", {"failed": {"reason": "<b>no</b>"}}) == {}
        assert canvas_failed()
        assert module.st.session_state[FAILED] is True
