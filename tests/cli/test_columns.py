"""Columns on the command line: what `check` says of a file, which options name its columns, and what `init` writes and a dry run counts."""

import json
import re
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpviz as dv

ZONES = "district,zone\nA,A1\nA,A2\nB,B1\n"
TRIPS = ("--regions", "zones.csv", "--levels", "district", "zone", "--each-row", "--epsilon", 1)
POINTS = ("--bounds", 0, 0, 16, 16, "--crs", "none", "--each-row", "--epsilon", 1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zones.csv").write_text(ZONES, "utf-8")
    return tmp_path


def written(run, folder, content, *words, encoding="utf-8"):
    """[data] of the configuration that `init` writes, and what a dry run says of rows."""
    (folder / "a.csv").write_text(content, encoding)
    code, _, err = run("init", "a.csv", *words)
    assert code == 0, err
    code, out, err = run("release", "release.toml", "--dry-run", "--json")
    assert code == 0, err
    return tomllib.loads((folder / "release.toml").read_text("utf-8"))["data"], json.loads(out)["each_row"]


OD = "origin,destination,{}\nA1,A2,100\nA2,B1,200\n"
ASKED = [(OD.format(name), TRIPS, name) for name in ("volume", "value", "n", "Numero", "all", "NBFLUX_C20_ACTOCC15P")]
ASKED += [("x,y,visits\n1,2,120\n3,4,80\n", POINTS, "visits"), ("lon,lat,kind,taken\n1,2,a,b\n3,4,a,b\n", POINTS, "taken")]
ASKED += [("zone,cases\nA1,120\nA2,5000\n", (*TRIPS, "--kind", "areas"), "cases")]


@pytest.mark.parametrize(("content", "words", "name"), ASKED)
def test_a_column_that_may_be_a_count_is_said_and_init_wants_an_answer(run, folder, content, words, name):
    (folder / "a.csv").write_text(content, "utf-8")
    assert f"{name!r} (--count COLUMN, or --count none)" in run("check", "a.csv")[1]
    code, _, err = run("init", "a.csv", *words)
    assert (code, name in err, "--count COLUMN, or --count none" in err) == (2, True, True)
    data, said = written(run, folder, content, *words, "--count", "none")
    assert (data["count"], said) == ("none", None)
    (folder / "release.toml").write_text((folder / "release.toml").read_text("utf-8").replace('count = "none"', "# count"), "utf-8")
    out, err = run("release", "release.toml", "--dry-run", "--json")[1:]
    assert 'count = "none"' in json.loads(out)["each_row"]
    assert "not read" in err


@pytest.mark.parametrize(
    ("content", "words", "count"),
    [
        ("x,y,count\n1,2,120\n3,4,80\n", POINTS, "count"),
        ("county,count\nA1,120\nA2,5000\n", (*TRIPS, "--kind", "areas"), "count"),
        (OD.format("trips"), TRIPS, "trips"),
        (OD.format("volume"), (*TRIPS, "--count", "VOLUME"), "volume"),
        ("x,y,count,who\n1,2,120,a\n3,4,80,b\n", (*POINTS[:-3], "--person", "who", "--contributions", 3, "--epsilon", 1), "count"),
    ],
)
def test_a_column_of_counts_is_written_and_read(run, folder, content, words, count):
    data, said = written(run, folder, content, *words)
    assert (data["count"], said) == (count, None)


def test_on_a_terminal_the_columns_and_the_count_are_asked(run, folder, monkeypatch):
    (folder / "a.csv").write_text("Easting,Northing,Longitude,Latitude,visits\n1,2,3,4,5\n", "utf-8")
    answers = iter(["Easting", "Northing", "visits", "", ""])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: next(answers))
    assert run("init", "a.csv", *POINTS)[0] == 0
    data = tomllib.loads((folder / "release.toml").read_text("utf-8"))["data"]
    assert data == {"points": "a.csv", "x": "Easting", "y": "Northing", "count": "visits"}


CHOSEN = [
    ("rechts,hoch\n1,2\n", ("--x", "rechts", "--y", "HOCH"), "As points: x = rechts, y = hoch."),
    ("lon,lat,x,y\n1,2,3,4\n", ("--x", "x", "--y", "y"), "As points: x = x, y = y."),
    ("shape,who\nPOINT (1 2),a\n", ("--geometry", "shape"), "As points: geometry = shape."),
    ("beginn,schluss\nA1,A2\n", ("--origin", "beginn", "--destination", "schluss"), "As trips: origin = beginn, destination = schluss."),
    ("a,b,c,d\n1,2,3,4\n", ("--origin", "a", "b", "--destination", "c", "d"), "As trips: origin = ['a', 'b'], destination = ['c', 'd']."),
    ("spot,size\nA1,3\n", ("--region", "spot", "--count", "size"), "As areas: region = spot, count = size."),
    ("part,whole\nA1,A\n", ("--levels", "whole", "part"), "As regions: levels = ['whole', 'part']."),
]


@pytest.mark.parametrize(("content", "words", "line"), CHOSEN)
def test_options_name_the_columns(run, folder, content, words, line):
    (folder / "a.csv").write_text(content, "utf-8")
    code, out, err = run("check", "a.csv", *words)
    assert (code, line in out.splitlines()) == (0, True), out + err
    assert sum(text.startswith("As ") for text in out.splitlines()) == 1


REFUSED = [
    ("colour,size\na,3\n", (), ["'colour', 'size'", "--x COLUMN --y COLUMN", "--origin COLUMN", "--region COLUMN", "--levels"]),
    ("lon,lat\n1,2\n", ("--x", "lom"), ["no column named 'lom'", "Did you mean 'lon'?"]),
    ("lon,lat,volume\n1,2,3\n", ("--count", "volumes"), ["Did you mean 'volume'?"]),
    ("lon,lat,none\n1,2,3\n", ("--count", "none"), ["A column is called 'none'"]),
    ("a,b\n1,2\n", ("--origin", "a", "b", "a"), ["one column of ids, or two"]),
    ("lon,lat\n1,2\n", ("--crs", "EPSG:0"), ["--crs is not known"]),
    ("4.9,Kowalska\n4.8,Nowak\n", (), ["first line must hold the names"]),
    ("lon,lat\n385000,3768000\n", ("--crs", "EPSG:4326"), ["in degrees"]),
]


@pytest.mark.parametrize(("content", "words", "texts"), REFUSED)
def test_a_refusal_names_the_columns_and_the_next_step(run, folder, content, words, texts):
    (folder / "a.csv").write_text(content, "utf-8")
    code, out, err = run("check", "a.csv", *words)
    assert (code, out) == (2, "")
    assert all(text in err for text in texts), err
    assert "Kowalska" not in err


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (
            "Easting,Northing,Longitude,Latitude\n1,2,3,4\n",
            ["which of 'Easting' and 'Northing', or 'Longitude'", "--x COLUMN"],
        ),
        ("latitudeE7,longitudeE7,accuracy\n340522342,-1182436849,20\n", ["divide them by that", "As points"]),
        ("LAD22CD,MSOA21CD,MSOA21NM\nE0,E1,City 1\nE0,E2,City 2\n", ["As regions", "out of 'LAD22CD', 'MSOA21CD'"]),
        ("LAD/UA,MSOA (2021)\nHull,W1/a\nHull,W1/b\n", ["As regions"]),
        ("Wohnort,A1,A2,Insgesamt\nA1,10,2,12\nA2,1,20,21\nInsgesamt,11,22,33\n", ["As trips: matrix."]),
        ("id,36001,50001\n36002,5,1\n", ["As trips: matrix."]),
        ("von;nach;Anzahl\nA1;A2;7\n", ["As trips: origin = von, destination = nach.", "not read: 'Anzahl'"]),
        ("gmina;liczba\nPoznan;30\n", ["As areas: region = gmina.", "not read: 'liczba'"]),
    ],
)
def test_what_a_file_is_and_what_is_still_to_be_said(run, folder, content, texts):
    (folder / "a.csv").write_text(content, "utf-8")
    code, out, err = run("check", "a.csv")
    assert code == 0, err
    assert all(text in out for text in texts), out


def test_options_for_columns_are_refused_beside_a_configuration(run, folder):
    assert "names its columns and regions itself" in run("check", "release.toml", "--x", "lon")[2]


def test_degrees_times_ten_million_are_not_written_into_a_configuration(run, folder):
    (folder / "a.csv").write_text("latitudeE7,longitudeE7\n340522342,-1182436849\n", "utf-8")
    assert "divide them by that in the file first" in run("init", "a.csv", *POINTS)[2]


def test_ids_are_compared_with_regions_only_if_that_is_asked_for_and_the_ledger_notes_it(run, folder, ledger):
    (folder / "fips.csv").write_text("county\n01001\n06037\n", "utf-8")
    (folder / "a.csv").write_text("origin,destination\n1001,06037\n6037,Oz\n", "utf-8")
    out = run("check", "a.csv", "fips.csv", "--json")[1]
    before = json.loads(out)["ids"]
    out, err = run("check", "a.csv", "fips.csv", "--ids", "--json")[1:]
    assert (before, json.loads(out)["ids"]) == (None, {"as they are written": 1, "with leading zeros": 2, "no region": 1})
    assert "records that" in err
    assert run("check", "a.csv", "--ids")[0] == 2


SHAPES = {
    "text.csv": ('the_geom,zone\n"POLYGON ((1 0, 1 1, 0 1, 1 0))",Q\n', "'the_geom'", ["--geometry", "ogr2ogr"]),
    "cell.csv": ('id,latlon\n1,"34.05,-118.24"\n', "'latlon'", ["split it into two columns"]),
    "hex.csv": ("id,geom\n1,0101000000000000000000F03F000000000000F03F\n", "'geom'", ["hexadecimal WKB", "GEOM_POSSIBLE_NAMES=geom"]),
    "geojson.csv": ('name,_geojson\na,"{""type"":""Point""}"\n', "'_geojson'", ["GEOM_POSSIBLE_NAMES=_geojson"]),
    "wkb.parquet": (pa.table({"id": ["a"], "geometry": [b"\1"]}), "'geometry'", ["WKB", "GeoSeries.from_wkb", "to_parquet"]),
    "record.parquet": (pa.table({"id": ["a"], "spot": [{"lat": 1.0, "lon": 2.0}]}), "'spot'", ["as two columns of numbers"]),
    "box.parquet": (pa.table({"id": ["a"], "bbox": [{"xmin": 1.0, "ymin": 2.0}]}), "'bbox'", ["boxes", "GeoParquet"]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_coordinates_that_are_not_read_are_said_with_the_next_step(run, folder, name):
    content, column, steps = SHAPES[name]
    if isinstance(content, str):
        (folder / name).write_text(content, "utf-8")
    else:
        pq.write_table(content, folder / name)
    out, err = run("check", name)[1:]
    assert all(text in out + err for text in (column, *steps)), out + err
    with pytest.raises(dv.InputError, match=column) as refused:
        dv.read_points(folder / name, domain=(0, 0, 8, 8), crs="EPSG:4326")
    assert steps[-1] in str(refused.value)


def test_what_a_file_is_not_is_said_with_the_reason(run, folder):
    (folder / "a.csv").write_text("start_id,end_id,lon,lat\na,c,,2\nb,c,,2\n", "utf-8")
    assert "Not as points: Column 'lon' has a cell that is no finite number" in run("check", "a.csv")[1]
    (folder / "a.csv").write_text("start_id,end_id,lon,lat,trips\na,c,1,2,x\nb,c,1,2,5\n", "utf-8")
    assert "'trips' has a cell that is no number" in run("init", "a.csv", "--kind", "trips", *TRIPS)[2]


@pytest.mark.parametrize(
    ("content", "words", "fault"),
    [
        ("start_id,end_id\nA1,\nA2,B1\n", TRIPS, "Column 'end_id' has an id that is missing"),
        ("zone,trips\n,3\nB1,4\n", (*TRIPS, "--count", "trips"), "Column 'zone' has an id that is missing"),
        ("lon,lat\n1,\n1,2\n", POINTS, "Column 'lat' has a cell that is no finite number"),
        ("wkt,note\nPOINT (1 2),a\nRosa,b\n", (*POINTS, "--geometry", "wkt", "--count", "none"), "no point in WKT"),
    ],
)
def test_rows_that_do_not_say_where_are_said_and_do_not_stop_check_and_init(run, folder, content, words, fault):
    (folder / "a.csv").write_text(content, "utf-8")
    out = run("check", "a.csv")[1]
    assert re.search(rf"  bad rows: .*{fault}.* A release leaves such rows out", out), out
    code, out, err = run("init", "a.csv", *words)
    assert (code, fault in out, "Rosa" in out) == (0, True, False), err
    assert run("release", "release.toml", "--dry-run")[0] == 0


@pytest.mark.parametrize(
    ("content", "words", "is_said"),
    [
        ("from,to\n,A1\n,A2\n", (), False),
        ("lon,lat\n1,\n2,\n", (), False),
        ("lon,lat,visits\n1,2,1'200\n3,4,5\n", ("--count", "visits"), False),
        ("lon,lat,visits\n1,2,-1\n3,4,5\n", ("--count", "visits"), False),
        ("lon,lat\n5,95\n4,95\n3,9\n", ("--crs", "EPSG:4326"), False),  # swapped?
        ("lon,lat\n5,95\n4,5\n3,9\n", ("--crs", "EPSG:4326"), True),
    ],
)
def test_bad_rows_alone_are_refused_and_so_are_columns_that_seem_swapped(run, folder, content, words, is_said):
    (folder / "a.csv").write_text(content, "utf-8")
    code, out, _ = run("check", "a.csv", *words)
    assert (code, "bad rows" in out) == (0 if is_said else 2, is_said)


WRITTEN = [
    ("origin;destination;count\nA1;A2;1.000\nA2;B1;350\n", ("--thousands", "."), {"separator": ";", "thousands": "."}),
    ('origin,destination,count\nA1,A2,"1,000"\nA2,B1,350\n', ("--thousands", ","), {"thousands": ","}),
    ("origin,destination,trips,ł\nA1,A2,5,ó\n", ("--encoding", "cp1250"), {"encoding": "windows-1250"}),
    ("origin\tdestination\tcount\nA1\tA2\t5\n", ("--separator", r"\t", "--decimal", "."), {"separator": "\t", "decimal": "."}),
]


@pytest.mark.parametrize(("content", "words", "declared"), WRITTEN)
def test_options_say_how_a_text_is_written(run, folder, content, words, declared):
    (folder / "a.csv").write_bytes(content.encode("cp1250"))
    code, out, err = run("check", "a.csv", *words)
    assert (code, "As trips" in out) == (0, True), out + err
    data, _ = written(run, folder, content, *TRIPS, *words, encoding="cp1250")
    assert {name: data.get(name) for name in declared} == declared


@pytest.mark.parametrize(
    ("name", "content", "words", "text"),
    [
        ("a.csv", "origin,destination,count\nA1,A2,1.000\n", (), "check and init take --thousands and --decimal"),
        ("a.csv", "origin,destination,ó\nA1,A2,ł\n", (), "check and init take --encoding"),
        ("a.csv", "lon,lat\n1.5 m,2 m\n", (), "check and init take --decimal"),
        ("a.csv", "lon,lat\n1,2\n", ("--thousands", "x"), "thousands must be"),
        ("a.csv", "lon,lat\n1,2\n", ("--decimal", ".", "--thousands", "."), "different marks"),
        ("a.geojson", '{"type": "FeatureCollection", "features": []}', ("--separator", ";"), "for text tables"),
        ("release.toml", "", ("--separator", ";"), "leave these options out"),
    ],
)
def test_a_refusal_of_how_a_text_is_written_names_the_option(run, folder, name, content, words, text):
    (folder / name).write_bytes(content.encode("cp1250"))
    code, _, err = run("check", name, *words)
    assert (code, text in err) == (2, True), err
