"""Safety of files: limits, checks of bytes before a library reads them, errors without private text, and private temporary folders."""

from __future__ import annotations

import io
import itertools
import os
import re
import shutil
import sqlite3
import stat
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeGuard, cast

from dpviz.data.library_errors import without_private_text
from dpviz.errors import InputError, SettingError

Source = str | os.PathLike[str] | BinaryIO

FORMATS: dict[str, str] = {}
"""The endings of files that are read, each with the name of its format; `formats.register` fills it."""
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz", ".zip", ".kmz")
_TO_GEOJSON = "ogr2ogr -f GeoJSON new.geojson {name} makes a GeoJSON of it."
_CONVERSIONS = {
    **dict.fromkeys((".kml", ".gml", ".topojson", ".mif", ".gdb", ".osm", ".pbf", ".gpx"), _TO_GEOJSON),
    ".gpx": "ogr2ogr -f GeoJSON new.geojson {name} track_points makes a GeoJSON of its recorded positions.",
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "Save the sheet as CSV in UTF-8."),
    **dict.fromkeys((".feather", ".arrow", ".orc"), "Save the table as Parquet."),
    ".shp": "A Shapefile is several files: put its .shp, .shx, .dbf and .prj into one .zip.",
}
_FLATGEOBUF = b"fgb\x03fgb"
_SHAPEFILE_PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg")
_MOST_STEPS = 10_000  # of a thousand SQLite instructions each
_INSTRUCTIONS_PER_STEP = 1000
_SHP_FILE_CODE = struct.pack(">i", 9994)
_DBF_HEADER_BYTES = 33
_VIEW_REFUSED = "The GeoPackage's layer is a view; save it as a table."
_VIRTUAL_REFUSED = "The GeoPackage has a virtual table, which could read other files; save its layer into a new file."
_INDEX_MODULES = re.compile(
    r"create\s+virtual\s+table\b.*?\busing\s+[\"'`\[]?(rtree|rtree_i32|fts3|fts4|fts5)\b", re.IGNORECASE | re.DOTALL
)
MEMORY_PER_BYTE = 5  # measured: 3 to 5 bytes of memory at the peak of a count, for each byte of the columns that are read
NUMBER_BYTES = 8
_COPIES_IN_MEMORY, _LIST_BYTES = 4, 128  # copies of a file's content at the peak; bytes of a list or an object of JSON in memory
_USUAL_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True, kw_only=True)
class Limits:
    r"""The most that a file may hold. A file beyond a limit is refused, before its content is read if its header declares the size.

    Attributes:
        file_bytes: bytes of the file itself.
        unpacked_bytes: bytes of all members of an archive, or of all columns that are read from a Parquet file.
        members: number of files in an archive.
        expansion: unpacked bytes per packed byte of an archive.
        memory_bytes: memory that a file which unpacks may take, estimated before it is used. Of Parquet, `MEMORY_PER_BYTE` times the bytes
            of the columns that are read, of which each number has 8, and each text 8 and its length; of a Shapefile, 4 times its unpacked
            parts; of GeoJSON, 4 times its bytes and 128 per bracket, and per line where each is
            a row.
        rows: number of rows of the file, or of lines of a text table.
        columns: number of columns. It does not limit GeoJSON files of points, whose features name their own properties.

    Raises:
        SettingError: a limit is not a whole number, or under 1.

    >>> import io
    >>> import dpviz as dv
    >>> upload = io.BytesIO(b"lon,lat\n4.9,52.4\n4.8,52.3\n4.7,52.5\n")
    >>> upload.name = "walks.csv"
    >>> dv.reading.inspect_points(upload, through=True, limits=dv.reading.Limits(rows=2))
    Traceback (most recent call last):
    ...
    dpviz.errors.InputError: The file has more rows than the limit of 2.
    """

    file_bytes: int = 512 * 2**20
    unpacked_bytes: int = 2 * 2**30
    members: int = 64
    expansion: int = 200
    memory_bytes: int = 2 * 2**30
    rows: int = 20_000_000
    columns: int = 1000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingError(f"The limit {field.name} must be a whole number, at least 1.")

    @property
    def decoded_bytes(self) -> int:
        """The most bytes of the columns of a table that unpacks, such as Parquet: of those that are read, or of all that are opened."""
        return min(self.unpacked_bytes, self.memory_bytes // MEMORY_PER_BYTE)

    def check(self, *, rows: int | None = None, columns: int = 0) -> None:
        """Refuse a file of too many rows, or columns.

        Raises:
            InputError: it has more.
        """
        if columns > self.columns:
            raise InputError(f"The file has more columns than the limit of {self.columns:,}.")
        if rows is not None and rows > self.rows:
            raise too_many_rows(self)


DEFAULT_LIMITS = Limits()


def read_checked(source: Source, limits: Limits) -> tuple[str, bytes]:
    """Read a source. Return the format that its name declares, and its content.

    Args:
        source: a path, or an open binary file (an upload) with a `name`.
        limits: the most that the file may hold; only `file_bytes` is checked here.

    Raises:
        InputError: the source is a URL or a path of GDAL, has an unknown ending, does not exist, is empty, or is too large.
    """
    name = name_of(source)
    kind = format_of(name)
    if is_path(source):
        data = without_private_text("The file cannot be read: does it exist, and may you read it?", lambda: _read_path(Path(name), limits))
    else:
        data = without_private_text(
            "The upload cannot be read: it must be an open binary file.", lambda: read_bytes(source, limits.file_bytes + 1)
        )
    if len(data) > limits.file_bytes:
        raise InputError(f"The file is larger than the limit of {limits.file_bytes:,} bytes.{getattr(source, 'advice', '')}")
    if not data:
        raise InputError("The file is empty.")
    return kind, data


def is_path(source: Source) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a source is a path, not an upload."""
    return isinstance(source, str | os.PathLike)


def name_of(source: Source) -> str:
    """Return a path as a text, or the name that an upload has.

    Raises:
        InputError: the source is neither a path nor an open file with a name.
    """
    name = os.fspath(source) if is_path(source) else getattr(source, "name", None)
    if not isinstance(name, str):
        raise InputError(
            "A source must be a path, or an open binary file that has a name; read_points, read_areas and read_trips take tables in memory,"
            " too: a DataFrame, an Arrow table, or a dict of arrays, such as {'x': array[:, 0], 'y': array[:, 1]}."
            " Regions.from_table makes regions of one."
        )
    return name


def format_of(name: str) -> str:
    """Return the format that the ending of a file's name declares.

    Raises:
        InputError: the name is a URL, or has an unknown ending.
    """
    refuse_url(name)
    ending = PurePosixPath(name).suffix.lower()
    if ending in _CONVERSIONS and ending not in FORMATS:
        name = "FILE" + ending  # a file's name may be private
        raise InputError(f"Files of the kind {ending} are not read. {_CONVERSIONS[ending].format(name=name)}")
    if ending in _PACKED and ending not in FORMATS:
        raise InputError("Compressed files are not opened, except a zipped Shapefile (.zip): unpack the file first.")
    if ending not in FORMATS:
        raise InputError(f"The file's ending says no format that is read; there are {', '.join(FORMATS)}.")
    return FORMATS[ending]


def refuse_url(name: str) -> None:
    """Refuse URLs and GDAL's virtual paths: only files of this machine are opened."""
    if "://" in name or name.lower().startswith(("/vsi", "http:", "https:", "ftp:", "file:")):
        raise InputError("A source must be a local file: URLs and GDAL's virtual paths are never opened.")


def refuse_share(name: str) -> None:
    """Refuse a network share in a text from a configuration or a page: to open it, the system would sign in at the computer named there."""
    if name.replace("\\", "/").startswith("//"):
        raise InputError(
            "A network share is not opened by its address, because the system would sign in there: mount it as a folder or a drive."
        )


def _read_path(path: Path, limits: Limits) -> bytes:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise InputError("The path is not a file.")
    if status.st_size > limits.file_bytes:
        raise InputError(f"The file is larger than the limit of {limits.file_bytes:,} bytes.")
    return read_bytes(path, limits.file_bytes + 1)


def read_bytes(source: Source, most: int, begin: int = 0) -> bytes:
    """Return the bytes of a file from `begin` on, at most `most` of them. An upload is then at its beginning again.

    Raises:
        InputError: an upload is not opened in binary mode.
    """
    if is_path(source):
        with Path(os.fspath(source)).open("rb") as file:
            file.seek(begin)
            return file.read(most)
    upload = cast("BinaryIO", source)
    upload.seek(begin)
    data = upload.read(most)
    upload.seek(0)
    if not isinstance(data, bytes):
        raise InputError("An upload must be opened in binary mode.")
    return data


def check_flatgeobuf(data: bytes, limits: Limits) -> bytes:  # noqa: ARG001  (the file itself is within them)
    """Check that bytes are a FlatGeobuf, and return them: GDAL would open any of its formats under the ending .fgb.

    Raises:
        InputError: they are not.
    """
    if not data.startswith(_FLATGEOBUF):
        raise InputError("The file is not a FlatGeobuf, whatever its ending says.")
    return data


def check_geopackage(data: bytes, limits: Limits) -> bytes:  # noqa: ARG001  (the file itself is within them)
    """Check that bytes are a GeoPackage whose layers are plain tables, and return them.

    Without the check, GDAL would open any of its formats under the ending .gpkg, network services included, and run the functions that a
    view calls. The whole file is checked for damage, because GDAL would leave out the rows after the damage without an error.

    Raises:
        InputError: the bytes are of another format, damaged, or dangerous.
    """
    if not data.startswith(b"SQLite format 3\0") or data[68:72] not in (b"GPKG", b"GP10", b"GP11"):
        raise InputError("The file is not a GeoPackage, whatever its ending says.")
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        database.execute("PRAGMA trusted_schema = OFF")
        _limit_steps(database, _MOST_STEPS)
        _check_schema(database)
        _limit_steps(database, _MOST_STEPS + len(data) // _INSTRUCTIONS_PER_STEP)  # one instruction per byte, far more than the pages need
        database.execute("PRAGMA ignore_check_constraints = ON")  # check constraints could call functions
        if database.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            raise InputError("The content cannot be read as GeoPackage: the file is damaged.")
    return data


def _limit_steps(database: sqlite3.Connection, most: int) -> None:
    """Make SQLite stop after the next `most` times a thousand instructions."""
    steps = itertools.count()
    database.set_progress_handler(lambda: next(steps) >= most, _INSTRUCTIONS_PER_STEP)


def _check_schema(database: sqlite3.Connection) -> None:
    """Refuse views that replace a layer or a table of the format, and virtual tables other than SQLite's own indexes."""
    views = {name.lower() for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    if any(name.startswith("gpkg_") for name in views):  # refused before a query could run the view
        raise InputError(_VIEW_REFUSED)
    statements = [sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND rootpage = 0")]
    if not all(isinstance(sql, str) and _INDEX_MODULES.match(sql.lstrip()) for sql in statements):
        raise InputError(_VIRTUAL_REFUSED)
    layers = {name.lower() for (name,) in database.execute("SELECT table_name FROM gpkg_geometry_columns")}
    if views & layers:
        raise InputError(_VIEW_REFUSED)


def check_json(data: bytes, limits: Limits, *, by_line: bool = False) -> bytes:
    """Check that JSON does not take too much memory, and return it: a list, an object or a line takes far more than its own bytes.

    Raises:
        InputError: it takes more memory, or has more lines of which each is a row, than the limits allow.
    """
    lines = data.count(b"\n") if by_line else 0
    limits.check(rows=lines)
    if _COPIES_IN_MEMORY * len(data) + _LIST_BYTES * (data.count(b"[") + data.count(b"{") + lines) > limits.memory_bytes:
        raise too_much_memory(limits, "Save it as GeoParquet or GeoPackage, or split it")
    return data


def too_much_memory(limits: Limits, remedy: str) -> InputError:
    """Return the error for a file that takes more memory than the limit; `remedy` begins the sentence that says what to do."""
    return InputError(
        f"The file takes more memory than the limit of {limits.memory_bytes:,} bytes. {remedy}, or pass"
        " limits=dv.reading.Limits(memory_bytes=...)."
    )


def repack_shapefile(data: bytes, limits: Limits) -> bytes:
    """Copy the parts of the one Shapefile in an archive into a fresh archive in memory, and nothing else.

    Raises:
        InputError: the archive has too many members or bytes, a path that leads out of it, encryption, another archive inside, no
            Shapefile, or several.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        _check_sizes(members, len(data), limits)
        for member in members:
            _check_member(member)
        parts = _find_shapefile([member for member in members if not _is_no_part(member)])
        if _COPIES_IN_MEMORY * sum(part.file_size for part in parts.values()) > limits.memory_bytes:
            raise too_much_memory(limits, "Save it as GeoParquet or GeoPackage, or split it")
        return _repack(archive, parts, limits)


def _check_sizes(members: list[zipfile.ZipInfo], packed: int, limits: Limits) -> None:
    if len(members) > limits.members:
        raise InputError(f"The archive has more members than the limit of {limits.members:,}.")
    unpacked = sum(member.file_size for member in members)
    if unpacked > limits.unpacked_bytes:
        raise InputError(f"The archive unpacks to more than the limit of {limits.unpacked_bytes:,} bytes.")
    if unpacked > packed * limits.expansion:
        raise InputError(f"The archive unpacks to more than {limits.expansion:,} times its size.")


def _check_member(member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in member.filename:
        raise InputError("The archive has a member whose path leads out of it.")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise InputError("The archive has a member that is a link; put the file itself into it.")
    if member.flag_bits & 0x1:
        raise InputError("The archive is encrypted; unpack it and zip it without a password.")
    if path.suffix.lower() in _PACKED:
        raise InputError("The archive holds another archive; unpack that one first.")
    if member.compress_type not in _USUAL_METHODS:
        raise InputError("The archive is compressed in an unusual way; zip it with the ordinary method (deflate).")


def _is_no_part(member: zipfile.ZipInfo) -> bool:
    """Return whether a member is a folder, or a metadata file that macOS adds."""
    return member.is_dir() or member.filename.startswith("__MACOSX/") or PurePosixPath(member.filename).name.startswith("._")


def _find_shapefile(members: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Return the members of the only Shapefile, by their endings. Refuse an archive with no Shapefile, several, or an incomplete one."""
    stems = {member.filename[:-4] for member in members if member.filename.lower().endswith(".shp")}
    if not stems:
        raise InputError("The archive holds no Shapefile: no file in it ends in .shp. Unpack other files, and give them as they are.")
    if len(stems) > 1:
        raise InputError("The archive holds several Shapefiles; zip the one to be read by itself.")
    stem = stems.pop().casefold()
    members_of_stem = [member for member in members if member.filename[:-4].casefold() == stem]
    parts = {member.filename[-4:].lower(): member for member in members_of_stem}
    if len(parts) < len(members_of_stem):
        raise InputError("The archive has two members of one name; zip the Shapefile again.")
    if ".shx" not in parts:
        raise InputError("The Shapefile is incomplete: its .shx is missing from the archive.")
    return {ending: parts[ending] for ending in _SHAPEFILE_PARTS if ending in parts}


def _repack(archive: zipfile.ZipFile, parts: dict[str, zipfile.ZipInfo], limits: Limits) -> bytes:
    bytes_left, repacked = limits.unpacked_bytes, io.BytesIO()
    with zipfile.ZipFile(repacked, "w", zipfile.ZIP_STORED) as target:
        for ending, member in parts.items():
            with archive.open(member) as part:
                content = part.read(bytes_left + 1)
            bytes_left -= len(content)
            if bytes_left < 0:
                raise InputError(f"The archive unpacks to more than the limit of {limits.unpacked_bytes:,} bytes.")
            if ending == ".shp" and not content.startswith(_SHP_FILE_CODE):  # GDAL would read the rows of the table without any shapes
                raise InputError("The Shapefile's shapes (.shp) are damaged, or of another format.")
            if ending == ".dbf":
                rows, header_bytes, row_bytes = struct.unpack_from("<IHH", content.ljust(12, b"\0"), 4)
                if header_bytes < _DBF_HEADER_BYTES or header_bytes + rows * row_bytes > len(content):  # GDAL would read shapes alone
                    raise InputError("The Shapefile's table (.dbf) is damaged.")
            target.writestr("points" + ending, content)
    return repacked.getvalue()


if sys.platform != "win32":
    import fcntl

PREFIX = "dpviz-spill-"
NO_FOLDER = "There is no folder for temporary files that can be written: set TMPDIR to one on a disk with free space."
_LOCK = "in use"


@contextmanager
def private_folder(parent: Path | None = None) -> Iterator[Path]:
    """Make a temporary folder that no other user can read, and remove it with its content afterwards.

    A process that is killed leaves its folder behind. The next call removes such folders; a lock protects a folder in use. On Windows
    there is no lock, and abandoned folders are not removed.

    Args:
        parent: the folder in which it is made; the system's temporary folder if None.

    Raises:
        InputError: no folder can be made.
    """
    folder = lock = None
    with suppress(OSError):
        _remove_abandoned(Path(parent or tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # 0700
        lock = _lock(folder)
    try:
        if folder is None or lock is None:
            raise InputError(NO_FOLDER)
        yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int:
    """Lock the folder until the returned descriptor is closed. The lock file gets its final name only after it is locked."""
    unnamed = folder / "new"
    lock = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
    if sys.platform != "win32":
        fcntl.flock(lock, fcntl.LOCK_EX)
        unnamed.rename(folder / _LOCK)
    return lock


def _remove_abandoned(parent: Path) -> None:
    if sys.platform == "win32":
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def too_many_rows(limits: Limits) -> InputError:
    """Return the error for a file with more rows than the limit."""
    return InputError(f"The file has more rows than the limit of {limits.rows:,}.")
