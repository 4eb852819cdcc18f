"""The data part of the Trips page: a sample, or a file of regions and a file of trips between them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app import cached
from dpviz.app.curate import Source
from dpviz.app.data_controls import NONE, TYPES, pick
from dpviz.app.state import CURATE
from dpviz.app.texts import plain
from dpviz.app.trips_state import SOURCES, TRIPS, TripsData
from dpviz.data.flow_samples import FLOW_SAMPLES
from dpviz.data.flows import PERSON
from dpviz.publishing.sections import DataPart, RegionsPart
from dpviz.space.regions import Regions

TABLES = ("csv", "tsv", "parquet")


def trips_controls() -> TripsData | None:
    """Draw the controls; give what is loaded, or None with a word on what is missing."""
    how = TRIPS.config()
    st.markdown("##### 1 Data")
    st.session_state["trips source"] = how.source
    st.segmented_control(
        "Where from",
        SOURCES,
        key="trips source",
        required=True,
        format_func=str.capitalize,
        label_visibility="collapsed",
        on_change=lambda: TRIPS.change(source=st.session_state["trips source"]),
    )
    return _sample() if how.source == "sample" else _files()


def _sample() -> TripsData:
    how = TRIPS.config()
    st.session_state["trips sample"] = how.sample
    st.selectbox(
        "Sample",
        list(FLOW_SAMPLES),
        key="trips sample",
        format_func=lambda key: FLOW_SAMPLES[key].title,
        on_change=lambda: TRIPS.change(sample=st.session_state["trips sample"], level=None),
    )
    about = FLOW_SAMPLES[how.sample]
    flows = cached.flow_sample(how.sample)
    st.caption(about.description, help=f"{frame_text(flows.regions)} Source: {about.source} Licence: {about.licence}.")
    key = f"trips {how.sample}"
    return TripsData(
        flows=flows,
        digest=key,
        marks=cached.marks(key, (), flows, f"sample {key}".encode()),
        title=about.title,
        unit=about.unit,
        source=Source(data=DataPart(sample=how.sample)),
    )


def frame_text(regions: Regions) -> str:
    """How many regions there are on each level, in words."""
    sizes = ", ".join(f"{regions.size(level):,} of level {plain(name)}" for level, name in enumerate(regions.levels, start=1))
    return f"Regions: {sizes}."


def _files() -> TripsData | None:
    frame = _regions("regions", "Regions file")
    other = "Where trips end in another hierarchy than they begin in, of as many levels."
    apart = st.toggle("Destinations have regions of their own", key="trips apart", persist_state="session", help=other)
    ends = _regions("ends", "Regions of the destinations") if apart else frame
    kept = _upload("Trips file", TABLES, "trips", "CSV, TSV or Parquet: origin, destination and count, LODES, or a wide matrix.")
    if frame is None or ends is None or kept is None:
        st.info("Choose a public file of regions, and a file of trips between them: origin, destination, count.")
        return None
    name, body = kept
    digest = cached.digest_of(body)
    options = _columns(name, body, digest)
    public = f"public {digest}"
    if TRIPS.config().mode != CURATE and not st.checkbox("These data are already public", key=public, persist_state="session"):
        st.info("Teach shows the truth beside the release. Confirm that the data are public, or switch to Curate.")
        return None
    given = tuple(sorted(options.items()))
    flows = cached.flows(digest, name, body, (frame, ends), given)
    if flows.dropped:
        st.caption(f"Curator only: {flows.dropped:,} trips were left out (unknown regions, unreadable, or over the bound).")
    for note in flows.notes:
        st.caption(f"Curator only: {note}")
    unit = "trips of people" if flows.unit == PERSON else "trips"
    options.pop("bad_rows")
    return TripsData(
        flows=flows,
        digest=digest,
        marks=cached.marks(digest, (frame.key, ends.key, given), flows, body),
        title="Uploaded trips",
        unit=unit,
        source=Source(
            data=DataPart(trips=name, **options), regions=_part("regions", frame), destinations=_part("ends", ends) if apart else None
        ),
    )


def _part(role: str, frame: cached.Frame) -> RegionsPart:
    """A file of regions as a configuration says it."""
    _, levels, prefixes = frame.key
    return RegionsPart(file=st.session_state[f"{role} uploaded"][0], levels=levels, prefixes=prefixes)  # type: ignore[arg-type]


def _upload(title: str, types: tuple[str, ...], role: str, text: str) -> tuple[str, bytes] | None:
    """An uploaded file's name and bytes, kept for the session: an upload widget is emptied on another page."""
    key, slot = f"{role} file", f"{role} uploaded"

    def keep() -> None:
        file = st.session_state[key]
        st.session_state[slot] = None if file is None else (file.name, file.getvalue())

    st.file_uploader(title, types, key=key, on_change=keep, help=text)
    kept: tuple[str, bytes] | None = st.session_state.get(slot)
    if kept is not None and st.session_state[key] is None:
        left, right = st.columns([3, 2], vertical_alignment="center")
        left.caption(f"{title}: kept from before.")
        if right.button("Forget it", key=f"{role} forget"):
            st.session_state[slot] = kept = None
    return kept


def _regions(role: str, title: str) -> cached.Frame | None:
    """The public regions: which columns are the levels, and how ids nest."""
    kept = _upload(title, TYPES, role, "Polygons, points or a table: a column of ids per level, or region_id and parent_id.")
    if kept is None:
        return None
    name, body = kept
    digest = cached.digest_of(body)
    about = cached.inspected_regions(digest, name, body)
    if about.nested:
        return cached.frame(digest, name, body, (), ())
    levels = st.multiselect(
        "Columns of ids, coarsest level first",
        about.columns,
        default=about.levels,
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
    prefixes = tuple(int(part) for part in parts)
    return cached.frame(digest, name, body, tuple(levels), prefixes)


def _columns(name: str, body: bytes, digest: str) -> dict[str, Any]:
    """Which columns to read: found by name, and every choice can be overridden."""
    about = cached.inspected_flows(digest, name, body)
    options: dict[str, Any] = {}
    names = [NONE, *about.columns]
    missing = not about.matrix and (about.origin is None or about.destination is None)
    with st.expander("Columns", expanded=missing):
        if not about.matrix:
            for role, title, found in (("origin", "Origin", about.origin), ("destination", "Destination", about.destination)):
                options[role] = pick(title, names, found, f"trips column {role} {digest}")
            each = "Whole numbers; without it each row is one trip."
            options["count"] = pick("Trips per row", names, about.count, f"trips column count {digest}", each)
            one = "Protects each person instead of each trip."
            options["person"] = pick("Person", names, None, f"trips column person {digest}", one)
        most = st.number_input(
            "Trips per person, at most",
            1,
            1000,
            1,
            key=f"trips bound {digest}",
            persist_state="session",
            help="With a person column it is enforced. Without one you vouch for it; at 1 the protected unit is one trip.",
        )
        if most > 1:
            options["contributions"] = int(most)
            declared = "Needed for bounded neighbours: replacing a person must leave the total as it is."
            options["exactly"] = st.toggle(
                "Everybody has exactly that many", key=f"trips exactly {digest}", persist_state="session", help=declared
            )
    if about.person is not None and options.get("person") is None:
        st.caption(f":orange[There is a column *{about.person}*: choose it under Columns to protect persons, not trips.]")
    bad = "Rows with an unknown region, or a missing or unreadable cell. Off: the file is refused if there is one."
    drop = st.toggle("Leave out bad rows", key="trips drop", persist_state="session", help=bad)
    options["bad_rows"] = "drop" if drop else "refuse"
    return {role: value for role, value in options.items() if value is not None}
