"""The data part of the Areas page: a sample, or a file of points, or of ids, that are counted in public regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from dpviz.app.cards.cards import FILES, Cards
from dpviz.app.cards.chosen_files import (
    ChosenFiles,
    FileKind,
    choose_files,
    count_chosen,
    data_of_files,
    find_public_extent,
    refuse_as_public,
    take_columns,
)
from dpviz.app.cards.columns import NONE, choose_count, choose_point_columns, find_point_columns, lacking_place, lacks_count, pick
from dpviz.app.cards.extent import drop_extent, take_extent
from dpviz.app.cards.file_questions import are_public, ask_whom, leave_out_bad_rows, show_repeats
from dpviz.app.cards.regions_file import ask_for_regions, describe_regions
from dpviz.app.cards.source import choose_sample, choose_source, data_of_sample
from dpviz.app.cards.unit import UnitQuestion
from dpviz.app.cards.uploads import DropZone, Role, ask_for_file, kept_file, upload_types
from dpviz.app.pages.areas.counted_by import ROLE, CountedBy, choose_counted_by, declare_categories, file_of_values, slot_word
from dpviz.app.pages.areas.regions import ROLE as REGIONS_ROLE
from dpviz.app.pages.areas.regions import asks_for_box, choose_areas_regions, comes_from_file, part_of, region_files, role_of
from dpviz.app.pages.areas.state import AREAS, AreasData
from dpviz.app.pages.points.where import box_in, box_in_degrees
from dpviz.app.session import cached
from dpviz.app.session.ledger import Source
from dpviz.app.session.widgets import widget_for
from dpviz.app.state.values import COORDINATES, CURATE, IDS, SQUARES, UPLOAD
from dpviz.data.areas import AreaCounts
from dpviz.data.counts import PERSON, RECORD
from dpviz.data.reading.inspect import describe_points
from dpviz.data.reading.points import PointsFile
from dpviz.data.roles import find_regions, only
from dpviz.families import AREA_FAMILY
from dpviz.publishing.config import DataPart
from dpviz.samples.areas import AREA_SAMPLES
from dpviz.space.cross import Cross, categories_of, regions_of
from dpviz.space.regions import Regions
from dpviz.view.basemap import WGS84
from dpviz.view.escape import markdown


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Counts of areas as far as they are declared.

    Attributes:
        data: the counted data; None while something is missing.
        regions: the public regions; None while they are missing.
        by: what records of files are counted by beside the place; None for nothing, and while that is missing.
        unit: options of the unit: person, contributions, per_slot, distinct; None until it is said.
    """

    data: AreasData | None = None
    regions: cached.UploadedRegions | None = None
    by: CountedBy | None = None
    unit: dict[str, Any] | None = None

    @property
    def public(self) -> Regions | Cross | None:
        """The regions, or regions by categories; None while something of them is missing."""
        if self.data is not None:
            return self.data.counts.frame
        if self.regions is None or (self.by is None and AREAS.draft.by_category):
            return None
        return self.regions.regions if self.by is None else Cross(self.regions.regions, self.by.categories)

    def frame(self) -> AreaCounts | None:
        """Return regions, categories, unit and bounds without a single record; None while one of them is missing."""
        if self.data is not None:
            return self.data.counts.without_records()
        frame, unit = self.public, self.unit
        if frame is None or unit is None:
            return None
        return AreaCounts(
            regions=regions_of(frame),
            categories=categories_of(frame),
            leaf=np.zeros(0, np.int32),
            count=np.zeros(0, np.int64),
            unit=PERSON if "person" in unit else RECORD,
            contributions=unit.get("contributions", 1),
            per_slot=unit.get("per_slot"),
        )

    @property
    def promise(self) -> str:
        """What a release of counts by category protects, and what is public; "" of others, and while it is not known."""
        return "" if self.by is None or self.unit is None else self.by.promise(self.unit.get("contributions", 1), self.unit.get("per_slot"))


AreaFiles = ChosenFiles[PointsFile, Declared]
KIND = FileKind[PointsFile, Declared](
    page=AREAS,
    describe_upload=cached.inspect_points_file,
    describe=describe_points,
    frame_of=lambda declared: declared.public,
    key_of=lambda declared: (None if declared.regions is None else declared.regions.key, None if declared.by is None else declared.by.key),
    title="Uploaded points in regions",
    unit=AREA_FAMILY.counted,
)


def areas_controls(cards: Cards) -> Declared:
    """Show the controls. What is missing is said by `Cards.ask`."""
    if cards.curates:
        drop_extent(AREAS, "grid")
    source = choose_source(AREAS)
    return _choose_sample(cards) if source == "sample" else _choose_files(cards)


def _choose_sample(cards: Cards) -> Declared:
    """Show the choice of a sample, and return its data."""
    choose_sample(AREAS, AREA_SAMPLES)
    chosen = str(AREAS.draft.sample)
    about, sample = AREA_SAMPLES[chosen], cached.area_sample(chosen)
    st.caption(about.description, help=f"{describe_regions(sample.areas.regions)} Source: {about.source} Licence: {about.licence}.")
    key = f"areas {chosen}"
    on_map: dict[str, Any] = {"on_map": sample.on_map, "denominators": sample.denominators}
    data = data_of_sample(cards, about, sample.areas, Source(data_part=DataPart(sample=chosen)), key, make=AreasData, **on_map)
    if cards.curates:
        cards.where.caption(describe_regions(sample.areas.regions))
    return Declared(data=data, regions=cached.UploadedRegions(key=(key,), regions=sample.areas.regions))


def _choose_files(cards: Cards) -> Declared:
    """Show the choice of files and of how they are read. Return what is declared; the data are missing until all is chosen and counted."""
    if cards.curates:
        records = Role(slot="areas", words="Private: records", named=AREAS.draft.uploaded.path)
        DropZone(page=AREAS, private=records if AREAS.draft.source == UPLOAD else None, public=[*region_files(), file_of_values()]).show(
            cards
        )
    regions = choose_areas_regions(cards)
    choose_counted_by()
    about = "One row per record: coordinates, point geometries, or ids of the finest regions."
    chosen = choose_files(KIND, cards, lambda: _ask_for_upload(about))
    if chosen is not None and drop_extent(AREAS, "grid", unless=chosen.digest):
        st.rerun()
    if regions is not None and cards.curates:
        cards.where.caption(describe_regions(regions.regions))
    has_regions = regions is not None or not comes_from_file() or kept_file(REGIONS_ROLE) is not None
    if chosen is None or (regions is None and (comes_from_file() or not cards.curates)):
        file = "a file of points, or of ids of the finest regions"
        ask_for_regions(cards, file, "points", has_regions=has_regions, has_records=chosen is not None)
        if chosen is not None and not cards.curates and asks_for_box() and are_public(AREAS, chosen.digest):
            _take_extent(chosen, cards)
        return Declared(regions=regions)
    if regions is not None and AREAS.draft.mode == CURATE:
        for role in (role_of(regions), ROLE):
            refuse_as_public(chosen, role)
    return _ask_and_count(chosen, regions, cards)


def _take_extent(chosen: AreaFiles, cards: Cards) -> None:
    """Declare the box around public points for hexagons or squares; of points without a CRS ask for it."""
    take_columns(AREAS, chosen, _find_columns(chosen.about))
    options = _choose_columns(chosen.about, chosen.digest, cards)
    crs = chosen.about.crs or options.get("crs")
    if crs is None or "region" in options:
        return
    extent = find_public_extent(chosen, options)
    degrees = None if extent is None else box_in_degrees(crs, extent)
    box = None if degrees is None else box_in(WGS84, degrees)
    if take_extent(AREAS, "grid", chosen.digest, box, **({"crs": WGS84} if AREAS.draft.regions_from == SQUARES else {})):
        st.rerun()


def _ask_for_upload(text: str) -> tuple[str, bytes] | None:
    named = AREAS.draft.uploaded.path
    return ask_for_file(AREAS, "Points file", upload_types(), "areas", text, named=named, what="file of points", asks_if_public=False)


def _ask_and_count(chosen: AreaFiles, regions: cached.UploadedRegions | None, cards: Cards) -> Declared:
    """Ask for columns and unit, and count the file once everything is given, the regions included."""
    mode, key = AREAS.draft.mode, chosen.key
    take_columns(AREAS, chosen, _find_columns(chosen.about))
    options = {**dict(chosen.written), **_choose_columns(chosen.about, key, cards)}
    by = declare_categories(cards, chosen.about, _columns_in(options), key)
    if AREAS.draft.by_category and (slot := AREAS.part("data", "slot")) is not None:
        options["slot"] = slot
    used = _columns_in(options)
    columns = [name for name in chosen.about.columns if name not in used]
    question = UnitQuestion(noun="record", columns=columns, key=f"areas {mode} {key}", place="region", slot=slot_word())
    unit = ask_whom(AREAS, question, chosen.about.person, cards)
    bad_rows = leave_out_bad_rows(AREAS, "an unknown region, or a missing or unreadable")
    declared = Declared(regions=regions, by=by, unit=unit)
    if declared.promise:
        cards.whom.caption(markdown(declared.promise))
    no_count = unit is not None and lacks_count("record", chosen.about, {**options, **unit}, cards)
    if not are_public(AREAS, chosen.digest):
        return declared
    has_place = bool(options.get("region")) or not lacking_place(chosen.about, options)
    if regions is None or declared.public is None or unit is None or cards.missing or no_count or not has_place:
        return declared
    options |= unit
    opened = count_chosen(chosen, declared, {**options, "bad_rows": bad_rows}, cards, "records")
    if opened is None:
        return declared
    more = {"on_map": cached.regions_on_map(regions.key, regions), "denominators": cached.denominators_of(regions.key, regions)}
    data = data_of_files(
        KIND, chosen, opened, options, make=AreasData, more=more, regions=part_of(regions), categories=None if by is None else by.part
    )
    if "person" not in unit:
        show_repeats(AREAS, chosen, data, used, "record", cards)
    return replace(declared, data=data)


def _columns_in(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that say where a record lies, when, and how often it counts."""
    return tuple(sorted(str(options[role]) for role in ("x", "y", "geometry", "region", "slot", "count") if options.get(role)))


def _find_columns(about: PointsFile) -> dict[str, Any]:
    """Return what the registry finds, by key of [data]; ids of regions only where nothing else says where records lie."""
    knows_place = about.has_geometry or about.use.open.get("x and y") or about.geometry or (about.x and about.y)
    if knows_place:
        return find_point_columns(about)
    return {**_find_ids(about), "count": about.count}


def _choose_columns(about: PointsFile, key: str, cards: Cards) -> dict[str, Any]:
    """Ask how a record's region is found, by coordinates or by an id, and which columns are read; options of `read_areas`."""
    region = AREAS.part("data", "region")
    if not about.has_geometry:
        take = {COORDINATES: lambda: AREAS.set("data", region=None), IDS: lambda: AREAS.set("data", **_find_ids(about))}
        shown = widget_for(f"areas ends {key}", COORDINATES if region is None else IDS, lambda kind: take[kind]())
        st.segmented_control("A record's region", [COORDINATES, IDS], required=True, **shown)
        if region is not None:
            return _choose_ids(about, key, cards)
    options = choose_point_columns(AREAS, about, key)
    if lacks := lacking_place(about, options):
        cards.ask(FILES, lacks)
    if about.needs_crs:
        crs_help = "It is never guessed. EPSG:4326 is longitude and latitude in degrees."
        shown = AREAS.widget("data", "crs", "areas crs", show=lambda crs: crs or "", take=lambda typed: typed.strip() or None)
        st.text_input("CRS of the coordinates", placeholder="EPSG:4326", help=crs_help, **shown)
        if not AREAS.part("data", "crs"):
            cards.ask(FILES, "Type the CRS of the coordinates on the left: EPSG:4326 if they are degrees.")
        options["crs"] = AREAS.part("data", "crs")
    return {role: value for role, value in options.items() if value not in (None, False)}


def _find_ids(about: PointsFile) -> dict[str, Any]:
    return {"region": only(find_regions(about.columns)) or ""}


def _choose_ids(about: PointsFile, key: str, cards: Cards) -> dict[str, Any]:
    """Ask for the column of ids of the finest regions, and that of counts."""
    names, text = [NONE, *about.columns], "Zeros in front may be lost."
    keep = lambda name: AREAS.set("data", region=name or "")  # noqa: E731
    region = pick("Ids of the finest regions", names, AREAS.part("data", "region"), keep, f"areas column region {key}", text)
    if region is None:
        cards.ask(FILES, "Choose the column of ids of regions on the left.")
    options = {} if region is None else {"region": region}
    return options | choose_count(AREAS, "record", about, options, f"areas column count {key}")
