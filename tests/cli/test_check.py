"""Checking files: their kind, columns and missing entries, without showing a cell."""

import json
from pathlib import Path

import geopandas
import pandas as pd
import pytest
import shapely

from dpviz.cli.check import check, find_repeated, write_lines
from dpviz.data.reading.areas import inspect_areas
from dpviz.errors import InputError
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.publish import PublicationTexts, publish
from dpviz.release.files import zip_release
from tests.publishing.test_publish import of_trips, order

SQUARES = geopandas.GeoDataFrame({"county": ["01", "02"]}, geometry=[shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)], crs="EPSG:4326")
PLACES = geopandas.GeoDataFrame({"note": ["Rosa", "Emil"]}, geometry=geopandas.points_from_xy([1, 2], [3, 4]), crs="EPSG:4326")


@pytest.mark.parametrize(
    ("text", "use", "found", "missing"),
    [
        ("Lon,Lat,user\n1.5,2.5,Rosa\n", "points", {"x": "Lon", "y": "Lat", "person": "user"}, ["[data] crs", "[domain] bounds and crs"]),
        ("home,work,trips\nRosa,b,3\n", "trips", {"origin": "home", "destination": "work", "count": "trips"}, ["[regions] file"]),
        ("origin,whereto,count\nRosa,b,3\n", "trips", {"origin": "origin", "count": "count"}, ["[data] destination", "[regions] file"]),
        ("id,36001,36003\n36001,5,1\n36003,2,7\n", "trips", {"matrix": True}, ["[regions] file"]),
        (
            "GEOID,n,user\n01,3,Rosa\n",
            "areas",
            {"region": "GEOID", "count": "n", "person": "user"},
            ['[data] region = "GEOID"', "[regions] file"],
        ),
        ("region_id,parent_id,level\nA,,state\nRosa,A,town\n", "regions", {"nested": True, "levels": ["region_id"]}, []),
        (
            "start_lng,start_lat,end_lng,end_lat\n1,2,3,4\n",
            "trips",
            {"origin": ["start_lng", "start_lat"], "destination": ["end_lng", "end_lat"]},
            ["[data] origin and destination", "[data] crs", "[regions] file"],
        ),
    ],
)
def test_a_table_says_what_was_found_and_what_is_missing(tmp_path, text, use, found, missing):
    (tmp_path / "a.csv").write_text(text, "utf-8")
    facts = check(tmp_path / "a.csv")
    assert "Rosa" not in json.dumps(facts) + "".join(write_lines(facts))
    assert (facts["kind"], facts["format"], facts["columns"]) == ("data", "CSV", text.splitlines()[0].split(","))
    shown = next(each for each in facts["uses"] if each["as"] == use)
    assert (shown["found"], [each.partition(":")[0] for each in shown["missing"]]) == (found, missing)
    assert (write_lines(facts)[-1] == "  nothing is missing") == (not missing)


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "parquet"])
@pytest.mark.parametrize(("frame", "name"), [(SQUARES, "regions"), (PLACES, "points")])
def test_shapes_tell_regions_from_points(tmp_path, frame, name, ending):
    path = tmp_path / f"shapes.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_file(path)
    found = check(path)
    assert [each["as"] for each in found["uses"]] == [name]
    assert not any(each.startswith("[data] crs") for each in found["uses"][0]["missing"])
    assert "Rosa" not in str(found)


@pytest.mark.parametrize(
    ("content", "declared", "use"),
    [
        ("lon;lat;user\n1,5;2,5;Rosa\n", {"separator": ";", "decimal": ","}, "points"),
        ("home|work|trips\nRosa|b|3\n", {"separator": "|"}, "trips"),
        ("wkt;user\nPOINT (1.5 2.5);Rosa\n", {"separator": ";"}, "points"),
        ("lon,lat,user\n1.5,2.5,Rosa\n", {}, "points"),
    ],
)
def test_a_text_table_says_what_to_declare(tmp_path, content, declared, use):
    (tmp_path / "a.csv").write_bytes(content.encode("latin-1"))
    (tmp_path / "b.csv").write_bytes(content.replace("Ros", "Emm").encode("latin-1"))
    for path in (tmp_path / "a.csv", tmp_path / "*.csv"):
        facts = check(path)
        assert "Ros" not in json.dumps(facts) + "".join(write_lines(facts))
        assert facts.get("text_format", {}) == declared
        missing = [each.partition(":")[0] for each in facts["uses"][0]["missing"]]
        assert facts["uses"][0]["as"] == use
        assert missing[: len(declared)] == [f'[data] {name} = "{value}"' for name, value in declared.items()]
        assert ('[data] geometry = "wkt"' in missing) == content.startswith("wkt")
        assert any("between cells" in line for line in write_lines(facts)) == bool(declared)
    assert find_repeated(tmp_path / "a.csv", check(tmp_path / "a.csv")) in ((), None)


LINES = {"1,2": "fewer cells", '1,2,"Rosa': "not closed on its line"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "1.5,2.5\n3.5,Rosa\n", "first line must hold the names"),
        ("a.csv", "colour,size\nRosa,3\n", "its columns cannot be used"),
        ("a.csv", "", "empty"),
        ("a.csv", "lon,lat,Rosa\r\n\n", "No row follows the header"),
        ("a.tsv", "lon\tlat\n", "No row follows the header"),
        ("a.csv", "lon,lat,note\n385000,3768000,Rosa\n391000,3771000,b\n", "in degrees"),
        ("a.pdf", "Rosa", "ending says no format"),
        ("a.zip", "Rosa", "damaged"),
        ("a.parquet", "Rosa", "damaged|Parquet"),
        ("a.geojson", '{"Rosa"', "damaged|GeoJSON"),
        ("a.tsv", "id\tname\tnote\n1\t2\ta\n3\t4\n", "fewer cells"),
        ("a.csv", "id,name,note\n1,2,Ros\xe4\n", "UTF-8"),
        ("a.csv", "lon,lat,\xc3\xa4\n1,2,\xc3\xa4\n1,2,Ros\xe4\n", "UTF-8"),
        ("a.csv", "lon;lat\n", "No row follows the header"),
        ("a.csv", "lon;lat\n1,5\n", "fewer cells"),
        ("a.csv", "Ort;L\xe4nge\nRosa;2,5\n", "not encoded in UTF-8.*save the file as UTF-8"),
        ("a.csv", 'from,to,trips\nRosa,b,50\nRosa,b,"1,000"\n', r"TextFormat\(thousands"),
        ("a.geojson", '{"type": "FeatureCollection", "features": []}', "no feature"),
        *(
            ("a.csv", f"{header}\n1,2,a\n3,4,b\n{line}\n5,6,c", message)
            for header in ("lon,lat,note", "origin,lon,lat", "origin,destination,note", "id,name,note", "id,size,colour")
            for line, message in LINES.items()
        ),
    ],
)
def test_unusable_files_and_malformed_lines_are_refused_without_quoting_a_cell(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=message) as refused:
        check(tmp_path / name)
    assert "Ros" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "holds no release"),
        ("homes_release", "no such file or folder"),
        ("homes.csv", "no such file"),
        ("https://example.org/a.csv", "URLs"),
    ],
)
def test_a_folder_of_something_else_and_what_is_not_there_are_refused(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        check(Path(name))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    ledger = Ledger.new(folder / "ledger.sqlite")
    for name, paid in (("points", order()), ("trips", of_trips())):
        words = PublicationTexts(name=name, curator="The town", folder=folder / name, formats=("geoparquet",))
        publish(paid, words, ledger)
    return folder


@pytest.mark.parametrize(("name", "mechanism"), [("points", "quadtree"), ("trips", "top_down")])
def test_a_release_is_verified_as_folder_and_as_zip(released, tmp_path, name, mechanism):
    found = check(released / name)
    assert (found["kind"], found["of"], found["mechanism"], found["numbers"] > 0) == ("release", name, mechanism, True)
    assert "Verified" in write_lines(found)[-1]
    (tmp_path / "packed.zip").write_bytes(zip_release(released / name))
    assert check(tmp_path / "packed.zip") == found


def test_long_headers_are_cut(tmp_path):
    pd.DataFrame([range(100)], columns=["lon", "lat", *(f"c{number}" for number in range(98))]).to_csv(tmp_path / "wide.csv", index=False)
    found = check(tmp_path / "wide.csv")
    assert (len(found["columns"]), found["further_columns"]) == (40, 60)
    assert "and 60 more" in write_lines(found)[0]


def test_a_pattern_and_a_folder_are_described_by_their_headers(tmp_path):
    for number in (1, 2):
        pd.DataFrame({"lon": [float(number)], "lat": [2.0], "user": ["Rosa"]}).to_parquet(tmp_path / f"{number}.parquet")
    for name in ("*.parquet", ""):
        facts = check(tmp_path / name)
        assert (facts["files"], facts["engine"], facts["format"]) == (2, "numpy", "Parquet")
        (use,) = facts["uses"]
        assert (use["as"], use["found"]) == ("points", {"x": "lon", "y": "lat", "person": "user"})
        assert "2 files, which engine numpy would count; no row was read now." in write_lines(facts)
    pd.DataFrame({"a": [1.0]}).to_parquet(tmp_path / "3.parquet")
    with pytest.raises(InputError, match="have different columns"):
        check(tmp_path / "*.parquet")
    with pytest.raises(InputError, match="No file fits"):
        check(tmp_path / "*.csv")


def test_tables_of_ids_of_regions_may_be_areas_unless_they_are_regions_themselves(tmp_path):
    for number in (1, 2):
        pd.DataFrame({"geoid": ["01", "02"], "n": [number, 3]}).to_parquet(tmp_path / f"{number}.parquet")
    facts = check(tmp_path / "*.parquet")
    assert [(use["as"], use["found"]) for use in facts["uses"]] == [("areas", {"region": "geoid", "count": "n"})]
    (tmp_path / "towns.csv").write_text("geoid,n\n01,3\n,2\n", "utf-8")
    with pytest.raises(InputError, match="Column 'geoid' has an id that is missing"):
        inspect_areas(tmp_path / "towns.csv")
    (tmp_path / "points.csv").write_text("lon,lat,tract,n\n1,2,01,3\n", "utf-8")
    assert [use["as"] for use in check(tmp_path / "points.csv")["uses"]] == ["points"]


def test_what_is_left_out_is_asked_of_a_configuration_only(run, tmp_path):
    (tmp_path / "homes.csv").write_text("lon,lat\n1,2\n")
    code, out, err = run("check", tmp_path / "homes.csv", "--left-out")
    assert (code, out, "configuration" in err) == (2, "", True)
