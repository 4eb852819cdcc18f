"""The lessons of the Learn page, one file each with calculation, figure and texts. This room does not import Streamlit.

The page shows and numbers the lessons in the order of `LESSONS`, or of `SHORT_PATH`. Charts that several lessons draw are in `charts` and
`maps`, a real map to draw on in `real_map`, made-up people in `town`, `city` and `blocks`, errors of sums in `errors`, success of attacks
in `success`.
"""

from __future__ import annotations

from dpviz.lessons.averaging import Averaging
from dpviz.lessons.consistency import Consistency
from dpviz.lessons.day import Day
from dpviz.lessons.differencing import Differencing
from dpviz.lessons.false_positives import FalsePositives
from dpviz.lessons.finding_home import FindingHome
from dpviz.lessons.homogeneity import Homogeneity
from dpviz.lessons.interval import Interval
from dpviz.lessons.leak import Leak
from dpviz.lessons.lesson import Lesson
from dpviz.lessons.one_person import OnePerson
from dpviz.lessons.reconstruction import Reconstruction
from dpviz.lessons.record_or_person import RecordOrPerson
from dpviz.lessons.releases import Releases
from dpviz.lessons.shapes import ShapesOfRegions
from dpviz.lessons.split import Split
from dpviz.lessons.structure import Structure
from dpviz.lessons.sums import Sums
from dpviz.lessons.topdown import Stages
from dpviz.lessons.trust import Trust
from dpviz.lessons.zoom import Zoom

GROUPS: dict[str, tuple[type[Lesson], ...]] = {
    "The promise": (OnePerson, RecordOrPerson, Trust, Releases),
    "Noise and what it costs": (Sums, Zoom, Day, FalsePositives, Consistency, Interval, ShapesOfRegions),
    "Attacks": (Differencing, Reconstruction, Averaging, FindingHome, Leak),
    "For specialists": (Split, Structure, Homogeneity, Stages),
}
"""The lessons of the long path by the heading above them. A new lesson is put into a group."""

LESSONS: tuple[type[Lesson], ...] = tuple(lesson for group in GROUPS.values() for lesson in group)
"""The lessons of the long path, in order."""

SHORT_PATH = ("one_person", "sums", "zoom", "differencing", "interval")
"""Keys of the lessons for a class of 45 minutes, in order."""

__all__ = ["GROUPS", "LESSONS", "SHORT_PATH"]
