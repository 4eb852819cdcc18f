"""Every engine counts text tables of a declared format as the engine "numpy" does, or says that it does not read them."""

import random
from functools import partial

import geopandas as gpd
import pytest
import shapely

from dpviz.data.counting.engines import ENGINES
from dpviz.data.counting.files import read_points, read_trips
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.text_format import TextFormat
from tests.data.counting.test_files import DEGREES, arrays, counters, refused, squares
from tests.data.reading.files import PLANE, TOWNS
from tests.often import often

OTHERS = ENGINES[1:]
NUMBERS = ["1,5", "2", "7,25", "-1", " 3,5 ", "1.5", "1.000,5", "1_5", "0x1", "", "NA", "1,5,5", "inf", "+4,5", "5,", ",5", "1e0", "1,5e0"]
CODECS = {"utf-8": "utf-8", "latin-1": "latin-1", "windows-1252": "cp1252"}
NAMES = ["ä", "b", '"; "', "ÿ|", "a.b", "a,b", "\x80", "NA"]


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize(
    ("separator", "encoding"), often([(";", "utf-8"), ("\t", "windows-1252"), ("|", "latin-1"), (";", "windows-1252")], 2)
)
def test_engines_agree_on_points(tmp_path, engine, separator, encoding, counted_by):
    rng = random.Random(separator + encoding)
    cells = [[rng.choice(NUMBERS), rng.choice(NUMBERS), rng.choice(["1", "2,0", "1.000", "0,5"]), rng.choice(NAMES)] for _ in range(600)]
    cells += [rng.choices(NUMBERS, k=rng.choice([2, 3, 5])) for _ in range(20)]
    content = "größe;y;n;who\n".replace(";", separator) + "".join(separator.join(row) + rng.choice(["\n", "\r\n"]) for row in cells)
    (tmp_path / "a.csv").write_bytes(
        content.encode("latin-1" if encoding != "utf-8" else "utf-8") + separator.join("12").encode() + b"\x81\n"
    )
    read = partial(read_points, tmp_path / "a.csv", domain=PLANE, x="größe", bad_rows="drop")
    written = TextFormat(separator=separator, decimal=",", encoding=encoding)
    for options in ({}, {"count": "n"}, {"count": "n", "person": "who", "contributions": 4, "key": b"k"}):
        one, two = (read(text_format=written, **counted_by(each), **options) for each in ("numpy", engine))
        assert (arrays(one), counters(one)) == (arrays(two), counters(two))
        assert one.count.sum() > 20
        assert one.bad > 200


@pytest.mark.parametrize("engine", OTHERS)
def test_engines_agree_on_trips(tmp_path, engine, counted_by):
    options = {"text_format": TextFormat(separator=";", decimal=",", encoding="latin-1"), "bad_rows": "drop"}
    rows = "a;b;2,0;ä\nb;c;1.000;ä\nc;c;3;ö\nä;b;1;ö\na;b\na;b;1,5;ä\n" * 40
    (tmp_path / "a.csv").write_bytes(("from;to;trips;who\n" + rows).encode("latin-1"))
    read = partial(read_trips, tmp_path / "a.csv", regions=TOWNS, **options)
    for chosen in ({}, {"person": "who", "contributions": 30, "key": b"k"}):
        one, two = (read(**counted_by(each), **chosen) for each in ("numpy", engine))
        assert (arrays(one), counters(one)) == (arrays(two), counters(two))
    (tmp_path / "b.csv").write_text("x;y;x2;y2\n0,5;0,5;1,5;0,5\n0,5;0,5;2,5;0,5\n0.5;0,5;2,5;0,5\n")
    sides = {"origin": ("x", "y"), "destination": ("x2", "y2"), "crs": "EPSG:4326", "regions": squares()}
    one, two = (read_trips(tmp_path / "b.csv", **sides, **options, **counted_by(each)) for each in ("numpy", engine))
    assert (arrays(one), counters(one)) == (arrays(two), counters(two))
    assert (one.count.tolist(), one.bad) == ([1, 1], 1)


@pytest.mark.parametrize("engine", OTHERS)
def test_engines_agree_on_centroids(tmp_path, engine, counted_by):
    shapes = [
        shapely.box(0, 0, 2, 2),
        shapely.Point(3, 3),
        None,
        shapely.LineString([(0, 0), (1, 1)]),
        shapely.Polygon(),
        shapely.box(4, 4, 8, 5),
    ]
    gpd.GeoDataFrame(geometry=shapes, crs="EPSG:4326").to_parquet(tmp_path / "a.parquet")
    gpd.GeoDataFrame(geometry=[shapes[0], shapes[-1]], crs="EPSG:4326").to_parquet(tmp_path / "b.parquet")
    for name, bad in (("a", 3), ("b", 0)):
        read = partial(read_points, tmp_path / f"{name}.parquet", domain=DEGREES, bad_rows="drop", centroids=True)
        one, two = (read(**counted_by(each)) for each in ("numpy", engine))
        assert (arrays(one), counters(one)) == (arrays(two), counters(two))
        assert one.bad == bad
    assert "centroids=True" in refused(read_points, tmp_path / "b.parquet", domain=DEGREES, **counted_by(engine))


def test_utf_16_is_read_in_memory_or_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes("x;y\n1,5;2,5\n".encode("utf-16"))
    read = partial(read_points, tmp_path / "a.csv", domain=PLANE, text_format=TextFormat(separator=";", decimal=",", encoding="utf-16"))
    assert read().count.tolist() == [1]
    for engine in OTHERS:
        assert "UTF-16" in refused(read, engine=engine)
    assert "save the files as UTF-8" in refused(read, limits=Limits(file_bytes=10))


GOOD = ["1,5;2,5", "3,5;4,5", "7,5;0,5"]
BROKEN = ["\x00;\x00", '"', '"1;2', "1;2;3", "x;y", "1;", " ", "1e999;2", "nan;1", "\ufeff1;2", b"\x81\x8d;1", b"\xff\xfe;1", b"\x00\xd8;1"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1", "windows-1252"])
def test_a_broken_row_changes_no_other_row_and_at_most_one_cell(tmp_path, encoding):
    codec = {"utf-16": "utf-16-le"} | CODECS

    def count(rows):
        texts = [row if isinstance(row, bytes) else row.encode(codec[encoding], "replace") for row in ["x;y", *rows]]
        mark, end = (b"\xff\xfe" if encoding == "utf-16" else b""), "\n".encode(codec[encoding])
        (tmp_path / "a.csv").write_bytes(mark + b"".join(text + end for text in texts))
        form = TextFormat(separator=";", decimal=",", encoding=encoding)
        read = read_points(tmp_path / "a.csv", domain=PLANE, text_format=form, bad_rows="drop")
        return read.blocks(PLANE.order)

    without = count(GOOD)
    assert without.sum() == len(GOOD)
    for place in range(len(GOOD) + 1):
        for row in BROKEN:
            if isinstance(row, bytes) and encoding == "utf-16":
                row = row.ljust(len(row) + len(row) % 2, b"1")  # noqa: PLW2901 - a text in UTF-16 has whole units
            assert abs(count([*GOOD[:place], row, *GOOD[place:]]) - without).sum() <= 1
