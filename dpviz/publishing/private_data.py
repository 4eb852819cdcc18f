"""From a configuration to the public frame, the private data, and the digests by which the ledger recognises them."""

from __future__ import annotations

import glob
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpviz.data.counting.engines import AUTO, engine_for
from dpviz.data.counting.files import read_flows, read_points
from dpviz.data.counting.job import Watch
from dpviz.data.counting.scheduler import Scheduler
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.data.reading.regions import read_regions
from dpviz.data.reading.safety import Limits, attempt, guarded, refuse_share
from dpviz.data.reading.sources import FoundFiles, copies_in_words, found_files
from dpviz.errors import InputError
from dpviz.samples.flows import load_flow_sample
from dpviz.samples.points import SAMPLES, load_sample
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dpviz.publishing.config import RegionsPart, Sourced

_FILE = b"file"
_PIECE = 2**22
_READERS = min(4, os.cpu_count() or 1)
_UNWATCHED = Watch()


def marks_of(data: PointCounts | Flows, content: bytes | None = None, *, files: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What the ledger recognises data by: the bytes of each file, and the counts themselves, whatever files they came from.

    Args:
        data: the counts. Where the records that a person keeps were chosen at random, counts differ each time and are no
            mark; nor are those of no records, which all empty files share.
        content: of the one file.
        files: `file_marks` of several instead, those left out that have no row: two datasets may share an empty part.

    Returns:
        Hex digests (SHA-256), at least one. For the ledger only, which keeps them under a key of its own: they are never shown.
    """
    enforced = data.enforced if isinstance(data, Flows) else data.unit == "person"
    marks = [*files] if content is None else [*files, content_mark(content)]
    telling = len(data.count) > 0 and not enforced
    return tuple([*marks, _counts_mark(data)] if telling or not marks else marks)


def content_mark(content: bytes) -> str:
    """The mark of a file's whole content."""
    digest = hashlib.sha256(_FILE)
    digest.update(content)
    return digest.hexdigest()


def file_marks(paths: Sequence[Path], watch: Watch = _UNWATCHED) -> tuple[str, ...]:
    """The marks of files, each the one that `marks_of` gives its content alone; in an order that says nothing about names.

    Raises:
        InputError: a file cannot be read.
        DpvizError: it was ended.
    """
    whole, done, one_by_one = max(sum(path.stat().st_size for path in paths), 1), 0, threading.Lock()

    def step(size: int) -> None:
        nonlocal done
        with one_by_one:
            done += size
            watch.at(done / whole)

    with ThreadPoolExecutor(_READERS) as readers:
        try:
            return tuple(sorted({*readers.map(lambda path: _file_mark(path, step), paths)}))
        finally:
            readers.shutdown(cancel_futures=True)


def _file_mark(path: Path, step: Callable[[int], None]) -> str:
    digest = hashlib.sha256(_FILE)

    def read() -> None:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                step(len(piece))

    guarded(f"The file {path.name!r} cannot be read any more.", read)
    return digest.hexdigest()


def _counts_mark(data: PointCounts | Flows) -> str:
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


PrivateData = PointCounts | Flows
Frame = Domain | tuple[Regions, Regions]
UNWATCHED = Watch()
_LIMITS = Limits()
_MARKS_SHARE = 0.2
_MADE_UP = np.int64(10_000)  # records in each made-up place: more than thresholds take away


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What was read. PRIVATE.

    Attributes:
        data: the private counts.
        marks: hex digests that recognise them; never shown.
        engine: that counted them; None of a sample.
        of_files: those of the marks that are of files.
        notes: what the curator alone may know about the files.
    """

    data: PrivateData
    marks: tuple[str, ...]
    engine: str | None = None
    of_files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Opened({self.data!r})"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How files are counted.

    Attributes:
        frame: the public one.
        options: of `read_points` or `read_flows`: columns, bound and rules.
        engine: "auto", or one of ENGINES.
        scheduler: of Dask, that runs already; None for workers of this machine.
        may_be_empty: whether not one record may be there, as `refuse_nothing` says.
    """

    frame: Frame
    options: dict[str, Any] = field(default_factory=dict)
    engine: str = AUTO
    scheduler: Scheduler | None = None
    may_be_empty: bool = False


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
    """A path of a configuration: from the configuration's folder, unless it is absolute.

    Raises:
        InputError: a URL or a network share.
    """
    if "://" in text:
        raise InputError("A configuration names local files only: URLs are never opened.")
    refuse_share(text)
    return base / Path(text).expanduser()


def sources_of(config: Sourced) -> list[str]:
    """What [data] names, from the configuration's folder; only what is written there can be a pattern, never the folder's own name.

    Raises:
        InputError: a URL.
    """
    paths = [(placed(config.base, text), text) for text in config.data.files]
    patterns = [os.path.join(glob.escape(str(config.base)), Path(text).expanduser()) for _, text in paths]  # noqa: PTH118
    return [
        pattern if glob.has_magic(text) and attempt(path.exists) is not True else str(path)
        for (path, text), pattern in zip(paths, patterns, strict=True)
    ]


def open_data(
    config: Sourced, frame: Frame | None, *, bad_rows: str, watch: Watch = UNWATCHED, scheduler: Scheduler | None = None
) -> Opened:
    """Read the private data.

    Args:
        config: where from, and which engine counts.
        frame: from `open_frame`.
        bad_rows: "drop" for a release, in which no single row may decide whether there is one; "refuse" for studies.
        watch: who follows, and may end it.
        scheduler: of Dask, that runs already; from the command line, never from the configuration.

    Raises:
        InputError: a file or a column cannot be used; names the column and the rule, never a cell.
        DpvizError: it was ended.
    """
    part = config.data
    if part.sample is not None:
        data = load_sample(part.sample, domain=_domain(frame), size=part.size) if part.is_points else load_flow_sample(part.sample)
        return Opened(data=data, marks=(_sample_mark(part), *marks_of(data)))
    found = found_files(sources_of(config))
    asked = Asked(
        frame=frame,  # type: ignore[arg-type]
        options={**part.options(), "bad_rows": bad_rows},
        engine=part.engine,
        scheduler=scheduler,
        may_be_empty=part.may_be_empty,
    )
    return count_files(found, asked, watch)


def count_files(found: FoundFiles, asked: Asked, watch: Watch = UNWATCHED) -> Opened:
    """Count files, and what the ledger knows them by.

    Args:
        found: the files.
        asked: in which frame, by which columns and by which engine.
        watch: who follows, and may end it.

    Raises:
        InputError: a file or a column cannot be used, or a file has changed in the meantime.
        DpvizError: it was ended.
    """
    engine = engine_for(found, asked.engine, asked.scheduler, _LIMITS)
    paths, sources = found.paths or (), list(found.sources)
    before = stamps_of(paths)
    with_rows = [path for path, rowless in zip(paths, found.rowless, strict=False) if not rowless]
    marks = file_marks(with_rows, replace(watch, progress=_stretch(watch, 0.0, _MARKS_SHARE)))
    told: dict[str, Any] = {**asked.options, "engine": engine}
    if asked.scheduler is not None:
        told |= {"address": asked.scheduler.address, "insecure_address": asked.scheduler.insecure}
    told |= {"progress": _stretch(watch, _MARKS_SHARE, 1.0), "cancel": watch.cancel}
    if isinstance(asked.frame, tuple):
        data: PrivateData = read_flows(sources, regions=asked.frame[0], destinations=asked.frame[1], **told)
    else:
        data = read_points(sources, domain=asked.frame, **told)
    if stamps_of(paths) != before:
        raise InputError("A file was changed while it was read: nothing of it was kept. Try again once nobody writes to it.")
    if not asked.may_be_empty:
        refuse_nothing(data)
    notes = tuple(copies_in_words(found)) if asked.options.get("bad_rows") == "drop" else ()
    return Opened(data=data, marks=marks_of(data, files=marks), engine=engine, of_files=marks, notes=notes)


def refuse_nothing(data: PrivateData) -> None:
    """Refuse data without one record that counts, before anything is spent on them: files without rows, coordinates in other units.

    Whether there is one record or none is the only thing that this can tell apart, to those who see whether a release appears. Who has
    to hide that, too, or expects days without a record, declares `may_be_empty`: then nothing depends on it.

    Raises:
        InputError: there is none; says why, as far as that is known.
    """
    if data.count.any():
        return
    trips = isinstance(data, Flows)
    if not data.dropped:
        why = "Not one record is there: do the files have rows after their headers?"
    elif data.outside < data.dropped:
        why = "Not one record can be used: all are unreadable, or lie outside."
    elif trips:
        why = "Not one trip runs between the regions: are these their ids, or for coordinates, is the CRS right, are x and y swapped?"
    else:
        why = (
            "Not one record lies in the domain: are the coordinates and the bounds both in the units of their CRS (degrees, or metres), is"
            " it the right CRS, are x and y swapped?"
        )
    raise InputError(f"{why} Nothing was spent. Where no record may be right, a configuration says may_be_empty = true under [data].")


def stamps_of(paths: Iterable[Path]) -> tuple[tuple[str, int, int], ...]:
    """Path, size and time of change of each file: as long as they stay, so does what was counted.

    Raises:
        InputError: a file is not there any more.
    """
    facts = [(str(path), attempt(path.stat)) for path in paths]
    if any(fact is None for _, fact in facts):
        raise InputError("A file is not there any more.")
    return tuple((name, fact.st_size, fact.st_mtime_ns) for name, fact in facts if fact is not None)


def _stretch(watch: Watch, start: float, end: float) -> Callable[[float], object] | None:
    """Progress of a part of the work, told as that of the whole."""
    tell = watch.progress
    return None if tell is None else lambda done: tell(start + (end - start) * done)


def left_out(data: PrivateData) -> str:
    """What was left out on the way in and why, in words; for the curator's eyes only. Empty if nothing was."""
    if not data.dropped:
        return ""
    unknown = "in no region" if isinstance(data, Flows) else "outside the domain"
    parts = [(data.outside, unknown), (data.bad, "unreadable"), (data.over, "over the bound")]
    told = ", ".join(f"{number:,} {why}" for number, why in parts if number)
    return f"left out {data.dropped:,}: {told}." if told else f"left out {data.dropped:,}."


def _sample_mark(part: Any) -> str:
    """A sample is the same on every frame."""
    return hashlib.sha256(repr(("sample", part.sample, part.size if part.is_points else None)).encode()).hexdigest()


def _domain(frame: Frame | None) -> Domain | None:
    return frame if isinstance(frame, Domain) else None


def made_up(data: PrivateData) -> PrivateData:
    """The same frame, unit and bounds with made-up records, many in each of up to 1,000 places: public, whatever the data are."""
    empty = emptied(data)
    if isinstance(empty, Flows):
        ends = empty.ends.size(empty.ends.depth)
        pair = _spread(empty.regions.size(empty.regions.depth) * ends)
        origin, destination = (pair // ends).astype(np.int32), (pair % ends).astype(np.int32)
        return replace(empty, origin=origin, destination=destination, count=np.full(len(pair), _MADE_UP))
    cell = _spread(empty.domain.side**2)
    row, column = (cell // empty.domain.side).astype(np.int32), (cell % empty.domain.side).astype(np.int32)
    return replace(empty, column=column, row=row, count=np.full(len(cell), _MADE_UP))


def _spread(size: int) -> NDArray[np.int64]:
    """Up to 1,000 of the numbers below `size`, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(size, 1000)).astype(np.int64))


def emptied(data: PrivateData) -> PrivateData:
    """The same frame, unit and bounds without a single record: public, whatever the data are."""
    place, count = np.zeros(0, np.int32), np.zeros(0, np.int64)
    if isinstance(data, Flows):
        return replace(data, origin=place, destination=place, count=count, dropped=0, outside=0, bad=0, over=0, notes=())
    return replace(data, column=place, row=place, count=count, dropped=0, outside=0, bad=0, over=0)
