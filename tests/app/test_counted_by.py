"""Areas from files by hour, bins or listed values: what is asked, what is protected, what is expected, and what is released."""

import re

import numpy as np
import pytest

import dpviz as dv
from dpviz.app.pages.areas.curate import count_useful
from dpviz.app.session.cached import digest_of
from dpviz.publishing.guessed_records import PublicGuess, guess_records
from dpviz.publishing.public_guess import RELEASED
from dpviz.space.cross import Cross
from tests.app.seen import captions, errors, fine, good, labelled, missing, newest, texts
from tests.app.start import areas_uploaded
from tests.app.walk import name_dataset, press_draw, protect, public, say_how_many
from tests.trip_cases import regular

KEY = "areas config"
HEADER = b"tract,at,age,mode,visitor\n"
TRACTS, KINDS = ("A1", "A2", "B1", "B2"), ("car", "bus", "ship")
ROWS = HEADER + b"".join(
    f"{TRACTS[k % 4]},2026-11-{1 + k % 28:02d}T{k % 24:02d}:30:00+01:00,{k % 90},{KINDS[k % 3]},v{k % 700}\n".encode() for k in range(2800)
)
MODES = ("modes.csv", b"kind,mode\nroad,car\nroad,bus\nrail,train\n")


def curating(rows=ROWS, *, unit="each", **options):
    return fine(areas_uploaded(points=rows, unit=unit, **options))


def counted_by(app, kind):
    return good(labelled(app.segmented_control, "Counted by").set_value(kind).run())


def choose(app, label, value):
    return good(labelled(app.selectbox, label).set_value(value).run())


def write(app, label, text):
    return good(labelled(app.text_input, label).set_value(text).run())


def by_hour(**options):
    return choose(counted_by(curating(**options), "Hour"), "Time zone", "Europe/Berlin")


def draft(app):
    return app.session_state[KEY].draft


def test_visits_of_persons_by_hour_are_counted_paid_for_and_shown():
    app = by_hour(unit=None)
    assert (draft(app).run.mechanism, draft(app).files.data.slot) == ("cross_tree", "at"), "only one column may hold times"
    app = protect(app, "visitor", 4)
    assert missing(app) == ["Say the most records of one person that count in each hour."]
    app = good(labelled(app.number_input, "Records per person in each hour, at most").set_value(1).run())
    app = say_how_many(name_dataset(app, "Visits"), 28_000)
    assert "Protects all that one person did, at most 4 records and 1 in each hour. Hours and regions are public." in captions(app)
    readable = r"About 4 regions of 4 at tract with a readable profile by hour, 4 by part of day, if records lie as towns are"
    assert re.search(readable, texts(app))
    app = fine(press_draw(app))
    release, counts = newest(app, "areas drawn Curate").release, newest(app, "areas drawn Curate").data.counts
    assert (release.mechanism, counts.contributions, counts.per_slot, counts.entries) == ("cross_tree", 4, 1, 24)
    assert counts.count.sum() == 2800
    assert re.search(r"You expected about 4 regions of 4 at tract with a readable profile .*? The release has \d\.", texts(app))


def test_the_time_zone_is_never_filled_in_and_none_is_an_answer():
    app = counted_by(curating(), "Hour")
    assert "Choose the time zone, or say that the column has no times." in missing(app)
    assert labelled(app.selectbox, "Time zone").value is None
    app = choose(app, "Time zone", "none")
    assert draft(app).categories.checked("Hour").zone is None


def test_a_column_is_asked_for_where_several_are_left_and_never_where_one_is():
    app = counted_by(curating(), "Listed values")
    assert labelled(app.selectbox, "Column to count by").options == ["at", "age", "mode", "visitor"]
    assert "Choose the column by which records are counted, on the left." in missing(app)
    app = counted_by(curating(b"tract,mode\nA1,car\n"), "Listed values")
    assert "Counted by the column *mode*." in captions(app)
    assert not [each for each in app.selectbox if each.label == "Column to count by"]


@pytest.mark.parametrize(
    ("kind", "column", "label", "text", "wrong", "slots"),
    [
        ("Numbers in bins", "age", "Edges of the bins", "0, 18, 65, 120", "0, 65, 18", ["0 to 18", "18 to 65", "65 to 120"]),
        ("Listed values", "mode", "Values", "car, bus", "car, car", ["car", "bus"]),
    ],
)
def test_slots_are_typed_with_commas_and_others_are_left_out_or_have_a_slot(kind, column, label, text, wrong, slots):
    app = choose(counted_by(curating(), kind), "Column to count by", column)
    assert len(missing(app)) == 1
    assert errors(write(app, label, wrong))
    app = name_dataset(write(app, label, text), "Visits")
    frame = app.session_state[KEY].draft.to_config().categories.categories()
    assert frame.ids[-1].tolist() == slots
    app = good(labelled(app.segmented_control, "Others").set_value("A slot of their own").run())
    assert draft(app).to_config().categories.categories().ids[-1].tolist() == [*slots, "other"]
    release = newest(fine(press_draw(say_how_many(app, 3000))), "areas drawn Curate").release
    assert release.categories.ids[-1].tolist() == [*slots, "other"]


def test_months_need_both_ends():
    app = choose(counted_by(curating(), "Month"), "Time zone", "UTC")
    assert "Type the first and the last month." in missing(app)
    app = write(write(app, "First month", "2026-11"), "Last month", "2026-10")
    assert "must not be before the first" in errors(app)
    app = write(app, "Last month", "2026-12")
    assert "Slots: 1 of level year, 2 of level month." in captions(app)


def test_a_public_file_of_values_is_dropped_and_declares_the_slots():
    app = curating()
    (zone,) = [each for each in app.file_uploader if each.label == "Files"]
    good(zone.set_value([(*MODES, "text/csv")]).run())
    (card,) = [each for each in app.segmented_control if each.label == "What is it?" and each.value is None]
    good(card.set_value("Public: values").run())
    assert (draft(app).counted_by, draft(app).run.mechanism) == ("Listed values", "cross_tree")
    assert "Say which columns of the public file hold the values, coarsest level first." in missing(app)
    (levels,) = [each for each in app.multiselect if each.label.startswith("Columns of modes")]
    good(levels.set_value(["kind", "mode"]).run())
    app = name_dataset(choose(app, "Column to count by", "mode"), "Visits")
    assert "Slots: 2 of level kind, 3 of level mode." in captions(app)
    release = newest(fine(press_draw(say_how_many(app, 3000))), "areas drawn Curate").release
    assert release.categories.ids[-1].tolist() == ["car", "bus", "train"]
    (part,) = (draft(app).to_config().categories,)
    assert (part.file, part.levels, draft(app).categories.digest) == ("modes.csv", ("kind", "mode"), digest_of(MODES[1]))


def test_the_private_file_declares_no_slots():
    app = counted_by(curating(), "Listed values")
    app.session_state["areas categories uploaded"] = ("values.csv", ROWS)
    assert "This is the file of the private data" in errors(good(app.run()))


def test_a_cell_that_is_no_time_refuses_the_file_unless_bad_rows_are_left_out():
    rows = ROWS + b"A1,29.11.2026 17:05,1,car,v1\n" + b"A1,,1,car,v1\n"
    app = name_dataset(by_hour(rows=rows), "Visits")
    assert "no time: write times as 2026-11-29 17:05" in errors(app)
    app = name_dataset(by_hour(rows=rows, drop=True), "Visits")
    release = newest(fine(press_draw(say_how_many(app, 3000))), "areas drawn Curate")
    assert (release.data.counts.bad, release.data.counts.count.sum()) == (2, 2800)


def test_suggestions_are_coarser_slots_coarser_places_and_more_budget():
    app = say_how_many(name_dataset(by_hour(), "Visits"), 500)
    labels = [each.label for each in app.button if str(each.key).startswith("suggest")]
    assert labels == ["Suggest a size: tract by part of day", "Suggest a size: district by hour", "Suggest ε"]
    fine(next(each for each in app.button if each.label == labels[0]).click().run())
    assert (draft(app).guess.level, draft(app).guess.slot_level) == (2, 1)
    assert "by part of day" in texts(app)


def test_totals_are_counted_by_a_region_tree_and_place_alone_takes_the_mechanism_back():
    app = name_dataset(by_hour(), "Visits")
    app = say_how_many(good(app.selectbox(key="mechanism").set_value("region_tree").run()), 3000)
    assert "useful regions of 4 at tract" in texts(app)
    app = counted_by(good(app.selectbox(key="mechanism").set_value("cross_tree").run()), "Place alone")
    assert draft(app).run.mechanism == "region_tree"
    assert "cross_tree" not in app.selectbox(key="mechanism").options


def test_both_splits_have_a_bar_of_their_own():
    app = by_hour()
    fine(app.number_input(key="slot share 0").set_value(50.0).run())
    settings = draft(app).run.settings
    assert (settings["slot_split"], settings["slot_weights"][0]) == ("custom", 0.5)
    assert "split" not in settings
    fine(app.selectbox(key="preset").set_value("uniform").run())
    assert draft(app).run.settings["slot_split"] == "custom"
    assert draft(fine(app.selectbox(key="slot preset").set_value("balanced").run())).run.settings == {"split": "uniform"}


def test_own_public_data_by_hour_are_shown_in_teach():
    app = areas_uploaded("Teach", points=ROWS)
    good(public(app).check().run())
    app = choose(counted_by(app, "Hour"), "Time zone", "Europe/Berlin")
    what = newest(fine(app), "areas config first run")
    assert what.release.categories == what.data.counts.categories == dv.Categories.hours("Europe/Berlin")
    assert what.data.counts.count.sum() == 2800


@pytest.mark.parametrize("epsilon", ["0.2", "1"])
@pytest.mark.parametrize("pair", [(1, 1), (2, 1), (2, 2)])
def test_as_many_profiles_are_readable_as_were_expected_of_such_data(epsilon, pair):
    rng = np.random.default_rng(7)
    places = regular(6, 6)
    uneven = dv.AreaCounts.from_counts(rng.permutation((600 * np.exp(rng.normal(0, 1, 36))).astype(int)), regions=places)
    like = dv.RegionTree().release(uneven, dv.PureBudget(50), dv.Entropy.system())
    frame, records, budget = Cross(places, dv.Categories.hours("UTC")), int(uneven.count.sum()), dv.PureBudget(epsilon)
    table = dv.expected_errors(dv.CrossTree(), frame, budget, records=records, like=like).by_level.set_index(["level", "slot_level"])
    drawn = guess_records(dv.AreaCounts.empty_in(frame), PublicGuess(records=records, spread=RELEASED, like=like))
    release = dv.CrossTree().release(drawn, budget, dv.Entropy.seeded(11))
    expected, has = table.loc[pair, "readable"], count_useful(release, pair)
    assert abs(expected - has) <= 3 or 1 / 1.5 <= has / expected <= 1.5


def test_sums_and_means_between_bounds_are_paid_for_and_shown():
    app = choose(counted_by(curating(), "Sum and mean"), "Column to count by", "age")
    assert "Type the smallest and the largest value that counts." in missing(app)
    app = write(app, "Values between", "60, 0")
    assert "lower bound that is below the upper one" in errors(app)
    app = say_how_many(name_dataset(write(app, "Values between", "0, 60"), "Ages"), 28_000)
    assert "Values from 0 to 60 in steps of 1; a record without one is left out." in captions(app)
    assert "Protects one record. Bounds of values and regions are public." in captions(app)
    app = fine(press_draw(app))
    drawn = newest(app, "areas drawn Curate")
    assert isinstance(drawn.release, dv.MeanRelease)
    true = np.minimum(np.arange(2800) % 90, 60).mean()
    assert drawn.release.means(0)["mean"][0] == pytest.approx(true, rel=0.05)
    assert drawn.release.to_frame(1).columns[-6:-1].tolist() == ["status", "sum", "mean", "mean_low", "mean_high"]
    config = draft(app).to_config()
    assert (config.categories.sum_between, config.data.slot) == ((0, 60), "age")
