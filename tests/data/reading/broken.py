"""Hundreds of broken files of every kind and format, always the same ones, and each broken for certain."""

import gzip
import io
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from dpviz.release.files import MANIFEST
from tests.data.reading import broken_packed as packed
from tests.data.reading import broken_text
from tests.data.reading.files import zipped
from tests.data.reading.whole import ENDINGS, SEPARATORS, parts, releases, whole_files

BINARY = ("gpkg", "geoparquet", "parquet", "shapefile")


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
    found = [Broken("paths", "no file", *each) for each in _paths()]
    found += [Broken("releases", form, *each) for form in ("points folder", "trips zip") for each in _releases(*form.split(), folder)]
    for (kind, form), whole in whole_files(folder).items():
        name = f"{kind}.{ENDINGS.get(form, form)}"
        named = [(fault, name, content) for fault, content in (_named(kind, form, whole, folder) | _damaged(form, whole)).items()]
        named += _foreign(kind, form, folder)
        if form == "tsv" or (kind == "regions" and form in BINARY):  # the same faults come in another format or kind already
            named = named[2::3]
        found += [Broken(kind, form, *each) for each in named]
    return found


def _damaged(form, whole):
    """Cuts of a file of any format that says its own length, and a changed byte where the format has checksums."""
    if form in SEPARATORS:
        return {}
    cuts = {f"cut after {eighths} eighths": whole[: len(whole) * eighths // 8] for eighths in (1, 4, 7)}
    if form == "shapefile":
        place = whole.index(b"places.shp") + 50
    elif form in BINARY[1:]:
        facts = pq.read_metadata(io.BytesIO(whole))
        column = facts.row_group(0).column(0 if form == "parquet" else facts.num_columns - 1)
        place = column.dictionary_page_offset + column.total_compressed_size - 1
    else:
        return cuts
    return cuts | {"a changed byte": whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]}


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
    return packed.geoparquet(table.schema.metadata[b"geo"], table.column("geometry").combine_chunks(), **rest)


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
