"""One whole, small file of every kind and format, with marks planted in its cells: what the broken ones are made from."""

import io
from datetime import UTC, datetime
from functools import cache

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import shapely

from dpviz.data.reading.regions import read_regions
from dpviz.release.files import write_release, zip_release
from dpviz.release.manifest import describe
from tests.data.reading import files
from tests.release_cases import WORDS, point_release, trip_release

# None of these may be in anything that is said about a file.
MARKS = ("zq", "13.577", "52.416", "Kowalsk", "4711")
LON, LAT = "13.577215", "52.416907"
X, Y = [float(LON), 10.5, 11.25, -3.5, 7.0, 12.0], [float(LAT), 50.0, 48.5, 40.25, 43.0, 51.0]
WHO = ["zq Kowalska", "zqB", "zqC", "zqD", "zqE", "zqF"]
ENDINGS = {"geoparquet": "parquet", "shapefile": "zip"}
TABLE_FORMS, SHAPE_FORMS = ("csv", "tsv", "parquet"), ("geojson", "gpkg", "geoparquet", "shapefile")
SEPARATORS = {"csv": ",", "tsv": "\t"}

IDS = ["zq1", "zq2", "zq3", "zq1", "zq3"]
TRIPS = pd.DataFrame({"origin": IDS[:4], "destination": IDS[1:], "count": [4711, 2, 5, 8], "note": WHO[:4]})
REGIONS = pd.DataFrame({"region_id": ["zqA", "zqB", "zq1", "zq2", "zq3"], "parent_id": ["", "", "zqA", "zqA", "zqB"]})
REGIONS["level"] = ["state", "state", "town", "town", "town"]
REGIONS["name"] = ["zq North", "zq South", "Kowalskowo", "zq two", "zq three"]
SHAPES = [shapely.box(*box) for box in ((0, 0, 2, 1), (2, 0, 3, 1), (0, 0, 1, 1), (1, 0, 2, 1), (2, 0, 3, 1))]


def regions_frame():
    return geopandas.GeoDataFrame(REGIONS, geometry=SHAPES, crs="EPSG:4326")


def stored(table, form, folder):
    """Bytes of a table or of shapes in one of the forms, the same each time."""
    folder.mkdir(parents=True, exist_ok=True)
    options = {"shapefile": {"layer_options": {"DBF_DATE_LAST_UPDATE": "2020-01-01"}}, "geojson": {"COORDINATE_PRECISION": 7}}
    names = {"geoparquet": "parquet", "parquet": "plain", "shapefile": "zip"}
    return files.stored(table, names.get(form, form), folder, "places", **options.get(form, {})).getvalue()


def parts(folder):
    """Name -> bytes of the parts of a Shapefile in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("places.*")) if path.suffix not in (".gpkg", ".geojson")}


def parquet(**options):
    """Bytes of a Parquet file of columns; `metadata` goes to its schema. Without `store_schema` packed columns read as plain ones."""
    metadata, names, stored = options.pop("metadata", None), options.pop("names", None), options.pop("store_schema", True)
    arrays = [each if isinstance(each, pa.Array) else pa.array(each) for each in options.values()]
    table = pa.Table.from_arrays(arrays, names or [*options])
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), buffer, write_page_checksum=True, store_schema=stored)
    return buffer.getvalue()


def bomb(rows=100_000):
    """A column of texts of a million letters each, which a dictionary packs into a few bytes."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["7" * 1_000_000])).cast(
        pa.dictionary(pa.int32(), pa.string())
    )


@cache
def releases(folder):
    """Kind -> name -> bytes of the files of a release."""
    made = {}
    folder.mkdir(parents=True, exist_ok=True)
    for number, (kind, release) in enumerate((("points", point_release()), ("trips", trip_release()))):
        manifest = describe(
            release, WORDS, created=datetime(2026, 1, 1, tzinfo=UTC), release_id=f"00000000-0000-4000-8000-00000000000{number}"
        )
        target = write_release(release, folder / kind, manifest, files={"report.html": b"<!doctype html>zq"})
        made[kind] = {path.name: path.read_bytes() for path in sorted(target.iterdir())}
        made[f"{kind} zip"] = zip_release(target)
    return made


@cache
def whole_files(folder):
    """(kind, form) -> bytes."""
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": "2020-01-01T00:00:00Z"})
    try:
        points = geopandas.GeoDataFrame({"who": WHO}, geometry=geopandas.points_from_xy(X, Y), crs="EPSG:4326")
        tables = {"points": pd.DataFrame({"lon": X, "lat": Y, "who": WHO}), "trips": TRIPS, "regions": REGIONS}
        shapes = {"points": points, "regions": regions_frame()}
        made = {(kind, form): table for kind, table in tables.items() for form in TABLE_FORMS}
        made |= {(kind, form): shapes[kind] for kind in shapes for form in SHAPE_FORMS}
        return {(kind, form): stored(table, form, folder / kind / form) for (kind, form), table in made.items()}
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": None})


@cache
def public_regions():
    """The regions that the files of trips name."""
    return read_regions(files.stored(REGIONS, "csv"))
