"""How a canvas opens: as the configuration says when the visit of the page begins, whatever moves later."""

from types import SimpleNamespace

import pytest

from dpviz.app.session import camera as module
from dpviz.app.session.camera import Opening, keep_camera, opening
from dpviz.app.state.readers import read_camera
from dpviz.space.domain import Domain

HERE = Domain(bounds=(0, 0, 8, 8), crs=None, order=3)
THERE = Domain(bounds=(0, 0, 9, 9), crs=None, order=3)


@pytest.fixture
def page(monkeypatch):
    """A page with a configuration of its own, and the state of its session."""
    state = {"visit": 1}
    monkeypatch.setattr(module, "st", SimpleNamespace(session_state=state))
    how = SimpleNamespace(camera=(1.0, 2.0, 3.0), swipe=0.4)
    return SimpleNamespace(key="page", state=state, looks=how, look=lambda **new: vars(how).update(new))


def test_moves_within_a_visit_leave_the_opening_as_it_was(page):
    first = opening(page, HERE)
    assert first == Opening(visit=1, camera=(1.0, 2.0, 3.0), swipe=0.4)
    keep_camera(page, (4.123456, 5.0, 6.789))
    assert opening(page, HERE) == first
    page.state["visit"] = 2
    assert opening(page, HERE) == Opening(visit=2, camera=(4.12346, 5.0, 6.789), swipe=0.4)


def test_another_domain_is_shown_as_a_whole(page):
    opening(page, HERE)
    assert opening(page, THERE) == Opening(visit=1, swipe=0.4)
    assert page.looks.camera is None


@pytest.mark.parametrize("text", ["[1,2]", "[1,2,3,4]", "7", "{}", "[1,99,3]", "[1,2,25]", "[1,2,-1]", "[NaN,0,0]", "null", '["a",0,0]'])
def test_a_camera_of_a_link_looks_at_the_map(text):
    assert read_camera("[-118.2,34,9.5]") == (-118.2, 34.0, 9.5)
    with pytest.raises((ValueError, TypeError)):
        read_camera(text)
