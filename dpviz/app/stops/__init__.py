"""The stops of the Learn page, one file each, in the order of the walk."""

from __future__ import annotations

from dpviz.app.stops.one_person import ONE_PERSON
from dpviz.app.stops.parts import Stop
from dpviz.app.stops.split import SPLIT
from dpviz.app.stops.sums import SUMS

STOPS: tuple[Stop, ...] = (ONE_PERSON, SUMS, SPLIT)

__all__ = ["STOPS"]
