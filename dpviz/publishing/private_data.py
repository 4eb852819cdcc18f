"""Read what a configuration names, in three stages: find all files, make the public domain or regions, count the private data.

Between two stages the caller checks what is public by then, so that nothing private is read for a release that would be refused.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpviz.data.areas import AreaCounts
from dpviz.data.counting.engines import AUTO, NUMPY, OnlyNumpyError, choose_engine, falls_back
from dpviz.data.counting.files import read_areas, read_points, read_trips
from dpviz.data.counting.job import Progress
from dpviz.data.counting.scheduler import Scheduler
from dpviz.data.empty import refuse_empty_data
from dpviz.data.leaf_regions import refuse_overlaps
from dpviz.data.library_errors import or_none
from dpviz.data.points import PointCounts
from dpviz.data.reading.outline import LAND, land_outline, read_outline, read_polygons
from dpviz.data.reading.regions import read_regions
from dpviz.data.reading.safety import DEFAULT_LIMITS, is_path
from dpviz.data.reading.sources import FoundFiles, describe_copies, find_files, list_files
from dpviz.data.reading.text_format import fold_text_format
from dpviz.data.trips import TripCounts
from dpviz.errors import DomainError, InputError, SettingError
from dpviz.families import AREA_FAMILY, POINT_FAMILY
from dpviz.publishing.paths import resolve_path, resolve_pattern
from dpviz.samples.load import load_sample
from dpviz.samples.points import POINT_SAMPLES
from dpviz.space.categories import Categories
from dpviz.space.cross import Cross
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from dpviz.space.study_area import mask_outside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import geopandas

    from dpviz.publishing.config import CategoriesPart, DataConfig, DomainPart, RegionsPart

PrivateData = PointCounts | TripCounts | AreaCounts
PublicFrame = Domain | Regions | Cross | tuple[Regions, Regions]
UNWATCHED = Progress()


def fingerprints_of(data: PrivateData, *, files: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the fingerprints by which the ledger recognises data: of the content of files, of rows, and of the counts themselves.

    The counts get no fingerprint in two cases: if files have one and each person's records were bounded by a random choice, since the
    counts then differ each time (in a series they do not); and if something else has one and there is no record, since all empty data would
    have the same.

    Args:
        data: the private counts, with the fingerprints of what they were made of.
        files: `file_fingerprints` of files that `data` do not know of.

    Returns:
        Hex digests (SHA-256), at least one. They are for the ledger, which stores them keyed, and must never be shown.
    """
    of_files = dict.fromkeys([*files, *data.fingerprints.files])
    known = [*of_files, *data.fingerprints.rows]
    counts_identify = len(data.count) > 0 and not (data.is_enforced and of_files and data.during is None)
    return tuple([*known, _counts_fingerprint(data)] if counts_identify or not known else known)


def _counts_fingerprint(data: PrivateData) -> str:
    digest = hashlib.sha256(repr(data.identity()).encode())
    for array in data.identity_arrays():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class OpenedData:
    """The result of reading data: counts, fingerprints and notes. PRIVATE.

    Attributes:
        data: the private counts.
        fingerprints: fingerprints of the data; never shown.
        engine: the engine that counted the data; None for a sample.
        notes: sentences on files of equal content that nobody has declared; for the curator only, who confirms them.
    """

    data: PrivateData
    fingerprints: tuple[str, ...]
    engine: str | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"OpenedData({self.data!r})"


@dataclass(frozen=True, kw_only=True)
class CountRequest:
    """The frame, columns, rules and engine for counting files.

    Attributes:
        frame: the public domain of points, the public regions of areas, or those of origins and destinations.
        options: columns, bound per person and rules, called as under [data] of a configuration.
        engine: "auto", or one of ENGINES.
        scheduler: a running Dask scheduler; None for workers on this computer.
        may_be_empty: whether data without any record are allowed; see `refuse_empty_data`.
    """

    frame: PublicFrame
    options: dict[str, Any] = field(default_factory=dict)
    engine: str = AUTO
    scheduler: Scheduler | None = None
    may_be_empty: bool = False

    @property
    def drops(self) -> bool:
        """Whether bad rows are dropped, as in a release."""
        return self.options.get("bad_rows") == "drop"


@dataclass(frozen=True, kw_only=True)
class OpenedSources:
    """The files that a configuration names, as paths of this machine: what `open_sources` gives to the two stages after it.

    Attributes:
        config: the configuration.
        patterns: paths, patterns and folders of the data; empty for a sample.
        files: the files of the data that were found there; empty if there are none, which only `read_data` refuses.
        public: for each table with a file of the public frame, how messages call that file, and its path.
    """

    config: DataConfig
    patterns: tuple[str, ...]
    files: tuple[str | os.PathLike[str], ...] = field(repr=False)
    public: dict[str, tuple[str, Path]]


def open_sources(config: DataConfig) -> OpenedSources:
    """Find the files that a configuration names: the first stage. None of them is read, but to see that a public one is not private.

    Raises:
        InputError: a URL or a network share.
        SettingError: a file of the public frame is a file of the data, by whatever path or pattern it is named, or a copy of it.
    """
    public = {name[1 : name.index("]")]: (name, resolve_path(config.base, path)) for name, path in config.frame_files()}
    patterns = tuple(resolve_pattern(config.base, text) for text in config.data.files)
    files = tuple(filter(is_path, or_none(partial(list_files, patterns)) or ()))
    for name, path in public.values():
        if any(or_none(partial(filecmp.cmp, path, file, shallow=False)) for file in files):  # reads files of equal size only
            raise SettingError(f"{name} is a file of the data: what is public is declared, never taken from the data.")
    return OpenedSources(config=config, patterns=patterns, files=files, public=public)


def make_frame(sources: OpenedSources, report: Callable[[float], object] = lambda _: None) -> PublicFrame | None:
    """Build the public domain of points, with the mask of its study area, or read or make the public regions: the second stage.

    Args:
        sources: from `open_sources`.
        report: called with the part of the mask that is done, from 0 to 1; it may raise an error to stop.

    Returns:
        A domain, regions, regions by categories, or the regions of origins and of destinations; None for a sample of trips or areas, which
        has its own.

    Raises:
        DomainError: the bounds, the study area or the regions are invalid, or polygons overlap in which coordinates are counted.
        InputError: a file of regions or polygons cannot be read.
    """
    config = sources.config
    if config.family is POINT_FAMILY:
        return POINT_SAMPLES[config.data.sample or ""].domain if config.domain is None else _make_domain(config.domain, sources, report)
    if config.regions is None:
        return None
    regions = _open_regions("regions", config.regions, sources)
    if config.family is not AREA_FAMILY:
        same = config.destinations in (None, config.regions)
        return regions, regions if same else _open_regions("destinations", cast("RegionsPart", config.destinations), sources)
    if config.data.region is None:
        refuse_overlaps(regions)
    return regions if config.categories is None else Cross(regions, _open_categories(config.categories, sources))


def _make_domain(part: DomainPart, sources: OpenedSources, report: Callable[[float], object]) -> Domain:
    domain = part.domain()
    if part.study_area is None:
        return domain
    if part.study_area == LAND:
        return mask_outside(domain, land_outline(), report=report)
    name, path = sources.public["domain"]
    try:
        return mask_outside(domain, read_outline(path, crs=domain.crs), report=report)
    except InputError as error:
        hint = "" if path.suffix else f' The outline of the land needs no file: study_area = "{LAND}".'
        raise InputError(f"{name} {part.study_area!r}: {error}{hint}") from None


def _open_regions(title: str, part: RegionsPart, sources: OpenedSources) -> Regions:
    """Read regions from their file, or make those that need none; an error names the key.

    Raises:
        DomainError: the regions are invalid, or the package h3 is missing; for regions without ids the text names the key.
        InputError: a file cannot be read.
    """
    name, path = sources.public.get(title, ("", Path()))
    if part.file is not None:
        try:
            regions = read_regions(path, levels=part.levels or None, names=part.names or None, crs=part.crs, denominator=part.denominator)
        except InputError as error:
            raise InputError(f"{name} {part.file!r}: {error}") from None
        return regions.grouped(part.prefixes) if part.prefixes else regions
    try:
        return make_regions(part, read_polygons(path, crs=part.crs) if name else None)
    except DomainError as error:
        problem = str(error)
    key = next(key for key in ("polygons", "h3", "squares") if getattr(part, key))
    raise DomainError(f"[{title}] {key}: {problem}")


def _open_categories(part: CategoriesPart, sources: OpenedSources) -> Categories:
    """Read categories from their file, or make those that need none.

    Raises:
        DomainError: the categories are invalid.
        InputError: the file cannot be read.
    """
    if part.file is None:
        return part.categories()
    name, path = sources.public["categories"]
    try:
        return part.categories(path)
    except InputError as error:
        raise InputError(f"{name} {part.file!r}: {error}") from None


def make_regions(part: RegionsPart, polygons: geopandas.GeoSeries | None = None) -> Regions:
    """Make regions of a flat list of polygons, of H3 cells, or of squares.

    Args:
        part: says which; it names no file of nested regions.
        polygons: those of the file that `part` names; None if it names none.

    Raises:
        DomainError: the regions are invalid, or the package h3 is missing.
    """
    if part.h3:
        return Regions.h3(part.area if polygons is None else polygons, resolutions=part.h3)
    return Regions.squares(part.lattice(), zooms=part.squares) if part.squares else Regions.from_polygons(polygons)


def read_data(
    sources: OpenedSources,
    frame: PublicFrame | None,
    *,
    bad_rows: str,
    watch: Progress = UNWATCHED,
    scheduler: Scheduler | None = None,
    key: bytes | None = None,
) -> OpenedData:
    """Read and count the private data of a configuration: the third stage.

    Args:
        sources: from `open_sources`.
        frame: the domain or regions from `make_frame`.
        bad_rows: "drop" for releases, since no single row may decide whether there is a release; "refuse" for studies.
        watch: reports progress, and may cancel.
        scheduler: a running Dask scheduler; named on the command line, never in the configuration.
        key: decides which records a person keeps; fresh from the operating system if None.

    Raises:
        InputError: a file or a column cannot be used; the text names the column and the rule, and quotes no cell.
        DpvizError: the reading was cancelled.
    """
    config, part = sources.config, sources.config.data
    if part.sample is not None:
        data: PrivateData = load_sample(part.sample, domain=frame if isinstance(frame, Domain) else None, size=part.size)
        return OpenedData(data=data, fingerprints=fingerprints_of(data))
    request = CountRequest(
        frame=cast("PublicFrame", frame),
        options={**part.options(), "bad_rows": bad_rows, "unit": config.declared_unit, "during": config.during, "key": key},
        engine=part.engine,
        scheduler=scheduler,
        may_be_empty=part.may_be_empty,
    )
    return count_files(find_files(sources.files or sources.patterns, part.text_format(), copies=part.copies), request, watch)


def count_files(found: FoundFiles, request: CountRequest, watch: Progress = UNWATCHED) -> OpenedData:
    """Count the records of files, and compute their fingerprints.

    Args:
        found: the files.
        request: domain or regions, columns and engine.
        watch: reports progress, and may cancel.

    Raises:
        InputError: a file or a column cannot be used, or a file was changed in the meantime.
        DpvizError: the counting was cancelled.
    """
    engine = choose_engine(found, request.engine, request.scheduler, DEFAULT_LIMITS)
    paths = found.paths
    before = file_stamps(paths)
    notes = tuple(describe_copies(found)) if request.drops and not request.options.get("copies") else ()
    try:
        data = _read_with(engine, found, request, watch)
    except OnlyNumpyError:
        if not falls_back(found, request.engine, request.scheduler, DEFAULT_LIMITS):
            raise
        engine = NUMPY
        data = _read_with(engine, found, request, watch)
    if file_stamps(paths) != before:
        raise InputError("A file was changed while it was read: nothing was kept. Try again when no other program writes to it.")
    if not request.may_be_empty:
        refuse_empty_data(data)
    return OpenedData(data=data, fingerprints=fingerprints_of(data), engine=engine, notes=notes)


def _read_with(engine: str, found: FoundFiles, request: CountRequest, watch: Progress) -> PrivateData:
    """Count the records of files with one engine, by `read_points`, `read_areas` or `read_trips`."""
    arguments: dict[str, Any] = {**fold_text_format(request.options), "engine": engine, "progress": watch.progress, "cancel": watch.cancel}
    if request.drops:
        arguments["copies"] = True  # names are checked where the files are found, and equal content is among the notes
    if request.scheduler is not None:
        arguments |= {"address": request.scheduler.address, "insecure_address": request.scheduler.insecure}
    if isinstance(request.frame, tuple):
        return read_trips(found, regions=request.frame[0], destinations=request.frame[1], **arguments)
    if isinstance(request.frame, Cross):
        return read_areas(found, regions=request.frame.regions, categories=request.frame.categories, **arguments)
    if isinstance(request.frame, Regions):
        return read_areas(found, regions=request.frame, **arguments)
    return read_points(found, domain=request.frame, **arguments)


def file_stamps(paths: Iterable[Path]) -> tuple[tuple[str, int, int], ...]:
    """Return path, size in bytes and time of the last change of each file; while these are equal, the content counts as unchanged.

    Raises:
        InputError: a file does not exist any more.
    """
    facts = [(str(path), or_none(path.stat)) for path in paths]
    if any(fact is None for _, fact in facts):
        raise InputError("A file does not exist any more.")
    return tuple((name, fact.st_size, fact.st_mtime_ns) for name, fact in facts if fact is not None)


def left_out(data: PrivateData) -> str:
    """Write how many records were left out when the data were read, and why; "" if there are none. CURATOR ONLY."""
    if not data.dropped:
        return ""
    elsewhere = data.beyond_frame if data.during is None else f"{data.beyond_frame} or not of {data.during.name}"
    parts = [(data.outside, elsewhere), (data.bad, "unreadable"), (data.over, "over the bound")]
    reasons = ", ".join(f"{number:,} {reason}" for number, reason in parts if number)
    return f"left out {data.dropped:,}: {reasons}." if reasons else f"left out {data.dropped:,}."
