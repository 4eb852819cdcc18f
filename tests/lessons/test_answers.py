"""The answer of a lesson is what its figures show: the right choice is computed at the default settings, and quoted numbers are those."""

import numpy as np
import pytest

from dpviz.lessons import (
    LESSONS,
    consistency,
    errors,
    homogeneity,
    interval,
    leak,
    one_person,
    releases,
    shapes,
    split,
    structure,
    sums,
    topdown,
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
    return first(most < 51, 51 < most < 74, most > 99), [f"{each:.1f} %" for each in beliefs]


def belief_after_many_releases():
    days = releases.attack(0.5, 1).first_sure()
    home, work = releases.attack(0.5 / 200, 1).after(100)
    assert max(home, work) < 0.02, "one epsilon for all tables together keeps both open"
    first_month = releases.attack(0.5, 1).after(30)
    assert max(first_month) < 0.5
    return first(days is None, False, days is not None and days < 100), [f"day {days}", f"ε = {releases.composed_at(0.5, 100)[0]:g}"]


def flat_or_tree():
    cell, town, size = values(sums.Sums())
    flat, tree = sums.split_sizes(theory_of_sums(errors.ANYWHERE))
    aligned = sums.split_sizes(theory_of_sums(errors.ALIGNED))[1]
    assert max(flat) < min(tree)
    assert min(len(flat), len(tree)) >= 3, "both sides show"
    quoted = [*cell.split(", "), town.split(", ")[0], f"{size} on", f"{aligned[0]} cells on"]
    return first(not flat, not tree, bool(flat and tree)), quoted


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
    return int(np.argmin([own, added, after])), quoted


def intervals_that_contain():
    found, block = (interval.intervals(area, 0.5, 4, 1) for area in (interval.CUTS, interval.BLOCK))
    quoted = [f"± {found.stddev:.0f}", f"−{abs(found.bias):.0f}", f"{block.containing} of 100"]
    finer = interval.intervals(interval.CUTS, 0.5, 5, 1)
    assert (abs(finer.bias) < abs(found.bias), finer.stddev > found.stddev) == (True, True)
    return first(found.containing > 90, 40 < found.containing < 60, found.containing == 0), quoted


def regions_known_well():
    noise, *known = values(shapes.ShapesOfRegions())
    few = values(shapes.ShapesOfRegions(people="5,000"))[1:]
    assert all(float(each.removesuffix(" %")) == pytest.approx(3, abs=0.5) for each in few)
    return int(np.argmax([float(each.removesuffix(" %")) for each in known])), [noise, *known]


def cell_from_lines():
    left, exact, private, given_away = values(leak.Leak())
    assert leak.known_people(2)[0] == 0
    return first(False, left != "1 of 4,096", exact == "100 %"), ["4,096 cells only 1", private, given_away.split(" of ")[0]]


def best_split():
    theory = {name: split.split_theory(split.with_leaf_share(shares), 0.5, True, errors.ANYWHERE) for name, shares in split.PRESETS.items()}
    drawn = {split.PUBLISHED[0].title, *split.SIMPLE}
    others = np.min([theory[name]["error"] for name in drawn - {"leaf"}], axis=0)
    wins = (theory["leaf"]["error"] < others).tolist()
    aligned = {name: split.split_theory(split.with_leaf_share(split.PRESETS[name]), 0.5, True, errors.ALIGNED) for name in drawn}
    loses = aligned["leaf"]["error"] > np.min([aligned[name]["error"] for name in drawn - {"leaf"}], axis=0)
    quoted = [f"loses from {aligned['leaf']['cells'][loses.argmax()]} cells on"]
    quoted += [f"± {theory[name]['error'].iloc[-1]:.1f}" for name in (split.PUBLISHED[0].title, "leaf")][:1]
    return first(not any(wins), wins == [True] + [False] * 5, wins == [True] * 5 + [False]), quoted


def gain_of_structure():
    least, share, quadtree = values(structure.Structure())[1:]
    gain = float(least.removeprefix("± ")) / float(quadtree.removeprefix("± "))
    two = values(structure.Structure(town=structure.TWO_CROWDS))
    return first(gain < 0.5, 0.9 < gain < 1, gain > 1.5), [least, share, quadtree, two[1], two[3]]


def good_lines():
    good = values(homogeneity.Homogeneity())[3]
    share = int(good.removesuffix(" %"))
    return first(share < 20, 40 < share < 60, share > 80), [good, values(homogeneity.Homogeneity(epsilon=0.001))[3]]


def false_positives():
    wrong, _, empty, _ = values(topdown.Stages())
    share = int(wrong) / int(empty.split()[0])
    quoted = [f"{wrong} of {empty.split()[0]}", f"leaves {values(topdown.Stages(optimiser=topdown.EUCLIDEAN))[0]} of them"]
    return first(share == 0, 1 / 10 < share < 1 / 8, share > 0.4), quoted


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
    "topdown": false_positives,
}


@pytest.mark.parametrize("key", often(list(RIGHT), 3))
def test_the_answer_is_what_the_figures_show(key):
    right, quoted = RIGHT[key]()
    lesson = BY_KEY[key]
    assert lesson.right == right
    assert [number for number in quoted if number not in lesson.answer] == []
