"""The data part of the Trips page: a sample, or a file of regions and a file of trips between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from dpviz.app.cards import opened_config
from dpviz.app.cards.cards import DATA, Cards
from dpviz.app.cards.chosen_files import ChosenFiles, FileKind, choose_files, count_chosen, data_of_files, refuse_as_regions
from dpviz.app.cards.columns import ask_pair, choose_count, lacks_count, pick
from dpviz.app.cards.file_questions import are_public, ask_whom, leave_out_bad_rows, show_repeats
from dpviz.app.cards.path_files import ask_for_file, upload_types
from dpviz.app.cards.regions_file import ask_for_regions, choose_regions, describe_regions, make_regions_part
from dpviz.app.cards.source import choose_sample, choose_source, data_of_sample
from dpviz.app.cards.unit import UnitQuestion
from dpviz.app.pages.trips.state import TRIPS, TripsData
from dpviz.app.session import cached
from dpviz.app.session.ledger import Source
from dpviz.app.session.saved_config import COORDINATES, IDS, NONE
from dpviz.app.state.values import CURATE
from dpviz.data.counts import PERSON
from dpviz.data.reading.formats import say_tables
from dpviz.data.reading.inspect import describe_trip_files
from dpviz.data.reading.trips import TripsFile
from dpviz.data.roles import between_pairs
from dpviz.data.trips import TRIP, TripCounts
from dpviz.families import TRIP_FAMILY
from dpviz.publishing.config import DataPart
from dpviz.samples.trips import TRIP_SAMPLES
from dpviz.space.regions import Regions

BothRegions = tuple[cached.UploadedRegions, cached.UploadedRegions]
"""The regions where trips begin, and those where they end."""
TripFiles = ChosenFiles[TripsFile, BothRegions]
FILES = FileKind[TripsFile, BothRegions](
    page=TRIPS,
    kind=opened_config.TRIPS,
    field="trips",
    describe_upload=cached.inspect_trips_file,
    describe=describe_trip_files,
    frame_of=lambda both: (both[0].regions, both[1].regions),
    key_of=lambda both: (both[0].key, both[1].key),
    title="Uploaded trips",
    unit=TRIP_FAMILY.counted,
)


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

    def frame(self) -> TripCounts | None:
        """Return regions, unit and bound without a single trip; None while the regions or the unit are missing, or do not fit together."""
        if self.data is not None:
            trips = self.data.counts
            return _without_trips(
                trips.regions, trips.ends, bound=trips.contributions, unit=trips.unit, exactly=trips.exactly, enforced=trips.enforced
            )
        if self.regions is None or self.unit is None:
            return None
        (regions, ends), bound, enforced = self.regions, self.unit.get("contributions", 1), "person" in self.unit
        unit, exactly = PERSON if enforced or bound > 1 else TRIP, bool(self.unit.get("exactly", False))
        if regions.regions.depth != ends.regions.depth:
            return None
        return _without_trips(regions.regions, ends.regions, bound=bound, unit=unit, exactly=exactly, enforced=enforced)


def _without_trips(regions: Regions, ends: Regions, *, bound: int, unit: str, exactly: bool, enforced: bool) -> TripCounts:
    indexes = np.zeros(0, np.int32)
    return TripCounts(
        regions=regions,
        destinations=ends,
        origin=indexes,
        destination=indexes,
        count=np.zeros(0, np.int64),
        contributions=bound,
        unit=unit,
        exactly=exactly,
        enforced=enforced,
    )


def trips_controls(cards: Cards) -> Declared:
    """Show the controls. What is missing is said by `Cards.ask`."""
    return _choose_sample(cards) if choose_source(TRIPS, cards) == "sample" else _choose_files(cards)


def _choose_sample(cards: Cards) -> Declared:
    """Show the choice of a sample, and return its data."""
    choose_sample(TRIPS, TRIP_SAMPLES)
    sample = str(TRIPS.draft.sample)
    about = TRIP_SAMPLES[sample]
    trips = cached.trip_sample(sample)
    st.caption(about.description, help=f"{describe_regions(trips.regions)} Source: {about.source} Licence: {about.licence}.")
    key = f"trips {sample}"
    data = data_of_sample(cards, about, trips, Source(data_part=DataPart(sample=sample)), key)
    if cards.curates:
        cards.where.caption(describe_regions(trips.regions))
    uploaded = cached.UploadedRegions(key=(key,), regions=trips.regions)
    return Declared(data=data, regions=(uploaded, uploaded))


def _choose_files(cards: Cards) -> Declared:
    """Show the choice of files and of how they are read. Return what is declared; the data are missing until all is chosen and counted."""
    regions = choose_regions("regions", "Regions file")
    apart_help = "Where trips end in another hierarchy than they begin in, of as many levels."
    apart = st.toggle("Destinations have regions of their own", key="trips apart", persist_state="session", help=apart_help)
    ends = choose_regions("ends", "Regions of the destinations") if apart else regions
    about = f"{say_tables()}: origin, destination and count, LODES, or a wide matrix."
    chosen_files = choose_files(FILES, cards, lambda: ask_for_file("Trips file", upload_types(tables=True), "trips", about))
    both = None if regions is None or ends is None else (regions, ends)
    if both is not None and cards.curates:
        for each in dict.fromkeys(both):
            cards.where.caption(describe_regions(each.regions))
    if both is None or chosen_files is None:
        file, has_records = "a file of trips between them: origin, destination, count", chosen_files is not None
        ask_for_regions(cards, file, "trips", has_regions=both is not None, has_records=has_records)
        return Declared(regions=both)
    if TRIPS.draft.mode == CURATE:
        for role in ("regions", "ends") if apart else ("regions",):
            refuse_as_regions(chosen_files, role)
    return _ask_and_count(chosen_files, both, cards)


def _ask_and_count(chosen_files: TripFiles, both: BothRegions, cards: Cards) -> Declared:
    """Ask for columns and unit, and count the files once everything is given."""
    about, mode = chosen_files.about, TRIPS.draft.mode
    options = {**dict(chosen_files.written), **_choose_columns(about, chosen_files.digest)}
    ends = [options[role] for role in ("origin", "destination", "count") if role in options]
    used = tuple(sorted(name for end in ends for name in ((end,) if isinstance(end, str) else end)))
    columns = () if about.matrix else tuple(name for name in about.columns if name not in used)
    question = UnitQuestion(noun="trip", columns=columns, key=f"trips {mode} {chosen_files.digest}", private=mode == CURATE)
    unit = ask_whom(question, about.person, cards)
    bad_rows = leave_out_bad_rows(TRIPS, "an unknown region, or a missing or unreadable")
    declared = Declared(regions=both, unit=unit)
    no_count = lacks_count("trip", about, {**options, **(unit or {})}, cards)
    if not are_public(TRIPS, chosen_files.digest):
        return declared
    roles = () if about.matrix else (("origin", "Origin"), ("destination", "Destination"))
    if lacks := next((title for role, title in roles if not options.get(role)), None):
        cards.ask(DATA, f"Choose the column of {lacks}, under Columns on the left.")
    if unit is None or lacks or no_count:
        return declared
    options |= unit
    opened = count_chosen(chosen_files, both, {**options, "bad_rows": bad_rows}, cards, "trips")
    if opened is None:
        return declared
    regions = make_regions_part("regions", both[0])
    destinations = make_regions_part("ends", both[1]) if st.session_state.get("trips apart") else None
    data = data_of_files(FILES, chosen_files, opened, options, regions=regions, destinations=destinations)
    if columns and "person" not in unit:
        show_repeats(TRIPS, chosen_files, data, used, "trip", cards)
    return Declared(data=data, regions=both, unit=unit)


def _choose_columns(about: TripsFile, digest: str) -> dict[str, Any]:
    """Ask which columns to read; columns with usual names are chosen beforehand.

    Args:
        about: what the files' headers say.
        digest: identifies the files in the keys of widgets.

    Returns:
        Options of `read_trips`; options that keep their default are left out.
    """
    options: dict[str, Any] = {}
    names = [NONE, *about.columns]
    pairs = between_pairs(about.columns)
    unclear = not about.matrix and (about.origin is None or about.destination is None)
    if pairs is None and st.session_state.get(f"trips ends {digest}") == COORDINATES:
        pairs = (("", ""), ("", ""))  # an opened configuration names the columns
    if pairs is not None:
        kinds = [IDS, COORDINATES]
        default = COORDINATES if unclear else IDS
        kind = st.segmented_control("Trips run between", kinds, default=default, key=f"trips ends {digest}", persist_state="session")
        pairs = pairs if (kind or default) == COORDINATES else None
    ends = about.use.open.get("origin and destination", ()) if about.use is not None and pairs is None else ()
    ask_pair("Which columns hold origin and destination?", ends, (f"trips column origin {digest}", f"trips column destination {digest}"))
    with st.expander("Columns", expanded=unclear and pairs is None and not ends):
        if pairs is not None:
            options |= _choose_coordinates(names, pairs, digest)
        elif not about.matrix:
            for role, title, known in (("origin", "Origin", about.origin), ("destination", "Destination", about.destination)):
                options[role] = pick(title, names if known is None else list(about.columns), known, f"trips column {role} {digest}")
    if pairs is not None:
        crs_help = "It is never guessed. EPSG:4326 is longitude and latitude in degrees. Leave it empty if the regions have none."
        crs = st.text_input("CRS of the coordinates", placeholder="EPSG:4326", key="trips crs", persist_state="session", help=crs_help)
        options["crs"] = crs.strip() or None
    options = {role: value for role, value in options.items() if value not in (None, False)}
    if about.matrix and pairs is None:
        return options
    return options | choose_count("trip", about, options, f"trips column count {digest}")


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
