"""The data part of the Points page: a sample, an upload or files by path, on a domain that the user declares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app import cached, drafts, opened_config
from dpviz.app.advice import advise_in_app
from dpviz.app.cards import DATA, WHERE, Cards
from dpviz.app.fields import Field, in_range
from dpviz.app.files import LIMITS, count_by_path, path_files
from dpviz.app.ledger import Source
from dpviz.app.page_state import CURATE, SOURCES
from dpviz.app.points.order import choose_order
from dpviz.app.points.outline import Rings
from dpviz.app.points.state import POINTS, Data, config
from dpviz.app.points.study_area import ask_study_area
from dpviz.app.points.where import choose_where
from dpviz.app.saved_config import MOST_MADE_UP, NONE
from dpviz.app.session import carry_out, show_error, show_value, when_chosen
from dpviz.app.text_format import choose_text_format
from dpviz.app.unit_controls import UnitQuestion, show_left_out, show_repeated, unit_controls
from dpviz.data.counting.engines import NUMPY
from dpviz.data.reading.inspect import describe_points
from dpviz.data.reading.points import PointsFile
from dpviz.data.reading.safety import read_checked
from dpviz.data.reading.sources import FoundFiles, find_files
from dpviz.errors import DpvizError
from dpviz.publishing.config import DataPart, DomainPart
from dpviz.publishing.private_data import CountRequest, OpenedData, left_out, refuse_empty_data
from dpviz.release.nouns import RECORDS
from dpviz.samples.points import SAMPLES
from dpviz.space.domain import Domain
from dpviz.view.declared_canvas import DeclaredBox
from dpviz.view.escape import markdown

TYPES = ("csv", "tsv", "geojson", "json", "gpkg", "parquet", "geoparquet", "zip")
_AXES = {"x": "Longitude or easting", "y": "Latitude or northing"}


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Points as far as they are declared.

    Attributes:
        data: the counted data; None while something is missing.
        domain: the public domain; None while it is missing.
        boxes: where typed corners would lie, while the CRS is open.
        outline: closed lines, in degrees, of public polygons around which the domain was declared.
        unit: "record" or "person"; None until it is said.
        bound: the most records of one unit.
    """

    data: Data | None
    domain: Domain | None = None
    boxes: tuple[DeclaredBox, ...] = ()
    outline: Rings = field(default_factory=list)
    unit: str | None = None
    bound: int = 1


def points_controls(cards: Cards) -> Declared:
    """Show the controls. What is missing is said by `Cards.ask`."""
    page_config = config()
    st.subheader("Data", anchor=DATA) if cards.curates else st.markdown("##### 1 Data")
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
        return _choose_sample(cards)
    chosen_files = _choose_upload(cards) if page_config.source == "upload" else _choose_paths(cards)
    if chosen_files is not None:
        return _ask_and_count(chosen_files, cards)
    if not cards.curates:
        return Declared(data=None)
    if not cards.missing:
        cards.ask(DATA, "Choose a file of points.")
    cards.whom.caption("Asked once the file is read.")
    where = choose_where(cards, file_crs=None, asks_for_crs=False)
    return Declared(data=None, domain=where.domain, outline=where.outline)


@dataclass(frozen=True, kw_only=True)
class ChosenFiles:
    """Files that the user has chosen, and how they are counted.

    Attributes:
        about: what the headers of the files say.
        digest: identifies the files in the keys of widgets.
        part: fields of a saved configuration that name the files: points, and for files by path the engine.
        opened: the table [data] of an opened configuration, if it is for these files.
        count: counts the files on a domain with the given options; returns None while the count is not finished.
        content: returns a digest of the content, from the counted data.
        found: returns the files themselves.
        written: how text tables are written, where it is not the usual way.
    """

    about: PointsFile
    digest: str
    part: dict[str, Any]
    opened: DataPart | None
    count: Callable[[Domain, cached.Options], OpenedData | None]
    content: Callable[[OpenedData], str]
    found: Callable[[], FoundFiles]
    written: cached.Options


def _choose_sample(cards: Cards) -> Declared:
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
    with cards.where if cards.curates else nullcontext():
        choose_order()
    size_made_up = page_config.size if about.synthetic else None
    points = cached.sample(page_config.sample, size_made_up, page_config.order)
    with cards.where if cards.curates else nullcontext():
        masked = ask_study_area(points.domain)
    if masked.domain is None:
        cards.ask(WHERE, "Correct the study area, in which all people are.")
        return Declared(data=None)
    if masked.domain.mask is not None:
        digest = cached.digest_of(masked.domain.mask.packed)
        points = cached.masked_sample(digest, page_config.sample, size_made_up, masked.domain)
    credit = "" if about.synthetic else f" Data: {about.licence}."
    st.caption(about.description + credit, help=f"{_describe_domain(points.domain)} Source: {about.source} Licence: {about.licence}.")
    key, source = f"{page_config.sample} {size_made_up}", DataPart(sample=page_config.sample, size=size_made_up)
    data = Data(
        points=points,
        digest=key,
        fingerprints=cached.fingerprints(key, (points.domain,), points, f"sample {key}".encode()),
        title=about.title,
        unit=about.unit,
        source=Source(data_part=source, domain=DomainPart.of(points.domain, masked.file)),
    )
    if cards.curates:
        bound = f", of whom at most {points.contributions:,} {about.unit} count" if points.contributions > 1 else ""
        cards.whom.markdown(f"The sample says it: one {points.unit}{bound}.")
        cards.where.caption(_describe_domain(points.domain))
    return _declared(data)


def _declared(data: Data) -> Declared:
    points = data.points
    return Declared(data=data, domain=points.domain, unit=points.unit, bound=points.contributions)


def _describe_domain(domain: Domain) -> str:
    west, south, east, north = domain.bounds
    crs = domain.crs or "a plain plane"
    return f"Domain {west:g}, {south:g} to {east:g}, {north:g} ({markdown(crs)}), {domain.side:,} x {domain.side:,} cells."


def _choose_upload(cards: Cards) -> ChosenFiles | None:
    formats = "CSV, GeoJSON, GeoPackage, GeoParquet or a zipped Shapefile."
    drafts.ask_again("uploaded")
    st.file_uploader("Points file", TYPES, key="file", on_change=_keep_upload, help=formats)
    kept: tuple[str, bytes] | None = st.session_state.get("uploaded")
    if kept is None:
        if not cards.curates:
            st.info("Choose a file with one row per record: longitude and latitude columns, or point geometries.")
    elif st.session_state["file"] is None and st.button("Forget the uploaded file"):
        st.session_state["uploaded"] = kept = None
    return None if kept is None else _describe_upload(*kept, cards)


def _describe_upload(name: str, body: bytes, cards: Cards) -> ChosenFiles | None:
    digest = cached.digest_of(body)
    opened_part = opened_config.fill_in_upload(opened_config.POINTS, name, digest, digest)
    text_format = choose_text_format(cached.named_file(name, body), name, digest, cards)
    if text_format is None:
        return None
    written = tuple(text_format.declarations().items())

    def count(domain: Domain, options: cached.Options) -> OpenedData:
        points = cached.count_points_file(digest, name, body, domain, options)
        refuse_empty_data(points)
        return OpenedData(data=points, fingerprints=cached.fingerprints(digest, (domain, options), points, body), engine=NUMPY)

    about = cached.inspect_points_file(digest, name, body, written)
    return ChosenFiles(
        about=about,
        digest=digest,
        part={"points": name},
        opened=opened_part,
        count=count,
        content=lambda _: digest,
        found=lambda: find_files(cached.named_file(name, body), text_format),
        written=written,
    )


def _keep_upload() -> None:
    """Keep the bytes for the session: an upload widget is emptied when the user visits another page."""
    file = st.session_state["file"]
    st.session_state["uploaded"] = None if file is None else (file.name, file.getvalue())


def _choose_paths(cards: Cards) -> ChosenFiles | None:
    files = path_files("", opened_config.POINTS, cards)
    if files is None:
        return None

    def count(domain: Domain, options: cached.Options) -> OpenedData | None:
        request = CountRequest(frame=domain, options=dict(options), engine=files.engine, scheduler=files.scheduler)
        return count_by_path("", files, request, (domain, options))

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


def _ask_and_count(chosen_files: ChosenFiles, cards: Cards) -> Declared:
    """Ask for columns, unit, CRS and domain, and count the files once everything is given."""
    about, digest, mode = chosen_files.about, chosen_files.digest, config().mode
    options = {**dict(chosen_files.written), **choose_columns(about, digest)}
    columns = [name for name in about.columns if name not in options.values()]
    with cards.whom:
        unit = unit_controls(UnitQuestion(noun="record", columns=columns, key=f"{mode} {digest}", private=mode == CURATE), cards)
        if about.person is not None and "person" not in (unit or ()):
            st.caption(f":orange[There is a column *{markdown(about.person)}*: choose it above to protect persons, not records.]")
    where = choose_where(cards, file_crs=about.crs, asks_for_crs=about.needs_crs, is_private=partial(_is_among, chosen_files))
    with cards.where:
        drop_help = "Rows with a missing or unreadable cell. Off: the file is refused if there is one."
        drop = st.toggle("Leave out bad rows", key="drop", persist_state="session", help=drop_help)
    bound, kind = (unit or {}).get("contributions", 1), None if unit is None else "person" if "person" in unit else "record"
    open_questions = Declared(data=None, domain=where.domain, boxes=where.boxes, outline=where.outline, unit=kind, bound=bound)
    if mode != CURATE and not st.checkbox("These data are already public", key=f"public {digest}", persist_state="session"):
        st.info("Teach shows the truth beside the release. Confirm that the data are public, or switch to Curate.")
        return open_questions
    if lacks := lacking_column(about, options):
        cards.ask(DATA, f"Choose the column of {lacks}, under Columns on the left.")
    if where.domain is None or where.needs_crs or unit is None or lacks:
        return open_questions
    if where.crs is not None and where.domain.crs is not None:
        options["crs"] = where.crs
    options |= unit
    try:
        opened = chosen_files.count(where.domain, (*sorted(options.items()), ("bad_rows", "drop" if drop else "refuse")))
    except DpvizError as error:
        show_error(str(error))
        cards.ask(DATA, f"Correct the data, or how they are read: {advise_in_app(str(error))}")
        if "are x and y swapped" in str(error) and {"x", "y"} <= options.keys():
            swap = partial(_swap_columns, digest, options["x"], options["y"])
            st.button("Swap the columns of longitude and latitude", key=f"swap {digest}", on_click=carry_out(swap))
        return open_questions
    if opened is None:
        cards.ask(DATA, "Count the records.")
        return open_questions
    data = _make_data(chosen_files, opened, DomainPart.of(where.domain, where.study_area), options)
    if mode == CURATE and "person" not in unit:
        used = tuple(sorted(options[role] for role in ("x", "y", "count") if role in options))
        with cards.whom:
            show_repeated(data, cached.find_id_columns(f"{digest} {chosen_files.written}", used, chosen_files.found()), "record")
    return replace(_declared(data), outline=where.outline)


def _is_among(chosen_files: ChosenFiles, digest: str, size: int) -> bool:
    """Return whether one of the private files has this digest and so many bytes."""
    found = chosen_files.found()
    same_size = [source for source, own in zip(found.sources, found.sizes, strict=True) if own == size]
    return any(cached.digest_of(read_checked(source, LIMITS)[1]) == digest for source in same_size)


def _swap_columns(digest: str, x: str, y: str) -> None:
    st.session_state.update({f"column x {digest}": y, f"column y {digest}": x})


def lacking_column(about: PointsFile, options: dict[str, Any]) -> str | None:
    """Return which column of coordinates is not chosen; None if the points can be read."""
    if about.has_geometry or options.get("geometry"):
        return None
    return next((title for axis, title in _AXES.items() if not options.get(axis)), None)


def _make_data(chosen_files: ChosenFiles, opened: OpenedData, domain: DomainPart, options: dict[str, Any]) -> Data:
    """Return the counted data; what was left out of them is for the curator only."""
    asks_for_crs = chosen_files.about.needs_crs
    part = opened_config.with_kept({**chosen_files.part, **options}, chosen_files.opened, asks_for_crs=asks_for_crs)
    data = Data(
        points=opened.data,  # type: ignore[arg-type]
        digest=chosen_files.content(opened),
        fingerprints=opened.fingerprints,
        title="Uploaded points",
        unit=RECORDS,
        source=Source(data_part=part, domain=domain),
    )
    show_left_out(data, (*opened.notes, left_out(opened.data)), private=config().mode == CURATE)
    return data


def choose_columns(about: PointsFile, digest: str) -> dict[str, Any]:
    """Ask which columns to read; those with usual names are preset."""
    options: dict[str, Any] = {}
    names = [NONE, *about.columns]
    with st.expander("Columns", expanded=not about.has_geometry and about.geometry is None and (about.x is None or about.y is None)):
        if about.has_geometry:
            text = "Each polygon counts as one record at its centroid. Off: a file with polygons is refused."
            options["centroids"] = st.toggle("Polygons by their centroid", key=f"centroids {digest}", persist_state="session", help=text)
        else:
            wkt = None if about.x is not None and about.y is not None else about.geometry
            text = "Texts such as POINT (13.4 52.5), in place of two columns of coordinates."
            options["geometry"] = pick("Points as text (WKT)", names, wkt, f"column geometry {digest}", text)
        if not (about.has_geometry or options["geometry"]):
            for axis, title in _AXES.items():
                options[axis] = pick(title, names, getattr(about, axis), f"column {axis} {digest}")
        count_help = "Whole numbers; without it each row is one record."
        options["count"] = pick("Records per row", names, None, f"column count {digest}", count_help)
    if about.count is not None and options["count"] is None:
        st.caption(f":orange[There is a column *{markdown(about.count)}*: choose it under Columns to count several records per row.]")
    return {name: value for name, value in options.items() if value not in (None, False)}


def keep_known(key: str, columns: Sequence[str], named: str | None) -> None:
    """Say which column of an opened configuration a file lacks, and go back to what is preset.

    Args:
        key: key of the widget.
        columns: of the file.
        named: the column that is chosen; None if there is none.
    """
    if named is not None and named not in columns and key in st.session_state:
        del st.session_state[key]
        st.caption(f":orange[The opened configuration names a column {markdown(named)}, which this file does not have.]")


def pick(title: str, names: list[str], found: str | None, key: str, text: str | None = None) -> str | None:
    """Ask for one column, or none; `found` is preset."""
    keep_known(key, names, st.session_state.get(key))
    chosen = st.selectbox(title, names, index=names.index(found) if found else 0, key=key, help=text, persist_state="session")
    return None if chosen == NONE else chosen
