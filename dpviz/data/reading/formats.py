"""The registry of file formats: what each is called, the endings of its files, the check of their bytes, and what opens them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpviz.data.reading.safety import FORMATS, Limits
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of files: a table, which `open_table` opens, or geometries, which `open_points` and `open_shapes` open.

    Functions that open a file get its bytes, never its path, and only after `check` has passed them: a library that may follow a path in
    the content, or unpack without limit, never sees bytes that were not looked at.

    Attributes:
        name: of the format, in messages.
        endings: of its files' names, in lower case, such as ".csv".
        check: takes the bytes of a file and the limits, and returns the bytes to be opened, which are the same for most formats. It raises
            an `InputError` for bytes of another format, for content that would make a library open other files, and for content that would
            take more memory than the limits allow.
        open_table: takes these bytes and the limits, and returns an `OpenTable` (`tables.py`), from which points, trips, areas and regions
            are read. For a text table it also takes `text_format` and `quoted_newlines`. `open_arrow` makes one of an Arrow table.
        open_points: takes the bytes, the wanted columns and `centroids`, and returns an `OpenFile` (`columns.py`).
        open_shapes: takes the bytes and the limits, and returns `OpenShapes` (`geometries.py`).
        first_columns: takes the bytes, and returns columns of the first rows by name, as Arrow arrays, without geometries.
        separator: between the cells of a text table; "" for other formats.
        declares_columns: whether a file declares its columns; otherwise each row names its own.
        streamed: whether the engines of `data/counting` read such files in parts, by their paths.
    """

    name: str
    endings: tuple[str, ...]
    check: Callable[[bytes, Limits], bytes]
    open_table: Callable[..., Any] | None = None
    open_points: Callable[..., Any] | None = None
    open_shapes: Callable[..., Any] | None = None
    first_columns: Callable[[bytes], dict[str, Any]] | None = None
    separator: str = ""
    declares_columns: bool = True
    streamed: bool = False


_BY_NAME: dict[str, Format] = {}


def register(form: Format) -> None:
    """Let all readers, the command line and the app take files of a format.

    Raises:
        SettingError: the format does not check its bytes, has no function that opens them, or a name or an ending that is taken.
    """
    if not callable(form.check):
        raise SettingError(f"The format {form.name} needs a check of its bytes: without it no library may read them.")
    opens_geometries = form.open_points is not None and form.open_shapes is not None and form.first_columns is not None
    if (form.open_table is None) != opens_geometries:
        raise SettingError(f"The format {form.name} needs open_table, or open_points, open_shapes and first_columns.")
    if form.name in _BY_NAME or any(ending in FORMATS for ending in form.endings):
        raise SettingError(f"The name or an ending of the format {form.name} belongs to another one.")
    if not form.endings or not all(ending.startswith(".") and ending == ending.lower() for ending in form.endings):
        raise SettingError(f"The format {form.name} needs endings in lower case, each with its point, such as .csv.")
    _BY_NAME[form.name] = form
    FORMATS.update(dict.fromkeys(form.endings, form.name))
    if form.separator:
        SEPARATORS[form.name] = form.separator


def named(name: str) -> Format:
    """Return the format of a name, as `format_of` gives it."""
    return _BY_NAME[name]


def is_table(name: str | None) -> bool:
    """Return whether a name is that of a format of tables; None is not."""
    return name in _BY_NAME and _BY_NAME[name].open_table is not None


def declares_columns(name: str) -> bool:
    """Return whether files of a format declare their columns; otherwise each row names its own."""
    return name not in _BY_NAME or _BY_NAME[name].declares_columns


def table_names() -> list[str]:
    """List the names of the formats of tables, in the order in which they were registered."""
    return list(filter(is_table, _BY_NAME))


def say_tables() -> str:
    """Return the names of the formats of tables as a text, such as "CSV, TSV or Parquet"."""
    *others, last = table_names()
    return f"{', '.join(others)} or {last}"
