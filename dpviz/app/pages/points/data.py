"""The data part of the Points page: a sample, an upload or files by path, on a domain that the user declares."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import FILES, WHERE, Cards
from dpviz.app.cards.chosen_files import (
    ChosenFiles,
    FileKind,
    choose_files,
    count_chosen,
    data_of_files,
    find_public_extent,
    is_among,
    take_columns,
)
from dpviz.app.cards.columns import choose_point_columns, find_point_columns, lacking_place, lacks_count
from dpviz.app.cards.extent import drop_extent, take_extent
from dpviz.app.cards.file_questions import are_public, ask_whom, leave_out_bad_rows, show_repeats
from dpviz.app.cards.source import choose_sample, choose_source, data_of_sample
from dpviz.app.cards.unit import UnitQuestion
from dpviz.app.cards.uploads import DropZone, Role, ask_for_file, upload_types
from dpviz.app.components.fields import Field, in_range
from dpviz.app.pages.points.order import choose_order
from dpviz.app.pages.points.outline import OUTLINE, Rings, take_outline
from dpviz.app.pages.points.state import POINTS, Data, study_area_answer
from dpviz.app.pages.points.study_area import ask_study_area
from dpviz.app.pages.points.where import choose_where
from dpviz.app.server.class_mode import most_records
from dpviz.app.session import cached
from dpviz.app.session.ledger import Source
from dpviz.app.session.widgets import carry_out
from dpviz.app.state.values import MOST_MADE_UP, UPLOAD
from dpviz.data.reading.inspect import describe_points
from dpviz.data.reading.points import PointsFile
from dpviz.families import POINT_FAMILY
from dpviz.publishing.config import DataPart, DomainPart
from dpviz.samples.points import POINT_SAMPLES
from dpviz.space.domain import Domain
from dpviz.view.declared_canvas import DeclaredBox
from dpviz.view.escape import markdown

PointFiles = ChosenFiles[PointsFile, Domain]
KIND = FileKind[PointsFile, Domain](
    page=POINTS,
    describe_upload=cached.inspect_points_file,
    describe=describe_points,
    frame_of=lambda domain: domain,
    key_of=lambda domain: domain,
    title="Uploaded points",
    unit=POINT_FAMILY.counted,
)


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
    if cards.curates:
        drop_extent(POINTS, "domain")
    source = choose_source(POINTS)
    if source == "sample":
        return _choose_sample(cards)
    if cards.curates:
        points = Role(slot="", words="Private: points", named=POINTS.draft.uploaded.path)
        known = "" if (around := POINTS.draft.domain.around) is None else around.digest
        outline = Role(slot=OUTLINE, words="Public: where to count", digest=known, when_chosen=take_outline)
        DropZone(page=POINTS, private=points if source == UPLOAD else None, public=[outline]).show(cards)
    chosen_files = choose_files(KIND, cards, partial(_ask_for_upload, cards))
    if chosen_files is not None:
        return _ask_and_count(chosen_files, cards)
    if not cards.curates:
        return Declared(data=None)
    if not cards.missing:
        cards.ask(FILES, "Choose a file of points.")
    cards.whom.caption("Asked once the file is read.")
    where = choose_where(cards, file_crs=None, asks_for_crs=False)
    return Declared(data=None, domain=where.domain, outline=where.outline)


def _choose_sample(cards: Cards) -> Declared:
    choose_sample(POINTS, POINT_SAMPLES)
    draft = POINTS.draft
    sample = str(draft.sample)
    about = POINT_SAMPLES[sample]
    if about.synthetic:
        usual, label = about.usual, f"How many {about.unit}"
        size = Field(
            key="size",
            label=label,
            value=draft.size or usual,
            problem=in_range(label, 1, most_records(MOST_MADE_UP)),
            use=lambda typed: POINTS.change(draft={"size": None if typed == usual else typed}),
        )
        size.show(st.number_input, value=None, step=100_000)
    with cards.where if cards.curates else nullcontext():
        choose_order()
    size_made_up = draft.size if about.synthetic else None
    points = cached.sample(sample, size_made_up, draft.order)
    with cards.where if cards.curates else nullcontext():
        masked = ask_study_area(*study_area_answer(), points.domain)
    if masked.domain is None:
        cards.ask(WHERE, masked.asks)
        return Declared(data=None)
    if masked.domain.mask is not None:
        digest = cached.digest_of(masked.domain.mask.packed)
        points = cached.masked_sample(digest, sample, size_made_up, masked.domain)
    credit = "" if about.synthetic else f" Data: {about.licence}."
    st.caption(about.description + credit, help=f"{_describe_domain(points.domain)} Source: {about.source} Licence: {about.licence}.")
    key, source = f"{sample} {size_made_up}", DataPart(sample=sample, size=size_made_up)
    origin = Source(data_part=source, domain=DomainPart.of(points.domain, masked.file))
    data = data_of_sample(cards, about, points, origin, key, frame=(points.domain,))
    if cards.curates:
        cards.where.caption(_describe_domain(points.domain))
    return _declared(data)


def _declared(data: Data) -> Declared:
    points = data.counts
    return Declared(data=data, domain=points.domain, unit=points.unit, bound=points.contributions)


def _describe_domain(domain: Domain) -> str:
    west, south, east, north = domain.bounds
    crs = domain.crs or "a plain plane"
    return f"Domain {west:g}, {south:g} to {east:g}, {north:g} ({markdown(crs)}), {domain.side:,} x {domain.side:,} cells."


def _ask_for_upload(cards: Cards) -> tuple[str, bytes] | None:
    formats = (
        "CSV, GeoJSON, GeoPackage, GeoParquet, FlatGeobuf or a zipped Shapefile. For others, dpviz check FILE says what converts them."
    )
    named = POINTS.draft.uploaded.path
    kept = ask_for_file(POINTS, "Points file", upload_types(), "", formats, named=named, what="file of points", asks_if_public=False)
    if kept is None and not cards.curates:
        st.info("Choose a file with one row per record: longitude and latitude columns, or point geometries.")
    return kept


def _ask_and_count(chosen_files: PointFiles, cards: Cards) -> Declared:
    """Ask for columns, unit, CRS and domain, and count the files once everything is given."""
    about, key, mode = chosen_files.about, chosen_files.key, POINTS.draft.mode
    take_columns(POINTS, chosen_files, find_point_columns(about))
    options = {**dict(chosen_files.written), **choose_point_columns(POINTS, about, key)}
    columns = [name for name in about.columns if name not in options.values()]
    unit = ask_whom(POINTS, UnitQuestion(noun="record", columns=columns, key=f"{mode} {key}"), about.person, cards)
    is_public, lacks = are_public(POINTS, chosen_files.digest), lacking_place(about, options)
    if is_public and not lacks and not cards.curates:
        take_extent(POINTS, "domain", chosen_files.digest, find_public_extent(chosen_files, options), crs="")
    where = choose_where(cards, file_crs=about.crs, asks_for_crs=about.needs_crs, is_private=partial(is_among, chosen_files))
    bad_rows = leave_out_bad_rows(POINTS, "a missing or unreadable")
    bound, kind = (unit or {}).get("contributions", 1), None if unit is None else "person" if "person" in unit else "record"
    open_questions = Declared(data=None, domain=where.domain, boxes=where.boxes, outline=where.outline, unit=kind, bound=bound)
    if lacks:
        cards.ask(FILES, lacks)
    no_count = unit is not None and lacks_count("record", about, {**options, **unit}, cards)
    if not is_public:
        return open_questions
    if where.domain is None or where.needs_crs or unit is None or lacks or no_count:
        return open_questions
    if where.crs is not None and where.domain.crs is not None:
        options["crs"] = where.crs
    options |= unit
    offer_swap = partial(_offer_swap, key, options)
    opened = count_chosen(chosen_files, where.domain, {**options, "bad_rows": bad_rows}, cards, "records", offer_swap)
    if opened is None:
        return open_questions
    data = data_of_files(KIND, chosen_files, opened, options, domain=DomainPart.of(where.domain, where.study_area))
    if "person" not in unit:
        used = tuple(sorted(options[role] for role in ("x", "y", "count") if role in options))
        show_repeats(POINTS, chosen_files, data, used, "record", cards)
    return replace(_declared(data), outline=where.outline)


def _offer_swap(key: str, options: dict[str, Any], error: str) -> None:
    """Offer to swap the columns of coordinates, where a count was refused because they may be the other way round."""
    if "are x and y swapped" in error and {"x", "y"} <= options.keys():
        swap = partial(POINTS.set, "data", x=options["y"], y=options["x"])
        st.button("Swap the columns of longitude and latitude", key=f"swap {key}", on_click=carry_out(swap))
