"""What a change brings with it, and how undo takes it back."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.app.state.changes import Change, apply_change
from dpviz.app.state.history import MOST_UNDONE, SECONDS_TOGETHER, History, go_back
from dpviz.app.state.kinds import AREAS, KINDS, POINTS, TRIPS
from dpviz.app.state.page import usual_page
from dpviz.app.state.values import CURATE, HOURS, PLACE_ALONE, WEEKDAYS
from dpviz.app.state.view import Pane

HALF, STAYS = Fraction(1, 2), {"camera": (1.0, 2.0, 3.0), "swipe": 0.4, "scales": {"error": 2.0}, "box": (0.0, 0.0, 1.0, 1.0)}
STAYS |= {"present": True, "drawer": "Data"}


def looking(kind, **view):
    page = usual_page(kind)
    return replace(page, view=replace(page.view, **view))


def test_a_new_epsilon_takes_the_place_of_rho():
    page = apply_change(usual_page(TRIPS), Change(run={"rho": HALF}))
    assert page.draft.runs[0].rho == HALF
    assert apply_change(page, Change(run={"noise": "Gaussian"})).draft.runs[0].rho == HALF
    for name in ("epsilon", "delta"):
        assert apply_change(page, Change(run={name: HALF})).draft.runs[0].rho is None
        assert apply_change(page, Change(run={name: HALF, "rho": HALF})).draft.runs[0].rho == HALF


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_other_data_have_other_levels(kind):
    page = looking(kind, level=3, asked=(1, 2))
    for part in ({"source": "upload"}, {"sample": "another"}):
        view = apply_change(page, Change(draft=part)).view
        assert (view.level, view.asked) == (None, ())
    assert apply_change(page, Change(draft={"order": 7})).view == page.view
    assert apply_change(page, Change(draft={"source": "upload"}, view={"level": 1})).view.level == 1


def test_data_by_category_are_counted_by_a_mechanism_of_their_own():
    city = apply_change(looking(AREAS, slots=(1, 2)), Change(draft={"sample": "city_by_hour"}))
    assert (city.draft.run.mechanism, city.view.slots) == ("cross_tree", None)
    assert apply_change(city, Change(draft={"sample": "us_departures"}, view={"slots": (3, 4)})).draft.run.mechanism == "cross_tree"
    regions = apply_change(city, Change(run={"mechanism": "flat", "settings": {}}))
    assert regions.draft.run.mechanism == "flat", "regions alone may be counted, too"
    assert apply_change(city, Change(draft={"source": "upload"})).draft.run.mechanism == "region_tree"


def test_the_mechanism_fits_what_is_counted():
    page = apply_change(usual_page(AREAS), Change(draft={"source": "upload"}))
    by_hour = apply_change(page, Change(draft={"counted_by": HOURS}))
    assert [run.mechanism for run in by_hour.draft.runs] == ["cross_tree"]
    totals = apply_change(by_hour, Change(run={"mechanism": "region_tree"}))
    assert apply_change(totals, Change(draft={"counted_by": WEEKDAYS})).draft.run.mechanism == "region_tree"
    for change in ({"counted_by": PLACE_ALONE}, {"source": "sample", "sample": "us_residents"}):
        assert apply_change(by_hour, Change(draft=change)).draft.run.mechanism == "region_tree"
    assert apply_change(by_hour, Change(draft={"counted_by": PLACE_ALONE}, run={"mechanism": "flat"})).draft.run.mechanism == "flat"


def test_levels_of_points_are_those_of_the_mechanism():
    change = Change(run={"mechanism": "quadtree", "settings": {}})
    assert apply_change(looking(POINTS, level=3), change).view.level is None
    assert apply_change(looking(POINTS, level=3), Change(run={"epsilon": HALF})).view.level == 3
    change = Change(run={"mechanism": "flat", "settings": {}})
    assert apply_change(looking(AREAS, level=3), change).view.level == 3


def test_regions_are_asked_for_on_their_own_level():
    page = looking(AREAS, level=3, asked=(1, 2))
    assert apply_change(page, Change(view={"level": 2})).view.asked == ()
    assert apply_change(page, Change(view={"level": 3})).view.asked == (1, 2)
    assert apply_change(page, Change(view={"level": 2, "asked": (5,)})).view.asked == (5,)


def test_a_map_of_a_further_run_starts_it_with_a_tenth_of_the_budget():
    page = apply_change(usual_page(AREAS), Change(run={"epsilon": Fraction(7, 10)}))
    two = apply_change(page, Change(view={"panes": (Pane(run=1), Pane())}))
    assert [run.epsilon for run in two.draft.runs] == [Fraction(7, 10), Fraction(7, 100)]
    assert apply_change(two, Change(view={"panes": (Pane(), Pane())})).draft.runs == two.draft.runs
    changed = apply_change(two, Change(run={"epsilon": HALF}, index=1))
    assert [run.epsilon for run in changed.draft.runs] == [Fraction(7, 10), HALF]
    tiny = apply_change(page, Change(run={"epsilon": Fraction(1, 1000)}, view={"panes": (Pane(run=1),)}))
    assert tiny.draft.runs[1].epsilon == Fraction(1, 1000)
    with pytest.raises(IndexError):
        apply_change(page, Change(run={"epsilon": HALF}, index=1))


def test_the_controls_are_those_of_a_run_that_a_map_shows():
    page = apply_change(usual_page(AREAS), Change(view={"panes": (Pane(run=1), Pane()), "edited": 1}))
    assert (page.edited, page.shown_runs) == (1, (0, 1))
    assert apply_change(page, Change(view={"panes": (Pane(), Pane())})).edited == 0
    curated = apply_change(page, Change(draft={"mode": CURATE}))
    assert (curated.edited, curated.shown_runs) == (0, (0,))


def test_quick_changes_of_the_same_parts_are_taken_back_together():
    history, pages, now = History(), [usual_page(AREAS)], 0.0
    changes = [Change(run={"epsilon": Fraction(number)}) for number in (1, 2, 3)] + [Change(view={"level": 2})]
    for change in changes:
        history = history.keep(pages[-1], change.parts, now=now)
        pages.append(apply_change(pages[-1], change))
        now += SECONDS_TOGETHER / 2
    assert history.before == (pages[0], pages[3])
    before, history = history.undo()
    assert before == pages[3]
    before, history = history.undo()
    assert (before, history.undo()[0]) == (pages[0], None)


@pytest.mark.parametrize(("parts", "seconds", "number"), [({"level"}, 1.0, 1), ({"level"}, 2.0, 2), ({"asked"}, 1.0, 2), (set(), 0.0, 2)])
def test_slow_changes_and_others_are_changes_of_their_own(parts, seconds, number):
    history = History().keep("a", {"level"} if parts else set(), now=0.0).keep("b", parts, now=seconds)
    assert len(history.before) == number


def test_after_undo_the_next_change_is_one_of_its_own():
    history = History().keep("a", {"level"}, now=0.0)
    _, history = history.undo()
    assert history.keep("a", {"level"}, now=0.1).before == ("a",)


def test_camera_swipe_bar_scales_box_and_large_type_stay():
    before, now = usual_page(AREAS), looking(AREAS, level=2, **STAYS)
    back = go_back(before, now)
    assert back == replace(before, view=replace(before.view, **STAYS))


@given(st.lists(st.tuples(st.sampled_from(["epsilon", "level", "asked"]), st.floats(0, 3)), max_size=80))
def test_undo_goes_through_the_pages_that_were_kept_and_no_others(steps):
    history, now, pages = History(), 0.0, [0]
    for number, (part, seconds) in enumerate(steps, start=1):
        now += seconds
        history = history.keep(pages[-1], {part}, now=now)
        pages.append(number)
    assert len(history.before) <= MOST_UNDONE
    assert list(history.before) == sorted(set(history.before) & set(pages))
    assert not steps or len(steps) > MOST_UNDONE or history.before[0] == 0
    while history.before:
        last, history = history.undo()
        assert last not in history.before
