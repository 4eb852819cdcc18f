"""Find the files that a path, a glob, a folder or a list names: each once, all of one kind, none a copy of another."""

from __future__ import annotations

import glob
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.data.reading.safety import Limits, Source, attempt, first_bytes, format_of, guard, is_path, name_of, refuse_url
from dpviz.data.reading.tables import GeoColumns, geo_columns, open_header
from dpviz.data.reading.text_rows import HEAD_BYTES, NO_END, SEPARATORS
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

Sources: TypeAlias = Source | Sequence[Source]

LARGE_SHARE = 1 / 8
TABLES = ("Parquet", *SEPARATORS)
_PARQUET_ENDINGS = (".parquet", ".geoparquet")
_UNKNOWN_MEMORY = 8 * 2**30
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True, kw_only=True)
class FoundFiles:
    """Files of one format and one schema. Nothing here holds an entry of a file.

    Attributes:
        sources: real paths, in order, and uploads.
        format: CSV, TSV, Parquet, GeoJSON, GeoPackage or Shapefile.
        schema: of tables, all columns of text tables as texts; None for other formats.
        geo: GeoParquet's description of its geometries; None without any.
        sizes: (n,) bytes of each file; private.
        rows: number of rows of the longest file, where files state it; private.
        rowless: (n,) whether each file is a table without a single row; private.
    """

    sources: tuple[Source, ...] = field(repr=False)
    format: str
    schema: pa.Schema | None
    geo: GeoColumns | None
    sizes: tuple[int, ...] = field(repr=False)
    rows: int | None = field(repr=False)
    rowless: tuple[bool, ...] = field(repr=False)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths among the sources."""
        return tuple(Path(os.fspath(source)) for source in self.sources if is_path(source))

    @property
    def are_paths(self) -> bool:
        """Whether no source is an upload."""
        return all(map(is_path, self.sources))

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self.sizes)

    def within(self, limits: Limits) -> bool:
        """Return whether every file is within the limits of files that are read into memory."""
        return max(self.sizes) <= limits.file_bytes and (self.rows or 0) <= limits.rows

    def fits(self, limits: Limits) -> bool:
        """Return whether the files are small enough for memory: within the limits, and all together at most an eighth of the memory."""
        return self.within(limits) and self.size <= LARGE_SHARE * memory_bytes()


def find_files(source: Sources) -> FoundFiles:
    """Find the files that a source names.

    Args:
        source: an upload, a path, a glob (``*``, ``?``, ``[...]``, ``**`` for any folders), a folder of Parquet files, or a list
            of these. In a folder, files and folders whose name begins with a dot or underscore are left out. A file that is found several
            times, by any path or link, is taken once.

    Raises:
        InputError: no file is found, one cannot be read, or two are of different formats or schemas.
    """
    listed: list[Source] = list(source) if isinstance(source, list | tuple) else [cast("Source", source)]
    sources = _once_each([each for given in listed for each in _expand(given, alone=len(listed) == 1)])
    if not sources:
        raise InputError("No file is named: a list of sources needs at least one.")
    kinds = [format_of(name_of(each)) for each in sources]
    _refuse_unlike(sources, kinds, "of different formats")
    facts = [_read_facts(each, kind, alone=len(sources) == 1) for each, kind in zip(sources, kinds, strict=True)]
    _refuse_unlike(sources, [fact.names for fact in facts], "of different columns: their names, or the order of these, differ")
    _refuse_unlike(sources, [fact.schema for fact in facts], "of different schemas: columns of one name hold different types")
    _refuse_unlike(sources, [fact.geo for fact in facts], "of different geometries or CRS")
    known = [fact.rows for fact in facts if fact.rows is not None]
    return FoundFiles(
        sources=tuple(sources),
        format=kinds[0],
        schema=facts[0].schema,
        geo=facts[0].geo,
        sizes=tuple(map(_size, sources)),
        rows=max(known, default=None),
        rowless=tuple(fact.rows == 0 or fact.rowless for fact in facts),
    )


def _expand(source: Source, *, alone: bool) -> list[Source]:
    """Return the real paths that a source names, in the order of their names; an upload stays as it is."""
    if not is_path(source):
        return [source]
    text = os.fspath(source)
    if not isinstance(text, str):
        raise InputError("A path must be a text.")
    refuse_url(text)
    path = Path(text)
    if attempt(path.is_dir):
        return list(_in_folder(path))
    if attempt(path.exists) or not glob.has_magic(text):
        format_of(text)
        if attempt(path.exists) and not path.is_file():  # reading a pipe could wait forever
            raise InputError(f"{_called(path, alone)} is not a file.")
        return [guard(f"{_called(path, alone)} cannot be read: does it exist, and may you read it?", lambda: _real(path))]
    found = guard("The pattern cannot be read.", lambda: glob.glob(text, recursive=True))  # noqa: PTH207  (patterns may be absolute)
    files = sorted(each for each in map(Path, found) if each.is_file())
    if not files:
        raise InputError(f"No file fits the pattern {path.name!r}: look at its folder, and at upper and lower case.")
    return [_real(each) for each in files]


def _in_folder(folder: Path) -> list[Path]:
    inside = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in _PARQUET_ENDINGS and path.is_file()]
    files = [_real(path) for path in inside if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)]
    if not files:
        raise InputError(f"The folder {folder.name!r} holds no Parquet file; name other files by a pattern, such as '*.csv'.")
    return files


def _real(path: Path) -> Path:
    """Return the file that a path leads to. A link whose target has another ending stays: its own ending tells the format.

    Raises:
        OSError: the file does not exist.
    """
    real = path.resolve(strict=True)
    return real if real.suffix.lower() == path.suffix.lower() else path.absolute()


def _once_each(sources: Sequence[Source]) -> list[Source]:
    """Return the same sources, each file once, even if several paths or links lead to it."""
    first: dict[object, Source] = {}
    for source in sources:
        first.setdefault(_identity(source), source)
    return list(first.values())


def _identity(source: Source) -> object:
    """Return a value that is the same for all paths of one file: its number on the disk, or the path where the system has no numbers."""
    if not is_path(source):
        return id(source)
    path = Path(os.fspath(source))
    facts = attempt(path.stat)
    return path if facts is None or not facts.st_ino else (facts.st_dev, facts.st_ino)


def _refuse_unlike(sources: Sequence[Source], facts: Sequence[object], how: str) -> None:
    other = next((index for index, fact in enumerate(facts) if fact != facts[0]), None)
    if other is not None:
        one, two = (Path(name_of(sources[index])).name for index in (0, other))
        raise InputError(f"The files {one!r} and {two!r} are {how}. Read files of one kind only.")


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """What one file says about itself."""

    schema: pa.Schema | None = None
    names: tuple[str, ...] | None = None
    geo: GeoColumns | None = None
    rows: int | None = None
    rowless: bool = False


def _called(path: Path, alone: bool) -> str:
    """Return the words for a file in an error: its name only if there are several files, because a name may be private."""
    return "The file" if alone else f"The file {path.name!r}"


def _read_facts(source: Source, kind: str, *, alone: bool) -> _Facts:
    if kind not in TABLES:
        return _Facts()
    called = _called(Path(name_of(source)), alone)
    rule = f"{called} cannot be read as {kind}: it is damaged or cut short, or its ending is wrong."
    return guard(rule, lambda: _of_parquet(source) if kind == "Parquet" else _of_text(source, kind, called))


def _of_parquet(source: Source) -> _Facts:
    file = pq.ParquetFile(source if not is_path(source) else str(source))
    schema, geo = file.schema_arrow, geo_columns(file.schema_arrow)
    rows = file.metadata.num_rows
    if is_path(source):
        file.close()
    return _Facts(schema=schema.remove_metadata(), names=tuple(schema.names), geo=geo, rows=rows)


def _of_text(source: Source, kind: str, called: str) -> _Facts:
    head = first_bytes(source, HEAD_BYTES)
    if not head:
        raise InputError(f"{called} is empty.")
    header = open_header(kind, head)
    rowless = len(head) < HEAD_BYTES and NO_END.search(head, header.end) is None
    return _Facts(schema=pa.schema([(name, pa.string()) for name in header.names]), names=header.names, rowless=rowless)


def _size(source: Source) -> int:
    if is_path(source):
        return Path(os.fspath(source)).stat().st_size
    return _upload_size(cast("BinaryIO", source))


def _upload_size(upload: BinaryIO) -> int:
    size = attempt(lambda: upload.seek(0, io.SEEK_END))
    attempt(lambda: upload.seek(0))
    return size or 0


def memory_bytes() -> int:
    """Return bytes of the machine's memory, or the limit of a container; 8 GiB where the system states neither."""
    whole = attempt(lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    allowed = attempt(lambda: int(_CGROUP_LIMIT.read_text()))
    return min(filter(None, (whole, allowed)), default=_UNKNOWN_MEMORY)


_PIECE = 2**22


def find_copies(found: FoundFiles) -> list[tuple[str, ...]]:
    """Return names of files that have the same content, a tuple per content; files without rows are left out.

    Only files of equal size are read, piece by piece until they differ. That reads far less than digests of all files would.

    Raises:
        InputError: a file cannot be read any more.
    """
    sized: dict[int, list[Source]] = {}
    for source, size, rowless in zip(found.sources, found.sizes, found.rowless, strict=True):
        if not rowless:
            sized.setdefault(size, []).append(source)
    same = [group for size, some in sized.items() for group in _groups_of_copies(some, size)]
    return sorted(tuple(sorted(Path(name_of(source)).name for source in group)) for group in same)


def refuse_copies(found: FoundFiles) -> None:
    """Refuse files of equal content.

    Raises:
        InputError: two files have the same content; the text says their names.
    """
    for one, two, *_others in find_copies(found):
        raise InputError(
            f"The files {one!r} and {two!r} have the same content, and every record in it would count twice: remove one, or leave it out."
        )


def describe_copies(found: FoundFiles) -> list[str]:
    """Return a sentence for each group of files of equal content, for the curator only."""
    return [
        f"the files {' and '.join(map(repr, names))} have the same content, and all of them were counted: is one a copy?"
        for names in find_copies(found)
    ]


def _groups_of_copies(sources: Sequence[Source], size: int) -> Iterator[list[Source]]:
    """Yield groups of several files of equal content among files of one size."""
    groups = [list(sources)]
    for begin in range(0, size, _PIECE):
        groups = [part for group in groups if len(group) > 1 for part in _group_by_piece(group, begin)]
    yield from (group for group in groups if len(group) > 1)


def _group_by_piece(sources: Iterable[Source], begin: int) -> list[list[Source]]:
    """Return groups of the files that are equal in one piece."""
    parts: dict[bytes, list[Source]] = {}
    for source in sources:
        rule = f"The file {Path(name_of(source)).name!r} cannot be read any more."
        piece = guard(rule, lambda source=source: _read(source, begin))  # type: ignore[misc]
        parts.setdefault(hashlib.sha256(piece).digest(), []).append(source)
    return list(parts.values())


def _read(source: Source, begin: int) -> bytes:
    if is_path(source):
        with Path(os.fspath(source)).open("rb") as file:
            file.seek(begin)
            return file.read(_PIECE)
    upload = cast("BinaryIO", source)
    upload.seek(begin)
    piece = upload.read(_PIECE)
    upload.seek(0)
    return piece
