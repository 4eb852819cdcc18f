"""The data part of the Points page: a sample, an upload or files by path, on a domain that the user declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpviz.app import cached
from dpviz.app.controls import without_split
from dpviz.app.fields import Field, in_range
from dpviz.app.files import count_by_path, path_files
from dpviz.app.ledger import Source
from dpviz.app.page_state import CURATE, SOURCES
from dpviz.app.points.state import LARGEST_ORDER, POINTS, Config, Data, config
from dpviz.app.session import show_error, show_value, when_chosen
from dpviz.app.unit_controls import UnitQuestion, show_repeated, unit_controls
from dpviz.data.counting.engines import NUMPY
from dpviz.data.reading.inspect import describe_points
from dpviz.data.reading.points import PointsFile
from dpviz.data.reading.sources import FoundFiles, find_files
from dpviz.errors import BudgetError, DpvizError
from dpviz.publishing.config import DataPart, DomainPart
from dpviz.publishing.private_data import CountRequest, OpenedData, left_out, refuse_empty_data
from dpviz.release.nouns import RECORDS
from dpviz.samples.points import SAMPLES
from dpviz.space.domain import Domain, refuse_degrees
from dpviz.view.escape import markdown

TYPES = ("csv", "tsv", "geojson", "json", "gpkg", "parquet", "geoparquet", "zip")
FRAMES = {
    "Type the bounds": None,
    "Contiguous United States": (-125.0, 24.0, -66.0, 50.0),
    "Europe": (-25.0, 34.0, 45.0, 72.0),
    "World": (-180.0, -90.0, 180.0, 90.0),
}
MOST_MADE_UP = 10_000_000
NONE = "(none)"


def points_controls() -> Data | None:
    """Show the controls. Return the loaded data; if something is missing, say so on the page and return None."""
    page_config = config()
    st.markdown("##### 1 Data")
    show_value("source", page_config.source)
    st.segmented_control(
        "Where from",
        SOURCES,
        key="source",
        required=True,
        format_func=str.capitalize,
        label_visibility="collapsed",
        on_change=when_chosen("source", lambda value: POINTS.change(source=value)),
    )
    if page_config.source == "sample":
        return _choose_sample()
    chosen_files = _choose_upload() if page_config.source == "upload" else _choose_paths()
    return None if chosen_files is None else _ask_and_count(chosen_files)


@dataclass(frozen=True, kw_only=True)
class ChosenFiles:
    """Files that the user has chosen, and how they are counted.

    Attributes:
        about: what the headers of the files say.
        digest: identifies the files in the keys of widgets.
        part: fields of a saved configuration that name the files: points, and for files by path the engine.
        count: counts the files on a domain with the given options; returns None while the count is not finished.
        content: returns a digest of the content, from the counted data.
        found: returns the files themselves.
    """

    about: PointsFile
    digest: str
    part: dict[str, Any]
    count: Callable[[Domain, cached.Options], OpenedData | None]
    content: Callable[[OpenedData], str]
    found: Callable[[], FoundFiles]


def _choose_sample() -> Data:
    page_config = config()
    show_value("sample", page_config.sample)
    st.selectbox(
        "Sample",
        list(SAMPLES),
        key="sample",
        format_func=lambda key: SAMPLES[key].title,
        on_change=when_chosen("sample", lambda value: POINTS.change(sample=value, size=None, zoom=None)),
    )
    about = SAMPLES[page_config.sample]
    if about.synthetic:
        usual, label = about.usual, f"How many {about.unit}"
        size = Field(
            key="size",
            label=label,
            value=page_config.size or usual,
            problem=in_range(label, 1, MOST_MADE_UP),
            use=lambda typed: POINTS.change(size=None if typed == usual else typed),
        )
        size.show(st.number_input, value=None, step=100_000)
    _order_control()
    size_made_up = page_config.size if about.synthetic else None
    points = cached.sample(page_config.sample, size_made_up, page_config.order)
    credit = "" if about.synthetic else f" Data: {about.licence}."
    st.caption(about.description + credit, help=f"{_describe_domain(points.domain)} Source: {about.source} Licence: {about.licence}.")
    key = f"{page_config.sample} {size_made_up}"
    return Data(
        points=points,
        digest=key,
        fingerprints=cached.fingerprints(key, (page_config.order,), points, f"sample {key}".encode()),
        title=about.title,
        unit=about.unit,
        source=Source(data_part=DataPart(sample=page_config.sample, size=size_made_up), domain=DomainPart.of(points.domain)),
    )


def _order_control() -> None:
    show_value("order", config().order)
    st.select_slider(
        "Resolution",
        range(1, LARGEST_ORDER + 1),
        key="order",
        format_func=describe_resolution,
        help="The domain is cut into so many cells; nothing finer than a cell is ever looked at.",
        on_change=when_chosen("order", _change_order),
    )


def _change_order(order: int) -> None:
    """Change the resolution. A custom split that has a share for each level of the old one is dropped, for both runs."""
    how = config()
    second = {**how.second, "settings": _fitting_settings(how.second_run(), order)} if how.second else {}
    POINTS.change(order=order, settings=_fitting_settings(how, order), second=second)


def _fitting_settings(how: Config, order: int) -> dict[str, Any]:
    """Return the settings of a run, without its custom split if that does not fit a resolution."""
    try:
        how.build().check(Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    except BudgetError:
        return without_split(how.settings)
    return how.settings


def describe_resolution(order: int) -> str:
    """Write the number of cells of a lattice.

    >>> describe_resolution(10)
    '1,024 x 1,024 cells'
    """
    return f"{2**order:,} x {2**order:,} cells"


def _describe_domain(domain: Domain) -> str:
    west, south, east, north = domain.bounds
    crs = domain.crs or "a plain plane"
    return f"Domain {west:g}, {south:g} to {east:g}, {north:g} ({markdown(crs)}), {domain.side:,} x {domain.side:,} cells."


def _choose_upload() -> ChosenFiles | None:
    formats = "CSV, GeoJSON, GeoPackage, GeoParquet or a zipped Shapefile."
    st.file_uploader("Points file", TYPES, key="file", on_change=_keep_upload, help=formats)
    kept: tuple[str, bytes] | None = st.session_state.get("uploaded")
    if kept is None:
        st.info("Choose a file with one row per record: longitude and latitude columns, or point geometries.")
    elif st.session_state["file"] is None and st.button("Forget the uploaded file"):
        st.session_state["uploaded"] = kept = None
    return None if kept is None else _describe_upload(*kept)


def _describe_upload(name: str, body: bytes) -> ChosenFiles:
    digest = cached.digest_of(body)

    def count(domain: Domain, options: cached.Options) -> OpenedData:
        points = cached.count_points_file(digest, name, body, domain, options)
        refuse_empty_data(points)
        return OpenedData(data=points, fingerprints=cached.fingerprints(digest, (domain, options), points, body), engine=NUMPY)

    about = cached.inspect_points_file(digest, name, body)
    return ChosenFiles(
        about=about,
        digest=digest,
        part={"points": name},
        count=count,
        content=lambda _: digest,
        found=lambda: find_files(cached.named_file(name, body)),
    )


def _keep_upload() -> None:
    """Keep the bytes for the session: an upload widget is emptied when the user visits another page."""
    file = st.session_state["file"]
    st.session_state["uploaded"] = None if file is None else (file.name, file.getvalue())


def _choose_paths() -> ChosenFiles | None:
    files = path_files("", "Type the path of points files on the computer that runs this app.")
    if files is None:
        return None

    def count(domain: Domain, options: cached.Options) -> OpenedData | None:
        request = CountRequest(frame=domain, options=dict(options), engine=files.engine, scheduler=files.scheduler)
        return count_by_path("", files, request, (domain, options))

    return ChosenFiles(
        about=describe_points(files.found),
        digest=files.digest,
        part={"points": files.written, "engine": files.engine},
        count=count,
        content=files.content,
        found=lambda: files.found,
    )


def _ask_and_count(chosen_files: ChosenFiles) -> Data | None:
    """Ask for columns, unit, CRS and domain, and count the files; return None until everything is given and the count is finished."""
    about, digest, mode = chosen_files.about, chosen_files.digest, config().mode
    options = _choose_columns(about, digest)
    unit = unit_controls(UnitQuestion(noun="record", columns=about.columns, key=f"{mode} {digest}", private=mode == CURATE))
    if about.person is not None and "person" not in (unit or ()):
        st.caption(f":orange[There is a column *{markdown(about.person)}*: choose it above to protect persons, not records.]")
    crs = about.crs
    if about.needs_crs:
        text = "The file does not say; it is never guessed. EPSG:4326 is longitude and latitude in degrees."
        crs = st.text_input("CRS of the coordinates", placeholder="EPSG:4326", key="crs", persist_state="session", help=text)
    domain = _choose_domain(crs or None)
    needs_crs = about.needs_crs and not (domain is not None and domain.crs is None)
    drop_help = "Rows with a missing or unreadable cell. Off: the file is refused if there is one."
    drop = st.toggle("Leave out bad rows", key="drop", persist_state="session", help=drop_help)
    if mode != CURATE and not st.checkbox("These data are already public", key=f"public {digest}", persist_state="session"):
        st.info("Teach shows the truth beside the release. Confirm that the data are public, or switch to Curate.")
        return None
    if needs_crs and not crs:
        st.info("Say which CRS the coordinates are in.")
        return None
    if domain is None:
        st.info("Declare the domain: west, south, east and north.")
        return None
    if unit is None:
        return None
    if needs_crs:
        options["crs"] = crs
    options |= unit
    opened = chosen_files.count(domain, (*sorted(options.items()), ("bad_rows", "drop" if drop else "refuse")))
    if opened is None:
        return None
    data = _make_data(chosen_files, opened, domain, options)
    if mode == CURATE and "person" not in unit:
        used = tuple(sorted(options[role] for role in ("x", "y", "count") if role in options))
        show_repeated(data, cached.find_id_columns(digest, used, chosen_files.found()), "record")
    return data


def _make_data(chosen_files: ChosenFiles, opened: OpenedData, domain: Domain, options: dict[str, Any]) -> Data:
    """Show the notes that are for the curator only, and return the counted data."""
    for note in filter(None, (*opened.notes, left_out(opened.data))):
        st.caption(f"Curator only: {markdown(note)}")
    return Data(
        points=opened.data,  # type: ignore[arg-type]
        digest=chosen_files.content(opened),
        fingerprints=opened.fingerprints,
        title="Uploaded points",
        unit=RECORDS,
        source=Source(data_part=DataPart(**chosen_files.part, **options), domain=DomainPart.of(domain)),
    )


def _choose_columns(about: PointsFile, digest: str) -> dict[str, Any]:
    """Ask which columns to read; those with usual names are preset."""
    options: dict[str, Any] = {}
    names = [NONE, *about.columns]
    with st.expander("Columns", expanded=not about.has_geometry and (about.x is None or about.y is None)):
        if not about.has_geometry:
            for axis, title, found in (("x", "Longitude or easting", about.x), ("y", "Latitude or northing", about.y)):
                options[axis] = pick(title, names, found, f"column {axis} {digest}")
        count_help = "Whole numbers; without it each row is one record."
        options["count"] = pick("Records per row", names, None, f"column count {digest}", count_help)
    if about.count is not None and options["count"] is None:
        st.caption(f":orange[There is a column *{markdown(about.count)}*: choose it under Columns to count several records per row.]")
    return {name: value for name, value in options.items() if value not in (None, False)}


def pick(title: str, names: list[str], found: str | None, key: str, text: str | None = None) -> str | None:
    """Ask for one column, or none; `found` is preset."""
    chosen = st.selectbox(title, names, index=names.index(found) if found else 0, key=key, help=text, persist_state="session")
    return None if chosen == NONE else chosen


def _choose_domain(crs: str | None) -> Domain | None:
    """Ask for the bounds of the domain, which are public and never computed from the file; None while they are missing or wrong."""
    domain_help = "A public rectangle. It is never taken from the data: their extent is private."
    frame = FRAMES[st.selectbox("Domain", list(FRAMES), key="frame", persist_state="session", help=domain_help)]
    if frame is not None:
        return Domain(bounds=frame, crs="EPSG:4326", order=_choose_order())
    left, right = st.columns(2)
    west = left.number_input("West", value=None, key="west", persist_state="session", format="%.12g")
    east = right.number_input("East", value=None, key="east", persist_state="session", format="%.12g")
    south = left.number_input("South", value=None, key="south", persist_state="session", format="%.12g")
    north = right.number_input("North", value=None, key="north", persist_state="session", format="%.12g")
    crs_help = "Left empty: that of the file. Points are reprojected to it. The word none makes a plain plane without a map."
    typed_crs = st.text_input(
        "CRS of the domain", placeholder=crs or "as the file", key="domain crs", persist_state="session", help=crs_help
    ).strip()
    order, frame_crs = _choose_order(), None if typed_crs.lower() == "none" else typed_crs or crs
    if west is None or east is None or south is None or north is None or (frame_crs is None and typed_crs.lower() != "none"):
        return None
    try:
        domain = Domain(bounds=(west, south, east, north), crs=frame_crs, order=order)
        refuse_degrees(domain)
    except DpvizError as error:
        show_error(str(error))
        return None
    return domain


def _choose_order() -> int:
    _order_control()
    return config().order
