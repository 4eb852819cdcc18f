"""Find the files that a path, a glob, a folder or a list names, check that they are of one kind, and find copies among them."""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.data.library_errors import or_none, without_private_text
from dpviz.data.reading.formats import is_table as is_tabular
from dpviz.data.reading.formats import named, table_names
from dpviz.data.reading.memory_tables import Table, is_table, table_upload
from dpviz.data.reading.safety import (
    DEFAULT_LIMITS,
    NUMBER_BYTES,
    Limits,
    Source,
    format_of,
    is_path,
    name_of,
    read_bytes,
    read_checked,
    refuse_url,
)
from dpviz.data.reading.tables import PARQUET, GeoColumns, as_utf8, geo_columns, open_header, open_table
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat
from dpviz.data.reading.text_rows import HEAD_BYTES, NOT_LINE_END, SEPARATORS
from dpviz.data.roles import PublicHeader
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

Sources: TypeAlias = "Source | Table | Sequence[Source | Table] | FoundFiles"

LARGE_SHARE = 1 / 8
_USUAL_COLUMNS = 4  # x, y, count and person; or origin, destination, count and person
TABLES = tuple(name for name in table_names() if named(name).streamed)
"""Names of the formats that an engine reads in parts, by the paths of the files."""
_COPY, _NUMBER = "copy|kopie|kopia|kopi|copie|copia|cópia", r"\d{1,3}"  # four digits are a year
_COPY_MARKS = re.compile(
    rf"[\s_-]*\({_NUMBER}\)$"  # x (1)
    rf"|[\s_-]*\((?:\w+\s)?(?:{_COPY})\)$"  # x (copy), x (another copy)
    rf"|[\s_-]+(?:{_COPY})(?:[\s_-]*(?:{_NUMBER}|\({_NUMBER}\)))?$"  # x - Copy, x - Copy (2), x copy 2, x_copy
    rf"|^(?:{_COPY})\s*(?:\({_NUMBER}\))?[\s_-]+(?:of|von|van|af|av|de|di)[\s_-]+"  # Copy of x, Copy (2) of x, Kopie von x
)
"""What systems and browsers add to the name of a copy, after or before that of its original, in lower case."""
_UNKNOWN_MEMORY = 8 * 2**30
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True, kw_only=True)
class FoundFiles:
    """Files of one format and one schema. No attribute holds an entry of a file.

    Attributes:
        sources: real paths, in order, and uploads.
        format: CSV, TSV, Parquet, GeoJSON, GeoPackage or Shapefile.
        schema: the schema of tables, with all columns of text tables as texts; None for other formats.
        geo: GeoParquet's description of its geometries; None without any.
        sizes: (n,) bytes of each file; private.
        most_rows: number of rows of the longest file, where files state it; private.
        all_rows: number of rows of all files, where files state it; private.
        rowless: (n,) whether each file is a table without a single row; private.
        text_format: the declared format of text tables.
    """

    sources: tuple[Source, ...] = field(repr=False)
    format: str
    schema: pa.Schema | None
    geo: GeoColumns | None
    sizes: tuple[int, ...] = field(repr=False)
    most_rows: int | None = field(repr=False)
    all_rows: int = field(repr=False)
    rowless: tuple[bool, ...] = field(repr=False)
    text_format: TextFormat = PLAIN_TEXT

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

    def header(self, geo: GeoColumns | None) -> PublicHeader:
        """Return the names and declared types of the columns of tables, without those of `geo`; text tables declare no types."""
        schema = cast("pa.Schema", self.schema)
        names = tuple(name for name in schema.names if geo is None or name not in geo.columns)
        types = {} if self.format in SEPARATORS else dict(zip(schema.names, schema.types, strict=True))
        return PublicHeader(names=names, types=types, has_geometry=geo is not None)

    def within(self, limits: Limits) -> bool:
        """Return whether every file is within the limits for files that are read into memory."""
        return max(self.sizes) <= limits.file_bytes and (self.most_rows or 0) <= limits.rows

    def fit_in_memory(self, limits: Limits) -> bool:
        """Return whether the files fit in memory: each is within the limits, and together they have at most an eighth of the memory.

        Rows are as long as a table's usual columns are when they are unpacked, since a small Parquet file can have many rows.
        """
        row_bytes = NUMBER_BYTES * min(len(self.schema or ()), _USUAL_COLUMNS)
        fits_each = (self.most_rows or 0) * row_bytes <= limits.decoded_bytes
        return self.within(limits) and fits_each and max(self.size, self.all_rows * row_bytes) <= LARGE_SHARE * memory_bytes()


def list_files(source: Sources) -> list[Source]:
    """List the files that a source names, as `find_files` does, without a look into them.

    Raises:
        InputError: no file is found.
    """
    if isinstance(source, FoundFiles):
        return list(source.sources)
    listed = list(source) if isinstance(source, list | tuple) else [cast("Source", source)]
    given_sources: list[Source] = [table_upload(given) if is_table(given) else given for given in listed]
    first: dict[object, Source] = {}
    for given_source in given_sources:
        for source_of_file in _expand_source(given_source, is_only_file=len(given_sources) == 1):
            first.setdefault(_identify(source_of_file), source_of_file)
    if not first:
        raise InputError("No file is named: a list of sources needs at least one.")
    return list(first.values())


def find_files(
    source: Sources, text_format: TextFormat = PLAIN_TEXT, *, copies: bool = False, limits: Limits = DEFAULT_LIMITS
) -> FoundFiles:
    """Find the files that a source names.

    Args:
        source: an upload, a path, a glob (``*``, ``?``, ``[...]``, ``**`` for any folders), a folder of Parquet files, a table in
            memory, or a list of these. In a folder, files and folders whose name begins with a dot or underscore are left out. A file
            that is found several times, by any path or link, is listed once. Files that were found before are returned as they are.
        text_format: the declared format of text tables.
        copies: whether files whose names say that they are copies are listed, too.
        limits: the most that a file may hold if its header is known only once it is open.

    Raises:
        InputError: no file is found, a file cannot be read, two files have different formats or schemas, or a name says that its file
            is a copy of another one; a format of texts is declared for files of another kind.
    """
    if isinstance(source, FoundFiles):
        return source
    sources = list_files(source)
    if not copies:
        refuse_copied_names([Path(name_of(found_source)).name for found_source in sources])
    kinds = [format_of(name_of(found_source)) for found_source in sources]
    _refuse_unlike(sources, kinds, "different formats")
    text_format.refuse_for(kinds[0])
    descriptions = [_describe(found_source, kinds[0], text_format, limits, is_only_file=len(sources) == 1) for found_source in sources]
    schemas = [description.schema for description in descriptions]
    names = [None if schema is None else schema.names for schema in schemas]
    _refuse_unlike(sources, names, "different columns: other names, or another order")
    _refuse_unlike(sources, schemas, "different schemas: columns of one name hold different types")
    geos = [description.geo for description in descriptions]
    _refuse_unlike(sources, geos, "different geometries or CRS")
    may_be_points = any(geo is not None and geo.may_be_points for geo in geos)
    row_counts = [description.rows for description in descriptions if description.rows is not None]
    return FoundFiles(
        sources=tuple(sources),
        format=kinds[0],
        schema=schemas[0],
        geo=None if geos[0] is None else replace(geos[0], may_be_points=may_be_points),
        sizes=tuple(map(_size_of, sources)),
        most_rows=max(row_counts, default=None),
        all_rows=sum(row_counts),
        rowless=tuple(description.rows == 0 or description.rowless for description in descriptions),
        text_format=text_format,
    )


def refuse_rowless(files: FoundFiles) -> None:
    """Refuse tables that all have a header and not a single row.

    Raises:
        InputError: no table has a row.
    """
    if all(files.rowless):
        raise InputError("No row follows the header: nothing could be counted or released.")


def _expand_source(source: Source, *, is_only_file: bool) -> list[Source]:
    """Return the real paths that a source names, in the order of their names; an upload stays as it is."""
    if not is_path(source):
        return [source]
    text = os.fspath(source)
    if not isinstance(text, str):
        raise InputError("A path must be a text.")
    refuse_url(text)
    path = Path(text)
    if or_none(path.is_dir):
        return list(_list_folder(path))
    if or_none(path.exists) or not glob.has_magic(text):
        format_of(text)
        if or_none(path.exists) and not path.is_file():  # reading a pipe could wait forever
            raise InputError(f"{_name_in_error(path, is_only_file)} is not a file.")
        return [
            without_private_text(
                f"{_name_in_error(path, is_only_file)} cannot be read: does it exist, and may you read it?", lambda: _resolve(path)
            )
        ]
    matches = without_private_text("The pattern cannot be read.", lambda: glob.glob(text, recursive=True))  # noqa: PTH207  (patterns may be absolute)
    files = sorted(match for match in map(Path, matches) if match.is_file())
    if not files:
        raise InputError(f"No file fits the pattern {path.name!r}: look at its folder, and at upper and lower case.")
    return [_resolve(match) for match in files]


def _list_folder(folder: Path) -> list[Path]:
    inside = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in PARQUET.endings and path.is_file()]
    files = [_resolve(path) for path in inside if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)]
    if not files:
        raise InputError(f"The folder {folder.name!r} holds no Parquet file; name other files by a pattern, such as '*.csv'.")
    return files


def _resolve(path: Path) -> Path:
    """Return the file that a path leads to. A link whose target has another ending stays, because its own ending says the format.

    Raises:
        OSError: the file does not exist.
    """
    real = path.resolve(strict=True)
    return real if real.suffix.lower() == path.suffix.lower() else path.absolute()


def _identify(source: Source) -> object:
    """Return a value that is the same for all paths of one file: its inode, or its path if the system has no inodes."""
    if not is_path(source):
        return id(source)
    path = Path(os.fspath(source))
    status = or_none(path.stat)
    return path if status is None or not status.st_ino else (status.st_dev, status.st_ino)


def _refuse_unlike(sources: Sequence[Source], properties: Sequence[object], difference: str) -> None:
    other = next((index for index, value in enumerate(properties) if value != properties[0]), None)
    if other is not None:
        one, two = (Path(name_of(sources[index])).name for index in (0, other))
        raise InputError(f"The files {one!r} and {two!r} have {difference}. Read files of one kind only.")


@dataclass(frozen=True, kw_only=True)
class _Description:
    """What the header or metadata of one file state: columns, geometries, and the number of rows or that there is none."""

    schema: pa.Schema | None = None
    geo: GeoColumns | None = None
    rows: int | None = None
    rowless: bool = False


def _name_in_error(path: Path, is_only_file: bool) -> str:
    """Return how an error calls a file: by its name only if there are several files, because a name may be private."""
    return "The file" if is_only_file else f"The file {path.name!r}"


def _describe(source: Source, kind: str, text_format: TextFormat, limits: Limits, *, is_only_file: bool) -> _Description:
    if not is_tabular(kind):
        return _Description()
    name = _name_in_error(Path(name_of(source)), is_only_file)
    rule = f"{name} cannot be read as {kind}: it is damaged or cut short, or its ending is wrong."
    if kind in SEPARATORS:
        return without_private_text(rule, lambda: _describe_text(source, kind, text_format, name))
    return without_private_text(rule, lambda: _describe_parquet(source) if kind == PARQUET.name else _describe_whole(source, limits))


def _describe_parquet(source: Source) -> _Description:
    file = pq.ParquetFile(source if not is_path(source) else str(source))
    schema, geo = file.schema_arrow, geo_columns(file.schema_arrow)
    rows = file.metadata.num_rows
    if is_path(source):
        file.close()
    return _Description(schema=schema.remove_metadata(), geo=geo, rows=rows)


def _describe_whole(source: Source, limits: Limits) -> _Description:
    """Describe a table of a format whose header is known only once it is open."""
    opened = open_table(*read_checked(source, limits), limits)
    schema = pa.schema([(name, opened.types[name]) for name in opened.names])
    return _Description(schema=schema, geo=opened.geo, rows=opened.rows)


def _describe_text(source: Source, kind: str, text_format: TextFormat, file_name: str) -> _Description:
    raw_head = read_bytes(source, HEAD_BYTES)
    if not raw_head:
        raise InputError(f"{file_name} is empty: a text table starts with a line of column names.")
    head, head_format = as_utf8(raw_head, text_format)
    header = open_header(kind, head, head_format)
    rowless = len(raw_head) < HEAD_BYTES and NOT_LINE_END.search(head, header.end) is None
    return _Description(schema=pa.schema([(name, pa.string()) for name in header.names]), rowless=rowless)


def _size_of(source: Source) -> int:
    if is_path(source):
        return Path(os.fspath(source)).stat().st_size
    upload = cast("BinaryIO", source)
    size = or_none(lambda: upload.seek(0, io.SEEK_END))
    or_none(lambda: upload.seek(0))
    return size or 0


def memory_bytes() -> int:
    """Return the bytes of the machine's memory, or of its container's limit; 8 GiB if the system states neither."""
    machine = or_none(lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    container = or_none(lambda: int(_CGROUP_LIMIT.read_text()))
    return min(filter(None, (machine, container)), default=_UNKNOWN_MEMORY)


_BLOCK_BYTES = 2**22


def find_copies(files: FoundFiles) -> list[tuple[str, ...]]:
    """Return a tuple of names for each group of files with the same content; files without rows are left out.

    Only files of equal size are read, block by block until they differ. That reads far less than digests of all files would.

    Raises:
        InputError: a file cannot be read any more.
    """
    sources_of_size: dict[int, list[Source]] = {}
    for source, size, rowless in zip(files.sources, files.sizes, files.rowless, strict=True):
        if not rowless:
            sources_of_size.setdefault(size, []).append(source)
    copies: list[list[Source]] = []
    for size, sources in sources_of_size.items():
        groups = [sources]
        for begin in range(0, size, _BLOCK_BYTES):
            groups = [part for group in groups if len(group) > 1 for part in _group_by_block(group, begin)]
        copies += [group for group in groups if len(group) > 1]
    return sorted(tuple(sorted(Path(name_of(source)).name for source in group)) for group in copies)


def refuse_copied_names(names: Sequence[str]) -> None:
    """Refuse files whose names say that one is a copy of another, or that two are copies of one: x (1), x - Copy, Copy of x, x copy 2.

    Names are public, unlike content, so every reader, releases included, may refuse by them.

    Raises:
        InputError: there are such files; the text says the names of two.
    """
    stems = [unicodedata.normalize("NFC", Path(name).stem).casefold() for name in names]
    first: dict[str, str] = {}
    originals = [_name_original(stem) for stem in stems]
    marked = {original for stem, original in zip(stems, originals, strict=True) if stem != original}
    for name, original in zip(names, originals, strict=True):
        other = first.setdefault(original, name)
        if original in marked and other.casefold() != name.casefold():
            raise InputError(
                f"By their names, {other!r} and {name!r} are a file and its copy, or two copies, and every record in both would count"
                f" twice: {_COPIES_ADVICE}"
            )


def _name_original(stem: str) -> str:
    """Return the name of the file of which a name, in lower case, says that it is a copy; the name itself if it says no such thing."""
    while (shorter := _COPY_MARKS.sub("", stem, count=1).strip()) not in ("", stem):
        stem = shorter
    return stem


_COPIES_ADVICE = "delete one of the two, or do not name it. If all are to count, pass copies=True."


def refuse_copies(files: FoundFiles) -> None:
    """Refuse files of equal content. Only for curators who look at their data, never in a release: see `describe_copies`.

    Raises:
        InputError: two files have the same content; the text says their names.
    """
    for one, two, *_others in find_copies(files):
        raise InputError(f"The files {one!r} and {two!r} have the same content, and every record in it would count twice: {_COPIES_ADVICE}")


def describe_copies(files: FoundFiles) -> list[str]:
    """Return a sentence for each group of files of equal content, for the curator only.

    Whether two files are equal can depend on one person's row. A program that refused a release for it would tell everybody who waits
    for the release whether that row is there, at no cost in budget. So equal content decides no release: it is a warning that the curator
    confirms, in a dialogue that ends before anything is paid (the app, a terminal). Where nobody can be asked, as in a nightly job, all
    files count, as they do without the row. What comes before a release (`dpviz check`, studies, the first reading in Python) may refuse
    it: only the curator sees that.
    """
    return [
        f"the files {' and '.join(map(repr, names))} have the same content, and each of their records counts {len(names):,} times. Is one"
        " a copy? If all are to count, pass copies=True."
        for names in find_copies(files)
    ]


def _group_by_block(sources: Iterable[Source], begin: int) -> list[list[Source]]:
    """Group files by their content in the block that begins at a byte."""
    parts: dict[bytes, list[Source]] = {}
    for source in sources:
        rule = f"The file {Path(name_of(source)).name!r} cannot be read any more."
        block = without_private_text(rule, lambda source=source: read_bytes(source, _BLOCK_BYTES, begin))  # type: ignore[misc]
        parts.setdefault(hashlib.sha256(block).digest(), []).append(source)
    return list(parts.values())
