"""The lessons of the Learn page, one file each with calculation, figure and texts. This room does not import Streamlit.

The page shows and numbers the lessons in the order of `LESSONS`, or of `SHORT_PATH`. Charts that several lessons draw are in `charts` and
`maps`, made-up people in `town`, errors of sums in `errors`.
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

GROUPS: dict[str, tuple[type[Lesson], ...]] = {
    "The promise": (OnePerson, Releases),
    "Noise and what it costs": (Sums, Consistency, Interval, ShapesOfRegions),
    "Attacks": (Leak,),
    "For specialists": (Split, Structure, Homogeneity, Stages),
}
"""The lessons of the long path by the heading above them. A new lesson is put into a group."""

LESSONS: tuple[type[Lesson], ...] = tuple(lesson for group in GROUPS.values() for lesson in group)
"""The lessons of the long path, in order."""

SHORT_PATH = ("one_person", "sums", "zoom", "differencing", "interval")
"""Keys of the lessons for a class of 45 minutes, in order."""

__all__ = ["GROUPS", "LESSONS", "SHORT_PATH"]
