"""The question where points are counted: the CRS of their coordinates, and the public domain: dragged, typed, or around a town."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import streamlit as st
from pyproj import Transformer
from pyproj.exceptions import ProjError

from dpviz.app.cards.cards import WHERE, Cards
from dpviz.app.components.fields import problem_with, show_problem
from dpviz.app.pages.points.order import choose_order
from dpviz.app.pages.points.outline import IsPrivate, Rings, choose_outline, follow_crs, forget_box, kept_outline
from dpviz.app.pages.points.state import POINTS, study_area_answer
from dpviz.app.pages.points.study_area import ask_study_area, switch_study_area
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import carry_out, show_error, widget_for
from dpviz.app.state.parts import Around
from dpviz.app.state.values import SIDES
from dpviz.errors import DpvizError
from dpviz.space.domain import Domain, refuse_degrees
from dpviz.view.basemap import WGS84, Bounds
from dpviz.view.declared_canvas import DeclaredBox
from dpviz.view.escape import markdown
from dpviz.view.places import find_towns, read_towns

OWN_BOUNDS = "Type the bounds"
FRAMES = {
    OWN_BOUNDS: None,
    "Contiguous United States": (-125.0, 24.0, -66.0, 50.0),
    "Europe": (-25.0, 34.0, 45.0, 72.0),
    "World": (-180.0, -90.0, 180.0, 90.0),
}
CANDIDATES = ("EPSG:4326", "EPSG:3857", "EPSG:3035", "EPSG:27700", "EPSG:2154", "EPSG:28992", "EPSG:2056", "EPSG:5070")
_ZONES = 60
_USUAL_KM = 40.0
_KM_PER_DEGREE = 111.2
_MOST_DEGREES, _ZONE_DEGREES = 360.0, 12.0
_NEAR_DEGREES = 3.0  # between a place that was typed and a box that a candidate gives


@dataclass(frozen=True, kw_only=True)
class Where:
    """What was declared of the place of points.

    Attributes:
        crs: CRS of the coordinates, as it was typed; None if the file states it, or nothing was typed.
        domain: the declared domain; None while it is missing or wrong.
        needs_crs: whether the CRS of the coordinates is missing.
        boxes: where typed corners would lie with each CRS that fits, while no CRS is known.
        outline: closed lines, in degrees, of the polygons around which the domain was declared.
        study_area: name of the file of polygons outside of which nobody can be; None without one.
    """

    crs: str | None
    domain: Domain | None
    needs_crs: bool = False
    boxes: tuple[DeclaredBox, ...] = ()
    outline: Rings = field(default_factory=list)
    study_area: str | None = None


def choose_where(cards: Cards, *, file_crs: str | None, asks_for_crs: bool, is_private: IsPrivate = lambda _digest, _size: False) -> Where:
    """Ask for the CRS and the domain; what is missing is said by `Cards.ask`.

    Args:
        cards: where the question stands.
        file_crs: the CRS that the file states; None if it states none, or there is no file.
        asks_for_crs: whether the coordinates need a CRS that the file does not state.
        is_private: says whether a file is that of the private data; there are none as long as nothing else is said.
    """
    outline: Rings = []
    with cards.where:
        typed = _choose_crs() if asks_for_crs else None
        choose_place(POINTS, "domain", take_box)
        if cards.curates:
            outline = choose_outline(is_private, _declare)
        declared = _choose_domain(typed or file_crs)
        if cards.curates:  # by the polygons around which the domain was declared
            masked = switch_study_area(declared, kept_outline(), is_private)
        else:
            masked = ask_study_area(*study_area_answer(), declared, is_private)
        domain = masked.domain
        boxes = _offer_candidates(typed) if asks_for_crs and not typed else ()
    needs_crs = asks_for_crs and not typed and not (domain is not None and domain.crs is None)
    if needs_crs:
        cards.ask(WHERE, "Say which CRS the coordinates are in.")
    if declared is not None and domain is None:
        cards.ask(WHERE, masked.asks)
    elif domain is None and not (needs_crs and _bounds() is not None):
        cards.ask(WHERE, "Drag a box on the map, or type the bounds of the domain.")
    return Where(crs=typed, domain=domain, needs_crs=needs_crs, boxes=boxes, outline=outline, study_area=masked.file)


def take_box(box: Bounds) -> None:
    """Declare the domain by a box on the map, in degrees: in the CRS that is typed, else as longitude and latitude."""
    typed = POINTS.draft.domain.typed_crs or POINTS.part("data", "crs") or ""
    crs = WGS84 if not typed or typed.lower() == "none" else typed
    found = box_in(crs, box)
    if found is not None:
        forget_box()
        _declare(crs, found)


def box_in(crs: str, box: Bounds) -> Bounds | None:
    """Return a box in degrees as rounded bounds in a CRS; None if it has none there."""
    try:
        west, south, east, north = Transformer.from_crs(WGS84, crs, always_xy=True).transform_bounds(*box)
    except ProjError:
        return None
    digits = 4 if crs == WGS84 else 0
    return round(west, digits), round(south, digits), round(east, digits), round(north, digits)


def _declare(crs: str, bounds: Bounds, around: Around | None = None) -> None:
    """Declare the domain; without `around` it stays known which polygons it was declared around before."""
    sides, taken = dict(zip(SIDES, bounds, strict=True)), {} if around is None else {"around": around}
    POINTS.set("domain", frame="", crs=crs, **sides, **taken)


def _choose_crs() -> str | None:
    text = "The file does not say; it is never guessed. EPSG:4326 is longitude and latitude in degrees."
    shown = POINTS.widget("data", "crs", show=lambda crs: crs or "", take=lambda typed: typed.strip() or None)
    st.text_input("CRS of the coordinates", placeholder="EPSG:4326", help=text, **shown)
    typed = POINTS.part("data", "crs")
    return typed if show_problem("crs", problem_with(lambda: _refuse_unknown(typed or ""))) else None


def _refuse_unknown(crs: str) -> None:
    """Raise DomainError if a CRS that was typed is not known; nothing typed, and the word none, are no mistakes."""
    if crs and crs.lower() != "none":
        Domain(bounds=(0, 0, 1, 1), crs=crs)


def choose_place(page: FamilyState, holder: str, take: Callable[[Bounds], None], prefix: str = "") -> None:
    """Offer a box around a place that is found by its name.

    Args:
        page: state of the page.
        holder: of the box: "domain" or "grid".
        take: declares the box, west, south, east and north in degrees.
        prefix: of the keys of the widgets.
    """
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    placed = page.widget(holder, "place", f"{prefix}place")
    left.text_input("A place", placeholder="for example Lyon", help="A square around a town.", **placed)
    across = page.widget(holder, "km_across", f"{prefix}km across", show=lambda km: km or _USUAL_KM)
    right.number_input("km across", 1.0, 2000.0, format="%.0f", **across)
    text, km = page.part(holder, "place"), page.part(holder, "km_across") or _USUAL_KM
    found = find_towns(text)
    if text and not found:
        st.caption(f":orange[No town is called {markdown(text)}.]")
    with st.container(horizontal=True):
        for name, longitude, latitude in found:
            label = f"{markdown(name)} ({latitude:.1f}, {longitude:.1f})"
            take_it = partial(_take_place, (longitude, latitude), take, km)
            st.button(label, key=f"{prefix}place {longitude} {latitude}", on_click=carry_out(take_it))


def _take_place(at: tuple[float, float], take: Callable[[Bounds], None], km: float) -> None:
    half = km / 2 / _KM_PER_DEGREE
    across = half / max(float(np.cos(np.radians(at[1]))), 0.05)
    take((at[0] - across, at[1] - half, at[0] + across, at[1] + half))


def _choose_domain(crs: str | None) -> Domain | None:
    """Ask for the bounds of the domain, which are public; None while they are missing or wrong."""
    domain_help = "A public rectangle. It is never taken from private data, whose extent would be private, too."
    shown = widget_for("frame", POINTS.draft.domain.frame or OWN_BOUNDS, _take_frame)
    st.selectbox("Domain", list(FRAMES), help=domain_help, **shown)
    frame = FRAMES[POINTS.draft.domain.frame or OWN_BOUNDS]
    if frame is not None:
        return Domain(bounds=frame, crs=WGS84, order=choose_order())
    left, right = st.columns(2)
    for side, column in zip(("west", "east", "south", "north"), (left, right, left, right), strict=True):
        column.number_input(side.capitalize(), value=None, format="%.12g", **POINTS.widget("domain", side))
    crs_help = "Left empty: that of the file. Points are reprojected to it. The word none makes a plain plane without a map."
    shown = widget_for("domain crs", POINTS.draft.domain.crs, _take_domain_crs)
    st.text_input("CRS of the domain", placeholder=crs or "as the file", help=crs_help, **shown)
    typed_crs = POINTS.draft.domain.crs.strip()
    order, frame_crs = choose_order(), None if typed_crs.lower() == "none" else typed_crs or crs
    bounds = _bounds()
    if bounds is None or (frame_crs is None and typed_crs.lower() != "none"):
        return None
    try:
        domain = Domain(bounds=bounds, crs=frame_crs, order=order)
        refuse_degrees(domain)
    except DpvizError as error:
        show_error(str(error))
        return None
    return domain


def _take_frame(name: str) -> None:
    """Take a usual rectangle, or bounds of one's own, which begin with those of the rectangle before."""
    frame = FRAMES[name]
    if frame is None:
        POINTS.set("domain", frame="")
    else:
        POINTS.set("domain", frame=name, crs=WGS84, **dict(zip(SIDES, frame, strict=True)))


def _take_domain_crs(typed: str) -> None:
    POINTS.set("domain", crs=typed)
    follow_crs()


def _bounds() -> Bounds | None:
    """Return west, south, east and north as they were declared; None if one is missing."""
    box = POINTS.draft.domain
    sides = (box.west, box.south, box.east, box.north)
    return None if None in sides else sides  # type: ignore[return-value]


def _offer_candidates(typed: str | None) -> tuple[DeclaredBox, ...]:
    """Offer CRSs for the bounds that were typed, each with where its corners would lie; none is selected."""
    domain = POINTS.draft.domain
    bounds, domain_crs = _bounds(), domain.crs.strip()
    if typed:
        return ()
    if domain_crs or bounds is None:
        st.caption("Which CRS are the coordinates of the file in? It is never guessed. In each, the domain has these coordinates:")
        for name, numbers in list_candidates(_declared_degrees(bounds, domain_crs), domain_crs):
            label = f"{markdown(name)}: {numbers}"
            st.button(label, key=f"candidate {name}", on_click=carry_out(partial(_take_crs, name)))
        return ()
    near = find_towns(domain.place, most=1)
    boxes = find_boxes(bounds, near[0][1:] if near else None)
    if boxes:
        st.caption("Which CRS are these bounds in? With each of these, the box would lie here (they are drawn on the map):")
    for box in boxes:
        west, south, east, north = box.bounds
        label = f"{box.name}: near {markdown(nearest_town((west + east) / 2, (south + north) / 2))}"
        st.button(label, key=f"candidate {box.name}", on_click=carry_out(partial(_take_crs, box.name)))
    if not near and max(map(abs, bounds)) > _MOST_DEGREES:
        st.caption("Metres of a UTM zone? Type a place above: the zones around it are offered, too.")
    return boxes


def _declared_degrees(bounds: Bounds | None, domain_crs: str) -> Bounds | None:
    """Return west, south, east and north in degrees of the domain as it is declared so far; None while that is not known."""
    return None if bounds is None or domain_crs.lower() in ("", "none") else box_in_degrees(domain_crs, bounds)


def box_in_degrees(crs: str, bounds: Bounds) -> Bounds | None:
    """Return bounds in a CRS as a box in degrees; None if it has none there."""
    try:
        west, south, east, north = Transformer.from_crs(crs, WGS84, always_xy=True).transform_bounds(*bounds)
    except ProjError:
        return None
    return west, south, east, north


def list_candidates(degrees: Bounds | None, domain_crs: str) -> list[tuple[str, str]]:
    """List CRSs that coordinates may be in, each with the numbers that coordinates inside the domain have in it.

    Args:
        degrees: west, south, east and north of the domain in degrees; None while it is not known.
        domain_crs: the CRS of the domain as typed; "" if none is.

    >>> list_candidates((4.6, 45.6, 5.1, 45.9), "")[:2]
    [('EPSG:4326', '4.6 to 5.1, 45.6 to 45.9'), ('EPSG:32631', '624,114 to 663,775, 5,050,851 to 5,085,081')]
    """
    if degrees is None:
        own = [(domain_crs, "as the domain")] if domain_crs and domain_crs.lower() not in ("none", WGS84.lower()) else []
        return [(WGS84, "longitude and latitude in degrees"), *own]
    near = ((degrees[0] + degrees[2]) / 2, (degrees[1] + degrees[3]) / 2)
    small = degrees[2] - degrees[0] < _ZONE_DEGREES
    names = dict.fromkeys((WGS84, *([domain_crs] if domain_crs else []), *(_zones_of(near) if small else ()), *CANDIDATES))
    return [(name, numbers) for name in names if (numbers := _numbers_in(name, degrees, near))]


def _numbers_in(name: str, degrees: Bounds, near: tuple[float, float]) -> str:
    """Write which coordinates the domain has in a CRS; "" if the domain is not where that CRS is used."""
    try:
        transformer = Transformer.from_crs(WGS84, name, always_xy=True)
        area = transformer.target_crs.area_of_use if transformer.target_crs is not None else None
        if area is None or not (area.west <= near[0] <= area.east and area.south <= near[1] <= area.north):
            return ""
        west, south, east, north = transformer.transform_bounds(*degrees)
    except ProjError:
        return ""
    form = ",.4g" if max(map(abs, (west, south, east, north))) <= _MOST_DEGREES else ",.0f"
    return f"{west:{form}} to {east:{form}}, {south:{form}} to {north:{form}}" if np.isfinite([west, south, east, north]).all() else ""


def _zones_of(near: tuple[float, float]) -> tuple[str, str]:
    """Return the zones of UTM at a place, of WGS 84 and of ETRS89."""
    zone = int((near[0] + 180) / 6) % _ZONES + 1
    return f"EPSG:{326 if near[1] >= 0 else 327}{zone:02d}", f"EPSG:258{zone:02d}"


def _take_crs(name: str) -> None:
    POINTS.set("data", crs=name)


def find_boxes(bounds: Bounds, near: tuple[float, float] | None) -> tuple[DeclaredBox, ...]:
    """Find where a box would lie in degrees, for each CRS in whose area of use it lies. Numbers that can be degrees are no metres.

    Args:
        bounds: west, south, east, north as they were typed, in an unknown CRS.
        near: longitude and latitude of a place that the box should be near to; the zones of UTM are tried only then. None without one.

    >>> [box.name for box in find_boxes((4.7, 45.6, 5.0, 45.9), None)]
    ['EPSG:4326']
    >>> [box.name for box in find_boxes((635_000, 5_060_000, 655_000, 5_080_000), (4.84, 45.76))]
    ['EPSG:32631', 'EPSG:25831']
    """
    zones = () if near is None else _zones_of(near)
    return tuple(box for name in (*CANDIDATES, *zones) if (box := _box_in(name, bounds, near)) is not None)


def _box_in(name: str, bounds: Bounds, near: tuple[float, float] | None) -> DeclaredBox | None:
    """Return where a box would lie with a CRS; None if it would not lie where that CRS is used, or not near the place."""
    try:
        transformer = Transformer.from_crs(name, WGS84, always_xy=True)
        west, south, east, north = transformer.transform_bounds(*bounds)
    except (ProjError, ValueError):
        return None
    crs = transformer.source_crs
    area = None if crs is None or (_can_be_degrees(bounds) and not crs.is_geographic) else crs.area_of_use
    if area is None or not np.isfinite([west, south, east, north]).all():
        return None
    x, y = (west + east) / 2, (south + north) / 2
    is_used = area.west <= x <= area.east and area.south <= y <= area.north and west < east and south < north
    is_near = near is None or max(abs(x - near[0]), abs(y - near[1])) <= _NEAR_DEGREES
    return DeclaredBox(name=name, bounds=(west, south, east, north)) if is_used and is_near else None


def _can_be_degrees(bounds: Bounds) -> bool:
    west, south, east, north = map(abs, bounds)
    return max(west, east) <= _MOST_DEGREES / 2 and max(south, north) <= _MOST_DEGREES / 4


def nearest_town(longitude: float, latitude: float) -> str:
    """Return the name of the town nearest to a place in degrees."""
    towns = read_towns()
    across = (towns.longitude - longitude) * np.cos(np.radians(latitude))
    return str(towns.name[int(np.argmin(np.hypot(across, towns.latitude - latitude)))].as_py())
