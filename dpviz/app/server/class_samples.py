"""Public files of the person who starts a class: they become samples of the class's server, by the names of their configurations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

from dpviz.app.server.class_mode import LARGEST_ORDER
from dpviz.data.fingerprints import sample_fingerprint
from dpviz.data.points import PointCounts
from dpviz.errors import DpvizError, SettingError
from dpviz.families import AREA_FAMILY, POINT_FAMILY, TRIP_FAMILY
from dpviz.publishing.config import DataConfig, DomainPart, PublicDataPart, RegionsPart
from dpviz.publishing.private_data import PrivateData, make_frame, open_sources, read_data
from dpviz.publishing.toml_tables import TOML, read_file
from dpviz.samples.areas import AREA_SAMPLES, AreaSample
from dpviz.samples.load import SAMPLES
from dpviz.samples.points import POINT_SAMPLES, Sample, load_point_sample
from dpviz.samples.trips import TRIP_SAMPLES, TripSample
from dpviz.space.domain import Domain

Config = TypeVar("Config", bound=DataConfig)

_NAME = re.compile("[A-Za-z0-9_-]{1,40}")
_PARTS: dict[str, type[Any]] = {"data": PublicDataPart, "domain": DomainPart, "regions": RegionsPart, "destinations": RegionsPart}
_NO_AREA = "[domain] study_area: leave it out. On the page a class says where people can be: anywhere, or on land."


@dataclass(frozen=True, kw_only=True)
class ClassSample:
    """Public data of a class.

    Attributes:
        name: by which links and menus know it.
        config: the files by their names, their columns, and domain or regions.
        counts: the data, of points on the finest lattice that a class may have.
    """

    name: str
    config: DataConfig
    counts: PrivateData


_added: dict[str, ClassSample] = {}


def add_class_samples(paths: Sequence[str]) -> None:
    """Read public data, and add them to the samples of this process.

    Args:
        paths: of configurations; of each only [data], with public = true, [domain], [regions] and [destinations] are used.

    Raises:
        DpvizError: a file cannot be read, its columns are not clear, it is not declared public, or its name cannot be that of a sample.
    """
    for path in map(Path, paths):
        try:
            _add(_read(path))
        except DpvizError as error:
            raise type(error)(f"--public {path.name}: {error}") from None


def name_files(inputs: Config) -> Config:
    """Return inputs with the files behind a sample of the class in its place, on the same domain; others are returned as they are."""
    sample = _added.get(inputs.data.sample or "")
    if sample is None:
        return inputs
    parts: dict[str, Any] = {name: getattr(sample.config, name) for name in _PARTS}
    return replace(inputs, **parts | ({} if inputs.domain is None else {"domain": inputs.domain}))


def _read(path: Path) -> ClassSample:
    if not _NAME.fullmatch(path.stem):
        raise SettingError("The name of the file names the sample: up to 40 letters, digits, hyphens and underscores.")
    if path.stem in SAMPLES:
        raise SettingError("There is a sample of this name already: give the file another one.")
    tables = {name: table for name, table in read_file(path).items() if name in _PARTS}
    if "data" not in tables:
        raise SettingError("The configuration lacks [data].")
    config = DataConfig(**{name: TOML.read(_PARTS[name], table, f"[{name}]") for name, table in tables.items()}, base=path.parent)
    if config.data.sample is not None:
        raise SettingError("[data] sample: it is a sample already. Name the files of points or trips.")
    if config.domain is not None and config.domain.study_area is not None:
        raise SettingError(_NO_AREA)
    sources = open_sources(config)
    frame = make_frame(sources)
    if isinstance(frame, Domain):
        frame = replace(frame, order=LARGEST_ORDER)
    counts = read_data(sources, frame, bad_rows="refuse").data
    return ClassSample(name=path.stem, config=_without_folders(config), counts=counts)


def _without_folders(config: DataConfig) -> DataConfig:
    """Return a configuration with the names of its files alone: where they are on this server is nothing for the class."""
    parts: dict[str, Any] = {"data": replace(config.data, points=_names_of(config.data.points), trips=_names_of(config.data.trips))}
    for name in ("regions", "destinations"):
        part = getattr(config, name)
        if part is not None:
            files = {key: _names_of(getattr(part, key)) for key in ("file", "polygons", "area_file")}
            parts[name] = replace(part, **files)
    return replace(config, **parts)


def _names_of(files: Any) -> Any:
    if files is None:
        return None
    return PurePath(files).name if isinstance(files, str) else tuple(map(_names_of, files))


def _add_points(about: dict[str, Any], counts: Any) -> None:
    POINT_SAMPLES[about["key"]] = Sample(**about, domain=counts.domain)


def _add_trips(about: dict[str, Any], counts: Any) -> None:
    TRIP_SAMPLES[about["key"]] = TripSample(**about, unit="trips", levels=counts.regions.levels, make=lambda **_: counts)


def _add_areas(about: dict[str, Any], counts: Any) -> None:
    slot_levels = () if counts.categories is None else counts.categories.levels
    AREA_SAMPLES[about["key"]] = AreaSample(**about, levels=counts.regions.levels, slot_levels=slot_levels, make=lambda: counts)


_ADD = {POINT_FAMILY.name: _add_points, TRIP_FAMILY.name: _add_trips, AREA_FAMILY.name: _add_areas}


def _add(sample: ClassSample) -> None:
    """Add a sample to those of its family."""
    counts, files = sample.counts, ", ".join(sample.config.data.files)
    about: dict[str, Any] = {
        "key": sample.name,
        "title": sample.name,
        "description": "Public data of this class.",
        "source": f"{files}, chosen for this class",
        "licence": "see its publisher",
        "synthetic": False,
    }
    _ADD[counts.family](about, counts)
    _added[sample.name] = sample


def load_points(key: str, size: int | None, domain: Domain) -> PointCounts:
    """Load a sample of points, or make it up, as `load_point_sample`; that of a class is counted again.

    Args:
        key: of the sample.
        size: number of made-up records; None for the sample's own.
        domain: with the bounds of the sample's own domain. Its lattice is as fine as that of a class or coarser, and it may have a mask.
    """
    if key not in _added:
        return load_point_sample(key, size=size, domain=domain)
    points: Any = _added[key].counts
    return replace(_count_again(points, domain), fingerprints=sample_fingerprint(key))


def _count_again(points: PointCounts, domain: Domain) -> PointCounts:
    west, south, east, north = points.domain.bounds
    across, up = (east - west) / points.domain.side, (north - south) / points.domain.side
    x, y = west + (points.column + 0.5) * across, south + (points.row + 0.5) * up
    counted = PointCounts.from_xy(x, y, count=points.count, domain=domain, unit="record")
    return replace(counted, unit=points.unit, contributions=points.contributions, unit_declared=points.unit_declared)
