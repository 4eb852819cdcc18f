"""The lessons of the Learn page, one file each with calculation, figure and texts. This room does not import Streamlit.

The page shows and numbers the lessons in the order of `LESSONS`. Charts that several lessons draw are in `charts` and `maps`, made-up
people in `town`, errors of sums in `errors`.
"""

from __future__ import annotations

from dpviz.lessons.consistency import Consistency
from dpviz.lessons.homogeneity import Homogeneity
from dpviz.lessons.interval import Interval
from dpviz.lessons.leak import Leak
from dpviz.lessons.lesson import Lesson
from dpviz.lessons.one_person import OnePerson
from dpviz.lessons.releases import Releases
from dpviz.lessons.shapes import ShapesOfRegions
from dpviz.lessons.split import Split
from dpviz.lessons.structure import Structure
from dpviz.lessons.sums import Sums
from dpviz.lessons.topdown import Stages

LESSONS: tuple[type[Lesson], ...] = (
    OnePerson,
    Sums,
    Split,
    Consistency,
    Leak,
    Structure,
    Homogeneity,
    Stages,
    Interval,
    Releases,
    ShapesOfRegions,
)

__all__ = ["LESSONS"]
