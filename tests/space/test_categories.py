"""Categories: levels and ids of the ready-made ones, what is refused, and the slot for all others."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpviz.errors import DomainError
from dpviz.space.categories import Categories
from dpviz.space.cross import Cross
from tests.trip_cases import regular

HOURS = Categories.hours("Europe/Berlin")
AGES = Categories.bins([0, 6, 18, 65.5], coarser={"group": [0, 18, 65.5]}, level="age")


def test_hours_lie_in_parts_of_the_day():
    assert HOURS.levels == ("part of day", "hour")
    assert HOURS.ids_of(2).tolist() == [f"{hour:02}" for hour in range(24)]
    assert HOURS.ancestors(1).tolist() == [hour // 6 for hour in range(24)]
    assert (HOURS.read_as, HOURS.zone, Categories.hours().read_as) == ("hour", "Europe/Berlin", "ids")


def test_weekdays_and_months_nest():
    assert Categories.weekdays("UTC").ancestors(1).tolist() == [0] * 5 + [1] * 2
    months = Categories.months("2025-11", "2026-02", "UTC")
    assert months.ids_of(2).tolist() == ["2025-11", "2025-12", "2026-01", "2026-02"]
    assert months.ancestors(1).tolist() == [0, 0, 1, 1]


def test_bins_nest_in_coarser_ones():
    assert (AGES.levels, AGES.edges) == (("group", "age"), (0, 6, 18, 65.5))
    assert [ids.tolist() for ids in AGES.ids] == [["0 to 18", "18 to 65.5"], ["0 to 6", "6 to 18", "18 to 65.5"]]
    assert AGES.ancestors(1).tolist() == [0, 0, 1]


@pytest.mark.parametrize("categories", [HOURS, AGES, Categories.weekdays()], ids=str)
def test_the_slot_for_all_others_is_the_last_one_and_a_branch_of_its_own(categories):
    more = categories.with_other("elsewhere")
    assert (more.other, more.slots) == (True, categories.slots + 1)
    for level in range(1, more.depth + 1):
        assert more.ids_of(level).tolist() == [*categories.ids_of(level), "elsewhere"]
        assert more.ancestors(level)[-1] == more.size(level) - 1
        np.testing.assert_array_equal(more.ancestors(level)[:-1], categories.ancestors(level))
    assert more != categories
    with pytest.raises(DomainError, match="already"):
        more.with_other("another")


def test_equal_ones_have_the_same_slots_and_way_of_reading():
    assert Categories.hours("Europe/Berlin") == HOURS
    assert hash(Categories.hours("Europe/Berlin")) == hash(HOURS)
    assert Categories.hours("UTC") != HOURS
    assert Categories.hours() != HOURS


REFUSED = {
    "an unknown zone": (lambda: Categories.hours("Europe/Atlantis"), "no such time zone"),
    "times without a zone": (lambda: replace(HOURS, zone=None), "Times need a time zone"),
    "a zone of bins": (lambda: replace(AGES, zone="UTC"), "nothing else does"),
    "edges that descend": (lambda: Categories.bins([0, 2, 1]), "larger than the one before"),
    "one edge": (lambda: Categories.bins([0]), "at least two"),
    "an edge that is none": (lambda: Categories.bins([0, "old"]), "must be numbers"),
    "an endless bin": (lambda: Categories.bins([0, float("inf")]), "finite"),
    "coarser edges of their own": (lambda: Categories.bins([0, 2, 4], coarser={"group": [0, 3, 4]}), "among those of the next"),
    "coarser edges that end early": (lambda: Categories.bins([0, 2, 4], coarser={"group": [0, 2]}), "the same first and last"),
    "too few edges": (lambda: replace(AGES, edges=(0.0, 1.0)), "one more than there are slots"),
    "a month that is none": (lambda: Categories.months("2026-13", "2027-01"), "from 01 to 12"),
    "months that end before they begin": (lambda: Categories.months("2026-02", "2026-01"), "not be before"),
    "another way of reading": (lambda: replace(HOURS, read_as="minute"), "read_as"),
    "no value": (lambda: Categories.values([]), "table of categories has no rows: there is nothing to count in"),
    "a blank value": (lambda: Categories.values(["car", " "]), "in a table of categories every row needs all its ids"),
    "a column that is not there": (lambda: Categories.from_table(pd.DataFrame({"a": ["x"]}), levels=["b"]), "table of categories has no"),
    "two of one id": (lambda: HOURS.with_other("night"), "duplicate id"),
    "two parents": (
        lambda: Categories.from_table(pd.DataFrame({"kind": ["a", "b", "a"], "mode": ["x", "x", "y"]}), levels=["kind", "mode"]),
        "two different parents",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused(case):
    make, text = REFUSED[case]
    with pytest.raises(DomainError, match=text):
        make()


def test_more_pairs_than_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr("dpviz.space.cross.MOST_CELLS", 100)
    regions = regular(3)
    assert Cross(regions, Categories.weekdays()) == Cross(regions, Categories.weekdays()) != Cross(regions, Categories.weekdays("UTC"))
    with pytest.raises(DomainError, match="more than 100 pairs"):
        Cross(regions, HOURS)
