"""The panes of a release of areas: a level's regions in colours, as the canvas shows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpviz.amounts import format_decimal
from dpviz.release.area_release import AreaRelease
from dpviz.view.areas_drawing import TRUE, AreasDrawing, AreasMapSettings, Denominator, RegionsOnMap, draw_areas
from dpviz.view.canvas import Areas, Legend, Pane, Scene, on_land
from dpviz.view.colors import DECLARED_FILL
from dpviz.view.escape import deck, line

_ONE = "regions"  # name of the regions of a scene with a single map
_DOT = 4.0  # pixels: radius of declared regions without outlines


def areas_of(drawing: AreasDrawing) -> Areas:
    """Return the regions of a drawing for `Scene.areas`; panes that show the same release share them."""
    area = drawing.areas
    return Areas(shapes=area.shapes, texts=area.texts.lines())


def make_pane(drawing: AreasDrawing, *, areas: str, about: str, chosen: tuple[int, ...] = ()) -> Pane:
    """Make a pane of a drawing.

    Args:
        drawing: what the map shows.
        areas: name of the regions in the scene.
        about: how the release was made, in a few words.
        chosen: numbers of regions that are outlined.
    """
    return Pane(
        title=drawing.title,
        about="" if drawing.view.shown == TRUE else about,
        words="",
        legend=drawing.legend,
        note=drawing.note,
        areas=(areas,),
        fills=(drawing.areas.color,),
        dots=(drawing.areas.dots,),
        chosen=chosen,
    )


def released_scene(on_map: RegionsOnMap, drawing: AreasDrawing, chosen: tuple[int, ...], *, dark: bool, height: int) -> Scene:
    """Show one map of a release whose data are private: its picture cannot be saved.

    Args:
        on_map: where the regions lie.
        drawing: what the map shows.
        chosen: numbers of regions that are outlined.
        dark: whether the page is dark.
        height: in pixels.
    """
    scene = _scene(on_map, areas_of(drawing), make_pane(drawing, areas=_ONE, about="", chosen=chosen), dark=dark, height=height)
    return replace(scene, description=drawing.description)


def declared_scene(on_map: RegionsOnMap, level: int, error: float | None, *, unit: str, dark: bool, height: int) -> Scene | None:
    """Show the declared regions of a level before a release; the expected error is the same for each of them, and is said in words.

    Args:
        on_map: where the regions lie.
        level: 1 for the coarsest.
        error: expected error of a region, root mean square, from public values; None if it is not known.
        unit: what is counted, in the plural.
        dark: whether the page is dark.
        height: in pixels.

    Returns:
        None if the regions have neither outlines nor points.
    """
    regions, shapes = on_map.regions, on_map.shapes(level)
    if shapes is None:
        return None
    size, name = regions.size(level), line(regions.levels[level - 1])
    said = "" if error is None else f"Expected error: ± {format_decimal(error, 2)} {line(unit)} in each region of level {name}"
    pane = Pane(
        title=said or f"The declared regions of level {name}",
        about=f"{size:,} regions",
        words="",
        legend=Legend(title="From public values alone" if said else ""),
        areas=(_ONE,),
        fills=(np.tile(np.array(DECLARED_FILL[dark], np.uint8), (size, 1)),),
        dots=(np.full(size if shapes.are_dots else 0, _DOT),),
    )
    names = [deck(each) for each in regions.names_of(level)]
    return _scene(on_map, Areas(shapes=shapes, texts=names), pane, dark=dark, height=height)


def _scene(on_map: RegionsOnMap, areas: Areas, pane: Pane, *, dark: bool, height: int) -> Scene:
    scene = Scene(
        bounds=on_map.bounds,
        areas={_ONE: areas},
        panes=(pane,),
        description=pane.title,
        dark=dark,
        height=height,
        may_save=False,
    )
    return on_land(scene, "No region is here: nothing is counted.")


def scene_of(release: AreaRelease, level: int, *, dark: bool, height: int) -> tuple[Scene, str]:
    """Make the map of a level of a release, and the note under it, which is "".

    Raises:
        DomainError: no such level, or regions without geometry.
    """
    regions, on_map = release.regions, RegionsOnMap(release.regions)
    view = AreasMapSettings(level=level, also=Denominator.of(regions), unit=release.counted, dark=dark)
    return released_scene(on_map, draw_areas(release, on_map, view), (), dark=dark, height=height), ""
