"""The panes of a point release: true and released counts, the error between them, and which squares are false positives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Mask
from dpviz.errors import DomainError
from dpviz.evaluation.metrics import PRESENT, presence_errors
from dpviz.release.point_release import PointRelease
from dpviz.release.verdict import ROUGH, USABLE, grades
from dpviz.space.domain import Domain
from dpviz.view.basemap import Bounds, find_map_bounds, map_bounds
from dpviz.view.canvas import (
    MOST_CELLS,
    MOST_FEATURES,
    Cells,
    Pane,
    Scene,
    choose_shades,
    ground_of,
    make_legend,
    make_marks_legend,
    make_palette,
    names_of,
)
from dpviz.view.colors import Colors, Scale
from dpviz.view.masked_area import find_masked_area
from dpviz.view.partition_looks import OUTSIDE, OVERLAP, density_scale, large_first, open_areas
from dpviz.view.points_map import INTERPOLATED, choose_values, color_interpolated, color_pixels, draw_picture, fits_bitmap

RELEASED, TRUE, ERROR, FALSE_POSITIVES = "Released", "True", "Error", "False positives"
_SQUARE_WORDS = "true {true}, released {released}"
GREY = "Grey: nobody can be there, as declared."
FINEST_SQUARES = 8  # zoom level of the smallest squares that are drawn as rectangles; smaller ones are drawn as a picture
_OPACITY_OF_OVERLAPS = 0.7


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseView:
    """One level of a release, prepared for the panes that show it.

    Attributes:
        release: public.
        level: the level, 0 for the whole domain.
        nodes: (k,) the partitions of the level, in the order in which they are drawn, without those that the domain's mask covers.
        unit: what is counted, in the plural.
        dark: whether the page is dark.
        truth: (n,) true counts per node of the release's tree; None where they must not be shown. CURATOR ONLY.
        raw: whether counts are shown as first measured, before post-processing.
        about: how the release was made, in a few words.
    """

    release: PointRelease
    level: int
    nodes: Integers
    unit: str
    dark: bool
    truth: Integers | None
    raw: bool
    about: str

    @classmethod
    def of(
        cls, release: PointRelease, level: int, *, unit: str, dark: bool, truth: Integers | None = None, raw: bool = False, about: str = ""
    ) -> ReleaseView:
        """Prepare one level, 0 for the whole domain; of a projected domain the finest one that can be drawn, if this one is finer."""
        while not fits_bitmap(release) and len(release.nodes(level)) > MOST_CELLS:
            level -= 1
        nodes = large_first(release, release.open_nodes(level))
        return cls(release=release, level=level, nodes=nodes, unit=unit, dark=dark, truth=truth, raw=raw, about=about)

    @property
    def rectangles(self) -> NDArray[np.int32]:
        """(k, 4) west, south, east, north of the partitions as lattice lines."""
        return self.release.tree.rectangles(self.nodes).astype(np.int32)

    @property
    def fits(self) -> bool:
        """Whether the partitions are few enough to be drawn as rectangles."""
        return len(self.nodes) <= MOST_CELLS

    @property
    def shown_release(self) -> PointRelease:
        """The release with the counts that are shown; partitions that were not measured keep their count after post-processing."""
        if not self.raw:
            return self.release
        return replace(self.release, count=np.where(np.isnan(self.release.noisy), self.release.count, self.release.noisy))

    def cells(self) -> Cells:
        """Return the rectangles with the numbers that the words of the panes name."""
        release, nodes = self.shown_release, self.nodes
        numbers = {"released": np.rint(self.release.count[nodes])}
        if self.release.states_noise:
            numbers["low"], numbers["high"] = self.release.node_interval(nodes)
        if self.release.nonnegative:
            numbers["outside"] = self.release.lies_outside(nodes).astype(np.float64)
        if self.raw:
            numbers["measured"] = np.rint(release.count[nodes])
        if self.truth is not None:
            numbers["true"] = self.truth[nodes]
        near = {"low": "released", "high": "released"} if self.release.states_noise else {}
        return Cells(domain=release.domain, rectangles=self.rectangles, numbers=numbers, near=near)

    def pane(self, shown: str, *, cells: str, top: float | None = None) -> Pane:
        """Make a pane; see `_make_pane`, whose arguments these are. Where the domain has a mask, the note says so."""
        return _note_mask(self._make_pane(shown, cells, top), self.release.domain)

    def _make_pane(self, shown: str, cells: str, top: float | None) -> Pane:
        """Make a pane without a note on the mask.

        Args:
            shown: "Released", "True", "Error" or "Interpolated"; without the truth always released counts.
            cells: name of the rectangles in the scene.
            top: top of the colour scale; None for one of its own.
        """
        if shown == INTERPOLATED:
            return self._interpolated_pane(top)
        shown = RELEASED if self.truth is None else shown
        release, nodes = self.shown_release, self.nodes
        values, scale = choose_values(release, nodes, shown, self.unit, self.truth)
        scale = replace(scale, dark=self.dark, top=scale.top if top is None else top)
        pale, words = self._choose_pale(shown)
        legend = make_legend(scale, negatives=bool((values < 0).any()), pale=words if pale.any() else "")
        shades, palette = choose_shades(scale, values, pale), make_palette(scale)
        titles = {TRUE: f"True {self.unit}", ERROR: "Error: released minus true"}
        title = titles.get(shown, f"Measured {self.unit}, before post-processing" if self.raw else f"Released {self.unit}")
        pane = Pane(title=title, about="" if shown == TRUE else self.about, words=self._words(), legend=legend)
        if not self.fits:
            note = f"{len(nodes):,} partitions, drawn as one picture: numbers show at coarser levels."
            return replace(pane, note=note, picture=draw_picture(release.domain, color_pixels(release, nodes, palette[shades])))
        if release.tree.overlaps:
            palette[:, 3] = palette[:, 3] * _OPACITY_OF_OVERLAPS
        return replace(pane, note=self._note(), cells=cells, shades=shades, palette=palette)

    def _choose_pale(self, shown: str) -> tuple[Mask, str]:
        """Return which partitions are pale, since they are or may be empty, and what pale means where it says more than the number 0."""
        if shown == TRUE and self.truth is not None:
            return self.truth[self.nodes] == 0, ""
        if shown == RELEASED and self.release.receipt.private and not self.raw:
            low, high = self.release.node_interval(self.nodes)
            return (low <= 0) & (high >= 0), "may be 0"
        if shown == RELEASED and not self.release.states_noise:
            return self.release.count[self.nodes] == 0, "0, or not shown"
        return np.zeros(len(self.nodes), np.bool_), ""

    def _words(self) -> str:
        words = "" if self.truth is None else "true {true}, "
        words += "measured {measured}, released {released}" if self.raw else "released {released}"
        words += "\n95 %: {low} to {high}" if self.release.states_noise else ""
        return words + (f"{{outside:{OUTSIDE}}}" if self.release.nonnegative else "")

    def _note(self) -> str:
        notes = [OVERLAP] if self.release.tree.overlaps else []
        unmeasured = int(np.isnan(self.release.noisy[self.nodes]).sum()) if self.raw else 0
        if unmeasured:
            notes.append(f"{unmeasured:,} partitions were not measured themselves: they show their count after post-processing.")
        return " ".join(notes)

    def _interpolated_pane(self, top: float | None) -> Pane:
        colors, scale, negatives = color_interpolated(self.release, unit=self.unit, dark=self.dark, top=top)
        return Pane(
            title=f"Released {self.unit}, interpolated",
            about=self.about,
            words="",
            legend=make_legend(scale, negatives=negatives),
            note="Interpolated inside partitions, which keep their counts.",
            picture=draw_picture(self.release.domain, colors),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SquaresView:
    """The equal squares of a zoom level: true counts, and which are released as occupied though nothing is there. CURATOR ONLY.

    Squares that the domain's mask covers are not shown.

    Attributes:
        release: public.
        truth: (2**zoom, 2**zoom) true counts of the squares, [row, column], row 0 in the south. CURATOR ONLY.
        dark: whether the page is dark.
        about: how the release was made, in a few words.
    """

    release: PointRelease
    truth: Integers
    dark: bool
    about: str

    @classmethod
    def of(cls, release: PointRelease, true_counts: Callable[[int], Integers], zoom: int, *, dark: bool, about: str = "") -> SquaresView:
        """Prepare the squares of a zoom level; of a projected domain those of the finest level that can be drawn, if this one is finer.

        Args:
            release: public.
            true_counts: returns the true counts of the squares of a zoom level, as `PointCounts.blocks` does. CURATOR ONLY.
            zoom: the zoom level.
            dark: whether the page is dark.
            about: how the release was made, in a few words.
        """
        finest = zoom if fits_bitmap(release) else min(zoom, FINEST_SQUARES)
        return cls(release=release, truth=true_counts(finest), dark=dark, about=about)

    @property
    def zoom(self) -> int:
        """Number of the zoom level: it has 2**zoom squares in each direction."""
        return len(self.truth).bit_length() - 1

    @property
    def rectangles(self) -> NDArray[np.int32]:
        """(k, 4) west, south, east, north of the squares that are shown as lattice lines, row by row."""
        row, column = np.nonzero(self._is_open)
        corners = np.stack([column, row, column + 1, row + 1], axis=1)
        return (corners * (self.release.domain.side >> self.zoom)).astype(np.int32)

    @property
    def fits(self) -> bool:
        """Whether the squares are few enough to be drawn as rectangles."""
        return self.zoom <= FINEST_SQUARES

    def cells(self) -> Cells:
        """Return the squares with the numbers that the words of the pane name; a released count of `PRESENT` or more is at least 1."""
        numbers = {"true": self._true, "released": np.floor(self._released + (1 - PRESENT)).astype(np.int64)}
        return Cells(domain=self.release.domain, rectangles=self.rectangles, numbers=numbers, is_grid=bool(self._is_open.all()))

    @cached_property
    def _is_open(self) -> Mask:
        """(2**zoom, 2**zoom) whether a square is shown."""
        return self.release.domain.open_blocks(self.zoom)

    @cached_property
    def _true(self) -> Integers:
        """(k,) true counts of the squares that are shown."""
        return self.truth[self._is_open]

    @cached_property
    def _released(self) -> Floats:
        """(k,) released counts of the squares that are shown."""
        return self.release.blocks(self.zoom)[self._is_open]

    def truth_pane(self, *, cells: str, unit: str, top: float) -> Pane:
        """Make a pane of the true counts, which does not change with the release.

        Args:
            cells: name of the squares in the scene.
            unit: what is counted, in the plural.
            top: top of the colour scale.
        """
        area = open_areas(self.release.domain, self.rectangles)
        density = self._true / area
        scale = replace(density_scale(density, area, self.release.domain, unit), dark=self.dark, top=top)
        shades = choose_shades(scale, density, density == 0)
        legend = make_legend(scale, negatives=False)
        pane = Pane(title=f"True {unit}", about="", words=_SQUARE_WORDS, legend=legend)
        return self._fill(pane, shades, make_palette(scale), cells)

    def _fill(self, pane: Pane, shades: NDArray[np.uint8], palette: Colors, cells: str) -> Pane:
        """Return a pane with the squares in their colours, as rectangles or, of many, as one picture."""
        pane = _note_mask(pane, self.release.domain)
        if self.fits:
            return replace(pane, cells=cells, shades=shades, palette=palette)
        note = f"{len(shades):,} squares, drawn as one picture: numbers show at coarser levels."
        colors = np.zeros((*self.truth.shape, 4), np.uint8)
        colors[self._is_open] = palette[shades]
        return replace(pane, note=f"{note} {pane.note}".strip(), picture=draw_picture(self.release.domain, colors))

    def pane(self, *, cells: str) -> Pane:
        """Make the pane of false positives and negatives; `cells` is the name of the squares in the scene."""
        empty, present = self._true == 0, self._released >= PRESENT
        kinds = np.where(empty & present, 1, np.where(~empty & ~present, 2, 0)).astype(np.uint8)
        palette = Scale(kind="marks", top=1.0, title="", dark=self.dark).colors(np.arange(3))
        pane = Pane(
            title=f"False positives and negatives, squares of level {self.zoom}",
            about=self.about,
            words=_SQUARE_WORDS,
            legend=make_marks_legend(palette, presence_errors(self._released, self._true), int(empty.sum()), empty.size),
        )
        return self._fill(pane, kinds, palette, cells)


def _note_mask(pane: Pane, domain: Domain) -> Pane:
    """Return a pane whose note says what is grey, if the domain has a mask."""
    return pane if domain.mask is None else replace(pane, note=f"{pane.note} {GREY}".strip())


def has_squares(release: PointRelease, level: int, zoom: int) -> bool:
    """Return whether the partitions of a level are all the equal squares of a zoom level."""
    nodes = release.nodes(level)
    if len(nodes) != 4**zoom:
        return False
    west, south, east, north = release.tree.rectangles(nodes).T
    side = release.domain.side >> zoom
    return bool((east - west == side).all() and (north - south == side).all())


def cell_box(view: ReleaseView | SquaresView, cell: int) -> Bounds | None:
    """Return west, south, east, north of a rectangle of a view, in the domain's coordinates; None if there is no such rectangle."""
    if not 0 <= cell < len(view.rectangles):
        return None
    west, south, east, north = view.release.domain.coordinates(view.rectangles[[cell]])[0].tolist()
    return west, south, east, north


def density_top(counts: Integers, areas: Floats, release: PointRelease, unit: str) -> float:
    """Choose the top of the density scale from public counts of the shown level, so that it stays whatever is released: see `occupied_top`.

    Args:
        counts: (rows, columns) public counts of equal blocks of the domain, row 0 in the south.
        areas: (rows,) area of a block in each row.
        release: names the unit of area.
        unit: what is counted, in the plural.
    """
    density, area = (counts / areas[:, None]).ravel(), np.repeat(areas, counts.shape[1])
    return density_scale(density, area, release.domain, unit).top


def released_scene(view: ReleaseView, shown: str, *, height: int) -> Scene:
    """Return the map of a release that cannot be saved: its partitions on land with names.

    Args:
        view: the level that is shown.
        shown: what of it, as of `ReleaseView.pane`.
        height: in pixels.
    """
    domain, pane = view.release.domain, view.pane(shown, cells="released")
    return Scene(
        bounds=map_bounds(domain),
        cells={"released": view.cells()},
        panes=(pane,),
        description=f"{pane.title}, {len(view.rectangles):,} partitions.",
        dark=view.dark,
        height=height,
        may_save=False,
        ground=ground_of(domain),
        masked=find_masked_area(domain),
        places=names_of(domain),
    )


def find_readable_level(release: PointRelease) -> int:
    """Return the finest level that is usable, or else rough, of those that a map can show; 0 if none is."""
    found = grades(release)
    shown = [level for level in range(len(found)) if level == 0 or len(release.nodes(level)) <= MOST_FEATURES]
    by_grade = ([level for level in shown if found[level] == grade] for grade in (USABLE, ROUGH))
    return max(next(filter(None, by_grade), [0]))


def scene_of(release: PointRelease, level: int, *, dark: bool, height: int) -> tuple[Scene, str]:
    """Make the map of a level of a release, and the note under it, which is "".

    Raises:
        DomainError: no such level, or a domain without a place on a web map.
    """
    if find_map_bounds(release.domain) is None:
        raise DomainError("The domain has no place on a web map, because of its CRS. plot draws it on its own plane.")
    view = ReleaseView.of(release, level, unit=release.counted, dark=dark)
    return released_scene(view, RELEASED, height=height), ""
