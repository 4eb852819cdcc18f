"""The data part of the Trips page: a sample, or a file of regions and a file of trips between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from dpviz.app.cards.cards import FILES, Cards
from dpviz.app.cards.chosen_files import ChosenFiles, FileKind, choose_files, count_chosen, data_of_files, refuse_as_public, take_columns
from dpviz.app.cards.columns import NONE, ask_pair, choose_count, lacks_count, pick, pick_of
from dpviz.app.cards.file_questions import are_public, ask_whom, leave_out_bad_rows, show_repeats
from dpviz.app.cards.regions_file import ask_for_regions, choose_regions, describe_regions, make_regions_part
from dpviz.app.cards.source import choose_sample, choose_source, data_of_sample
from dpviz.app.cards.unit import UnitQuestion
from dpviz.app.cards.uploads import DropZone, Role, ask_for_file, kept_file, upload_types
from dpviz.app.pages.trips.state import TRIPS, TripsData
from dpviz.app.session import cached
from dpviz.app.session.ledger import Source
from dpviz.app.session.widgets import widget_for
from dpviz.app.state.parts import ChosenRegions
from dpviz.app.state.values import COORDINATES, CURATE, IDS, UPLOAD
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
KIND = FileKind[TripsFile, BothRegions](
    page=TRIPS,
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
    return _choose_sample(cards) if choose_source(TRIPS) == "sample" else _choose_files(cards)


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
    apart_help = "Where trips end in another hierarchy than they begin in, of as many levels."
    apart = TRIPS.draft.destinations is not None
    keep: dict[str, Any] = {"show": lambda ends: ends is not None, "take": lambda on: ChosenRegions() if on else None}
    st.toggle("Destinations have regions of their own", help=apart_help, **TRIPS.widget("draft", "destinations", "trips apart", **keep))
    if cards.curates:
        _drop_files(cards, apart=apart)
    regions = choose_regions(TRIPS, cards, "regions", "Regions file")
    ends = choose_regions(TRIPS, cards, "ends", "Regions of the destinations", part="destinations") if apart else regions
    roles = ("regions", "ends") if apart else ("regions",)
    about = f"{say_tables()}: origin, destination and count, LODES, or a wide matrix."
    named = TRIPS.draft.uploaded.path
    ask = partial(
        ask_for_file,
        TRIPS,
        "Trips file",
        upload_types(tables=True),
        "trips",
        about,
        named=named,
        what="file of trips",
        asks_if_public=False,
    )
    chosen_files = choose_files(KIND, cards, ask)
    both = None if regions is None or ends is None else (regions, ends)
    if both is not None and cards.curates:
        for each in dict.fromkeys(both):
            cards.where.caption(describe_regions(each.regions))
    if both is None or chosen_files is None:
        file, has_records = "a file of trips between them: origin, destination, count", chosen_files is not None
        has_regions = None not in map(kept_file, roles)
        ask_for_regions(cards, file, "trips", has_regions=has_regions, has_records=has_records)
        return Declared(regions=both)
    if TRIPS.draft.mode == CURATE:
        for role in roles:
            refuse_as_public(chosen_files, role)
    return _ask_and_count(chosen_files, both, cards)


def _drop_files(cards: Cards, *, apart: bool) -> None:
    draft = TRIPS.draft
    trips = Role(slot="trips", words="Private: trips", named=draft.uploaded.path)
    regions = Role(slot="regions", words="Public: regions", digest=draft.regions.digest, named=draft.regions.file)
    ends = draft.destinations or ChosenRegions()
    others = [Role(slot="ends", words="Public: regions of the destinations", digest=ends.digest, named=ends.file)] if apart else []
    DropZone(page=TRIPS, private=trips if draft.source == UPLOAD else None, public=[regions, *others]).show(cards)


def _ask_and_count(chosen_files: TripFiles, both: BothRegions, cards: Cards) -> Declared:
    """Ask for columns and unit, and count the files once everything is given."""
    about, mode = chosen_files.about, TRIPS.draft.mode
    take_columns(TRIPS, chosen_files, _find_columns(about))
    options = {**dict(chosen_files.written), **_choose_columns(about, chosen_files.key)}
    ends = [options[role] for role in ("origin", "destination", "count") if role in options]
    used = tuple(sorted(name for end in ends for name in ((end,) if isinstance(end, str) else end)))
    columns = () if about.matrix else tuple(name for name in about.columns if name not in used)
    question = UnitQuestion(noun="trip", columns=columns, key=f"trips {mode} {chosen_files.key}")
    unit = ask_whom(TRIPS, question, about.person, cards)
    bad_rows = leave_out_bad_rows(TRIPS, "an unknown region, or a missing or unreadable")
    declared = Declared(regions=both, unit=unit)
    no_count = unit is not None and lacks_count("trip", about, {**options, **unit}, cards)
    if not are_public(TRIPS, chosen_files.digest):
        return declared
    roles = () if about.matrix else (("origin", "Origin"), ("destination", "Destination"))
    if lacks := next((title for role, title in roles if not options.get(role)), None):
        cards.ask(FILES, f"Choose the column of {lacks}, under Columns on the left.")
    if unit is None or lacks or no_count:
        return declared
    options |= unit
    opened = count_chosen(chosen_files, both, {**options, "bad_rows": bad_rows}, cards, "trips")
    if opened is None:
        return declared
    apart = TRIPS.draft.destinations
    regions, destinations = make_regions_part(TRIPS.draft.regions), None if apart is None else make_regions_part(apart)
    data = data_of_files(KIND, chosen_files, opened, options, regions=regions, destinations=destinations)
    if columns and "person" not in unit:
        show_repeats(TRIPS, chosen_files, data, used, "trip", cards)
    return Declared(data=data, regions=both, unit=unit)


def _find_columns(about: TripsFile) -> dict[str, Any]:
    """Return what the registry finds, by key of [data]: columns of ids, or of coordinates where these alone are clear."""
    if about.matrix:
        return {}
    pairs = between_pairs(about.columns)
    if pairs is not None and (about.origin is None or about.destination is None):
        return {"origin": pairs[0], "destination": pairs[1], "count": about.count}
    return {"origin": about.origin, "destination": about.destination, "count": about.count}


def _choose_columns(about: TripsFile, key: str) -> dict[str, Any]:
    """Ask which columns to read.

    Args:
        about: what the files' headers say.
        key: identifies the files in the keys of widgets.

    Returns:
        Options of `read_trips`; options that keep their default are left out.
    """
    options: dict[str, Any] = {}
    said = TRIPS.draft.files.data
    has_pairs = isinstance(said.origin, tuple)
    if has_pairs or between_pairs(about.columns) is not None:
        take = partial(_take_kind, about)
        shown = widget_for(f"trips ends {key}", COORDINATES if has_pairs else IDS, take)
        st.segmented_control("Trips run between", [IDS, COORDINATES], required=True, **shown)
    ends = about.use.open.get("origin and destination", ()) if about.use is not None and not has_pairs else ()
    chosen = (said.origin, said.destination)
    ask_pair("Which columns hold origin and destination?", ends, chosen, _take_ends, f"pair trips {key}")
    unclear = not about.matrix and (about.origin is None or about.destination is None)
    with st.expander("Columns", expanded=unclear and not has_pairs and not ends):
        if has_pairs:
            options |= _choose_coordinates([NONE, *about.columns], key)
        elif not about.matrix:
            for role, title, known in (("origin", "Origin", about.origin), ("destination", "Destination", about.destination)):
                names = [*([NONE] if known is None else []), *about.columns]
                options[role] = pick_of(TRIPS, role, title, names, f"trips column {role} {key}")
    if has_pairs:
        crs_help = "It is never guessed. EPSG:4326 is longitude and latitude in degrees. Leave it empty if the regions have none."
        shown = TRIPS.widget("data", "crs", "trips crs", show=lambda crs: crs or "", take=lambda typed: typed.strip() or None)
        st.text_input("CRS of the coordinates", placeholder="EPSG:4326", help=crs_help, **shown)
        options["crs"] = TRIPS.part("data", "crs")
    options = {role: value for role, value in options.items() if value not in (None, False)}
    if about.matrix and not has_pairs:
        return options
    return options | choose_count(TRIPS, "trip", about, options, f"trips column count {key}")


def _take_kind(about: TripsFile, kind: str) -> None:
    """Read ids or coordinates, from the columns that are found."""
    ids, pairs = (about.origin, about.destination), between_pairs(about.columns) or (("", ""), ("", ""))
    _take_ends(ids if kind == IDS else pairs)


def _take_ends(ends: tuple[Any, Any]) -> None:
    TRIPS.set("data", origin=ends[0], destination=ends[1])


def _choose_coordinates(names: list[str], key: str) -> dict[str, Any]:
    """Ask for two columns of coordinates for each end; the value of an end is None until both are chosen."""
    ends: dict[str, Any] = {}
    for role, title in (("origin", "Origin"), ("destination", "Destination")):
        pair, chosen = TRIPS.part("data", role), []
        axes = (("x", "Longitude or easting."), ("y", "Latitude or northing."))
        for place, (column, (axis, text)) in enumerate(zip(st.columns(2), axes, strict=True)):
            keep = partial(_take_axis, role, place)
            with column:
                chosen.append(pick(f"{title}: {axis}", names, pair[place], keep, f"trips column {role} {axis} {key}", text))
        ends[role] = None if None in chosen else tuple(chosen)
    return ends


def _take_axis(role: str, place: int, name: str | None) -> None:
    pair = list(TRIPS.part("data", role))
    pair[place] = name or ""
    TRIPS.set("data", **{role: tuple(pair)})
