"""Small maps of slots: which slots have one, and how a region is coloured and described on it."""

import numpy as np
import pytest

from dpviz.data.areas import AreaCounts
from dpviz.mechanisms import CrossTree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.categories import Categories
from dpviz.view.areas_drawing import NO_NUMBER, AreasMapSettings, RegionsOnMap
from dpviz.view.areas_slots import MOST_MAPS, choose_groups, list_groups, make_slot_pane
from dpviz.view.colors import PAPER
from tests.view.test_areas_canvas import squares

HOURS = Categories.hours()
MANY = Categories.bins(list(range(41)), coarser={"ten": [0, 10, 20, 30, 40]})


@pytest.mark.parametrize(
    ("categories", "names"),
    [
        (HOURS, ["night", "morning", "afternoon", "evening"]),
        (Categories.weekdays(), ["working day", "weekend"]),
        (Categories.bins([0, 1, 2, 3]), ["0 to 1", "1 to 2", "2 to 3"]),
    ],
)
def test_the_coarsest_categories_of_which_there_are_two_to_eight_have_a_map(categories, names):
    assert [name for name, _, _ in choose_groups(categories)] == names


def test_without_such_a_level_ranges_of_slots_have_one():
    for slots in (1, 9, 25, 365):
        groups = choose_groups(Categories.bins(list(range(slots + 1))))
        assert len(groups) == min(MOST_MAPS, slots)
        assert [slot for _, first, last in groups for slot in range(first, last + 1)] == list(range(slots))
        sizes = [last - first for _, first, last in groups]
        assert max(sizes) - min(sizes) <= 1


def test_categories_follow_one_another_in_ranges_of_slots():
    assert list_groups(MANY, 1)[1] == ("10 to 20", 10, 19)
    assert list_groups(MANY, 2)[-1] == ("39 to 40", 39, 39)


@pytest.fixture(scope="module")
def mapped():
    """Nine squares with the same day, but for four: more in the morning, less, so few that nothing can be said, and none."""
    day = np.full((9, 24), 400)
    day[1, 6:12], day[2, 6:12], day[3], day[4] = 900, 150, 3, 0
    leaf, slot = np.nonzero(day)
    regions = squares()
    areas = AreaCounts(regions=regions, categories=HOURS, leaf=leaf.astype(np.int32), slot=slot.astype(np.int32), count=day[leaf, slot])
    return areas, CrossTree(lean=False).release(areas, PureBudget("0.5"), Entropy.seeded(3)), RegionsOnMap(regions)


def test_regions_are_orange_where_slots_are_busier_purple_where_quieter_and_pale_where_noise_could_explain_it(mapped):
    areas, release, on_map = mapped
    for dark in (False, True):
        view = AreasMapSettings(level=2, unit="visits", dark=dark)
        truth = areas.in_slots(["morning"]).level_counts()[2]
        pane = make_slot_pane(release, on_map, view, ("morning", 6, 11), truth, (1,))
        color = pane.fills[0][:, :3].astype(int)
        assert color[1, 0] > color[1, 2] + 60, "busier is orange"
        assert color[2, 2] > color[2, 0] + 30, "quieter is purple"
        assert np.abs(color[3] - PAPER[dark]).max() < 60, "a few records say nothing"
        assert np.abs(color[[0, 5, 6, 7, 8]] - PAPER[dark]).max() < np.abs(color[[1, 2]] - PAPER[dark]).max()
        assert pane.chosen == (1,)
    assert pane.title == "morning, 27 % of all"
    assert pane.texts[1].splitlines()[0] == "cell c1"
    assert pane.texts[1].splitlines()[-1] == "true 5,400"
    assert "noise alone could explain it" in pane.texts[3]
    assert "noise alone" not in pane.texts[1] + pane.texts[2]


def test_a_region_that_has_nothing_in_all_has_no_colour(mapped):
    areas, _, on_map = mapped
    nothing = CrossTree().release(areas.without_records(), PureBudget(100), Entropy.seeded(1))
    pane = make_slot_pane(nothing, on_map, AreasMapSettings(level=2), ("night", 0, 5), np.zeros(9, int))
    empty = nothing.count[nothing.nodes(2)] <= 0
    assert (pane.fills[0][empty] == NO_NUMBER).all()
    assert empty.any()
