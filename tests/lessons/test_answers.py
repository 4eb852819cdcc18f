"""The answer of a lesson is what its figures show: the right choice is computed at the default settings, and quoted numbers are those."""

import numpy as np
import pytest

from dpviz.lessons import (
    LESSONS,
    averaging,
    consistency,
    day,
    differencing,
    errors,
    false_positives,
    finding_home,
    homogeneity,
    interval,
    leak,
    one_person,
    reconstruction,
    record_or_person,
    releases,
    shapes,
    split,
    structure,
    sums,
    topdown,
    trust,
    zoom,
)
from dpviz.lessons.lesson import Lesson
from tests.often import often

BY_KEY = {lesson.key: lesson for lesson in LESSONS}


def values(lesson: Lesson) -> list[str]:
    return [figure.value for figure in lesson.show().figures]


def first(*truths: bool) -> int:
    """The index of the only true one."""
    (index,) = np.flatnonzero(truths)
    return int(index)


def belief_after_one_release():
    beliefs = [100 * float(one_person.posterior(0.5, epsilon)) for epsilon in (1.0, -1.0, 0.1, 5.0)]
    noise = one_person.Noise(kind=one_person.LAPLACE, epsilon=1.0)
    most = 100 * one_person.posterior(0.5, noise.log_odds(np.arange(-200, 200))).max()
    assert most == pytest.approx(beliefs[0])
    return first(most < 51, 72 < most < 74, 94 < most < 96, most > 99), [f"{each:.1f} %" for each in beliefs]


def belief_after_many_releases():
    days = releases.attack(0.5, 1).first_sure()
    home, work = releases.attack(0.5 / 200, 1).after(100)
    assert max(home, work) < 0.02, "one epsilon for all tables together keeps both open"
    first_month = releases.attack(0.5, 1).after(30)
    assert max(first_month) < 0.5
    return first(days is not None and days < 100, False, days is None), [f"day {days}", f"ε = {releases.composed_at(0.5, 100)[0]:g}"]


def flat_or_tree():
    cell, town, size = values(sums.Sums())
    flat, tree = sums.split_sizes(theory_of_sums(errors.ANYWHERE))
    aligned = sums.split_sizes(theory_of_sums(errors.ALIGNED))[1]
    assert max(flat) < min(tree)
    assert min(len(flat), len(tree)) >= 3, "both sides show"
    quoted = [*cell.split(", "), town.split(", ")[0], f"{size} on", f"{aligned[0]} cells on"]
    return first(not flat, bool(flat and tree), not tree), quoted


def theory_of_sums(placement):
    order = sums.SIDES[sums.Sums().town]
    return {name: errors.stated_errors(each, order, placement) for name, each in errors.flat_and_tree(order, 0.5, 1).items()}


def weighed_counts():
    own, added, after = consistency.street_errors(consistency.errors_by_level("uniform", 0.5, 1)[0])
    for way in ("uniform", "geometric"):
        theory = consistency.errors_by_level(way, 0.5, 1)[0].pivot(index="level", columns="series", values="error")
        assert (theory[consistency.AFTER] < theory[[consistency.BEFORE, consistency.ADDED]].min(axis=1)).all()
    area = consistency.errors_by_level("uniform", 0.5, 1)[0].set_index(["level", "series"])["error"]["areas"]
    quoted = [f"± {each:.3g}" for each in (own, added, after, area[consistency.BEFORE], area[consistency.AFTER])]
    return int(np.argmin([own, after, added])), quoted


def intervals_that_contain():
    found, block = (interval.intervals(area, 0.5, 4, 1) for area in (interval.CUTS, interval.BLOCK))
    quoted = [f"± {found.stddev:.0f}", f"−{abs(found.bias):.0f}", f"{block.containing} of 100"]
    finer = interval.intervals(interval.CUTS, 0.5, 5, 1)
    assert (abs(finer.bias) < abs(found.bias), finer.stddev > found.stddev) == (True, True)
    return first(found.containing == 0, 40 < found.containing < 60, found.containing > 90), quoted


def regions_known_well():
    noise, *known = values(shapes.ShapesOfRegions())
    few = values(shapes.ShapesOfRegions(people="5,000"))[1:]
    assert all(float(each.removesuffix(" %")) == pytest.approx(3, abs=0.5) for each in few)
    return int(np.argmax([float(each.removesuffix(" %")) for each in known])), [noise, *known]


def cell_from_lines():
    left, exact, private, given_away = values(leak.Leak())
    assert leak.known_people(2)[0] == 0
    return first(False, exact == "100 %", left != "1 of 4,096"), ["4,096 cells only 1", private, given_away.split(" of ")[0]]


def best_split():
    theory = {name: split.split_theory(split.with_leaf_share(shares), 0.5, True, errors.ANYWHERE) for name, shares in split.PRESETS.items()}
    drawn = {split.PUBLISHED[0].title, *split.SIMPLE}
    others = np.min([theory[name]["error"] for name in drawn - {"leaf"}], axis=0)
    wins = (theory["leaf"]["error"] < others).tolist()
    aligned = {name: split.split_theory(split.with_leaf_share(split.PRESETS[name]), 0.5, True, errors.ALIGNED) for name in drawn}
    loses = aligned["leaf"]["error"] > np.min([aligned[name]["error"] for name in drawn - {"leaf"}], axis=0)
    quoted = [f"loses from {aligned['leaf']['cells'][loses.argmax()]} cells on"]
    quoted += [f"± {theory[name]['error'].iloc[-1]:.1f}" for name in (split.PUBLISHED[0].title, "leaf")][:1]
    return first(wins == [True] * 5 + [False], wins == [True] + [False] * 5, not any(wins)), quoted


def gain_of_structure():
    least, share, quadtree = values(structure.Structure())[1:]
    gain = float(least.removeprefix("± ")) / float(quadtree.removeprefix("± "))
    two = values(structure.Structure(town=structure.TWO_CROWDS))
    return first(gain < 0.5, 0.9 < gain < 1, gain > 1.5), [least, share, quadtree, two[1], two[3]]


def good_lines():
    good = values(homogeneity.Homogeneity())[3]
    share = int(good.removesuffix(" %"))
    return first(share > 80, 40 < share < 60, share < 20), [good, values(homogeneity.Homogeneity(epsilon=0.001))[3]]


def false_counts():
    wrong, _, empty, _ = values(topdown.Stages())
    share = int(wrong) / int(empty.split()[0])
    quoted = [f"{wrong} of {empty.split()[0]}", f"leaves {values(topdown.Stages(optimiser=topdown.EUCLIDEAN))[0]} of them"]
    return first(share == 0, 1 / 10 < share < 1 / 8, share > 0.4), quoted


def relative_error():
    table = zoom.errors_by_zoom(0.1, 1).set_index("x")
    assert (table["noise"].diff().dropna() < 0).all(), "the error in people falls from level to level"
    assert (table["y"].diff().dropna() > 0).all()
    assert (table["y"].min() < 1, table["y"].max() > 500) == (True, True)
    assert table["measured"].loc[3:].to_numpy() == pytest.approx(table["y"].loc[3:], rel=0.2)
    people, percent, drowned = values(zoom.Zoom())[1:]
    coarse, fine, rich = table["y"][3], table["y"][6], zoom.errors_by_zoom(1.0, 1)["y"][5]
    quoted = [f"{coarse:.0f} %", percent, f"{table['people'][3] / table['people'][6]:.0f} times", drowned, f"{rich:.0f} %"]
    quoted += [f"{100 * zoom.drowned_share(6, 1.0):.0f} in 100"]
    asked = zoom.Zoom.question
    assert all(text in asked for text in (f"{zoom.side_km(3):.1f} km", f"± {table['noise'][3]:.0f}", f"{people} people"))
    return first(fine < coarse, 0.5 < fine / coarse < 2, fine > 100), quoted


def hours_that_stand_out():
    district, _, block = values(day.Day())
    rich = values(day.Day(epsilon=2.0))[2]
    by_hour = {level: day.read_day(level, day.HOUR, 0.2, 1) for level in day.PLACES}
    widths = {level: ((table["high"] - table["low"]) / 2).round() for level, table in by_hour.items()}
    assert all(width.nunique() == 1 for width in widths.values()), "whiskers are equally tall all day"
    assert 9 < widths["district"][0] / widths["block"][0] < 11
    assert widths["block"][0] > by_hour["block"]["truth"].max()
    asked = day.Day.question
    assert all(text in asked for text in (f"{by_hour['block']['truth'].max()} of them", f"{by_hour['district']['truth'].max():,}"))
    clear = int(block.split()[0])
    return first(clear <= 3, 9 <= clear <= 15, clear > 20), [block, district, f"± {widths['block'][0]:.0f}", rich]


def empty_squares_shown():
    none, two = values(false_positives.FalsePositives()), values(false_positives.FalsePositives(threshold=2.0))
    coarse = values(false_positives.FalsePositives(threshold=2.0, zoom=4))
    share = int(none[1].split()[0]) / int(none[1].split()[-1])
    quoted = [
        none[1],
        f"{two[0].split()[0]} people",
        two[1].split()[0],
        two[2].split()[0],
        two[3],
        f"{coarse[1].split()[0]} false",
        coarse[3],
    ]
    assert f"{none[1].split()[-1]} are empty" in false_positives.FalsePositives.question
    return first(share < 0.02, 0.03 < share < 0.07, 0.4 < share < 0.5), quoted


def home_of_many_records():
    record, person, allowed, group = values(record_or_person.RecordOrPerson())
    rates = [record_or_person.success(None, epsilon).rate for epsilon in (0.05, 1.0, 5.0)]
    assert float(person.removesuffix(" %")) < float(allowed.removesuffix(" %"))
    assert f"{len(record_or_person.others()[0]):,} residents" in record_or_person.RecordOrPerson.text
    late = f"in {100 * record_or_person.success(10, 5.0).rate:.0f} %"
    return first(record == "12 %", record == allowed, record == "100 %" and min(rates) == 1), [person, allowed, group, late]


def error_without_an_office():
    _, office, blurred, nobody = values(trust.Trust())
    errors = trust.errors_by_zoom(trust.office_counts(200_000, 0.5, 1), trust.true_counts(200_000))
    times = trust.error_without_trust(200_000, 0.5) / float(errors[trust.DISTRICT - 1])
    assert f"{times:.0f} times" in trust.Trust.in_class
    few = values(trust.Trust(people="2,000"))
    quoted = [office, blurred, nobody, f"has only {few[0]}", *few[1:3]]
    return first(times < 2, 5 < times < 20, times > 50), quoted


def hidden_counts_found():
    solved = {"rounds": differencing.ROUNDS[-1]}
    hidden, found = values(differencing.Differencing(**solved))[:2]
    more = values(differencing.Differencing(**solved, threshold=8))[1]
    all_tables = values(differencing.Differencing(**solved, threshold=8, tables=differencing.PUBLISHED[3]))[1]
    assert (hidden, values(differencing.Differencing())[1]) == ("7 of 36", "0 of 7")
    return first(found == "0 of 7", found in ("3 of 7", "4 of 7"), found == "7 of 7"), [f"only {more}", all_tables]


def rounded_counts_known():
    settings = {}, {"tables": 12}, {"tables": 12, "base": 5}, {"tables": 12, "rounding": "random"}
    few, sure, coarse, random = (int(values(reconstruction.Reconstruction(**each))[0].split()[0]) for each in settings)
    assert (few, random) == (0, 0)
    return first(sure > 18, 8 <= sure <= 12, sure == 0), [f"Of {sure},", f"Base 5 gives {coarse} away"]


def right_after_a_hundred_days():
    now, later = values(averaging.Averaging()), values(averaging.Averaging(releases=100))
    before, after = float(now[1].split()[0]), float(later[1].split()[0])
    assert 65 < before < 75
    quoted = [f"{later[1].split(' (')[0]} of the games", f"only {later[3]} are made", f"stays at {later[2].split(' (')[0]}"]
    return first(after > 98, 75 < after < 85, 65 < after < 75), quoted


def area_of_home():
    settings = {"points": 20}, {"points": 20, "radius": 5.0}, {"points": 50, "radius": 5.0}
    left, *wide = (values(finding_home.FindingHome(**each))[0].removesuffix(" km²") for each in settings)
    assert 14.5 < float(values(finding_home.FindingHome())[0].removesuffix(" km²")) < 15.5
    return first(14.5 < float(left) < 15.5, 4 < float(left) < 6, float(left) < 1), [left, *wide]


RIGHT = {
    "one_person": belief_after_one_release,
    "releases": belief_after_many_releases,
    "sums": flat_or_tree,
    "consistency": weighed_counts,
    "interval": intervals_that_contain,
    "shapes": regions_known_well,
    "leak": cell_from_lines,
    "split": best_split,
    "structure": gain_of_structure,
    "homogeneity": good_lines,
    "topdown": false_counts,
    "zoom": relative_error,
    "day": hours_that_stand_out,
    "false_positives": empty_squares_shown,
    "record_or_person": home_of_many_records,
    "trust": error_without_an_office,
    "differencing": hidden_counts_found,
    "reconstruction": rounded_counts_known,
    "averaging": right_after_a_hundred_days,
    "finding_home": area_of_home,
}


@pytest.mark.parametrize("key", often(list(RIGHT), 3))
def test_the_answer_is_what_the_figures_show(key):
    right, quoted = RIGHT[key]()
    lesson = BY_KEY[key]
    assert lesson.right == right
    assert [number for number in quoted if number not in lesson.answer] == []
