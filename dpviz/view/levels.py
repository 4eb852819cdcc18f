"""The level of a release that is drawn: the one that was asked for, or the finest that can be read."""

from __future__ import annotations

from functools import singledispatch

from dpviz.errors import DomainError
from dpviz.release.area_release import AreaRelease
from dpviz.release.base import Level, NoisyRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import NOISE, TOO_FINE, grades
from dpviz.space.regions import Regions

NO_SHAPES = "The regions have no geometry, so there is no place on the map for them."


MOST_SHAPES = 5_000  # partitions on a map of a page, or regions
COARSE_LEVEL = 2  # levels up to it may be drawn although they are mostly noise


def choose_level(release: PointRelease) -> int:
    """Choose the level of the map: the finest one with at most 5,000 partitions that is not mostly noise or is at most level 2."""
    drawable = [level for level in range(release.height + 1) if len(release.nodes(level)) <= MOST_SHAPES]
    found = grades(release)
    return max(level for level in drawable if found[level] not in (NOISE, TOO_FINE) or level <= COARSE_LEVEL)


@singledispatch
def find_level(release: NoisyRelease, level: Level | None) -> int:
    """Find the number of a level that can be drawn.

    Args:
        release: of points, trips or areas.
        level: number or name; None for the finest one that is not mostly noise.

    Raises:
        DomainError: no such level, or regions without geometry.
    """
    raise DomainError(f"There is no map of level {level} of {type(release).__name__}.")


@find_level.register
def _(release: PointRelease, level: Level | None) -> int:
    if isinstance(level, str):
        raise DomainError(f"The levels of points have numbers: 0 to {release.height}.")
    return choose_level(release) if level is None else int(level)


@find_level.register
def _(release: TripRelease, level: Level | None) -> int:
    return _find_level_of_regions(release, [release.tree.origins, release.tree.destinations], level)


@find_level.register
def _(release: AreaRelease, level: Level | None) -> int:
    return _find_level_of_regions(release, [release.regions], level)


def _find_level_of_regions(release: TripRelease | AreaRelease, hierarchies: list[Regions], level: Level | None) -> int:
    drawable = [
        number for number in range(1, hierarchies[0].depth + 1) if all(regions.centres(number) is not None for regions in hierarchies)
    ]
    if level is not None:
        number = hierarchies[0].level_number(level)
        if number not in drawable:
            raise DomainError(NO_SHAPES if number else "The whole is a single number; level 1 is the coarsest that can be drawn.")
        return number
    if not drawable:
        raise DomainError(NO_SHAPES)
    readable = {number for number, grade in enumerate(grades(release)) if grade != NOISE}
    fits = [number for number in drawable if max(regions.size(number) for regions in hierarchies) <= MOST_SHAPES] or drawable[:1]
    return max((number for number in fits if number in readable), default=fits[0])
