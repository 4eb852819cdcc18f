"""Hundreds of broken files of every kind and format, always the same ones.

Named faults are broken for certain. The rest of each format's share are whole files that were cut, or had one byte flipped; of
those only the ones count that an independent reader of the format finds broken, too.
"""

import csv
import gzip
import io
import json
import os
import random
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq

from dpviz.release.files import MANIFEST
from tests.data.reading import broken_packed as packed
from tests.data.reading import broken_text
from tests.data.reading.files import zipped
from tests.data.reading.whole import ENDINGS, SEPARATORS, parts, releases, whole_files

NUMBER = 456
SHARES = {"points": {"csv": 50, "tsv": 22, "geojson": 52, "gpkg": 34, "geoparquet": 32, "parquet": 34, "shapefile": 42}}
SHARES |= {"trips": {"csv": 30, "tsv": 16, "parquet": 26}}
SHARES |= {"regions": {"csv": 18, "tsv": 10, "geojson": 18, "gpkg": 14, "geoparquet": 12, "parquet": 14, "shapefile": 16}}
SHARES |= {"releases": {"points folder": 4, "trips zip": 4}, "paths": {"no file": 8}}
# Where the same fault comes in another format or kind already, each second or third is enough: first, step.
THINNED = {("points", "tsv"): (0, 3), ("trips", "tsv"): (1, 3), ("regions", "tsv"): (2, 3), ("regions", "gpkg"): (0, 3)}
THINNED |= {("regions", "geoparquet"): (1, 3), ("regions", "shapefile"): (2, 3)}
UNREAD = ("who", "note")
NUMERIC = {"lon": float, "lat": float, "count": int}


@dataclass(frozen=True)
class Broken:
    """A broken file: its kind, its format, what is wrong with it, its name, and its bytes or what makes it at a path."""

    kind: str
    form: str
    fault: str
    name: str
    content: bytes | Callable[[Path], object]

    def put(self, folder):
        """Make it in a folder; gives its path."""
        path = folder / self.name
        if callable(self.content):
            self.content(path)
        else:
            path.write_bytes(self.content)
        return path


def corpus(folder):
    """All of them; `folder` is for what has to be made on the way."""
    found = [each for kind, shares in SHARES.items() for form, share in shares.items() for each in _share(kind, form, share, folder)]
    assert len(found) == NUMBER
    return found


def _share(kind, form, share, folder):
    foreign = []
    if kind in ("paths", "releases"):
        named, extra = _paths() if kind == "paths" else _releases(*form.split(), folder), iter(())
    else:
        whole = whole_files(folder)[kind, form]
        name = f"{kind}.{ENDINGS.get(form, form)}"
        named = [(fault, name, content) for fault, content in _named(kind, form, whole, folder).items()]
        foreign = list(_foreign(kind, form, folder))
        judge = JUDGES[form if form in JUDGES else "table"]
        extra = ((fault, name, content) for fault, content in _damaged(whole, f"{kind} {form}") if judge(content, whole))
    first, step = THINNED.get((kind, form), (0, 1))
    named = named[first::step] + (foreign if kind == "points" and step == 1 else foreign[first::3])
    assert len(named) <= share, (kind, form, len(named))
    while len(named) < share:
        named.append(next(extra))
    return [Broken(kind, form, *each) for each in named]


def _named(kind, form, whole, folder):
    if form in SEPARATORS:
        return getattr(broken_text, f"{kind}_text")(SEPARATORS[form], whole)
    if form == "geojson":
        return getattr(broken_text, f"{kind}_geojson")(whole)
    if form == "gpkg":
        return packed.geopackage(whole, folder)
    if form == "shapefile":
        return packed.shapefile(whole, parts(folder / kind / form))
    if form == "parquet":
        return getattr(packed, f"{kind}_parquet")()
    table = pq.read_table(io.BytesIO(whole))
    rest = {name: table.column(name).combine_chunks() for name in table.column_names if name != "geometry"}
    found = packed.geoparquet(table.schema.metadata[b"geo"], table.column("geometry").combine_chunks(), **rest)
    return found | (packed.points_geoparquet() if kind == "points" else {})


def _foreign(kind, form, folder):
    """Files of something else under this format's ending, or this format under another ending."""
    files, name = whole_files(folder), f"{kind}.{ENDINGS.get(form, form)}"
    other = ("points", "gpkg" if form != "gpkg" else "csv")
    strangers = {"empty": b"", "zeros": bytes(5000), "noise": random.Random(kind + form).randbytes(5000)}
    strangers |= {"compressed": gzip.compress(files[kind, form], mtime=0), f"a {other[1]} file": files[other]}
    strangers |= {"a virtual dataset": b'<OGRVRTDataSource><OGRVRTLayer name="zq"><SrcDataSource>/etc/passwd</SrcDataSource>'}
    if form not in SEPARATORS:
        strangers["a web page"] = b"<!doctype html><title>zq Kowalska</title>"
    yield from ((f"is {what}", name, content) for what, content in strangers.items())
    if form != "parquet" and kind == "points":
        yield "is called compressed", name + ".gz", files[kind, form]
        yield "has an unknown ending", "points.zq", files[kind, form]


def _damaged(whole, seed):
    """Cuts and flips of a file, without an end; some do no harm."""
    dice = random.Random(seed)
    for number in count():
        if number % 3 == 0:
            yield f"cut, number {number}", whole[: dice.randrange(1, len(whole))]
        else:
            place = dice.randrange(len(whole))
            yield f"flipped, number {number}", whole[:place] + bytes([whole[place] ^ dice.randrange(1, 256)]) + whole[place + 1 :]


def _table_is_broken(content, whole):
    """A text table under the whole file's header whose rows are no rows, or whose cells are none."""
    header = whole.split(b"\n", 1)[0]
    if not content.startswith(header + b"\n") or b'"' in content or b"\r" in content:  # unclear what it would mean
        return False
    try:
        text = content.decode()
        names, *rows = [row for row in csv.reader(io.StringIO(text), delimiter="\t" if b"\t" in header else ",") if row]
        for row in rows:
            for name, cell in zip(names, row, strict=True):
                if name in NUMERIC and not 0 <= abs(NUMERIC[name](cell)) < 2**53:
                    return True
    except ValueError:
        return True
    return False


def _json_is_broken(content, _whole):
    return _fails(lambda: json.loads(content.decode()))


def _parquet_is_broken(content, whole):
    needed = [name for name in pq.read_schema(io.BytesIO(whole)).names if name not in UNREAD]
    return _fails(lambda: pq.read_table(io.BytesIO(content), columns=needed, page_checksum_verification=True))


def _zip_is_broken(content, _whole):
    return _fails(lambda: 1 / (zipfile.ZipFile(io.BytesIO(content)).testzip() is None))


def _database_is_broken(content, _whole):
    with tempfile.NamedTemporaryFile(suffix=".gpkg") as file:
        file.write(content)
        file.flush()
        with closing(sqlite3.connect(f"file:{file.name}?mode=ro&immutable=1", uri=True)) as database:
            return _fails(lambda: 1 / (database.execute("PRAGMA quick_check").fetchall() == [("ok",)]))


def _fails(read):
    try:
        read()
    except Exception:  # noqa: BLE001
        return True
    return False


JUDGES = {"table": _table_is_broken, "geojson": _json_is_broken, "gpkg": _database_is_broken, "geoparquet": _parquet_is_broken}
JUDGES |= {"parquet": _parquet_is_broken, "shapefile": _zip_is_broken}


def _releases(kind, form, folder):
    """A few, because tests/release breaks releases in every way."""
    members = releases(folder / "releases")[kind]
    changed = {**members, "report.html": b"<script>zq Kowalska</script>"}
    if form == "zip":
        found = {"a report that was changed": zipped(changed), "a path upwards": zipped({**members, "../zq": b"zq"})}
        found |= {"a password": packed.locked(zipped(members)), "a bomb": zipped({**members, "report.html": b"\0" * 20_000_000})}
        return [(fault, "release.zip", content) for fault, content in found.items()]
    found = {"a report that was changed": _folder(changed), "a file that is not listed": _folder({**members, "extra.csv": b"zq Kowalska"})}
    found |= {"a manifest that is no JSON": _folder({**members, MANIFEST: b"zq Kowalska"}), "a pipe inside": _folder(members, pipe="zq")}
    return [(fault, "release", make) for fault, make in found.items()]


def _folder(files, pipe=None):
    def make(path):
        path.mkdir()
        for name, content in files.items():
            (path / name).write_bytes(content)
        if pipe:
            os.mkfifo(path / pipe)

    return make


def _paths():
    return [
        ("not there", "zq Kowalska.csv", lambda _: None),
        ("a folder", "folder.csv", Path.mkdir),
        ("a folder without a release", "release", Path.mkdir),
        ("a pipe", "pipe.csv", os.mkfifo),
        ("a link to nothing", "link.csv", lambda path: path.symlink_to(path.parent / "zq Kowalska")),
        ("a link to itself", "round.csv", lambda path: path.symlink_to(path)),
        ("a part of a Shapefile", "zq.shp", lambda path: path.write_bytes(b"zq")),
        ("no ending", "zq", lambda path: path.write_bytes(b"lon,lat\n13.577215,52.416907\n")),
    ]
