"""The readers of files as Python offers them: they warn if a column that is not read may hold the number of records of a row.

The command line and the pages say the same in their own words, from the counts' `each_row`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from dpviz.data.areas import AreaCounts
from dpviz.data.counting import files
from dpviz.data.points import PointCounts
from dpviz.data.roles import warn_each_row
from dpviz.data.trips import TripCounts

P = ParamSpec("P")
T = TypeVar("T", PointCounts, AreaCounts, TripCounts)


def _warning(read: Callable[P, T]) -> Callable[P, T]:
    @wraps(read)
    def read_and_warn(*args: P.args, **kwargs: P.kwargs) -> T:
        data = read(*args, **kwargs)
        warn_each_row(data.each_row)
        return data

    return read_and_warn


read_points, read_areas, read_trips = _warning(files.read_points), _warning(files.read_areas), _warning(files.read_trips)
