"""Checking files: their kind, columns and missing entries, without showing a cell."""

import io
import json
import zipfile

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

from dpviz.cli.check import check, lines
from dpviz.data.points import PointCounts
from dpviz.errors import DpvizError, InputError
from dpviz.mechanisms import Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.private_data import fingerprints_of
from dpviz.publishing.publish import Order, PublicationTexts, publish
from dpviz.release.files import zip_release
from dpviz.samples.flows import load_flow_sample
from dpviz.space.domain import Domain

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
SQUARES = geopandas.GeoDataFrame({"county": ["01", "02"]}, geometry=[shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)], crs="EPSG:4326")
PLACES = geopandas.GeoDataFrame({"note": ["Rosa", "Emil"]}, geometry=geopandas.points_from_xy([1, 2], [3, 4]), crs="EPSG:4326")


def checked(tmp_path, text, name="a.csv"):
    (tmp_path / name).write_text(text, "utf-8")
    found = check(tmp_path / name)
    assert "Rosa" not in json.dumps(found) + "".join(lines(found))
    return found


def use(found, name):
    return next(each for each in found["uses"] if each["as"] == name)


def test_points_say_what_was_found_and_what_is_missing(tmp_path):
    found = checked(tmp_path, "Lon,Lat,user\n1.5,2.5,Rosa\n")
    assert (found["kind"], found["format"], found["columns"]) == ("data", "CSV", ["Lon", "Lat", "user"])
    assert use(found, "points")["found"] == {"x": "Lon", "y": "Lat", "person": "user"}
    assert [each.split()[1] for each in use(found, "points")["missing"]] == ["crs:", "bounds"]


def test_trips_need_their_regions(tmp_path):
    found = checked(tmp_path, "home,work,trips\nRosa,b,3\n")
    assert found["uses"][0]["as"] == "trips"
    assert found["uses"][0]["found"] == {"origin": "home", "destination": "work", "count": "trips"}
    assert [each.partition(":")[0] for each in found["uses"][0]["missing"]] == ["[regions] file"]


def test_half_a_trips_file_says_which_half_is_missing(tmp_path):
    found = checked(tmp_path, "origin,whereto,count\nRosa,b,3\n")
    assert use(found, "trips")["missing"][0] == "[data] destination: the column"


def test_a_matrix_of_trips(tmp_path):
    found = checked(tmp_path, "id,36001,36003\n36001,5,1\n36003,2,7\n")
    assert use(found, "trips")["found"] == {"matrix": True}


def test_regions_that_nest_need_nothing_more(tmp_path):
    found = checked(tmp_path, "region_id,parent_id,level\nA,,state\nRosa,A,town\n")
    assert use(found, "regions")["missing"] == []
    assert lines(found)[-1] == "  nothing is missing"


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
    folder = tmp_path_factory.mktemp("released")
    ledger = Ledger(folder / "ledger.sqlite")
    crowd = PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 16, (2, 500)), domain=PLANE)
    flows = load_flow_sample("northeast_commuters")
    orders = {
        "points": Order(
            data=crowd,
            mechanism=Quadtree(height=2),
            budget=PureBudget(1),
            dataset="a",
            fingerprints=fingerprints_of(crowd),
            cap=PureBudget(1),
        ),
        "trips": Order(
            data=flows,
            mechanism=TopDown(),
            budget=ApproxBudget(1, "1e-8"),
            dataset="b",
            fingerprints=fingerprints_of(flows),
            cap=ApproxBudget(1, "1e-8"),
        ),
    }
    for name, order in orders.items():
        publish(order, PublicationTexts(name=name, curator="The town", folder=folder / name, formats=("geoparquet",)), ledger)
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


def test_trips_between_coordinates_are_recognised(tmp_path):
    (tmp_path / "moves.csv").write_text("start_lng,start_lat,end_lng,end_lat\n1,2,3,4\n", "utf-8")
    use = check(tmp_path / "moves.csv")["uses"][0]
    assert (use["as"], use["found"]["origin"], use["found"]["destination"]) == ("trips", ["start_lng", "start_lat"], ["end_lng", "end_lat"])
