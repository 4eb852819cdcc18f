"""The map of Curate before a release: the declared box on land with names, its squares, and the error to expect in place of counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpviz.amounts import format_decimal
from dpviz.arrays import Integers
from dpviz.space.domain import Domain
from dpviz.view.basemap import Bounds, map_bounds
from dpviz.view.canvas import (
    Cells,
    Legend,
    Pane,
    Scene,
    choose_shades,
    ground_in,
    ground_of,
    make_legend,
    make_palette,
    names_in,
    names_of,
    ring_around,
)
from dpviz.view.colors import Scale
from dpviz.view.masked_area import find_masked_area

WORLD = (-170.0, -56.0, 180.0, 74.0)
FINEST_SHOWN = 7  # level of the smallest squares that are drawn
_TOP = 100.0  # percent; a larger error is drawn like this one
_PLAIN = 4.0  # percent, whose colour squares have where their counts are not guessed
_MARGIN = 0.25  # of the extent of what is shown, on each side


@dataclass(frozen=True, kw_only=True)
class DeclaredBox:
    """A box that a CRS would give to three corners that a person typed.

    Attributes:
        name: of the CRS.
        bounds: west, south, east, north in degrees.
    """

    name: str
    bounds: Bounds


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpectedSquares:
    """What is expected of the squares of a level, from public values.

    Attributes:
        level: there are 2**level x 2**level squares.
        error: expected error of a square's count, root mean square.
        guess: (2**level, 2**level) counts of a public guess, [row, column], row 0 in the south; None without one.
    """

    level: int
    error: float
    guess: Integers | None


def declared_scene(
    domain: Domain | None,
    expected: ExpectedSquares | None,
    boxes: list[DeclaredBox],
    *,
    unit: str,
    dark: bool,
    height: int,
    outline: list[list[list[float]]] | None = None,
) -> Scene:
    """Show the declared domain with its squares.

    Args:
        domain: the declared domain; None while there is none, the world is shown then.
        expected: the errors to expect; None if they are not known, squares are then not drawn.
        boxes: where the corners would lie, by CRS, while the CRS is open; at most a few.
        unit: what is counted, in the plural.
        dark: whether the page is dark.
        height: in pixels.
        outline: closed lines, in degrees, of the area whose box was declared; None if there are none.
    """
    bounds = _bounds_of(domain, boxes)
    cells, pane = _describe(domain, expected, unit, dark)
    ground, places = (ground_of(domain), names_of(domain)) if domain is not None else (ground_in(bounds), names_in(bounds))
    for box in boxes:
        west, _, east, north = box.bounds
        ground["borders"] = [*ground["borders"], ring_around(box.bounds)]
        places = [(box.name, (west + east) / 2, north, 0.0), *places]
    return Scene(
        bounds=bounds,
        cells=cells,
        panes=(pane,),
        description=pane.title,
        dark=dark,
        height=height,
        edge=domain is not None,
        nothing="Outside the domain, where nothing is counted." if domain is not None else "Drag a box to declare the domain.",
        asks=True,
        asks_now=domain is None,
        what_box="Drag a box on the map: it becomes the domain. Shift and drag does the same",
        outline=outline or [],
        masked=[] if domain is None else find_masked_area(domain),
        ground=ground,
        places=places,
    )


def _bounds_of(domain: Domain | None, boxes: list[DeclaredBox]) -> Bounds:
    """Return what is in view at first: the domain with a margin, or the boxes, or the world."""
    if domain is not None:
        return map_bounds(domain)
    if not boxes:
        return WORLD
    corners = np.array([box.bounds for box in boxes])
    (west, south), (east, north) = corners[:, :2].min(axis=0).tolist(), corners[:, 2:].max(axis=0).tolist()
    across, up = max(east - west, 1e-3) * _MARGIN, max(north - south, 1e-3) * _MARGIN
    return west - across, max(south - up, -85.0), east + across, min(north + up, 85.0)


def _describe(domain: Domain | None, expected: ExpectedSquares | None, unit: str, dark: bool) -> tuple[dict[str, Cells], Pane]:
    """Return the squares of the shown level and the pane that colours them by their expected error."""
    if domain is None or expected is None:
        title = "Drag a box over the area that is counted" if domain is None else "The declared domain"
        frame = Domain(bounds=(0, 0, 1, 1), crs=None, order=1) if domain is None else domain
        cells = Cells(domain=frame, rectangles=np.zeros((0, 4), np.int32), numbers={})
        return {"squares": cells}, Pane(title=title, about="", words="", legend=Legend(title=""), cells="squares")
    level, noise = min(expected.level, FINEST_SHOWN), f"± {format_decimal(expected.error, 2)} {unit}"
    about = "" if level == expected.level else f"drawn as squares of level {level}"
    percent, numbers, words = np.full(4**level, _PLAIN), {}, f"expected {noise}"
    scale = Scale(kind="error", top=_TOP, title="± in % of the guessed count", dark=dark)
    legend = Legend(title=f"± of a square of level {expected.level}, from public values")
    if expected.guess is not None and level == expected.level:
        guess = expected.guess.ravel()
        percent, numbers, words = 100 * expected.error / np.maximum(guess, 1), {"guess": guess}, f"expected {noise}, of about {{guess}}"
        legend = make_legend(scale, negatives=False)
    row, column = np.divmod(np.arange(4**level, dtype=np.int32), 2**level)
    lines = (np.stack([column, row, column + 1, row + 1], axis=1) * (domain.side >> level)).astype(np.int32)
    pane = Pane(title=f"Expected error: {noise} in a square of level {expected.level}", about=about, words=words, legend=legend)
    cells = Cells(domain=domain, rectangles=lines, numbers=numbers, is_grid=True)
    return {"squares": cells}, replace(pane, cells="squares", shades=choose_shades(scale, percent), palette=make_palette(scale))
