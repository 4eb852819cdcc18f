"""The data part of the Areas page: a sample, or a file of points, or of ids, that are counted in public regions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from dpviz.app import cached, opened_config
from dpviz.app.advice import advise_in_app
from dpviz.app.areas.regions import choose_areas_regions, part_of, refuse_private_polygons
from dpviz.app.areas.state import AREAS, AreasData, config
from dpviz.app.cards import DATA, Cards
from dpviz.app.files import ask_for_file, count_by_path, path_files
from dpviz.app.ledger import Source
from dpviz.app.page_state import CURATE, SOURCES
from dpviz.app.points.data import TYPES, choose_columns, is_among, lacking_column, pick
from dpviz.app.saved_config import A_FILE, COORDINATES, IDS, NONE
from dpviz.app.session import show_error, show_value, when_chosen
from dpviz.app.text_format import choose_text_format
from dpviz.app.trips.data import describe_regions
from dpviz.app.unit_controls import UnitQuestion, show_left_out, show_repeated, unit_controls
from dpviz.data.areas import PERSON, RECORD, AreaCounts
from dpviz.data.counting.engines import NUMPY
from dpviz.data.reading.inspect import describe_points
from dpviz.data.reading.points import PointsFile
from dpviz.data.reading.sources import FoundFiles, find_files
from dpviz.errors import DpvizError
from dpviz.publishing.config import DataPart
from dpviz.publishing.private_data import CountRequest, OpenedData, left_out, refuse_empty_data
from dpviz.release import nouns
from dpviz.samples.areas import AREA_SAMPLES
from dpviz.view.escape import markdown


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Counts of areas as far as they are declared.

    Attributes:
        data: the counted data; None while something is missing.
        regions: the public regions; None while they are missing.
        unit: options of the unit: person, contributions, distinct; None until it is said.
    """

    data: AreasData | None = None
    regions: cached.UploadedRegions | None = None
    unit: dict[str, Any] | None = None

    def frame(self) -> AreaCounts | None:
        """Return regions, unit and bound without a single record; None while the regions or the unit are missing."""
        if self.data is not None:
            return _without_records(self.data.areas.regions, self.data.areas.unit, self.data.areas.contributions)
        if self.regions is None or self.unit is None:
            return None
        return _without_records(self.regions.regions, PERSON if "person" in self.unit else RECORD, self.unit.get("contributions", 1))


def _without_records(regions: Any, unit: str, bound: int) -> AreaCounts:
    return AreaCounts(regions=regions, leaf=np.zeros(0, np.int32), count=np.zeros(0, np.int64), unit=unit, contributions=bound)


def areas_controls(cards: Cards) -> Declared:
    """Show the controls. What is missing is said by `Cards.ask`."""
    st.subheader("Data", anchor=DATA) if cards.curates else st.markdown("##### 1 Data")
    show_value("areas source", config().source)
    st.segmented_control(
        "Where from",
        SOURCES,
        key="areas source",
        required=True,
        format_func=str.capitalize,
        label_visibility="collapsed",
        on_change=when_chosen("areas source", lambda value: AREAS.change(source=value, level=None, asked=())),
    )
    return _choose_sample(cards) if config().source == "sample" else _choose_files(cards)


def _choose_sample(cards: Cards) -> Declared:
    """Show the choice of a sample, and return its data."""
    how = config()
    show_value("areas sample", how.sample)
    st.selectbox(
        "Sample",
        list(AREA_SAMPLES),
        key="areas sample",
        format_func=lambda key: AREA_SAMPLES[key].title,
        on_change=when_chosen("areas sample", lambda value: AREAS.change(sample=value, level=None, asked=())),
    )
    about, sample = AREA_SAMPLES[how.sample], cached.area_sample(how.sample)
    st.caption(about.description, help=f"{describe_regions(sample.areas.regions)} Source: {about.source} Licence: {about.licence}.")
    key = f"areas {how.sample}"
    if cards.curates:
        cards.whom.markdown("The sample says it: one record.")
        cards.where.caption(describe_regions(sample.areas.regions))
    data = AreasData(
        areas=sample.areas,
        on_map=sample.on_map,
        denominators=sample.denominators,
        digest=key,
        fingerprints=cached.fingerprints(key, (), sample.areas, f"sample {key}".encode()),
        title=about.title,
        unit=about.unit,
        source=Source(data_part=DataPart(sample=how.sample)),
    )
    return Declared(data=data, regions=cached.UploadedRegions(key=(key,), regions=sample.areas.regions))


@dataclass(frozen=True, kw_only=True)
class ChosenFiles:
    """Files of points or ids that the user has chosen, and how they are counted.

    Attributes:
        about: what the headers of the files say.
        digest: identifies the files in the keys of widgets.
        part: fields of a saved configuration that name the files: points, and for files by path the engine.
        opened: the table [data] of an opened configuration, if it is for these files.
        count: counts the files in regions with the given options; returns None while the count is not finished.
        content: returns a digest of the content, from the counted data.
        found: returns the files themselves.
        written: how text tables are written, where it is not the usual way.
    """

    about: PointsFile
    digest: str
    part: dict[str, Any]
    opened: DataPart | None
    count: Callable[[cached.UploadedRegions, cached.Options], OpenedData | None]
    content: Callable[[OpenedData], str]
    found: Callable[[], FoundFiles]
    written: cached.Options


def _choose_files(cards: Cards) -> Declared:
    """Show the choice of files and of how they are read. Return what is declared; the data are missing until all is chosen and counted."""
    regions = choose_areas_regions(cards)
    chosen = _choose_upload(cards) if config().source == "upload" else _choose_paths(cards)
    if regions is not None and cards.curates:
        cards.where.caption(describe_regions(regions.regions))
    if regions is None or chosen is None:
        from_file = st.session_state.get("areas regions kind", A_FILE) == A_FILE
        public = "a public file of regions, and " if regions is None and from_file else ""
        cards.ask(DATA, f"Choose {public}a file of points, or of ids of the finest regions.")
        if cards.curates:
            cards.whom.caption("Asked once the file of points is read.")
            if regions is None and from_file:
                cards.where.caption("Shown once the file of regions is read.")
        return Declared(regions=regions)
    refuse_private_polygons(regions, partial(is_among, chosen.found))
    return _ask_and_count(chosen, regions, cards)


def _choose_upload(cards: Cards) -> ChosenFiles | None:
    """Ask for an uploaded file of points; None until it is chosen."""
    kept = ask_for_file("Points file", TYPES, "areas", "One row per record: coordinates, point geometries, or ids of the finest regions.")
    if kept is None:
        return None
    name, body = kept
    digest = cached.digest_of(body)
    opened = opened_config.fill_in_upload(opened_config.AREAS, name, digest, f"areas {digest}")
    text_format = choose_text_format(cached.named_file(name, body), name, f"areas {digest}", cards)
    if text_format is None:
        return None
    written = tuple(text_format.declarations().items())

    def count(regions: cached.UploadedRegions, options: cached.Options) -> OpenedData:
        areas = cached.count_areas_file(digest, name, body, regions, options)
        refuse_empty_data(areas)
        return OpenedData(data=areas, fingerprints=cached.fingerprints(digest, (regions.key, options), areas, body), engine=NUMPY)

    return ChosenFiles(
        about=cached.inspect_points_file(digest, name, body, written),
        digest=digest,
        part={"points": name},
        opened=opened,
        count=count,
        content=lambda _: digest,
        found=lambda: find_files(cached.named_file(name, body), text_format),
        written=written,
    )


def _choose_paths(cards: Cards) -> ChosenFiles | None:
    """Ask for the path of files of points; None until files are found there."""
    files = path_files("areas ", opened_config.AREAS, cards)
    if files is None:
        return None

    def count(regions: cached.UploadedRegions, options: cached.Options) -> OpenedData | None:
        request = CountRequest(frame=regions.regions, options=dict(options), engine=files.engine, scheduler=files.scheduler)
        return count_by_path("areas ", files, request, (regions.key, options))

    return ChosenFiles(
        about=describe_points(files.found),
        digest=files.digest,
        part={"points": files.written, "engine": files.engine},
        opened=files.opened,
        count=count,
        content=files.content,
        found=lambda: files.found,
        written=tuple(files.found.text_format.declarations().items()),
    )


def _ask_and_count(chosen: ChosenFiles, regions: cached.UploadedRegions, cards: Cards) -> Declared:
    """Ask for columns and unit, and count the file once everything is given."""
    mode, digest = config().mode, chosen.digest
    options = {**dict(chosen.written), **_choose_columns(chosen.about, digest, cards)}
    used = tuple(sorted(str(options[role]) for role in ("x", "y", "geometry", "region", "count") if options.get(role)))
    columns = [name for name in chosen.about.columns if name not in used]
    with cards.whom:
        unit = unit_controls(
            UnitQuestion(noun="record", columns=columns, key=f"areas {mode} {digest}", private=mode == CURATE, place="region"), cards
        )
        if chosen.about.person is not None and "person" not in (unit or ()):
            st.caption(f":orange[There is a column *{markdown(chosen.about.person)}*: choose it above to protect persons, not records.]")
    drop_help = "Rows with an unknown region, or a missing or unreadable cell. Off: the file is refused if there is one."
    drop = st.toggle("Leave out bad rows", key="areas drop", persist_state="session", help=drop_help)
    declared = Declared(regions=regions, unit=unit)
    if mode != CURATE and not st.checkbox("These data are already public", key=f"public {digest}", persist_state="session"):
        st.info("Teach shows the truth beside the release. Confirm that the data are public, or switch to Curate.")
        return declared
    if unit is None or cards.missing or not _has_place(chosen.about, options):
        return declared
    options |= unit
    try:
        opened = chosen.count(regions, (*sorted(options.items()), ("bad_rows", "drop" if drop else "refuse")))
    except DpvizError as error:
        show_error(str(error))
        cards.ask(DATA, f"Correct the data, or how they are read: {advise_in_app(str(error))}")
        return declared
    if opened is None:
        cards.ask(DATA, "Count the records.")
        return declared
    data = _make_data(chosen, opened, regions, options)
    if mode == CURATE and "person" not in unit:
        with cards.whom:
            show_repeated(data, cached.find_id_columns(f"{digest} {chosen.written}", used, chosen.found()), "record")
    return Declared(data=data, regions=regions, unit=unit)


def _has_place(about: PointsFile, options: dict[str, Any]) -> bool:
    return bool(options.get("region")) or lacking_column(about, options) is None


def _choose_columns(about: PointsFile, digest: str, cards: Cards) -> dict[str, Any]:
    """Ask how a record's region is found, by coordinates or by an id, and which columns are read; options of `read_areas`."""
    kind = COORDINATES
    if not about.has_geometry:
        default = IDS if lacking_column(about, {"x": about.x, "y": about.y, "geometry": about.geometry}) else COORDINATES
        key = f"areas ends {digest}"
        kind = st.segmented_control("A record's region", [COORDINATES, IDS], default=default, key=key, persist_state="session") or default
    if kind == IDS:
        return _choose_ids(about, digest, cards)
    options = choose_columns(about, digest)
    if lacks := lacking_column(about, options):
        cards.ask(DATA, f"Choose the column of {lacks}, under Columns on the left.")
    if about.needs_crs:
        crs_help = "It is never guessed. EPSG:4326 is longitude and latitude in degrees."
        crs = st.text_input("CRS of the coordinates", placeholder="EPSG:4326", key="areas crs", persist_state="session", help=crs_help)
        if not crs.strip():
            cards.ask(DATA, "Type the CRS of the coordinates on the left: EPSG:4326 if they are degrees.")
        options["crs"] = crs.strip() or None
    return {role: value for role, value in options.items() if value not in (None, False)}


def _choose_ids(about: PointsFile, digest: str, cards: Cards) -> dict[str, Any]:
    """Ask for the column of ids of the finest regions, and that of counts."""
    names = [NONE, *about.columns]
    region = pick("Ids of the finest regions", names, None, f"areas column region {digest}", "Compared letter by letter.")
    count = pick("Records per row", names, None, f"areas column count {digest}", "Whole numbers; without it each row is one record.")
    if region is None:
        cards.ask(DATA, "Choose the column of ids of regions on the left.")
    return {role: value for role, value in (("region", region), ("count", count)) if value is not None}


def _make_data(chosen: ChosenFiles, opened: OpenedData, regions: cached.UploadedRegions, options: dict[str, Any]) -> AreasData:
    """Return the counted data; what was left out of them is for the curator only."""
    areas: AreaCounts = opened.data  # type: ignore[assignment]
    part = opened_config.with_kept({**chosen.part, **options}, chosen.opened, asks_for_crs=chosen.about.needs_crs)
    data = AreasData(
        areas=areas,
        on_map=cached.regions_on_map(regions.key, regions),
        denominators={},
        digest=chosen.content(opened),
        fingerprints=opened.fingerprints,
        title="Uploaded points in regions",
        unit=nouns.RECORDS,
        source=Source(data_part=part, regions=part_of(regions)),
    )
    show_left_out(data, (*opened.notes, left_out(areas)), private=config().mode == CURATE)
    return data
