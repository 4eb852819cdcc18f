import numpy as np
import pytest

from dpviz.lessons.town import EVEN, TIGHT, TOWNS, town, town_cells


@pytest.mark.parametrize("kind", TOWNS)
def test_all_people_live_on_the_lattice_and_are_counted_where_they_are_every_time(kind):
    column, row = town_cells(5, 700, kind)
    points = town(5, 700, kind)
    assert points.count.sum() == 700
    assert (np.bincount(row * 32 + column, minlength=1024).reshape(32, 32) == points.blocks(5)).all()
    assert (town_cells.__wrapped__(5, 700, kind)[0] == column).all()


def test_kinds_differ_in_how_crowded_they_are():
    assert town(5, 3000, TIGHT).blocks(5).max() > 5 * town(5, 3000, EVEN).blocks(5).max()
