"""Named faults of GeoPackages, Parquet files and zipped Shapefiles: fault -> bytes. Each is broken for certain."""

import json
import sqlite3
import stat
import struct
import zipfile
from contextlib import closing

import numpy as np
import pyarrow as pa

from tests.data.reading.files import zipped
from tests.data.reading.whole import LAT, LON, bomb, parquet

NAN = float("nan")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'zq' || max(i) AS table_name FROM n"
TOO_DEEP = "[" * 100_000


def geopackage(whole, folder):
    """Faults of a GeoPackage of points or regions with one layer called places."""

    def after(*statements):
        file = folder / "changed.gpkg"
        file.write_bytes(whole)
        with closing(sqlite3.connect(file)) as database:
            for name in ("ST_IsEmpty", "ST_MinX", "ST_MaxX", "ST_MinY", "ST_MaxY"):
                database.create_function(name, 1, lambda _: 0)
            database.executescript("PRAGMA writable_schema = ON;" + ";".join(statements))
        return file.read_bytes()

    untriggered = "DELETE FROM sqlite_master WHERE type = 'trigger'"
    return {
        "its layer is a view": after("ALTER TABLE places RENAME TO zq", "CREATE VIEW places AS SELECT * FROM zq"),
        "its contents are a view": after(
            "ALTER TABLE gpkg_contents RENAME TO zq", "CREATE VIEW gpkg_contents AS SELECT *, load_extension('zq') FROM zq"
        ),
        "its list of layers never ends": after("DROP TABLE gpkg_geometry_columns", f"CREATE VIEW GPKG_geometry_columns AS {ENDLESS}"),
        "its layer is virtual": after(untriggered, "DROP TABLE places", "CREATE VIRTUAL TABLE places USING dbstat(main)"),
        "a virtual table over another file": after(
            "INSERT INTO sqlite_master VALUES ('table', 'zq', 'zq', 0, 'CREATE VIRTUAL TABLE zq USING VirtualOGR(''/etc/passwd'')')"
        ),
        "triggers in a broken schema": after(
            "CREATE TRIGGER zq AFTER INSERT ON places BEGIN SELECT 1; END",
            "UPDATE sqlite_master SET sql = 'CREATE TRIGGER zq AFTER zq Kowalska' WHERE name = 'zq'",
        ),
        "a table in a broken schema": after("UPDATE sqlite_master SET sql = 'CREATE TABLE places (zq' WHERE name = 'places'"),
        "two tables on one page": after("UPDATE sqlite_master SET rootpage = 3 WHERE name IN ('places', 'gpkg_contents')"),
        "its layer is missing": after(untriggered, "DROP TABLE places"),
        "no list of layers": after("DROP TABLE gpkg_geometry_columns"),
        "no layers": after("DELETE FROM gpkg_geometry_columns", "DELETE FROM gpkg_contents"),
        "shapes that are none": after(untriggered, "UPDATE places SET geom = x'4750000100000000FFFFFFFFFFFFFFFF' WHERE fid = 1"),
        "not marked as one": whole[:68] + b"\0\0\0\0" + whole[72:],
        "another database": b"SQLite format 3\0" + b"\0" * 52 + b"GPKG" + b"\0" * 4000,
        "a size that is not its own": whole[:16] + b"\x00\x07" + whole[18:],
        "a second half of nothing": whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2),
    }


def geoparquet(whole_facts, column, **rest):
    """Faults of GeoParquet; `whole_facts` is the content of its geo key, `column` the geometries, `rest` the other columns."""
    facts = json.loads(whole_facts)
    primary = facts["columns"]["geometry"]

    def geo(text, shapes=column):
        return parquet(geometry=shapes, **rest, metadata={"geo": text if isinstance(text, str) else json.dumps(text)})

    def described(**parts):
        return geo({**facts, "columns": {"geometry": {**primary, **parts}}})

    garbage = pa.array([b"\x01zq Kowalska"] * len(column), pa.binary())
    return {
        "geo that is no JSON": geo("{zq"),
        "geo that is a list": geo(["zq"]),
        "geo that is deep": geo(TOO_DEEP),
        "no primary column": geo({"columns": facts["columns"]}),
        "a primary column that is not there": geo({**facts, "primary_column": "zq"}),
        "no such column": geo({**facts, "primary_column": "zq", "columns": {"zq": primary}}),
        "an unknown encoding": described(encoding="zq"),
        "an unknown crs": described(crs="NOWHERE:1"),
        "a crs that is a number": described(crs=4711.5),
        "a crs that is a list": described(crs=["zq"]),
        "shapes that are garbage": geo(facts, garbage),
        "shapes that are numbers": geo(facts, pa.array(range(len(column)))),
        "shapes that are texts": geo(facts, pa.array([f"POINT ({LON} {LAT})"] * len(column))),
    }


def points_parquet():
    """Faults of Parquet with columns of longitude and latitude."""
    y = [50.0, 51.0]
    odd = {"lists": [[1.0], [2.0]], "lists of texts": [["zq"], ["Kowalska"]], "records": [{"zq": 1.0}, {"zq": 2.0}]}
    odd |= {"truths": [True, False], "dates": pa.array([4711, 4712], pa.date32()), "times": pa.array([4711, 4712], pa.timestamp("us"))}
    odd |= {"bytes": [b"13.577215", b"zq"], "names": ["zq Kowalska", "zqB"], "numbers and a name": [LON, "zq Kowalska"]}
    odd |= {"packed names": pa.array(["zq Kowalska", "zq"]).dictionary_encode(), "not a number": [float(LON), NAN]}
    odd |= {"infinite": [float(LON), np.inf], "missing": [float(LON), None], "nothing at all": pa.array([None, None], pa.null())}
    odd |= {"half-missing lists": [[float(LON)], None]}
    return {f"longitudes that are {name}": parquet(lon=column, lat=y) for name, column in odd.items()} | {
        "two longitudes": parquet(a=y, b=y, c=y, names=["lon", "lon", "lat"]),
        "no latitude": parquet(lon=y, other=y),
        "a hundred gigabytes of one text": parquet(lon=bomb(), lat=np.zeros(100_000)),
        "an encrypted footer": b"PARE" + b"\0" * 40 + b"\x10\0\0\0PARE",
        "no footer": b"PAR1" + b"\0" * 100 + b"PAR1",
        "a footer longer than the file": b"PAR1" + b"\0" * 100 + b"\xff\xff\xff\x7fPAR1",
    }


def trips_parquet():
    """Faults of Parquet with columns of trips."""
    ids = ["zq1", "zq2"]
    counts = {"negative": [1, -4711], "fractions": [1, 4711.5], "not a number": [1.0, NAN], "infinite": [1.0, np.inf], "missing": [1, None]}
    counts |= {"names": ["1", "zq Kowalska"], "truths": [True, False], "lists": [[1], [2]], "lists of names": [["zq"], ["zq"]]}
    counts |= {"dates": pa.array([1, 4711], pa.date32())}
    sides = {"missing": ["zq1", None], "fractions": [1.5, 4711.5], "bytes": [b"zq1", b"zq2"], "lists": [[1], [2]], "blank": ["zq1", " "]}
    sides |= {"truths": [True, False]}
    return (
        {f"counts that are {name}": parquet(origin=ids, destination=ids, count=column) for name, column in counts.items()}
        | {f"origins that are {name}": parquet(origin=column, destination=ids, count=[1, 2]) for name, column in sides.items()}
        | {"a hundred gigabytes of one text": parquet(origin=bomb(), destination=bomb(), count=np.ones(100_000, np.int64))}
    )


def regions_parquet():
    """Faults of Parquet with a row per region."""
    whole = {"region_id": ["zqA", "zq1"], "parent_id": [None, "zqA"], "level": ["state", "town"]}
    changes = {"an id that is missing": {"region_id": ["zqA", None]}}
    changes |= {"an id twice": {"region_id": ["zq1", "zq1"], "level": ["town", "town"]}}
    changes |= {"ids that are lists": {"region_id": [["zqA"], ["zq1"]]}, "ids that are truths": {"region_id": [True, False]}}
    changes |= {"a parent that is not there": {"parent_id": [None, "zq Kowalska"]}, "levels that are missing": {"level": ["state", None]}}
    changes |= {"a hundred gigabytes of one text": {name: bomb() for name in whole}}
    return {name: parquet(**{**whole, **change}) for name, change in changes.items()}


def shapefile(whole, parts):
    """Faults of a zipped Shapefile; `parts` are its members by name."""

    def with_member(name, content=b"zq Kowalska"):
        return zipped({**parts, name: content})

    def without(ending):
        return zipped({name: content for name, content in parts.items() if not name.endswith(ending)})

    link = zipfile.ZipInfo("places.shp")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    shp, dbf = parts["places.shp"], parts["places.dbf"]
    honest = with_member("places.dbf", dbf + b"\0" * 5_000_000)
    return {
        "a path upwards": with_member("../zq.shp"),
        "an absolute path": with_member("/etc/zq"),
        "a path with backslashes": with_member("a\\..\\..\\zq"),
        "a path with a drive": with_member("C:zq.txt"),
        "an archive inside": with_member("zq.zip", whole),
        "a tar inside": with_member("zq.tar.gz"),
        "a link instead of shapes": zipped({link: b"/etc/passwd"} | {name: each for name, each in parts.items() if name != "places.shp"}),
        "a bomb": honest,
        "a bomb that understates its size": honest.replace(struct.pack("<I", len(dbf) + 5_000_000), struct.pack("<I", 100)),
        "too many members": zipped({**parts, **{f"zq{place}.txt": b"" for place in range(80)}}),
        "another compression": zipped(parts, zipfile.ZIP_LZMA),
        "a password": locked(whole),
        "two of one name": zipped({**parts, "PLACES.SHP": shp}),
        "two Shapefiles": zipped({**parts, **{name.replace("places", "zq"): content for name, content in parts.items()}}),
        "no shapes": without(".shp"),
        "no index": without(".shx"),
        "another file only": zipped({"zq.csv": b"lon,lat\n1,2\n"}),
        "nothing": zipped({}),
        "shapes that are text": with_member("places.shp", b"zq Kowalska" * 20),
        "shapes that are empty": with_member("places.shp", b""),
        "shapes that are cut": with_member("places.shp", shp[:-10]),
        "an index that is empty": with_member("places.shx", b""),
        "an index beyond the shapes": with_member("places.shx", parts["places.shx"][:100] + b"\x7f\xff\xff\xff" * 40),
        "a table that is text": with_member("places.dbf", b"zq Kowalska"),
        "a table of two billion rows": with_member("places.dbf", dbf[:4] + b"\xff\xff\xff\x7f" + dbf[8:]),
    }


def locked(content):
    """The archive with every member marked as encrypted."""
    changed = bytearray(content)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(signature)
        while place >= 0:
            changed[place + offset] |= 1
            place = content.find(signature, place + 4)
    return bytes(changed)
