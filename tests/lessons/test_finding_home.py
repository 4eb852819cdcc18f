"""Jittered points: each one more leaves less of where the home can be."""

import pytest

from dpviz.lessons.finding_home import FindingHome


@pytest.mark.slow
@pytest.mark.parametrize("radius", [2.0, 5.0])
def test_one_point_more_never_leaves_more(radius):
    lessons = [FindingHome(points=points, radius=radius) for points in (1, 2, 5, 10, 20, 30, 50)]
    left = [float(lesson.show().figures[0].value.removesuffix(" km²")) for lesson in lessons]
    assert left == sorted(left, reverse=True)
    assert left[-1] < left[0] / 10
