"""Each family names its parts, which are where it says; and they say which family they are of."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

import dpviz
from dpviz.families import FAMILIES, Part, family_of

PACKAGE = Path(dpviz.__file__).parent
PARTS = [item.name for item in fields(FAMILIES["points"]) if item.type == Part.__name__]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_part_is_where_it_is_said_to_be(name, part):
    assert getattr(FAMILIES[name], part) is not None
    assert not isinstance(getattr(FAMILIES[name], part), str)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_its_classes_say_which_family_they_are_of(family):
    assert all(family_of(each) is family for each in (family.counts, family.release, family.base, *family.kinds))
    assert family.layout.contents.kind == family.name
    assert {*family.usual} <= family.mechanisms.keys()
    assert family.page.state.kind is family.page_kind
    assert family.page_kind.family is family


def test_only_a_family_looks_up_other_rooms_by_name():
    found = {path.name for path in PACKAGE.rglob("*.py") if re.search(r"resolve_name\(", path.read_text("utf-8"))}
    assert found == {"families.py"}


def test_no_room_tells_families_apart_by_type():
    """But for arguments that are refused, what differs is a part of the family, or a method of its classes."""
    tests = re.compile(r"isinstance\([^()]*\b(PointRelease|TripRelease|AreaRelease|PointCounts|TripCounts|AreaCounts)\b")
    found = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if tests.search(path.read_text("utf-8"))}
    assert found == {"release/squares.py"}
