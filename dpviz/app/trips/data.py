"""The data part of the Trips page: a sample, or a file of regions and a file of trips between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from dpviz.app import cached, opened_config
from dpviz.app.advice import advise_in_app
from dpviz.app.cards import DATA, Cards
from dpviz.app.files import ask_for_file, count_by_path, path_files
from dpviz.app.ledger import Source
from dpviz.app.page_state import CURATE, SOURCES
from dpviz.app.points.data import TYPES, keep_known, pick
from dpviz.app.saved_config import COORDINATES, IDS, NONE
from dpviz.app.session import show_error, show_value, when_chosen
from dpviz.app.text_format import choose_text_format
from dpviz.app.trips.state import TRIPS, TripsData
from dpviz.app.unit_controls import UnitQuestion, show_left_out, show_repeated, unit_controls
from dpviz.data.counting.engines import NUMPY
from dpviz.data.flows import PERSON, TRIP, Flows
from dpviz.data.reading.flows import FlowsFile
from dpviz.data.reading.inspect import coordinate_columns, describe_flows
from dpviz.data.reading.sources import FoundFiles, find_files
from dpviz.errors import DpvizError
from dpviz.publishing.config import DataPart, RegionsPart
from dpviz.publishing.private_data import CountRequest, OpenedData, left_out, refuse_empty_data
from dpviz.release import nouns
from dpviz.samples.flows import FLOW_SAMPLES
from dpviz.space.regions import Regions
from dpviz.view.escape import markdown

TABLES = ("csv", "tsv", "parquet")
BothRegions = tuple[cached.UploadedRegions, cached.UploadedRegions]
"""The regions where trips begin, and those where they end."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Trips as far as they are declared.

    Attributes:
        data: the counted data; None while something is missing.
        regions: public regions where trips begin, and those where they end; None while they are missing.
        unit: options of the unit: person, contributions, distinct, exactly; None until it is said.
    """

    data: TripsData | None = None
    regions: BothRegions | None = None
    unit: dict[str, Any] | None = None

    def frame(self) -> Flows | None:
        """Return regions, unit and bound without a single trip; None while the regions or the unit are missing, or do not fit together."""
        if self.data is not None:
            flows = self.data.flows
            return _without_trips(
                flows.regions, flows.ends, bound=flows.contributions, unit=flows.unit, exactly=flows.exactly, enforced=flows.enforced
            )
        if self.regions is None or self.unit is None:
            return None
        (regions, ends), bound, enforced = self.regions, self.unit.get("contributions", 1), "person" in self.unit
        unit, exactly = PERSON if enforced or bound > 1 else TRIP, bool(self.unit.get("exactly", False))
        if regions.regions.depth != ends.regions.depth:
            return None
        return _without_trips(regions.regions, ends.regions, bound=bound, unit=unit, exactly=exactly, enforced=enforced)


def _without_trips(regions: Regions, ends: Regions, *, bound: int, unit: str, exactly: bool, enforced: bool) -> Flows:
    indexes = np.zeros(0, np.int32)
    return Flows(
        regions,
        indexes,
        indexes,
        np.zeros(0, np.int64),
        destinations=ends,
        contributions=bound,
        unit=unit,
        exactly=exactly,
        enforced=enforced,
    )


def trips_controls(cards: Cards) -> Declared:
    """Show the controls. What is missing is said by `Cards.ask`."""
    how = TRIPS.config()
    st.subheader("Data", anchor=DATA) if cards.curates else st.markdown("##### 1 Data")
    show_value("trips source", how.source)
    st.segmented_control(
        "Where from",
        SOURCES,
        key="trips source",
        required=True,
        format_func=str.capitalize,
        label_visibility="collapsed",
        on_change=when_chosen("trips source", lambda value: TRIPS.change(source=value, level=None)),
    )
    return _choose_sample(cards) if how.source == "sample" else _choose_files(cards)


def _choose_sample(cards: Cards) -> Declared:
    """Show the choice of a sample, and return its data."""
    how = TRIPS.config()
    show_value("trips sample", how.sample)
    st.selectbox(
        "Sample",
        list(FLOW_SAMPLES),
        key="trips sample",
        format_func=lambda key: FLOW_SAMPLES[key].title,
        on_change=when_chosen("trips sample", lambda value: TRIPS.change(sample=value, level=None)),
    )
    about = FLOW_SAMPLES[how.sample]
    flows = cached.flow_sample(how.sample)
    st.caption(about.description, help=f"{describe_regions(flows.regions)} Source: {about.source} Licence: {about.licence}.")
    key = f"trips {how.sample}"
    if cards.curates:
        bound = f", of whom at most {flows.contributions:,} {about.unit} count" if flows.contributions > 1 else ""
        cards.whom.markdown(f"The sample says it: one {flows.unit}{bound}.")
        cards.where.caption(describe_regions(flows.regions))
    data = TripsData(
        flows=flows,
        digest=key,
        fingerprints=cached.fingerprints(key, (), flows, f"sample {key}".encode()),
        title=about.title,
        unit=about.unit,
        source=Source(data_part=DataPart(sample=how.sample)),
    )
    uploaded = cached.UploadedRegions(key=(key,), regions=flows.regions)
    return Declared(data=data, regions=(uploaded, uploaded))


def describe_regions(regions: Regions) -> str:
    """Write the number of regions of each level, as a sentence."""
    sizes = ", ".join(f"{regions.size(level):,} of level {markdown(name)}" for level, name in enumerate(regions.levels, start=1))
    return f"Regions: {sizes}."


@dataclass(frozen=True, kw_only=True)
class ChosenFiles:
    """Files of trips that the user has chosen, and how they are counted.

    Attributes:
        about: what the headers of the files say.
        digest: identifies the files in the keys of widgets.
        part: fields of a saved configuration that name the files: trips, and for files by path the engine.
        opened: the table [data] of an opened configuration, if it is for these files.
        count: counts the files between `BothRegions` with the given options; returns None while the count is not finished.
        content: returns a digest of the content, from the counted data.
        found: returns the files themselves.
        written: how text tables are written, where it is not the usual way.
    """

    about: FlowsFile
    digest: str
    part: dict[str, Any]
    opened: DataPart | None
    count: Callable[[BothRegions, cached.Options], OpenedData | None]
    content: Callable[[OpenedData], str]
    found: Callable[[], FoundFiles]
    written: cached.Options


def _choose_files(cards: Cards) -> Declared:
    """Show the choice of files and of how they are read. Return what is declared; the data are missing until all is chosen and counted."""
    regions = choose_regions("regions", "Regions file")
    apart_help = "Where trips end in another hierarchy than they begin in, of as many levels."
    apart = st.toggle("Destinations have regions of their own", key="trips apart", persist_state="session", help=apart_help)
    ends = choose_regions("ends", "Regions of the destinations") if apart else regions
    chosen_files = _choose_upload(cards) if TRIPS.config().source == "upload" else _choose_paths(cards)
    both = None if regions is None or ends is None else (regions, ends)
    if both is not None and cards.curates:
        for each in dict.fromkeys(both):
            cards.where.caption(describe_regions(each.regions))
    if both is None or chosen_files is None:
        cards.ask(DATA, "Choose a public file of regions, and a file of trips between them: origin, destination, count.")
        if cards.curates:
            cards.whom.caption("Asked once the file of trips is read.")
            if both is None:
                cards.where.caption("Shown once the file of regions is read.")
        return Declared(regions=both)
    return _ask_and_count(chosen_files, both, cards)


def _ask_and_count(chosen_files: ChosenFiles, both: BothRegions, cards: Cards) -> Declared:
    """Ask for columns and unit, and count the files once everything is given."""
    about, mode = chosen_files.about, TRIPS.config().mode
    options = {**dict(chosen_files.written), **_choose_columns(about, chosen_files.digest)}
    used = _list_used_columns(options)
    columns = () if about.matrix else tuple(name for name in about.columns if name not in used)
    question = UnitQuestion(noun="trip", columns=columns, key=f"trips {mode} {chosen_files.digest}", private=mode == CURATE)
    with cards.whom:
        unit = unit_controls(question, cards)
        if about.person is not None and "person" not in (unit or ()):
            st.caption(f":orange[There is a column *{markdown(about.person)}*: choose it above to protect persons, not trips.]")
    drop_help = "Rows with an unknown region, or a missing or unreadable cell. Off: the file is refused if there is one."
    drop = st.toggle("Leave out bad rows", key="trips drop", persist_state="session", help=drop_help)
    public_key = f"public {chosen_files.digest}"
    if mode != CURATE and not st.checkbox("These data are already public", key=public_key, persist_state="session"):
        st.info("Teach shows the truth beside the release. Confirm that the data are public, or switch to Curate.")
        return Declared(regions=both, unit=unit)
    if lacks := _lacking_column(about, options):
        cards.ask(DATA, f"Choose the column of {lacks}, under Columns on the left.")
    if unit is None or lacks:
        return Declared(regions=both, unit=unit)
    options |= unit
    try:
        opened = chosen_files.count(both, (*sorted(options.items()), ("bad_rows", "drop" if drop else "refuse")))
    except DpvizError as error:
        show_error(str(error))
        cards.ask(DATA, f"Correct the data, or how they are read: {advise_in_app(str(error))}")
        return Declared(regions=both, unit=unit)
    if opened is None:
        cards.ask(DATA, "Count the trips.")
        return Declared(regions=both, unit=unit)
    data = _make_data(chosen_files, opened, both, options)
    if mode == CURATE and columns and "person" not in unit:
        with cards.whom:
            show_repeated(
                data,
                cached.find_id_columns(f"{chosen_files.digest} {chosen_files.written}", used, chosen_files.found()),
                "trip",
            )
    return Declared(data=data, regions=both, unit=unit)


def _lacking_column(about: FlowsFile, options: dict[str, Any]) -> str | None:
    """Return which end of the trips has no column yet; None if the trips can be read."""
    if about.matrix:
        return None
    return next((title for role, title in (("origin", "Origin"), ("destination", "Destination")) if not options.get(role)), None)


def _choose_columns(about: FlowsFile, digest: str) -> dict[str, Any]:
    """Ask which columns to read; columns with usual names are chosen beforehand.

    Args:
        about: what the files' headers say.
        digest: identifies the files in the keys of widgets.

    Returns:
        Options of `read_flows`; options that keep their default are left out.
    """
    options: dict[str, Any] = {}
    names = [NONE, *about.columns]
    pairs = coordinate_columns(about.columns)
    unclear = not about.matrix and (about.origin is None or about.destination is None)
    if pairs is None and st.session_state.get(f"trips ends {digest}") == COORDINATES:
        pairs = (("", ""), ("", ""))  # an opened configuration names the columns
    if pairs is not None:
        kinds = [IDS, COORDINATES]
        default = COORDINATES if unclear else IDS
        kind = st.segmented_control("Trips run between", kinds, default=default, key=f"trips ends {digest}", persist_state="session")
        pairs = pairs if (kind or default) == COORDINATES else None
    with st.expander("Columns", expanded=unclear and pairs is None):
        if pairs is not None:
            options |= _choose_coordinates(names, pairs, digest)
        elif not about.matrix:
            for role, title, known in (("origin", "Origin", about.origin), ("destination", "Destination", about.destination)):
                options[role] = pick(title, names if known is None else list(about.columns), known, f"trips column {role} {digest}")
        if pairs is not None or not about.matrix:
            count_help = "Whole numbers; without it each row is one trip."
            counts = names if about.count is None else list(about.columns)  # without a choice, this column is read
            options["count"] = pick("Trips per row", counts, about.count, f"trips column count {digest}", count_help)
    if pairs is not None:
        crs_help = "It is never guessed. EPSG:4326 is longitude and latitude in degrees. Leave it empty if the regions have none."
        crs = st.text_input("CRS of the coordinates", placeholder="EPSG:4326", key="trips crs", persist_state="session", help=crs_help)
        options["crs"] = crs.strip() or None
    return {role: value for role, value in options.items() if value not in (None, False)}


def _choose_coordinates(names: list[str], found: tuple[tuple[str, str], tuple[str, str]], digest: str) -> dict[str, Any]:
    """Ask for two columns of coordinates for each end; the value of an end is None until both are chosen."""
    ends: dict[str, Any] = {}
    for role, title, (x, y) in (("origin", "Origin", found[0]), ("destination", "Destination", found[1])):
        left, right = st.columns(2)
        with left:
            east = pick(f"{title}: x", names, x, f"trips column {role} x {digest}", "Longitude or easting.")
        with right:
            north = pick(f"{title}: y", names, y, f"trips column {role} y {digest}", "Latitude or northing.")
        ends[role] = None if east is None or north is None else (east, north)
    return ends


def _list_used_columns(options: dict[str, Any]) -> tuple[str, ...]:
    """List the names of the chosen columns of origins, destinations and counts."""
    ends = [options[role] for role in ("origin", "destination", "count") if role in options]
    return tuple(sorted(name for end in ends for name in ((end,) if isinstance(end, str) else end)))


def _make_data(
    chosen_files: ChosenFiles,
    opened: OpenedData,
    both: BothRegions,
    options: dict[str, Any],
) -> TripsData:
    """Return the counted data; what was left out of them is for the curator only."""
    flows: Flows = opened.data  # type: ignore[assignment]
    data = TripsData(
        flows=flows,
        digest=chosen_files.content(opened),
        fingerprints=opened.fingerprints,
        title="Uploaded trips",
        unit=nouns.TRIPS,
        source=Source(
            data_part=opened_config.with_kept({**chosen_files.part, **options}, chosen_files.opened),
            regions=make_regions_part("regions", both[0]),
            destinations=make_regions_part("ends", both[1]) if st.session_state.get("trips apart") else None,
        ),
    )
    show_left_out(data, (*opened.notes, left_out(flows), *flows.notes), private=TRIPS.config().mode == CURATE)
    return data


def _choose_upload(cards: Cards) -> ChosenFiles | None:
    """Ask for an uploaded file of trips; None until it is chosen."""
    kept = ask_for_file("Trips file", TABLES, "trips", "CSV, TSV or Parquet: origin, destination and count, LODES, or a wide matrix.")
    if kept is None:
        return None
    name, body = kept
    digest = cached.digest_of(body)
    opened_part = opened_config.fill_in_upload(opened_config.TRIPS, name, digest, f"trips {digest}")
    text_format = choose_text_format(cached.named_file(name, body), name, f"trips {digest}", cards)
    if text_format is None:
        return None
    written = tuple(text_format.declarations().items())

    def count(both: BothRegions, options: cached.Options) -> OpenedData:
        flows = cached.count_flows_file(digest, name, body, both, options)
        refuse_empty_data(flows)
        keys = tuple(uploaded.key for uploaded in both)
        return OpenedData(data=flows, fingerprints=cached.fingerprints(digest, (keys, options), flows, body), engine=NUMPY)

    about = cached.inspect_flows_file(digest, name, body, written)
    return ChosenFiles(
        about=about,
        digest=digest,
        part={"trips": name},
        opened=opened_part,
        count=count,
        content=lambda _: digest,
        found=lambda: find_files(cached.named_file(name, body), text_format),
        written=written,
    )


def _choose_paths(cards: Cards) -> ChosenFiles | None:
    """Ask for the path of files of trips; None until files are found there."""
    files = path_files("trips ", opened_config.TRIPS, cards)
    if files is None:
        return None

    def count(both: BothRegions, options: cached.Options) -> OpenedData | None:
        frame = (both[0].regions, both[1].regions)
        request = CountRequest(frame=frame, options=dict(options), engine=files.engine, scheduler=files.scheduler)
        return count_by_path("trips ", files, request, (both[0].key, both[1].key, options))

    return ChosenFiles(
        about=describe_flows(files.found),
        digest=files.digest,
        part={"trips": files.written, "engine": files.engine},
        opened=files.opened,
        count=count,
        content=files.content,
        found=lambda: files.found,
        written=tuple(files.found.text_format.declarations().items()),
    )


def make_regions_part(role: str, uploaded: cached.UploadedRegions) -> RegionsPart:
    """Describe a file of regions as a part of a configuration; `role` is the beginning of its slots."""
    _, levels, prefix_lengths, *_ = uploaded.key
    part = RegionsPart(file=st.session_state[f"{role} uploaded"][0], levels=levels, prefixes=prefix_lengths)  # type: ignore[arg-type]
    return opened_config.with_kept_regions(part, role)


def choose_regions(role: str, title: str) -> cached.UploadedRegions | None:
    """Ask for a file of regions, the columns of its levels, and levels by prefixes of ids; None until it is chosen."""
    kept = ask_for_file(title, TYPES, role, "Polygons, points or a table: a column of ids per level, or region_id and parent_id.")
    if kept is None:
        return None
    name, body = kept
    digest = cached.digest_of(body)
    about, opened = cached.inspect_regions_file(digest, name, body), opened_config.fill_in_regions(role, name, digest)
    written = ((), None) if opened is None else (tuple(opened.names.items()), opened.crs)
    if about.nested:
        return cached.read_regions_file(digest, name, body, (), (), *written)
    _keep_known_levels(f"{role} levels {digest}", about.columns)
    levels = st.multiselect(
        "Columns of ids, coarsest level first",
        about.columns,
        default=about.levels or cached.propose_region_levels(digest, name, body),
        key=f"{role} levels {digest}",
        persist_state="session",
        help="One column per level; the last one is that of the regions in the trips file.",
    )
    if not levels:
        st.info("Say which columns hold the ids of the regions, coarsest level first.")
        return None
    text = st.text_input(
        "Group by the first characters of the id",
        key=f"{role} prefixes {digest}",
        persist_state="session",
        placeholder="for example 2, 5",
        help="Adds coarser levels: 2 makes states out of county codes, 2, 5 states and counties out of tracts. Left empty: none.",
    )
    parts = text.replace(",", " ").split()
    if not all(part.isdecimal() and part.isascii() for part in parts):
        st.error("The numbers of characters must be whole numbers with commas between them, such as 2, 5.")
        return None
    prefix_lengths = tuple(int(part) for part in parts)
    return cached.read_regions_file(digest, name, body, tuple(levels), prefix_lengths, *written)


def _keep_known_levels(key: str, columns: Sequence[str]) -> None:
    """Go back to the levels that are preset, if an opened configuration names columns that a file does not have."""
    for name in st.session_state.get(key, ()):
        keep_known(key, columns, name)
