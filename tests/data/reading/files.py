"""Small files of every format, and how they are refused."""

import csv
import io
import traceback
import zipfile

import geopandas as gpd
import pandas as pd
import pyogrio
import pytest

from dpviz.data.counting.files import read_points
from dpviz.errors import DpvizError, InputError
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions

WORLD = Domain(bounds=(-180.0, -90.0, 180.0, 90.0), crs="EPSG:4326", order=4)
PLANE = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)
TOWNS = Regions.from_table(pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]}), levels=["state", "town"])
X, Y = [10.0, 10.1, -70.5, 151.2], [50.0, 50.1, 42.25, -33.9]
USER, N = ["a", "007", "7", "7"], [1, 2, 0, 4]
TABLES = ("csv", "tsv", "plain")
GEOMETRIES = ("geojson", "gpkg", "parquet", "geoarrow", "zip", "geojsonl", "fgb")
NAMES = {"plain": "parquet", "geoarrow": "geoparquet"}


def upload(data, name):
    file = io.BytesIO(data)
    file.name = name
    return file


def text(content, name="points.csv"):
    return upload(content.encode(), name)


def frame(crs="EPSG:4326", geometry=None, **columns):
    geometry = gpd.points_from_xy(X, Y) if geometry is None else geometry
    return gpd.GeoDataFrame(columns or {"user": USER, "n": N}, geometry=geometry, crs=crs)


def zipped(members, method=zipfile.ZIP_DEFLATED):
    """A zip of name -> content; always the same bytes. A name may be a ZipInfo."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as target:
        for name, content in members.items():
            member = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name)
            member.compress_type = method
            target.writestr(member, content)
    return buffer.getvalue()


def shapefile(shapes, folder, stem="points", **options):
    """Name -> bytes of the parts of a Shapefile."""
    pyogrio.write_dataframe(shapes, folder / f"{stem}.shp", **options)
    return {path.name: path.read_bytes() for path in sorted(folder.glob(f"{stem}.*"))}


def stored(table, form, folder=None, stem="points", **options):
    """An upload of a table or of shapes in one of the forms; in a plain table, points are its columns lon and lat."""
    if form in TABLES and "geometry" in table:
        table = pd.DataFrame(table.drop(columns="geometry")).assign(lon=table.geometry.x, lat=table.geometry.y)
    buffer = io.BytesIO()
    if form == "csv":
        table.to_csv(buffer, index=False)
    elif form == "tsv":
        table.to_csv(buffer, index=False, sep="\t", quoting=csv.QUOTE_NONE, quotechar="\1")
    elif form in ("plain", "parquet", "geoarrow"):
        table.to_parquet(buffer, write_page_checksum=True, **({"geometry_encoding": "geoarrow"} if form == "geoarrow" else {}))
    elif form == "zip":
        buffer.write(zipped(shapefile(table, folder, stem, **options)))
    else:
        exact = {"COORDINATE_PRECISION": 17} if form.startswith("geojson") else {"SPATIAL_INDEX": "NO"} if form == "fgb" else {}
        pyogrio.write_dataframe(table, folder / f"{stem}.{form}", layer=stem, **exact | options)
        buffer.write((folder / f"{stem}.{form}").read_bytes())
    return upload(buffer.getvalue(), f"points.{NAMES.get(form, form)}")


def declared(form):
    return None if form in GEOMETRIES else "EPSG:4326"


def refused(read, *given, error=InputError, **options):
    """The text of the refusal; no private word or number of these tests may be in it, nor in what hangs on it."""
    with pytest.raises(error) as caught:
        read(*given, **options)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert "zq" not in repr(caught.value)
    return str(caught.value)


def refusal(source, domain=WORLD, **options):
    return refused(read_points, source, domain=domain, **options)


def read_or_refused(read, *given, **options):
    """What a refusal says, with its traceback; any other exception gets through and fails the test, and so does a warning."""
    error = None
    try:
        read(*given, **options)
    except DpvizError as caught:
        error = caught
    if error is None:
        return ""
    assert (error.__cause__, error.__context__) == (None, None)
    return "".join(traceback.format_exception(error)) + repr(error.args)


def left_out(source, domain=WORLD, **options):
    points = read_points(source, domain=domain, bad_rows="drop", **options)
    return int(points.count.sum()), points.dropped
