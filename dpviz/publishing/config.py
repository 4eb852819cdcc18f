"""What a release is made of, as a TOML file: read by the command line, saved by the app."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpviz.errors import SettingError
from dpviz.publishing.data_part import DataPart
from dpviz.publishing.sections import (
    BudgetPart,
    DatasetPart,
    DomainPart,
    MechanismPart,
    OutputPart,
    PublicationPart,
    RegionsPart,
)
from dpviz.publishing.toml_tables import check_keys, read_file, table_of, to_table, to_text

PARTS: dict[str, type[Any]] = {
    "data": DataPart,
    "domain": DomainPart,
    "regions": RegionsPart,
    "destinations": RegionsPart,
    "mechanism": MechanismPart,
    "budget": BudgetPart,
    "dataset": DatasetPart,
    "publication": PublicationPart,
    "output": OutputPart,
}


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A configuration that says where data come from, and in which public frame they are counted.

    Attributes:
        data: where the records come from.
        domain: the public frame of points; a sample has its own.
        regions: the public frame of trips; a sample has its own.
        destinations: where trips end, if that is another hierarchy.
        base: the folder that relative paths start from; not written.

    Raises:
        SettingError: a frame that is missing, or that does not go with the data.
    """

    data: DataPart
    domain: DomainPart | None = None
    regions: RegionsPart | None = None
    destinations: RegionsPart | None = None
    base: Path = field(default=Path(), compare=False, repr=False)

    def __post_init__(self) -> None:
        data = self.data
        if data.points is not None and self.domain is None:
            raise SettingError("Points need a [domain] with bounds and crs: it is declared, never taken from the data.")
        if data.trips is not None and self.regions is None:
            raise SettingError("Trips need [regions] with the file of the regions that they run between.")
        if not data.is_points and self.domain is not None:
            raise SettingError("[domain] has no meaning for trips: their frame is [regions].")
        if data.trips is None and (self.regions is not None or self.destinations is not None):
            raise SettingError("[regions] and [destinations] have a meaning beside [data] trips only.")


@dataclass(frozen=True, kw_only=True)
class ReleaseConfig(Sourced):
    """Everything that decides a release, apart from the ledger and the noise.

    Attributes:
        mechanism: which one, with its settings.
        budget: what the release spends.
        dataset: the account in the ledger.
        publication: the curator's words.
        output: where the files go.
    """

    mechanism: MechanismPart
    budget: BudgetPart
    dataset: DatasetPart
    publication: PublicationPart
    output: OutputPart


def read_config(path: Path) -> ReleaseConfig:
    """Read a release's configuration; paths in it are relative to its own folder.

    Raises:
        InputError: the file cannot be read, or is no TOML.
        SettingError: an unknown or missing key, a value of the wrong kind or out of range, or nothing that says whom a release of own
            files protects.
        RefusedError: a seed, or a mechanism that is not private.
    """
    return from_tables(read_file(path), base=path.parent)


def from_tables(found: dict[str, Any], *, base: Path = Path()) -> ReleaseConfig:
    """A configuration from its tables; raises as `read_config`."""
    check_keys(found, PARTS, "A release's configuration")
    missing = [f"[{name}]" for name in ("data", "mechanism", "budget", "dataset", "publication", "output") if name not in found]
    if missing:
        raise SettingError(f"The configuration lacks {', '.join(missing)}.")
    parts = {name: table_of(PARTS[name], table, f"[{name}]") for name, table in found.items()}
    config = ReleaseConfig(**parts, base=base)
    config.mechanism.built(points=config.data.is_points)
    config.data.refuse_undeclared(config.dataset.unit)
    return config


def to_toml(config: ReleaseConfig) -> str:
    """The text that `read_config` reads back to an equal configuration; what has its default is left out."""
    parts = {name: getattr(config, name) for name in PARTS}
    return to_text({name: to_table(part) for name, part in parts.items() if part is not None})
