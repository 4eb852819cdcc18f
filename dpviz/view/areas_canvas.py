"""The panes of a release of areas: a level's regions in colours, as the canvas shows them."""

from __future__ import annotations

from dpviz.view.areas_drawing import TRUE, AreasDrawing
from dpviz.view.canvas import Areas, Pane
from dpviz.view.trips_layers import choose_radius


def areas_of(drawing: AreasDrawing) -> Areas:
    """Return the regions of a drawing for `Scene.areas`; panes that show the same release share them."""
    area = drawing.areas
    return Areas(shapes=area.shapes, radius=choose_radius(area), texts=area.texts.lines())


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
        chosen=chosen,
    )
