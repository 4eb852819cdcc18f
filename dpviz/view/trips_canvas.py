"""The panes of a release of trips: arcs between regions, or coloured regions, as the canvas shows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpviz.release.trip_release import TripRelease
from dpviz.view.basemap import Bounds, fit_bounds
from dpviz.view.canvas import Areas, Pane, Scene, on_land
from dpviz.view.places import first_zooms
from dpviz.view.trips_drawing import (
    AREAS,
    ERROR,
    FALSE_POSITIVES,
    NOT_LISTED,
    TRUE,
    TripsDrawing,
    TripsMapSettings,
    draw_trips,
    hierarchies_of,
)

_WIDTH, _HEIGHT = 700, 420  # pixels of a pane, about
_MOST_NAMES = 60  # of regions that are named where they are dots
_MOST_PEOPLE = 10**7  # so many residents have a name at every zoom: names of regions give way to each other alone


def bounds_of(release: TripRelease) -> Bounds:
    """Choose west, south, east, north in degrees of the first view; they depend on the public regions alone."""
    return fit_bounds(hierarchies_of(release), _WIDTH, _HEIGHT)


def areas_of(drawing: TripsDrawing, name: str) -> dict[str, Areas]:
    """Return the regions of a drawing for `Scene.areas`; panes that show the same release share them.

    Args:
        drawing: what a map shows.
        name: of the release.
    """
    return {f"{name} {side}": Areas(shapes=area.shapes, texts=area.texts.lines()) for side, area in enumerate(drawing.areas)}


def make_pane(drawing: TripsDrawing, *, areas: str, about: str) -> Pane:
    """Make a pane of a drawing.

    Args:
        drawing: what the map shows.
        areas: name of the release, as for `areas_of`.
        about: how the release was made, in a few words.
    """
    view = drawing.view
    return Pane(
        title=_write_title(drawing),
        about="" if view.shown == TRUE else about,
        words="",
        legend=drawing.legend,
        areas=tuple(f"{areas} {side}" for side in range(len(drawing.areas))),
        fills=tuple(area.color for area in drawing.areas),
        dots=tuple(area.dots for area in drawing.areas),
        arcs=None if view.marks == AREAS else drawing.arcs,
        chosen=() if view.chosen is None else (view.chosen,),
    )


def released_scene(release: TripRelease, drawing: TripsDrawing, *, height: int) -> Scene:
    """Show one map of a release whose data are private: its picture cannot be saved.

    Args:
        release: public.
        drawing: what the map shows of it.
        height: in pixels.
    """
    scene = Scene(
        bounds=bounds_of(release),
        areas=areas_of(drawing, "released"),
        panes=(make_pane(drawing, areas="released", about=""),),
        description=drawing.description,
        dark=drawing.view.dark,
        height=height,
        may_save=False,
    )
    scene = on_land(scene)
    return replace(scene, places=names_of_dots(drawing) or scene.places)


def names_of_dots(drawing: TripsDrawing) -> list[tuple[str, float, float, float]]:
    """Return the names of the largest regions for `Scene.places`, where regions are dots; none where they have outlines.

    No two names overlap at any zoom level; a larger region has priority.
    """
    area = drawing.areas[0]
    if area.shapes.polygons:
        return []
    largest = np.argsort(-area.dots, kind="stable")[:_MOST_NAMES]
    names = [area.texts.title[region] for region in largest.tolist()]
    longitude, latitude = area.shapes.centres[largest].T
    letters = np.array([len(name) for name in names], np.int64)
    zoom = first_zooms(letters, longitude, latitude, np.full(len(names), _MOST_PEOPLE))
    shown = np.isfinite(zoom)
    columns = (np.round(column[shown], 3).tolist() for column in (longitude, latitude, zoom))
    return list(zip([name for name, kept in zip(names, shown.tolist(), strict=True) if kept], *columns, strict=True))


def _write_title(drawing: TripsDrawing) -> str:
    unit, shown = drawing.view.unit, drawing.view.shown
    titles = {
        TRUE: f"True {unit}",
        ERROR: "Error: released minus true",
        FALSE_POSITIVES: "False positives and negatives" if drawing.view.marks != AREAS else "False positives by region",
        NOT_LISTED: f"{unit.capitalize()} in pairs that are not listed",
    }
    return titles.get(shown, f"Released {unit}")


def scene_of(release: TripRelease, level: int, *, dark: bool, height: int) -> tuple[Scene, str]:
    """Make the map of a level of a release, and the note under it.

    Raises:
        DomainError: no such level, or regions without geometry.
    """
    drawing = draw_trips(release, TripsMapSettings(level=level, dark=dark))
    return released_scene(release, drawing, height=height), drawing.note
