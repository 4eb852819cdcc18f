"""The lessons of the Learn page, one file each: its calculation, its figure and its words. Streamlit stays out.

`LESSONS` is the order of the walk; the page numbers them by it. A chart that several lessons draw belongs in `charts` or `maps`, made-up
people in `town`, errors of sums in `errors`; all else of a lesson is in its own file.
"""

from __future__ import annotations

from dpviz.lessons.consistency import Consistency
from dpviz.lessons.homogeneity import Homogeneity
from dpviz.lessons.interval import Interval
from dpviz.lessons.leak import Leak
from dpviz.lessons.lesson import Lesson
from dpviz.lessons.one_person import OnePerson
from dpviz.lessons.releases import Releases
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
)

__all__ = ["LESSONS"]
