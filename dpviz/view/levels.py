"""The map of a release at one level: the one that is chosen, or the finest that can be read."""

from __future__ import annotations

from dpviz.errors import DomainError
from dpviz.families import FAMILIES
from dpviz.release.base import Level, NoisyRelease
from dpviz.release.verdict import NOISE, TOO_FINE, grades
from dpviz.view.canvas import Scene

MOST_SHAPES = 5_000  # partitions on a map of a page, or regions


def find_level(release: NoisyRelease, level: Level | None) -> int:
    """Find the number of a level that can be drawn.

    Args:
        release: of any family.
        level: number or name; None for the finest one with at most 5,000 shapes that is not mostly noise, or else a coarse one.

    Raises:
        DomainError: no such level, or none that has a place on a map, such as regions without geometry.
    """
    drawable = release.drawable_levels()
    if not drawable:
        raise DomainError(release.no_map)
    if level is not None:
        number = release.level_number(level)
        if number not in drawable:
            raise DomainError(f"There is no map of level {number}, only of {', '.join(map(str, drawable))}.")
        return number
    fits = [number for number, shapes in drawable.items() if shapes <= MOST_SHAPES] or [min(drawable)]
    found = grades(release)
    return max((number for number in fits if number <= release.coarse_level or found[number] not in (NOISE, TOO_FINE)), default=fits[0])


def make_map(release: NoisyRelease, level: Level | None, *, dark: bool, height: int) -> tuple[Scene, str]:
    """Make the map of a level as its family draws it, and the note under it.

    Args:
        release: of any family.
        level: as for `find_level`.
        dark: whether the page is dark.
        height: in pixels.

    Raises:
        DomainError: as `find_level`, or the family has no maps.
    """
    draw = FAMILIES[release.family].scene
    if draw is None:
        raise DomainError(release.no_map)
    scene, note = draw(release, find_level(release, level), dark=dark, height=height)
    return scene, note
