"""Small points files of every format, and how they are refused."""

import csv
import io
import zipfile

import geopandas as gpd
import pandas as pd
import pyogrio
import pytest

from dpviz.data.counting.files import read_points
from dpviz.errors import InputError
from dpviz.space.domain import Domain

WORLD = Domain(bounds=(-180.0, -90.0, 180.0, 90.0), crs="EPSG:4326", order=4)


PLANE = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)


X, Y = [10.0, 10.1, -70.5, 151.2], [50.0, 50.1, 42.25, -33.9]


USER, N = ["a", "007", "7", "7"], [1, 2, 0, 4]


TABLES = ("csv", "tsv", "plain")


GEOMETRIES = ("geojson", "gpkg", "parquet", "geoarrow", "zip")


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


def zipped(members, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def shapefile(points, folder, stem="points"):
    """Name -> bytes of the parts of a Shapefile."""
    pyogrio.write_dataframe(points, folder / f"{stem}.shp")
    return {path.name: path.read_bytes() for path in sorted(folder.glob(f"{stem}.*"))}


def stored(points, form, folder):
    """An upload of a GeoDataFrame in one of the forms."""
    table = pd.DataFrame(points.drop(columns="geometry")).assign(lon=points.geometry.x, lat=points.geometry.y)
    buffer = io.BytesIO()
    if form == "csv":
        table.to_csv(buffer, index=False)
    elif form == "tsv":
        table.to_csv(buffer, index=False, sep="\t", quoting=csv.QUOTE_NONE)
    elif form == "plain":
        table.to_parquet(buffer)
    elif form == "parquet":
        points.to_parquet(buffer)
    elif form == "geoarrow":
        points.to_parquet(buffer, geometry_encoding="geoarrow")
    elif form == "zip":
        buffer.write(zipped(shapefile(points, folder)))
    else:
        pyogrio.write_dataframe(points, folder / f"points.{form}", layer="points")
        buffer.write((folder / f"points.{form}").read_bytes())
    return upload(buffer.getvalue(), f"points.{NAMES.get(form, form)}")


def declared(form):
    return None if form in GEOMETRIES else "EPSG:4326"


def refusal(source, domain=WORLD, **options):
    """The text of the refusal; no private word or number of these tests may be in it, nor in what hangs on it."""
    with pytest.raises(InputError) as caught:
        read_points(source, domain=domain, **options)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "zq" not in repr(caught.value)
    return str(caught.value)


def left_out(source, domain=WORLD, **options):
    points = read_points(source, domain=domain, bad_rows="drop", **options)
    return int(points.count.sum()), points.dropped
