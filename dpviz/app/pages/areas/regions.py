"""The question which regions areas are counted in: those of a public file, or H3 hexagons or squares in a declared box."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import PurePath
from typing import Any

import streamlit as st

from dpviz.app.cards import opened_config
from dpviz.app.cards.cards import WHERE, Cards
from dpviz.app.cards.path_files import ask_for_file, upload_types
from dpviz.app.cards.regions_file import choose_regions, make_regions_part
from dpviz.app.pages.points.where import box_in, choose_place
from dpviz.app.session import cached
from dpviz.app.session.saved_config import GRID_SIDES
from dpviz.app.session.widgets import show_error
from dpviz.app.state.toml import file_name
from dpviz.app.state.values import A_FILE, HEXAGONS, KINDS_OF_REGIONS, SQUARES
from dpviz.errors import DpvizError, SettingError
from dpviz.publishing.config import NO_CRS, RegionsPart
from dpviz.view.basemap import WGS84, Bounds
from dpviz.view.declared_canvas import DeclaredBox
from dpviz.view.escape import markdown

ROLE = "areas regions"  # beginning of the slots of the file of regions
_WITHOUT_CRS = (".csv", ".tsv", ".parquet")  # endings of files of polygons that may not state their CRS
_USUAL = {HEXAGONS: ("areas h3", "5, 7, 9"), SQUARES: ("areas squares", "2, 4, 6")}
_MISSING = {
    HEXAGONS: "Declare the area of the hexagons: a place, its west, south, east and north, or a file of polygons.",
    SQUARES: "Declare the bounds of the squares and their CRS: a place, or west, south, east and north.",
}


def choose_kind() -> str:
    """Ask whether regions come from a file, or are hexagons or squares."""
    text = "A file of any nested polygons or ids; or H3 hexagons, or squares, in a declared box. All are public, never taken from the data."
    st.session_state.setdefault("areas regions kind", A_FILE)
    return str(
        st.segmented_control("Regions", KINDS_OF_REGIONS, key="areas regions kind", required=True, persist_state="session", help=text)
    )


def comes_from_file() -> bool:
    """Return whether the regions are those of a file."""
    return _kind() == A_FILE


def _kind() -> str:
    return str(st.session_state.get("areas regions kind", A_FILE))


def choose_areas_regions(cards: Cards) -> cached.UploadedRegions | None:
    """Ask for the regions; None while something is missing or wrong, which is said where the question stands."""
    kind = choose_kind()
    if kind == A_FILE:
        return choose_regions(ROLE, "Regions file", rates=True)
    with cards.where if cards.curates else nullcontext():
        try:
            regions = _choose_grid(kind)
        except DpvizError as error:
            show_error(str(error))
            cards.ask(WHERE, "Correct the box or the levels of the regions.")
            return None
    if regions is None:
        cards.ask(WHERE, _MISSING[kind])
    return regions


def role_of(regions: cached.UploadedRegions) -> str | None:
    """Return the beginning of the slots of the file from which regions were made; None if they were made without one."""
    if regions.part is None:
        return ROLE
    return None if regions.part.area_file is None else opened_config.OUTLINE


def part_of(regions: cached.UploadedRegions) -> RegionsPart:
    """Describe chosen regions as a part of a configuration."""
    return make_regions_part(ROLE, regions) if regions.part is None else regions.part


def _choose_grid(kind: str) -> cached.UploadedRegions | None:
    """Ask for a box, or polygons, and the levels of hexagons or squares; None while something is missing."""
    choose_place(take_box, "areas grid ")
    left, right = st.columns(2)
    for side, column in zip(("west", "east", "south", "north"), (left, right, left, right), strict=True):
        column.number_input(side.capitalize(), value=None, key=f"areas grid {side}", persist_state="session", format="%.12g")
    fields = _choose_polygons() if kind == HEXAGONS else _choose_crs()
    levels, bounds, polygons = _choose_levels(kind), _typed_bounds(), None
    if "area_file" in fields:
        polygons = st.session_state[f"{opened_config.OUTLINE} uploaded"]
    else:
        fields["area" if kind == HEXAGONS else "bounds"] = bounds
    if not levels or (bounds is None and polygons is None) or (kind == SQUARES and not fields["crs"]):
        return None
    part = RegionsPart(**{"h3" if kind == HEXAGONS else "squares": levels, **fields})
    digest = None if polygons is None else cached.digest_of(polygons[1])
    return cached.make_regions_without_file((repr(part), digest), part, polygons)


def _typed_bounds() -> Bounds | None:
    typed = [st.session_state.get(side) for side in GRID_SIDES]
    if any(value is None for value in typed):
        return None
    west, east, south, north = map(float, typed)  # type: ignore[arg-type]
    if west >= east or south >= north:
        raise SettingError("West must be smaller than east, and south smaller than north.")
    return west, south, east, north


def _choose_polygons() -> dict[str, Any]:
    """Ask for polygons that hexagons cover in place of the box; fields of the configuration's table."""
    text = "The outline of a city, for instance: GeoJSON, GeoPackage, GeoParquet, a zipped Shapefile, or a table with polygons in WKT."
    kept = ask_for_file("Or a file of polygons", upload_types(), opened_config.OUTLINE, text)
    if kept is None:
        return {}
    name, crs = kept[0], ""
    st.caption(f"The hexagons cover the polygons of {markdown(name)}, not the box.")
    if PurePath(name).suffix.lower() in _WITHOUT_CRS:
        crs = st.text_input("CRS of the polygons", placeholder="EPSG:4326", key="areas outline crs", persist_state="session").strip()
    opened = opened_config.opened_regions(ROLE)
    known = None if opened is None else opened.area_file
    return {"area_file": known if known is not None and file_name(known) == name else name, "crs": crs or None}


def _choose_crs() -> dict[str, Any]:
    text = f"EPSG:4326 is longitude and latitude in degrees. The word {NO_CRS} makes a plain plane without a map."
    crs = st.text_input("CRS of the bounds", placeholder="EPSG:4326", key="areas grid crs", persist_state="session", help=text)
    return {"crs": crs.strip() or None}


def _choose_levels(kind: str) -> tuple[int, ...]:
    """Ask for the resolutions of hexagons or the zooms of squares, coarsest first."""
    key, usual = _USUAL[kind]
    st.session_state.setdefault(key, usual)
    title, text = ("Resolutions", "0 to 15; a hexagon has about 7 of the next resolution. 7 is about 5 km², 9 about 0.1 km².")
    if kind == SQUARES:
        title, text = "Zooms", "1 to 10: zoom 4 cuts the box into 16 x 16 squares, zoom 6 into 64 x 64."
    typed = st.text_input(f"{title}, coarsest first", key=key, persist_state="session", help=text)
    parts = typed.replace(",", " ").split()
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise SettingError(f"{title} must be whole numbers with commas between them, such as {usual}.")
    return tuple(map(int, parts))


def asks_for_box() -> bool:
    """Return whether the regions are cells in a box that is declared: those of a file, or around its polygons, need none."""
    return not comes_from_file() and not (_kind() == HEXAGONS and st.session_state.get(f"{opened_config.OUTLINE} uploaded"))


def boxes_in_degrees() -> list[DeclaredBox]:
    """Return the box that is declared, to be shown while no regions can be made in it; none if it is missing, or not in degrees."""
    if _kind() == SQUARES and str(st.session_state.get("areas grid crs", "") or "").strip() != WGS84:
        return []
    try:
        bounds = _typed_bounds()
    except SettingError:
        return []
    return [] if bounds is None else [DeclaredBox(name="the box", bounds=bounds)]


def take_dragged_box(box: Bounds) -> None:
    """Declare a box that was dragged on the map, in degrees."""
    st.session_state["areas grid place"] = ""  # the box is no longer around a place that was typed
    take_box(box)


def take_box(box: Bounds) -> None:
    """Declare a box in degrees: as it is for hexagons, in the CRS that is typed for squares."""
    typed = str(st.session_state.get("areas grid crs", "") or "").strip()
    squares = _kind() == SQUARES
    crs = typed if squares and typed and typed.lower() != NO_CRS else WGS84
    found = box_in(crs, box)
    if found is None:
        return
    if squares:
        st.session_state["areas grid crs"] = crs
    west, south, east, north = found
    st.session_state.update(zip(GRID_SIDES, (west, east, south, north), strict=True))
