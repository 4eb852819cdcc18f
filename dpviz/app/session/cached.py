"""Caches that outlive a run of the page: loaded data, background work, and what studies on public samples found.

Releases are never cached, since only a button makes one.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pandas as pd
import streamlit as st

from dpviz.app.jobs.keeper import Keeper, SharedJobs
from dpviz.app.jobs.results import Results
from dpviz.app.jobs.study import MOST_KNOWN_ROWS
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.server.class_samples import load_points
from dpviz.data.areas import AreaCounts
from dpviz.data.columns import PointColumns
from dpviz.data.counting.file_fingerprints import content_fingerprint
from dpviz.data.points import PointCounts
from dpviz.data.reading.extent import find_extent
from dpviz.data.reading.inspect import RepeatedColumn, describe_points, describe_trip_files, find_repeated_columns
from dpviz.data.reading.outline import OUTLINE_LIMITS, land_outline, read_outline, read_polygons
from dpviz.data.reading.points import PointsFile
from dpviz.data.reading.regions import RegionsFile, holds_points, inspect_regions, list_denominators, propose_levels, read_regions
from dpviz.data.reading.sources import FoundFiles, find_files
from dpviz.data.reading.text_format import TextFormat, fold_text_format
from dpviz.data.reading.trips import TripsFile
from dpviz.data.trips import TripCounts
from dpviz.errors import DpvizError
from dpviz.papers.stored import StoredRun, load_stored
from dpviz.publishing.config import CategoriesPart, RegionsPart
from dpviz.publishing.private_data import CountRequest, OpenedData, PrivateData, PublicFrame, count_files, fingerprints_of, make_regions
from dpviz.samples.areas import area_denominators, load_area_sample, region_denominators
from dpviz.samples.points import POINT_SAMPLES
from dpviz.samples.trips import load_trip_sample
from dpviz.space.categories import Categories
from dpviz.space.domain import Domain
from dpviz.space.outline import Outline
from dpviz.space.regions import Regions
from dpviz.space.study_area import mask_outside
from dpviz.view.areas_drawing import Denominator, RegionsOnMap
from dpviz.view.basemap import Bounds, outline_rings
from dpviz.view.declared_regions import DeclaredLevel, find_bounds, prepare_level

_LARGEST_LOOKED_AT = 200_000_000  # bytes of public files whose extent is found
Options = tuple[tuple[str, object], ...]
P = ParamSpec("P")
T = TypeVar("T")
PER_SESSION: list[Any] = []  # functions whose results `forget` clears


def _per_session(most: int, spinner: str | bool = False, **options: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep so many results of a function for each session, until `forget` clears them; `spinner` is shown while one is made."""

    def keep(function: Callable[P, T]) -> Callable[P, T]:
        cached: Any = st.cache_resource(max_entries=most, scope="session", show_spinner=spinner, **options)(function)
        PER_SESSION.append(cached)
        return cached  # type: ignore[no-any-return]

    return keep


@dataclass(frozen=True, kw_only=True)
class UploadedRegions:
    """Regions read from an uploaded file, or made without one.

    Attributes:
        key: digest of the file, columns of its levels, lengths of the prefixes of coarser levels, columns of names, CRS and
            denominator; the regions' key in caches.
        regions: the regions.
        part: the table of a configuration that makes regions without a file of ids; None for those of such a file.
    """

    key: tuple[object, ...]
    regions: Regions
    part: RegionsPart | None = None


def digest_of(content: bytes) -> str:
    """Return a digest of a file's whole content; one changed byte gives another digest."""
    return digest_of_fingerprints([content_fingerprint(content)])


def digest_of_fingerprints(file_fingerprints: Iterable[str]) -> str:
    """Return a digest of several files, from the fingerprint of each; the fingerprints cannot be read from the digest."""
    return hashlib.blake2b("".join(sorted(file_fingerprints)).encode(), digest_size=16).hexdigest()


@st.cache_resource(max_entries=100, show_spinner=False)
def seeds_of_figure(paper: str, figure: str, size: str) -> Results:  # noqa: ARG001
    """Return the rows of a paper's figure by the seeds that were measured so far; all sessions share them, and add their own."""
    return Results(math.inf)


@st.cache_resource(max_entries=30, show_spinner=False)
def stored_run(paper: str, figure: str) -> StoredRun | None:
    """Load the stored run of a paper's figure; all sessions share it, with its verdicts."""
    from dpviz.papers.catalogue import find_figure  # noqa: PLC0415  (the figures import all that they measure)

    return load_stored(*find_figure(paper, figure))


@st.cache_resource(max_entries=6, show_spinner="Loading the sample ...")
def sample(key: str, size: int | None, order: int) -> PointCounts:
    """Load a public sample and count it; all sessions share the result."""
    domain = POINT_SAMPLES[key].domain
    return load_points(key, size, Domain(bounds=domain.bounds, crs=domain.crs, order=order))


@_per_session(4, "Looking at the file ...")
def inspect_points_file(digest: str, name: str, _content: bytes, written: Options = ()) -> PointsFile:  # noqa: ARG001
    """Describe a file of points: format, columns and CRS.

    Args:
        digest: identifies the content in the cache's key.
        name: of the file.
        _content: of the file.
        written: how a text table is written, as `TextFormat.declarations` has it.
    """
    return describe_points(find_files(named_file(name, _content), TextFormat(**dict(written))))  # type: ignore[arg-type]


@_per_session(2, "Counting the records ...")
def count_upload(
    digest: str,  # noqa: ARG001
    name: str,
    _content: bytes,
    frame_key: object,  # noqa: ARG001
    _frame: PublicFrame,
    options: Options,
) -> OpenedData:
    """Count an upload in a public frame; in the cache's key, `digest` identifies the content and `frame_key` the frame."""
    found = find_files(named_file(name, _content), fold_text_format(dict(options))["text_format"])
    return count_files(found, CountRequest(frame=_frame, options=dict(options)))


@_per_session(4)
def fingerprints(digest: str, frame_and_columns: tuple[object, ...], _data: PrivateData) -> tuple[str, ...]:  # noqa: ARG001
    """Return the ledger's fingerprints of data; in the cache's key, `digest` identifies the content."""
    return fingerprints_of(_data)


def named_file(name: str, content: bytes) -> io.BytesIO:
    """Return bytes as an open file with a name, whose ending determines the format. All files of a user pass here; a class has none."""
    refuse_in_class("files")
    file = io.BytesIO(content)
    file.name = Path(name).name
    return file


@st.cache_resource(max_entries=4, show_spinner="Loading the sample ...")
def trip_sample(key: str) -> TripCounts:
    """Load a public sample of trips; all sessions share the result."""
    return load_trip_sample(key)


@dataclass(frozen=True, kw_only=True)
class AreaSampleOnMap:
    """A sample of areas with what its maps need.

    Attributes:
        areas: the counts.
        on_map: where its regions lie.
        denominators: public numbers of its regions, by what they are called.
    """

    areas: AreaCounts
    on_map: RegionsOnMap
    denominators: dict[str, Denominator]


@st.cache_resource(max_entries=4, show_spinner="Loading the sample ...")
def area_sample(key: str) -> AreaSampleOnMap:
    """Load a public sample of areas; all sessions share the result."""
    areas = load_area_sample(key)
    denominators = _make_denominators(area_denominators(key, areas.regions))
    return AreaSampleOnMap(areas=areas, on_map=RegionsOnMap(areas.regions), denominators=denominators)


def _make_denominators(listed: Mapping[str, tuple[str, pd.Series, float]]) -> dict[str, Denominator]:
    return {name: Denominator(words=words, numbers=numbers, per=per) for name, (words, numbers, per) in listed.items()}


@st.cache_resource(max_entries=4, show_spinner=False)
def sample_study_rows(fingerprint: str) -> Results:  # noqa: ARG001
    """Return the rows of studies on a public sample by run and workload; all sessions share them.

    Only rows that a study of this server has made are kept here, never those of a loaded table. The fingerprint identifies sample, frame
    and seed.
    """
    return Results(MOST_KNOWN_ROWS)


@st.cache_resource(max_entries=1, show_spinner=False)
def shared_studies() -> SharedJobs:
    """Return the studies on public samples that are running; a session that is loaded anew finds its study there."""
    return SharedJobs()


@_per_session(8, "Looking at the file ...")
def regions_hold_points(digest: str, name: str, _content: bytes) -> bool:  # noqa: ARG001
    """Return whether the shapes of a file of regions are points."""
    return holds_points(named_file(name, _content))


@_per_session(4, "Looking at the file ...")
def inspect_regions_file(digest: str, name: str, _content: bytes) -> RegionsFile:  # noqa: ARG001
    """Describe a file of regions: its columns and levels."""
    return inspect_regions(named_file(name, _content))


@_per_session(4, "Looking at the file ...")
def propose_region_levels(digest: str, name: str, _content: bytes) -> tuple[str, ...]:  # noqa: ARG001
    """Propose the columns of ids of a file with a column per level, coarsest first; none if they are not clear."""
    return propose_levels(named_file(name, _content))


@_per_session(4, "Looking at the file ...")
def list_region_denominators(digest: str, name: str, _content: bytes) -> tuple[str, ...]:  # noqa: ARG001
    """List the columns of a file of regions by which counts can be divided."""
    return list_denominators(named_file(name, _content))


@_per_session(4, "Reading the regions ...")
def read_regions_file(
    digest: str,
    name: str,
    _content: bytes,
    levels: tuple[str, ...],
    prefix_lengths: tuple[int, ...],
    names: tuple[tuple[str, str], ...] = (),
    crs: str | None = None,
    denominator: str | None = None,
) -> UploadedRegions:
    """Read a file's regions; each of `prefix_lengths` makes a coarser level of so many first characters of the coarsest ids.

    The columns of names, by level, and the CRS are those of an opened configuration.
    """
    file, labels = named_file(name, _content), dict(names) or None
    regions = read_regions(file, levels=levels or None, names=labels, crs=crs, denominator=denominator)
    key = (digest, levels, prefix_lengths, names, crs, denominator)
    return UploadedRegions(key=key, regions=regions.grouped(prefix_lengths) if prefix_lengths else regions)


@_per_session(4, "Reading the categories ...")
def make_categories(digest: str, part: CategoriesPart, _file: tuple[str, bytes] | None) -> Categories:  # noqa: ARG001
    """Make categories, those of a public file by its name and content; `digest` identifies that."""
    return part.categories(None if _file is None else named_file(*_file))


@_per_session(4, "Making the regions ...")
def make_regions_without_file(digest: tuple[object, ...], _part: RegionsPart, _polygons: tuple[str, bytes] | None) -> UploadedRegions:
    """Make H3 cells or squares. `digest` identifies the part and the polygons that H3 cells cover, whose name and content follow."""
    polygons = None if _polygons is None else read_polygons(named_file(*_polygons), crs=_part.crs, limits=OUTLINE_LIMITS)
    return UploadedRegions(key=digest, regions=make_regions(_part, polygons), part=_part)


@_per_session(8, "Drawing the regions ...")
def declared_level(digest: tuple[object, ...], _frames: tuple[UploadedRegions, UploadedRegions], level: int) -> DeclaredLevel | None:  # noqa: ARG001
    """Prepare the regions of a level for a map; None if they have neither outlines nor points. `digest` has the keys of both frames."""
    return prepare_level(_frames[0].regions, _frames[1].regions, level)


@_per_session(4)
def declared_bounds(digest: tuple[object, ...], _frames: tuple[UploadedRegions, UploadedRegions]) -> Bounds | None:  # noqa: ARG001
    """Choose what a map of regions shows at first; None if they have neither outlines nor points. `digest` has the keys of both frames."""
    return find_bounds(_frames[0].regions, _frames[1].regions)


@_per_session(4, "Reading the polygons ...")
def read_outline_file(digest: str, name: str, _content: bytes, crs: str | None) -> tuple[Outline, list[list[list[float]]]]:  # noqa: ARG001
    """Read the outline of an area, and write it as closed lines in degrees; the CRS counts where the file states none."""
    outline = read_outline(named_file(name, _content), crs=crs)
    return outline, outline_rings(outline.in_degrees)


def _give_way(_done: float) -> None:
    """End the run of the page if a person has stopped it or clicked meanwhile: reading the session state is a call that does so."""
    st.session_state.get("gives way", None)


@_per_session(4, "Masking the domain ...")
def mask_domain(digest: str, name: str, _content: bytes, domain: Domain) -> Domain:
    """Mask the cells of a domain that touch no polygon of a public file; the domain's CRS counts where the file states none."""
    outline, _ = read_outline_file(digest, name, _content, domain.crs)
    return mask_outside(domain, outline, report=_give_way)


@_per_session(4, "Masking the domain ...")
def mask_to_land(domain: Domain) -> Domain:
    """Mask the cells of a domain that touch no land."""
    return mask_outside(domain, land_outline(), report=_give_way)


@_per_session(2, "Counting the sample ...")
def masked_sample(digest: str, key: str, size: int | None, domain: Domain) -> PointCounts:  # noqa: ARG001
    """Load a public sample and count it on a domain with a mask, whose content `digest` identifies."""
    return load_points(key, size, domain)


@_per_session(4, "Looking at the file ...")
def inspect_trips_file(digest: str, name: str, _content: bytes, written: Options) -> TripsFile:  # noqa: ARG001
    """Describe a file of trips: format and columns; the arguments are those of `inspect_points_file`."""
    return describe_trip_files(find_files(named_file(name, _content), TextFormat(**dict(written))))  # type: ignore[arg-type]


@_per_session(2)
def regions_on_map(digest: tuple[object, ...], _frame: UploadedRegions) -> RegionsOnMap:  # noqa: ARG001
    """Return where regions of a file lie on a map; `digest` is their key."""
    return RegionsOnMap(_frame.regions)


@_per_session(2)
def denominators_of(digest: tuple[object, ...], _frame: UploadedRegions) -> dict[str, Denominator]:  # noqa: ARG001
    """Return the public numbers by which counts in a file's regions can be divided; `digest` is their key."""
    return _make_denominators(region_denominators(_frame.regions))


@_per_session(1, on_release=Keeper.stop_all)
def keeper() -> Keeper:
    """Return the owner of this session's background work. Streamlit releases it when the browser is closed and when data are forgotten."""
    return Keeper()


@_per_session(8)
def file_counts(page: str) -> Results:  # noqa: ARG001
    """Return the last counts of a page's files that are given by path, by the keys of their jobs."""
    return Results(2)


@_per_session(4, "Looking where the points lie ...")
def public_extent(digest: str, columns: PointColumns, centroids: bool, _found: FoundFiles) -> Bounds | None:  # noqa: ARG001
    """Return the box around the points of public files, as `find_extent`; None if it cannot be found, or they are large.

    `digest` identifies the files.
    """
    if _found.size > _LARGEST_LOOKED_AT:
        return None
    try:
        return find_extent(_found, columns, centroids=centroids)
    except DpvizError:  # the count says what is wrong with the files
        return None


@_per_session(4, "Looking for columns of ids ...")
def find_id_columns(digest: str, used_columns: tuple[str, ...], _found: FoundFiles) -> tuple[RepeatedColumn, ...] | None:  # noqa: ARG001
    """Find columns of files whose values repeat as ids do; `digest` identifies the files in the cache's key."""
    return find_repeated_columns(_found, but=used_columns)


def forget() -> None:
    """Clear all caches of this session, and end its background work; public samples, which all sessions share, are not cleared."""
    keeper().end_all()
    for function in PER_SESSION:
        function.clear()
