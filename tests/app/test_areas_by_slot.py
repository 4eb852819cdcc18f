"""The Areas page with counts by place and hour: the strip of slots, what follows it, and the small maps."""

from types import SimpleNamespace

import numpy as np
import pytest

from dpviz.app.components.profile import receive
from dpviz.app.pages.areas.tabs import ASK_TAB, TAB_TITLES
from dpviz.release.area_release import AreaRelease
from dpviz.release.cross_release import CrossRelease
from tests.app.parts import changed_page
from tests.app.rails import rail_of
from tests.app.seen import figures, fine, labelled, newest, scene
from tests.app.start import pages_app, query_of
from tests.app.walk import open_drawer, open_tab

CITY = {"sample": "city_by_hour", "level": "1"}


@pytest.fixture
def strip(monkeypatch):
    """What the page gives its strip, after each run; `send(app, slots)` chooses slots as a browser would."""
    seen = SimpleNamespace(events=[], options={})

    def profile(bars, groups, **options):
        vars(seen).update(bars=bars, groups=groups, options=options)
        while seen.events:
            receive(seen.events.pop(), {"serial": 0}, bars, options["on_slots"])

    def send(app, slots):
        seen.events.append({"slots": slots, "serial": 1})
        fine(app.run())
        return fine(app.run())

    seen.send = send
    monkeypatch.setattr("dpviz.app.pages.areas.slots.profile", profile)
    return seen


def by_hour(link=CITY):
    return fine(pages_app("areas", link))


def view_of(app):
    return app.session_state["areas config"].view


def drawn(app):
    return newest(app, "areas config first run")


def fills(app, pane):
    about, arrays = scene(app)
    return arrays[about["panes"][pane]["fills"][0]]


def test_a_sample_by_hour_opens_with_the_mechanism_that_counts_hours_and_other_data_with_theirs():
    app = fine(pages_app("areas", {"sample": "made_up_city"}))
    open_drawer(app, "Data")
    fine(labelled(app.selectbox, "Sample").set_value("city_by_hour").run())
    assert query_of(app)["mechanism"] == "cross_tree"
    assert isinstance(drawn(app).release, CrossRelease)
    fine(labelled(app.selectbox, "Sample").set_value("us_residents").run())
    assert query_of(app)["mechanism"] == "region_tree"
    assert by_hour({"sample": "city_by_hour"}).session_state["areas config"].draft.run.mechanism == "cross_tree"


def test_the_strip_has_each_hour_of_the_whole_or_of_the_regions_that_are_asked_for(strip):
    app = by_hour()
    truth = drawn(app).data.counts.cross_counts()
    assert [bar.true for bar in strip.bars] == truth[0, 5:].tolist()
    assert [name for name, _, _ in strip.groups[0]] == ["night", "morning", "afternoon", "evening"]
    assert strip.options["said"].startswith("The whole: ")
    for asked, name in (((4,), "District "), ((4, 7), "2 regions together: ")):
        app.session_state["areas config"] = changed_page(app.session_state["areas config"], asked=asked)
        fine(app.run())
        assert [bar.true for bar in strip.bars] == truth[1 + np.array(asked), 5:].sum(axis=0).tolist()
        assert strip.options["said"].startswith(name)


def test_slots_that_are_chosen_are_those_of_maps_titles_chips_sum_link_and_rail(strip, monkeypatch):
    rail = rail_of(monkeypatch)
    app = by_hour(CITY | {"asked": "[4]"})
    before, average, what = fills(app, 1), rail.levels[1].worth.average, drawn(app)
    app = strip.send(app, [7, 9])
    slots = ["07", "08", "09"]
    alone = what.release.in_slots(slots)
    assert query_of(app)["slots"] == "[7,9]"
    assert strip.options["chosen"] == (7, 9)
    ids = [alone.regions.ids_of(1)[[4]].tolist()]
    (count,), ((low,), (high,)) = alone.answer(ids, level=1), alone.answer_interval(ids, level=1)
    true = what.data.counts.in_slots(slots).level_counts()[1]
    interval = f"95 % interval {low:,.0f} to {high:,.0f}"
    assert strip.options["said"] == f"07 to 09 in district 10: {count:,.0f} visits, {interval}, true {true[4]:,}"
    assert [pane["title"] for pane in scene(app)[0]["panes"]] == ["True visits, 07 to 09", "Released visits, 07 to 09"]
    assert app.selectbox(key="pane 107 to 09").format_func("Released") == "Released, 07 to 09"
    assert (fills(app, 1) != before).any()
    assert rail.levels[1].worth.average == pytest.approx(true.sum() / 12)
    assert rail.levels[1].worth.average < average
    fine(app.button(key="undo").click().run())
    assert "slots" not in query_of(app)
    np.testing.assert_array_equal(fills(app, 1), before)


def test_tables_and_key_figures_are_those_of_the_chosen_slots():
    app = open_drawer(by_hour(CITY | {"asked": "[4]", "slots": "[7,9]"}), "Numbers")
    alone = drawn(app).release.in_slots(["07", "08", "09"])
    assert figures(app)["Typical noise (standard deviation)"].startswith(f"{np.median(alone.stddev(1)):.3g}"[:3])
    for name in TAB_TITLES:
        if name != ASK_TAB:
            fine(open_tab(app, name))
    assert app.dataframe[-1].value["count"].tolist() == pytest.approx(sorted(alone.to_frame(1)["count"].round(2), reverse=True))
    count = alone.answer([["10"]], level=1)[0]
    assert figures(open_drawer(app, "Ask"))["Released answer"] == f"{count:,.0f} visits"


def test_a_link_opens_the_same_slots_and_clamps_those_that_the_data_lack(strip):
    by_hour(CITY | {"slots": "[6,11]"})
    assert strip.options["said"].startswith("Morning in the whole: ")
    by_hour(CITY | {"slots": "[20,99]"})
    assert strip.options["chosen"] == (20, 23)
    for beyond in ("[0,23]", "[30,40]"):
        by_hour(CITY | {"slots": beyond})
        assert strip.options["chosen"] is None


def test_what_is_expected_of_chosen_slots_is_the_noise_of_a_run(strip, monkeypatch):
    from dpviz.app.pages.areas.levels import expect  # noqa: PLC0415 - beside its use

    app = by_hour()
    what, slots = drawn(app), ("07", "08")
    expected = expect(what.data.counts, slots, what.draft.build(), what.draft.budget())
    alone: AreaRelease = what.release.in_slots(slots)
    assert expected == pytest.approx([float(np.sqrt((alone.stddev(level) ** 2).mean())) for level in range(4)])


def test_regions_alone_are_counted_without_a_strip_and_without_maps_of_slots(strip):
    app = by_hour(CITY | {"mechanism": "region_tree", "slots": "[7,9]", "by_slot": "True"})
    assert strip.options == {}
    assert [pane["title"] for pane in scene(app)[0]["panes"]] == ["True visits", "Released visits"]
    assert "Slots" not in labelled(open_drawer(app, "Map").segmented_control, "Maps").options


def test_small_maps_show_each_part_of_the_day_and_a_click_takes_region_and_slots(strip):
    app = open_drawer(by_hour(), "Map")
    fine(labelled(app.segmented_control, "Maps").set_value("Slots").run())
    assert query_of(app)["by_slot"] == "True"
    header = scene(app)[0]
    assert [pane["title"].split(",")[0] for pane in header["panes"]] == ["night", "morning", "afternoon", "evening"]
    assert header["titled"]
    assert len({tuple(pane["areas"]) for pane in header["panes"]}) == 1, "the outlines are sent once"
    assert not [each for each in app.selectbox if str(each.key).startswith("pane ")]
    fine(labelled(app.segmented_control, "Maps").set_value("Two").run())
    assert not view_of(app).by_slot
