"""What a payment buys: useful levels, noise that wants a tick, and suggestions that are recomputed before they are shown."""

import re
from dataclasses import replace

import pytest

from dpviz.app.cards.bargain import Bargain, LevelBargain
from tests.app.seen import fine, good, texts
from tests.app.start import CURATE, pages_app, points_app
from tests.app.walk import press_draw, say_how_many

TOWN = CURATE | {"sample": "la_residents", "size": "1000", "order": "8", "settings": '{"height":8}', "epsilon": "0.1"}


def worth(useful=25.0, error=49.6):
    return LevelBargain(name="1.1 km", part="square", error=error, average=48.8, parts=4096, useful=useful)


def bargain(app):
    """What the bar says: useful parts, all parts, error in percent of an average one."""
    useful, parts, share = re.search(r"About ([\d,]+) useful \w+s of ([\d,]+) at .*?, ± ([\d.]+) ?% of an average one", texts(app)).groups()
    return int(useful.replace(",", "")), int(parts.replace(",", "")), float(share)


def button(app, key):
    return next(each for each in app.button if each.key == f"{key} config")


@pytest.mark.parametrize(
    ("of", "noise", "useful"),
    [
        (worth(), True, False),
        (worth(error=30.0), False, False),
        (worth(useful=0.4, error=30.0), True, False),
        (worth(useful=2048), True, True),
    ],
)
def test_it_is_noise_where_the_error_is_larger_than_the_count_or_nothing_is_useful(of, noise, useful):
    assert (of.is_noise, of.is_useful) == (noise, useful)


def test_the_suggested_size_is_one_of_which_most_parts_are_useful():
    app = say_how_many(points_app(TOWN), 100_000)
    useful, parts, _ = bargain(app)
    assert useful < parts / 2
    fine(button(app, "suggest level").click().run())
    useful, parts, _ = bargain(app)
    assert useful >= parts / 2


def test_the_suggested_epsilon_makes_an_average_part_useful_and_one_above_the_cap_is_not_taken():
    app = say_how_many(points_app(TOWN), 100_000)
    assert bargain(app)[2] > 40
    fine(button(app, "suggest epsilon").click().run())
    assert bargain(app)[2] <= 40
    epsilon = app.session_state["config"].draft.run.epsilon
    fine(app.number_input(key="good records config").set_value(100).run())
    fine(button(app, "suggest epsilon").click().run())
    assert "more than the cap leaves" in " ".join(each.value for each in app.caption)
    assert app.session_state["config"].draft.run.epsilon == epsilon
    fine(app.select_slider(key="good level config").set_value(5).run())
    assert "more than the cap leaves" not in " ".join(each.value for each in app.caption), "that was said of another size"


def test_where_no_epsilon_within_the_cap_is_enough_a_press_takes_a_coarser_size_and_its_epsilon_or_says_what_helps():
    app = say_how_many(points_app(TOWN | {"epsilon": "0.001"}), 2_000)
    assert not [each for each in app.button if str(each.key).startswith("suggest level")], "no size is useful with this ε"
    fine(button(app, "suggest epsilon").click().run())
    assert "more than the cap leaves" in " ".join(each.value for each in app.caption)
    fine(button(app, "suggest both").click().run())
    assert bargain(app)[2] <= 40
    app = say_how_many(points_app(TOWN | {"epsilon": "0.001"}), 1)
    fine(button(app, "suggest epsilon").click().run())
    fine(button(app, "suggest both").click().run())
    assert "What helps is a larger cap" in " ".join(each.value for each in app.caption)


@pytest.mark.parametrize("at", ["trips", "areas"])
def test_every_family_says_it_once_the_number_is_said_and_never_before(at):
    app = good(pages_app(at, {"mode": "Curate"}))
    assert "useful" not in texts(app)
    assert re.search(r"About [\d,]+ useful (pairs|regions) of [\d,]+ at .* of an average one", texts(say_how_many(app, 1_000_000)))


def test_after_the_payment_what_was_expected_stands_beside_what_the_release_has():
    app = fine(press_draw(say_how_many(points_app(TOWN | {"size": "50000", "epsilon": "2"}), 50_000)))
    pattern = r"You expected about ([\d,]+) useful squares of ([\d,]+) at .*? of an average one\. The release has ([\d,]+)\."
    expected, parts, has = (int(each.replace(",", "")) for each in re.search(pattern, texts(app)).groups())
    assert 0 < has <= parts
    assert 0.5 <= has / expected <= 2


def test_of_two_mechanisms_the_bar_speaks_of_the_worse_one_by_its_name():
    link = {"mode": "Curate", "sample": "us_flights", "settings": "{}", "epsilon": "1.0", "mechanism": "flat_gaussian"}
    alone, both = (say_how_many(pages_app("trips", link | {"beside": beside}), 1_000_000) for beside in ("nothing", "fitted_tree"))
    assert "at airport to airport by Fitted tree" in texts(both), "with the neighbours of the first one"
    assert bargain(both)[2] > bargain(alone)[2]


def of_pairs(*useful):
    """A bargain at blocks by hour, where some pairs of levels have readable profiles."""
    profiles = {"hour": 0.0, "part of day": 0.0}
    none = LevelBargain(name="block", part="region", error=5, average=10, parts=99, useful=3, places=9, readable=profiles)
    levels = {(place, slot): none for place in (1, 2, 3) for slot in (1, 2)} | {3: none}
    levels |= {pair: replace(none, readable={"hour": 9.0}) for pair in useful}
    return Bargain(level=(3, 2), levels=levels, find_epsilon=float, take_both=list)


@pytest.mark.parametrize(
    ("useful", "suggested"),
    [
        ((), []),
        (((3, 1),), [(3, 1)]),
        (((3, 1), (2, 2), (1, 2)), [(3, 1), (2, 2)]),
        (((1, 1), (2, 1)), [(2, 1)]),
        (((1, 1), (1, 2)), [(1, 2)]),
    ],
)
def test_of_a_pair_of_levels_coarser_slots_or_places_are_suggested_and_both_where_neither_is_useful(useful, suggested):
    assert of_pairs(*useful).useful_levels == suggested
