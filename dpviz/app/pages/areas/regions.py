"""The question which regions areas are counted in: those of a public file, or H3 hexagons or squares in a declared box."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import WHERE, Cards
from dpviz.app.cards.regions_file import choose_regions, make_regions_part, read_whole_numbers
from dpviz.app.cards.uploads import Role, ask_for_file, kept_file, upload_types
from dpviz.app.components.fields import Field
from dpviz.app.pages.areas.state import AREAS
from dpviz.app.pages.points.where import box_in, choose_place
from dpviz.app.session import cached
from dpviz.app.session.widgets import show_error, widget_for
from dpviz.app.state.draft import NO_GRID
from dpviz.app.state.toml import file_name
from dpviz.app.state.values import A_FILE, HEXAGONS, KINDS_OF_REGIONS, SIDES, SQUARES
from dpviz.errors import DpvizError, SettingError
from dpviz.publishing.config import NO_CRS, RegionsPart
from dpviz.view.basemap import WGS84, Bounds
from dpviz.view.declared_canvas import DeclaredBox
from dpviz.view.escape import markdown

ROLE = "areas regions"  # beginning of the slots of the file of regions
_WITHOUT_CRS = (".csv", ".tsv", ".parquet")  # endings of files of polygons that may not state their CRS
_USUAL = {HEXAGONS: (5, 7, 9), SQUARES: (2, 4, 6)}
_OUTLINE = "areas outline"  # role of the polygons that hexagons cover


def _choose_kind() -> str:
    """Ask whether regions come from a file, or are hexagons or squares."""
    text = "A file of any nested polygons or ids; or H3 hexagons, or squares, in a declared box. All are public, never taken from the data."
    shown = widget_for("areas regions kind", AREAS.draft.regions_from, _take_kind)
    st.segmented_control("Regions", KINDS_OF_REGIONS, required=True, help=text, **shown)
    return AREAS.draft.regions_from


def _take_kind(kind: str) -> None:
    regions = AREAS.draft.regions
    with_levels = replace(regions, h3=regions.h3 or _USUAL[HEXAGONS], squares=regions.squares or _USUAL[SQUARES])
    AREAS.change(draft={"regions_from": kind, "regions": with_levels})


def comes_from_file() -> bool:
    """Return whether the regions are those of a file."""
    return AREAS.draft.regions_from == A_FILE


def choose_areas_regions(cards: Cards) -> cached.UploadedRegions | None:
    """Ask for the regions; None while something is missing or wrong, which is said where the question stands."""
    kind = _choose_kind()
    if kind == A_FILE:
        return choose_regions(AREAS, cards, ROLE, "Regions file", rates=True)
    with cards.where if cards.curates else nullcontext():
        try:
            regions = _choose_grid(kind)
        except DpvizError as error:
            show_error(str(error))
            cards.ask(WHERE, "Correct the box or the levels of the regions.")
            return None
    if regions is None:
        cards.ask(WHERE, NO_GRID[kind])
    return regions


def region_files() -> list[Role]:
    """Return what public files may be, by where the regions come from; a file that was chosen for other regions stays listed."""
    draft = AREAS.draft
    regions = Role(slot=ROLE, words="Public: regions", digest=draft.regions.digest, named=draft.regions.file)
    outline = Role(slot=_OUTLINE, words="Public: what hexagons cover", named=draft.outline, when_chosen=_take_outline)
    used = {A_FILE: [regions], HEXAGONS: [outline]}.get(draft.regions_from, [])
    others = [role for role in (regions, outline) if role not in used and role.kept is not None]
    return [*used, *(replace(role, words=f"{role.words}, not used", named=None) for role in others)]


def role_of(regions: cached.UploadedRegions) -> str | None:
    """Return the beginning of the slots of the file from which regions were made; None if they were made without one."""
    if regions.part is None:
        return ROLE
    return None if regions.part.area_file is None else _OUTLINE


def part_of(regions: cached.UploadedRegions) -> RegionsPart:
    """Describe chosen regions as a part of a configuration."""
    return make_regions_part(AREAS.draft.regions) if regions.part is None else regions.part


def _choose_grid(kind: str) -> cached.UploadedRegions | None:
    """Ask for a box, or polygons, and the levels of hexagons or squares; None while something is missing."""
    choose_place(AREAS, "grid", take_box, "areas grid ")
    left, right = st.columns(2)
    for side, column in zip(("west", "east", "south", "north"), (left, right, left, right), strict=True):
        column.number_input(side.capitalize(), value=None, format="%.12g", **AREAS.widget("grid", side, f"areas grid {side}"))
    fields = _choose_polygons() if kind == HEXAGONS else _choose_crs()
    levels, bounds, polygons = _choose_levels(kind), AREAS.draft.grid.bounds(), None
    if "area_file" in fields:
        polygons = kept_file(_OUTLINE)
    else:
        fields["area" if kind == HEXAGONS else "bounds"] = bounds
    if not levels or (bounds is None and polygons is None) or (kind == SQUARES and not fields["crs"]):
        return None
    part = RegionsPart(**{"h3" if kind == HEXAGONS else "squares": levels, **fields})
    digest = None if polygons is None else cached.digest_of(polygons[1])
    return cached.make_regions_without_file((repr(part), digest), part, polygons)


def make_coarser_cells(cells: cached.UploadedRegions) -> Iterator[tuple[cached.UploadedRegions, Callable[[], object]]]:
    """Make hexagons or squares whose finest level is coarser, the finest first, each with what declares them."""
    part = cells.part
    if part is None:
        return
    name = "h3" if part.h3 else "squares"
    levels = part.h3 or part.squares
    polygons = None if part.area_file is None else kept_file(_OUTLINE)
    for finest in range(levels[-1] - 1, 0, -1):
        kept = (*(level for level in levels if level < finest), finest)
        size: dict[str, Any] = {name: kept}
        coarser = replace(part, **size)
        made = cached.make_regions_without_file((repr(coarser), cells.key[1]), coarser, polygons)
        yield made, partial(AREAS.set, "regions", **size)


def _choose_polygons() -> dict[str, Any]:
    """Ask for polygons that hexagons cover in place of the box; fields of the configuration's table."""
    text = "The outline of a city, for instance: GeoJSON, GeoPackage, GeoParquet, a zipped Shapefile, or a table with polygons in WKT."
    named = AREAS.draft.outline
    kept = ask_for_file(
        AREAS, "Or a file of polygons", upload_types(), _OUTLINE, text, named=named, what="file of polygons", when_chosen=_take_outline
    )
    if kept is None:
        return {}
    name, crs = kept[0], ""
    st.caption(f"The hexagons cover the polygons of {markdown(name)}, not the box.")
    if PurePath(name).suffix.lower() in _WITHOUT_CRS:
        st.text_input("CRS of the polygons", placeholder="EPSG:4326", **AREAS.widget("grid", "crs", "areas outline crs"))
        crs = AREAS.draft.grid.crs.strip()
    return {"area_file": named if named is not None and file_name(named) == name else name, "crs": crs or None}


def _take_outline(name: str | None) -> None:
    """Keep the name of the polygons; an opened configuration may know their path."""
    named = AREAS.draft.outline
    AREAS.set("draft", outline=named if named is not None and name == file_name(named) else name)


def _choose_crs() -> dict[str, Any]:
    text = f"EPSG:4326 is longitude and latitude in degrees. The word {NO_CRS} makes a plain plane without a map."
    st.text_input("CRS of the bounds", placeholder="EPSG:4326", help=text, **AREAS.widget("grid", "crs", "areas grid crs"))
    return {"crs": AREAS.draft.grid.crs.strip() or None}


def _choose_levels(kind: str) -> tuple[int, ...]:
    """Ask for the resolutions of hexagons or the zooms of squares, coarsest first."""
    name = "h3" if kind == HEXAGONS else "squares"
    title, text = ("Resolutions", "0 to 15; a hexagon has about 7 of the next resolution. 7 is about 5 km², 9 about 0.1 km².")
    if kind == SQUARES:
        title, text = "Zooms", "1 to 10: zoom 4 cuts the box into 16 x 16 squares, zoom 6 into 64 x 64."
    wrong = f"{title} must be whole numbers with commas between them, such as {', '.join(map(str, _USUAL[kind]))}."
    levels: tuple[int, ...] = AREAS.part("regions", name)
    field = Field(
        key=f"areas {name}",
        label=f"{title}, coarsest first",
        value=", ".join(map(str, levels)),
        problem=lambda typed: wrong if read_whole_numbers(typed) is None else None,
        use=lambda typed: AREAS.set("regions", **{name: read_whole_numbers(typed)}),
    )
    return levels if field.show(st.text_input, help=text) else ()


def asks_for_box() -> bool:
    """Return whether the regions are cells in a box that is declared: those of a file, or around its polygons, need none."""
    covers_polygons = AREAS.draft.regions_from == HEXAGONS and kept_file(_OUTLINE)
    return not comes_from_file() and not covers_polygons


def boxes_in_degrees() -> list[DeclaredBox]:
    """Return the box that is declared, to be shown while no regions can be made in it; none if it is missing, or not in degrees."""
    grid = AREAS.draft.grid
    if AREAS.draft.regions_from == SQUARES and grid.crs.strip() != WGS84:
        return []
    try:
        bounds = grid.bounds()
    except SettingError:
        return []
    return [] if bounds is None else [DeclaredBox(name="the box", bounds=bounds)]


def take_dragged_box(box: Bounds) -> None:
    """Declare a box that was dragged on the map, in degrees; it is no longer around a place that was typed."""
    AREAS.set("grid", place="")
    take_box(box)


def take_box(box: Bounds) -> None:
    """Declare a box in degrees: as it is for hexagons, in the CRS that is typed for squares."""
    typed, squares = AREAS.draft.grid.crs.strip(), AREAS.draft.regions_from == SQUARES
    crs = typed if squares and typed and typed.lower() != NO_CRS else WGS84
    found = box_in(crs, box)
    if found is not None:
        AREAS.set("grid", **dict(zip(SIDES, found, strict=True)), **({"crs": crs} if squares else {}))
