"""Checking files: their kind, columns and missing entries, without showing a cell."""

import io
import json
import zipfile

import geopandas
import pandas as pd
import pytest
import shapely

from dpviz.cli.check import check, lines
from dpviz.errors import DpvizError, InputError
from dpviz.mechanisms import TopDown
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.private_data import fingerprints_of
from dpviz.publishing.publish import PublicationTexts, publish
from dpviz.release.files import zip_release
from tests.publishing.test_publish import order
from tests.release_cases import flows_on, regions_with_shapes

SQUARES = geopandas.GeoDataFrame({"county": ["01", "02"]}, geometry=[shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)], crs="EPSG:4326")
PLACES = geopandas.GeoDataFrame({"note": ["Rosa", "Emil"]}, geometry=geopandas.points_from_xy([1, 2], [3, 4]), crs="EPSG:4326")


@pytest.mark.parametrize(
    ("text", "use", "found", "missing"),
    [
        ("Lon,Lat,user\n1.5,2.5,Rosa\n", "points", {"x": "Lon", "y": "Lat", "person": "user"}, ["[data] crs", "[domain] bounds and crs"]),
        ("home,work,trips\nRosa,b,3\n", "trips", {"origin": "home", "destination": "work", "count": "trips"}, ["[regions] file"]),
        ("origin,whereto,count\nRosa,b,3\n", "trips", {"origin": "origin", "count": "count"}, ["[data] destination", "[regions] file"]),
        ("id,36001,36003\n36001,5,1\n36003,2,7\n", "trips", {"matrix": True}, ["[regions] file"]),
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
    told = check(tmp_path / "a.csv")
    assert "Rosa" not in json.dumps(told) + "".join(lines(told))
    assert (told["kind"], told["format"], told["columns"]) == ("data", "CSV", text.splitlines()[0].split(","))
    shown = next(each for each in told["uses"] if each["as"] == use)
    assert (shown["found"], [each.partition(":")[0] for each in shown["missing"]]) == (found, missing)
    assert (lines(told)[-1] == "  nothing is missing") == (not missing)


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "parquet", "zip"])
@pytest.mark.parametrize(("frame", "name"), [(SQUARES, "regions"), (PLACES, "points")])
def test_shapes_tell_regions_from_points(tmp_path, frame, name, ending):
    path = tmp_path / f"shapes.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "zip":
        frame.to_file(tmp_path / "shapes.shp")
        with zipfile.ZipFile(path, "w") as archive:
            for part in tmp_path.glob("shapes.*"):
                if part != path:
                    archive.write(part, part.name)
    else:
        frame.to_file(path)
    found = check(path)
    assert [each["as"] for each in found["uses"]] == [name]
    assert not any(each.startswith("[data] crs") for each in found["uses"][0]["missing"])
    assert "Rosa" not in str(found)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.csv", b"1.5,2.5\n3.5,Rosa\n", "first line must hold the names"),
        ("a.csv", b"colour,size\nRosa,3\n", "its columns cannot be used"),
        ("a.csv", b"", "empty"),
        ("a.csv", b"lon,lat,Rosa\r\n\n", "No row follows the header"),
        ("a.tsv", b"lon\tlat\n", "No row follows the header"),
        ("a.csv", b"lon,lat,note\n385000,3768000,Rosa\n391000,3771000,b\n", "in degrees"),
        ("a.txt", b"Rosa", "ending is not known"),
        ("a.zip", b"Rosa", "damaged"),
        ("a.parquet", b"Rosa", "damaged|Parquet"),
        ("a.geojson", b'{"Rosa"', "damaged|GeoJSON"),
    ],
)
def test_unusable_files_are_refused_without_quoting_a_cell(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=told) as refused:
        check(tmp_path / name)
    assert "Rosa" not in str(refused.value)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("header", ["lon,lat,note", "origin,lon,lat", "origin,destination,note", "id,name,note", "id,size,colour"])
@pytest.mark.parametrize(("line", "told"), [("1,2", "fewer cells"), ('1,2,"Rosa', "not closed on its line"), ("1,2,Ros\xe4", "UTF-8")])
def test_a_malformed_line_is_refused_whatever_the_columns(tmp_path, ending, header, line, told):
    rows = f"{header}\n1,2,a\n3,4,b\n{line}\n5,6,c"
    if ending == "tsv":
        rows, told = rows.replace(",", "\t").replace('"', "\t"), told.replace("not closed on its line", "fewer cells")
    (tmp_path / f"a.{ending}").write_bytes(rows.encode("latin-1"))
    with pytest.raises(InputError, match=told) as refused:
        check(tmp_path / f"a.{ending}")
    assert "Ros" not in str(refused.value)


def test_no_such_file_and_a_folder_of_something_else(tmp_path):
    with pytest.raises(InputError, match="does it exist"):
        check(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="holds no release"):
        check(tmp_path)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder, flows = tmp_path_factory.mktemp("released"), flows_on(regions_with_shapes())
    of_trips = {"data": flows, "fingerprints": fingerprints_of(flows), "budget": ApproxBudget(1, "1e-6"), "cap": ApproxBudget(1, "1e-6")}
    for name, asked in (("points", order()), ("trips", order(TopDown(), **of_trips, dataset="b"))):
        words = PublicationTexts(name=name, curator="The town", folder=folder / name, formats=("geoparquet",))
        publish(asked, words, Ledger(folder / "ledger.sqlite"))
    return folder


@pytest.mark.parametrize(("name", "mechanism"), [("points", "quadtree"), ("trips", "top_down")])
def test_a_release_is_verified_as_folder_and_as_zip(released, tmp_path, name, mechanism):
    found = check(released / name)
    assert (found["kind"], found["of"], found["mechanism"]) == ("release", name, mechanism)
    assert found["numbers"] > 0
    assert "Verified" in lines(found)[-1]
    (tmp_path / "packed.zip").write_bytes(zip_release(released / name))
    assert check(tmp_path / "packed.zip") == found


def test_a_changed_release_is_refused(released, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(zip_release(released / "points"))) as source, zipfile.ZipFile(packed, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name) + (b" " if name.endswith(".parquet") else b""))
    (tmp_path / "packed.zip").write_bytes(packed.getvalue())
    with pytest.raises(DpvizError, match=r"changed|SHA-256"):
        check(tmp_path / "packed.zip")


def test_long_headers_are_cut(tmp_path):
    pd.DataFrame([range(100)], columns=["lon", "lat", *(f"c{number}" for number in range(98))]).to_csv(tmp_path / "wide.csv", index=False)
    found = check(tmp_path / "wide.csv")
    assert (len(found["columns"]), found["further_columns"]) == (40, 60)
    assert "and 60 more" in lines(found)[0]


def test_a_pattern_and_a_folder_are_described_by_their_headers(tmp_path):
    for number in (1, 2):
        pd.DataFrame({"lon": [float(number)], "lat": [2.0], "user": ["Rosa"]}).to_parquet(tmp_path / f"{number}.parquet")
    for name in ("*.parquet", ""):
        facts = check(tmp_path / name)
        assert (facts["files"], facts["engine"], facts["format"]) == (2, "numpy", "Parquet")
        (use,) = facts["uses"]
        assert (use["as"], use["found"]) == ("points", {"x": "lon", "y": "lat", "person": "user"})
        assert "2 files, which engine numpy would count; no row was read now." in lines(facts)
    pd.DataFrame({"a": [1.0]}).to_parquet(tmp_path / "3.parquet")
    with pytest.raises(InputError, match="of different columns"):
        check(tmp_path / "*.parquet")
    with pytest.raises(InputError, match="No file fits"):
        check(tmp_path / "*.csv")
