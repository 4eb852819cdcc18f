"""From a configuration to the public frame, and from there to the private data and what the ledger knows them by."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpviz.data.files import Limits, checked_bytes
from dpviz.data.flow_samples import load_flow_sample
from dpviz.data.flows import Flows
from dpviz.data.load import read_points
from dpviz.data.load_flows import read_flows
from dpviz.data.load_regions import read_regions
from dpviz.data.points import PointCounts
from dpviz.data.samples import SAMPLES, load_sample
from dpviz.errors import InputError
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions

if TYPE_CHECKING:
    from dpviz.publishing.config import Sourced
    from dpviz.publishing.sections import RegionsPart

PrivateData = PointCounts | Flows
Frame = Domain | tuple[Regions, Regions]
_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What was read. PRIVATE.

    Attributes:
        data: the private counts.
        marks: hex digests that recognise them; never shown.
    """

    data: PrivateData
    marks: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Opened({self.data!r})"


def open_frame(config: Sourced) -> Frame | None:
    """The public frame; None where a sample of trips brings its own.

    Raises:
        DomainError: bounds or regions that make no sense.
        InputError: the regions' file cannot be read.
    """
    if config.data.is_points:
        return config.domain.domain() if config.domain else SAMPLES[config.data.sample or ""].domain
    if config.regions is None:
        return None
    regions = _regions(config.regions, config.base)
    return regions, regions if config.destinations is None else _regions(config.destinations, config.base)


def _regions(part: RegionsPart, base: Path) -> Regions:
    found = read_regions(placed(base, part.file), levels=part.levels or None, names=part.names or None, crs=part.crs)
    return found.grouped(part.prefixes) if part.prefixes else found


def placed(base: Path, text: str) -> Path:
    """A path of a configuration: from the configuration's folder, unless it is absolute; raises `InputError` for a URL."""
    if "://" in text:
        raise InputError("A configuration names local files only: URLs are never opened.")
    return base / Path(text).expanduser()


def open_data(config: Sourced, frame: Frame | None, *, bad_rows: str) -> Opened:
    """Read the private data.

    Args:
        config: where from.
        frame: from `open_frame`.
        bad_rows: "drop" for a release, in which no single row may decide whether there is one; "refuse" for studies.

    Raises:
        InputError: the file or a column cannot be used; names the column and the rule, never a cell.
    """
    part = config.data
    if part.sample is not None:
        data = load_sample(part.sample, domain=_domain(frame), size=part.size) if part.is_points else load_flow_sample(part.sample)
        return Opened(data=data, marks=(_sample_mark(part), *marks_of(data)))
    path = placed(config.base, part.points or part.trips or "")
    content = checked_bytes(path, _LIMITS)[1]
    options: dict[str, Any] = {**part.options(), "bad_rows": bad_rows}
    source = _named(path.name, content)
    if isinstance(frame, tuple):
        data = read_flows(source, regions=frame[0], destinations=frame[1], **options)
    else:
        data = read_points(source, domain=frame, **options)  # type: ignore[arg-type]
    return Opened(data=data, marks=marks_of(data, content))


def _sample_mark(part: Any) -> str:
    """A sample is the same on every frame."""
    return hashlib.sha256(repr(("sample", part.sample, part.size if part.is_points else None)).encode()).hexdigest()


def _domain(frame: Frame | None) -> Domain | None:
    return frame if isinstance(frame, Domain) else None


def _named(name: str, content: bytes) -> io.BytesIO:
    """Bytes as an open file that has a name, whose ending tells the format."""
    file = io.BytesIO(content)
    file.name = name
    return file


def marks_of(data: PrivateData, content: bytes | None = None) -> tuple[str, ...]:
    """What the ledger recognises data by: the file's bytes, and the counts themselves, whatever file they came from.

    Args:
        data: the counts. Where the records that a person keeps were chosen at random, counts differ each time and are no
            mark; nor are those of no records, which all empty files share.
        content: of the file.

    Returns:
        Hex digests (SHA-256), at least one. For the ledger only, which keeps them under a key of its own: they are never shown.
    """
    enforced = data.enforced if isinstance(data, Flows) else data.unit == "person"
    marks = [] if content is None else [hashlib.sha256(b"file" + content).hexdigest()]
    telling = len(data.count) > 0 and not enforced
    return tuple([*marks, _counts_mark(data)] if telling or not marks else marks)


def _counts_mark(data: PrivateData) -> str:
    if isinstance(data, Flows):
        text = repr(("trips", [[*side.ids[-1]] for side in (data.regions, data.ends)]))
        arrays = (data.origin, data.destination, data.count)
    else:
        text = repr(("points", data.domain.bounds, data.domain.crs, data.domain.order))
        arrays = (data.column, data.row, data.count)
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def emptied(data: PrivateData) -> PrivateData:
    """The same frame, unit and bounds without a single record: public, whatever the data are."""
    place, count = np.zeros(0, np.int32), np.zeros(0, np.int64)
    if isinstance(data, Flows):
        return replace(data, origin=place, destination=place, count=count, dropped=0, outside=0, bad=0, over=0, notes=())
    return replace(data, column=place, row=place, count=count, dropped=0, outside=0, bad=0, over=0)
