"""The stops of the Learn page, one file each, in the order of the walk."""

from __future__ import annotations

from dpviz.app.stops.consistency import CONSISTENCY
from dpviz.app.stops.homogeneity import HOMOGENEITY
from dpviz.app.stops.interval import INTERVAL
from dpviz.app.stops.leak import LEAK
from dpviz.app.stops.one_person import ONE_PERSON
from dpviz.app.stops.parts import Stop
from dpviz.app.stops.releases import RELEASES
from dpviz.app.stops.split import SPLIT
from dpviz.app.stops.structure import STRUCTURE
from dpviz.app.stops.sums import SUMS
from dpviz.app.stops.topdown import TOPDOWN

STOPS: tuple[Stop, ...] = (
    ONE_PERSON,
    SUMS,
    SPLIT,
    CONSISTENCY,
    LEAK,
    STRUCTURE,
    HOMOGENEITY,
    TOPDOWN,
    INTERVAL,
    RELEASES,
)

__all__ = ["STOPS"]
