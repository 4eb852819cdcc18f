"""Files in the layouts in which people have them: one table, in which each row is checked, written as a configuration, read and released.

`docs/reading.md` lists these layouts. All data are made up.
"""

import json
import zipfile
from dataclasses import dataclass, field

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import dpviz as dv

ORDER = 4
SWISS = "EPSG:2056"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A file, what a person does with it, and what must come out.

    Attributes:
        file: name of the file.
        content: a text, or a function that writes the file at a path.
        use: "points", "trips" or "areas".
        said: what a person says, as options of `check` and `init`, and as arguments in Python.
        proposed: what `check` proposes and `init` writes by itself, as arguments in Python.
        regions: the file of regions: its name, content and levels; or bounds of points.
        crs: of the coordinates and bounds, where the file does not state it.
        places: what must be counted where: by (x, y), by region, or by (origin, destination).
    """

    file: str
    content: object
    use: str
    said: dict = field(default_factory=dict)
    proposed: dict = field(default_factory=dict)
    regions: tuple = ()
    crs: str | None = None
    places: dict


def write(content, path, encoding="utf-8"):
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode(encoding))


def squares(columns, *, ids=None, x=0, y=0, size=1, crs=None):
    """GeoJSON of squares side by side, of which each has properties, or an id of its feature."""
    features = []
    for number, properties in enumerate(columns):
        west = x + number * size
        corners = [[west, y], [west + size, y], [west + size, y + size], [west, y + size], [west, y]]
        feature = {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [corners]}}
        features.append(feature if ids is None else {"id": ids[number], **feature})
    stated = {} if crs is None else {"crs": {"type": "name", "properties": {"name": crs}}}
    return json.dumps({"type": "FeatureCollection", **stated, "features": features})


def packed_squares(path):
    """A zipped Shapefile whose ids are numbers with decimals."""
    frame = geopandas.GeoDataFrame({"CT": [1.0, 2.0, 3.0]}, geometry=[shapely.box(n, 0, n + 1, 1) for n in range(3)], crs="EPSG:4326")
    frame.to_file(path.parent / "ct.shp", engine="pyogrio")
    parts = list(path.parent.glob("ct.*"))
    with zipfile.ZipFile(path, "w") as archive:
        for part in parts:
            archive.write(part, part.name)


def as_table(**columns):
    return lambda path: pq.write_table(pa.table(columns), path)


def as_layer(path):
    frame = geopandas.GeoDataFrame(
        {"name": ["a", "b", "c"]}, geometry=geopandas.points_from_xy([3.5, 3.5, 9.5], [2.5, 2.5, 1.5]), crs="EPSG:4326"
    )
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_file(path, driver="FlatGeobuf", engine="pyogrio")


ZONES = ("zones.csv", "zone\nA1\nA2\nB1\n", ["zone"])
AREA = (0, 0, 16, 16)
DEGREES = "EPSG:4326"
H3 = ("cells.csv", "h3\n89283082803ffff\n89283082807ffff\n", ["h3"])
COUNTIES = ("counties.csv", "state,county\n01,01001\n06,06037\n36,36061\n", ["state", "county"])
THREE = {(3.5, 2.5): 2, (9.5, 1.5): 1}
LAYOUTS = {
    "GTFS stops.txt": Layout(
        file="stops.txt",
        content='stop_id,stop_name,stop_lat,stop_lon,location_type,parent_station\nS1,"Main, St",2.5,3.5,0,P\n'
        "P,Main,2.5,3.5,1,\nQ,x,1.5,9.5,1,\n",
        use="points",
        said={"count": "none"},
        places=THREE,
    ),
    "GBIF occurrences (tabs in .csv)": Layout(
        file="occurrence.csv",
        content='gbifID\tspecies\tdecimalLatitude\tdecimalLongitude\trecordedBy\n1\tN\t2.5\t3.5\tA "T" B\n'
        "2\tN\t2.5\t3.5\tC\n3\tM\t1.5\t9.5\tC\n",
        use="points",
        said={"count": "none"},
        proposed={"separator": "\t"},
        places=THREE,
    ),
    "ArcGIS export": Layout(
        file="arcgis.csv",
        content="OBJECTID,POINT_X,POINT_Y,incidents\n1,3.5,2.5,120\n2,9.5,1.5,80\n",
        use="points",
        said={"count": "incidents"},
        places={(3.5, 2.5): 120, (9.5, 1.5): 80},
    ),
    "eBird (a tab at the end of each line)": Layout(
        file="ebd.tsv",
        content="GLOBAL UNIQUE IDENTIFIER\tOBSERVATION COUNT\tLATITUDE\tLONGITUDE\t\n"
        "U1\tX\t2.5\t3.5\t\nU2\t2\t2.5\t3.5\t\nU3\t2\t1.5\t9.5\t\n",
        use="points",
        said={"count": "none"},
        places=THREE,
    ),
    "AIS (91 where no latitude is known)": Layout(
        file="ais.csv",
        content="# Timestamp,MMSI,Latitude,Longitude\n1,219,2.5,3.5\n2,219,91.0,0.0\n3,219,2.5,3.5\n4,219,1.5,9.5\n",
        use="points",
        places=THREE,
    ),
    "a phone's history, divided by 10,000,000": Layout(
        file="history.csv",
        content="timestampMs,latitude,longitude,accuracy\n1,2.5,3.5,20\n2,2.5,3.5,20\n3,1.5,9.5,9\n",
        use="points",
        said={"count": "none"},
        places=THREE,
    ),
    "points in WKT": Layout(
        file="wkt.csv",
        content="name,the_geom\na,POINT (3.5 2.5)\nb,POINT Z (3.5 2.5 7)\nc,POINT (9.5 1.5)\n",
        use="points",
        said={"geometry": "the_geom"},
        places=THREE,
    ),
    "GeoJSON by lines": Layout(
        file="points.geojsonl",
        content="".join(
            json.dumps({"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": place}}) + "\n"
            for place in ([3.5, 2.5], [3.5, 2.5], [9.5, 1.5])
        ),
        use="points",
        places=THREE,
    ),
    "FlatGeobuf": Layout(file="points.fgb", content=as_layer, use="points", places=THREE),
    "GeoParquet": Layout(file="points.parquet", content=as_layer, use="points", places=THREE),
    "decimal commas and semicolons": Layout(
        file="orte.csv",
        content="Länge;Breite;Anzahl\n3,5;2,5;2\n9,5;1,5;1\n",
        use="points",
        said={"count": "Anzahl"},
        proposed={"separator": ";", "decimal": ","},
        places=THREE,
    ),
    "STATPOP (corners of hectares, in metres)": Layout(
        file="STATPOP.csv",
        content="RELI;E_KOORD;N_KOORD;B23BTOT;B23B11\n1;2485800;1119200;3;3\n2;2486000;1119700;12;4\n3;2486000;1119800;7;3\n",
        use="areas",
        said={"count": "B23BTOT"},
        proposed={"separator": ";"},
        regions=(
            "swiss.geojson",
            squares([{"zone": "a"}, {"zone": "b"}], x=2485000, y=1119000, size=1000, crs="urn:ogc:def:crs:EPSG::2056"),
            ["zone"],
        ),
        crs=SWISS,
        places={"a": 3, "b": 19},
    ),
    "points in regions that are ids of features": Layout(
        file="visits.csv",
        content="lon,lat\n0.5,0.5\n1.5,0.5\n1.6,0.5\n",
        use="areas",
        regions=("counties.json", squares([{}, {}], ids=["01001", "06037"]), ["id"]),
        crs=DEGREES,
        places={"01001": 1, "06037": 2},
    ),
    "H3 in hexadecimal digits": Layout(
        file="h3.csv",
        content="h3,visits\n89283082803ffff,5\n89283082807ffff,3\n",
        use="areas",
        said={"region": "h3", "count": "visits"},
        regions=H3,
        places={"89283082803ffff": 5, "89283082807ffff": 3},
    ),
    "H3 as whole numbers": Layout(
        file="h3.csv",
        content=f"h3,visits\n{int('89283082803ffff', 16)},5\n{int('89283082807ffff', 16)},3\n",
        use="areas",
        said={"region": "h3", "count": "visits"},
        regions=H3,
        places={"89283082803ffff": 5, "89283082807ffff": 3},
    ),
    "FIPS that lost their zeros": Layout(
        file="cases.csv",
        content="fips,cases\n1001,5\n6037,7\n36061,9\n",
        use="areas",
        said={"region": "fips", "count": "cases"},
        regions=COUNTIES,
        places={"01001": 5, "06037": 7, "36061": 9},
    ),
    "Windows-1250": Layout(
        file="gminy.csv",
        content="gmina;liczba\nŁódź;120\nPoznań;300\nWarszawa;50\n",
        use="areas",
        said={"region": "gmina", "count": "liczba", "encoding": "windows-1250"},
        proposed={"separator": ";"},
        regions=("gminy_all.csv", "gmina\nŁódź\nPoznań\nWarszawa\n", ["gmina"]),
        places={"Łódź": 120, "Poznań": 300, "Warszawa": 50},
    ),
    "TLC yellow taxis": Layout(
        file="yellow.parquet",
        content=as_table(VendorID=[1, 1, 2], passenger_count=[1.0, 2.0, 3.0], PULocationID=[1, 1, 2], DOLocationID=[2, 2, 264]),
        use="trips",
        said={"count": "none"},
        regions=("taxi_zone_lookup.csv", '"LocationID","Borough","Zone"\n1,"EWR","x"\n2,"Queens","y"\n264,"N/A","z"\n', ["LocationID"]),
        places={("1", "2"): 2, ("2", "264"): 1},
    ),
    "TLC for-hire vehicles (ids missing)": Layout(
        file="fhv.parquet",
        content=as_table(PUlocationID=[1.0, 1.0, 2.0], DOlocationID=[2.0, None, 264.0]),
        use="trips",
        regions=("taxi_zone_lookup.csv", "LocationID\n1\n2\n264\n", ["LocationID"]),
        places={("1", "2"): 1, ("2", "264"): 1},
    ),
    "INSEE commuters, rounded": Layout(
        file="mobpro.csv",
        content="CODGEO;LIBGEO;DCLT;L_DCLT;NBFLUX\n01001;x;01004;y;90\n2A004;x;2A004;y;1000\n01004;x;CH021;y;5\n",
        use="trips",
        said={"count": "NBFLUX"},
        proposed={"separator": ";"},
        regions=("communes.csv", "dep,codgeo\n01,01001\n01,01004\n2A,2A004\n", ["dep", "codgeo"]),
        places={("01001", "01004"): 90, ("2A004", "2A004"): 1000},
    ),
    "MITMA mobility": Layout(
        file="viajes.csv",
        content="periodo|origen|destino|viajes\n0|A1|A2|30\n1|A1|A2|12\n1|B1|B1|7\n",
        use="trips",
        said={"count": "viajes"},
        proposed={"separator": "|"},
        regions=ZONES,
        places={("A1", "A2"): 42, ("B1", "B1"): 7},
    ),
    "ODWP of the ONS": Layout(
        file="odwp.csv",
        content="Middle layer Super Output Areas code,MSOA of workplace code,Place of work indicator (4 categories) code,Count\n"
        "E02000001,E02000002,3,1506\nE02000001,999999999,2,12\nE02000002,E02000002,1,8\n",
        use="trips",
        regions=("msoa.csv", "LAD22CD,MSOA21CD\nE09000001,E02000001\nE09000002,E02000002\n", ["LAD22CD", "MSOA21CD"]),
        places={("E02000001", "E02000002"): 1506, ("E02000002", "E02000002"): 8},
    ),
    "LODES": Layout(
        file="od_main.csv",
        content="w_geocode,h_geocode,S000,SA01,createdate\n060370101011000,010010101012001,4,0,20231016\n360610101011000,360610101012001,5,0,20231016\n",
        use="trips",
        regions=COUNTIES,
        places={("01001", "06037"): 4, ("36061", "36061"): 5},
    ),
    "flowmap.blue": Layout(
        file="flows.csv",
        content="origin,dest,count,time\n1,2,42,2020-01-01\n2,1,51,2020-01-02\n",
        use="trips",
        regions=("locations.csv", "id,name,lat,lon\n1,New York,40.7,-74.0\n2,London,51.5,-0.1\n", ["id"]),
        places={("1", "2"): 42, ("2", "1"): 51},
    ),
    "Citi Bike (stations missing)": Layout(
        file="citibike.csv",
        content='"ride_id","start_station_name","start_station_id","end_station_name","end_station_id","start_lat","start_lng","end_lat","end_lng","member_casual"\n'
        '"A","W 21","6140.05","W 4","5379.10",2.5,3.5,1.5,9.5,"member"\n"B","W 4","5379.10","","",1.5,9.5,,,"casual"\n',
        use="trips",
        said={"count": "none"},
        regions=("stations.csv", "station\n6140.05\n5379.10\n", ["station"]),
        places={("6140.05", "5379.10"): 1},
    ),
    "von, nach, Anzahl with 1.000": Layout(
        file="pendler.csv",
        content="von;nach;Anzahl\nA1;A2;1.000\nA2;B1;350\nB1;B1;2.000\n",
        use="trips",
        said={"count": "Anzahl", "thousands": "."},
        proposed={"separator": ";"},
        regions=ZONES,
        places={("A1", "A2"): 1000, ("A2", "B1"): 350, ("B1", "B1"): 2000},
    ),
    "a matrix with totals": Layout(
        file="matrix.csv",
        content="Wohnort,A1,A2,B1,Insgesamt\nA1,10,2,3,15\nA2,1,20,3,24\nB1,0,2,30,32\nInsgesamt,11,24,36,71\n",
        use="trips",
        regions=ZONES,
        places={("A1", "A1"): 10, ("A1", "A2"): 2, ("A1", "B1"): 3, ("A2", "A1"): 1, ("A2", "A2"): 20, ("A2", "B1"): 3}
        | {("B1", "A2"): 2, ("B1", "B1"): 30},
    ),
    "ids of a Shapefile that are numbers": Layout(
        file="od.csv",
        content="origin,destination,count\n1,2,10\n2,3,4\n",
        use="trips",
        regions=("ct.zip", packed_squares, ["CT"]),
        places={("1", "2"): 10, ("2", "3"): 4},
    ),
    "trips between coordinates": Layout(
        file="kaggle.csv",
        content="id,pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude\na,.5,.5,1.5,.5\nb,1.5,.5,1.6,.5\n",
        use="trips",
        said={"origin": ("pickup_longitude", "pickup_latitude"), "destination": ("dropoff_longitude", "dropoff_latitude")},
        regions=("zones.geojson", squares([{"zone": "a"}, {"zone": "b"}]), ["zone"]),
        crs=DEGREES,
        places={("a", "b"): 1, ("b", "b"): 1},
    ),
    "UTF-16 with tabs, as spreadsheets save it": Layout(
        file="unicode.csv",
        content="\ufefforigin\tdestination\tcount\nA1\tA2\t7\nB1\tB1\t2\n",
        use="trips",
        proposed={"separator": "\t", "encoding": "utf-16"},
        regions=ZONES,
        places={("A1", "A2"): 7, ("B1", "B1"): 2},
    ),
}
STATED = {"points.geojsonl", "points.fgb", "points.parquet"}


@pytest.fixture(params=LAYOUTS)
def layout(request, tmp_path, monkeypatch):
    """A row of the table, with its files in the working directory."""
    row = LAYOUTS[request.param]
    monkeypatch.chdir(tmp_path)
    written_in = {**row.said, **row.proposed}.get("encoding", "utf-8")
    write(row.content, tmp_path / row.file, "utf-16-le" if written_in == "utf-16" else written_in)
    if row.regions:
        write(row.regions[1], tmp_path / row.regions[0])
    return row


def options(said):
    """What a person says, as options of the command line."""
    values = {name: value if isinstance(value, tuple) else (value,) for name, value in said.items()}
    return [word for name, several in values.items() for word in (f"--{name}", *several)]


def frame_of(row):
    if row.use == "points":
        return {"domain": dv.Domain(bounds=AREA, crs=DEGREES, order=ORDER)}
    crs = {"crs": row.crs} if row.crs == DEGREES and row.regions[0].endswith(".csv") else {}
    return {"regions": dv.read_regions(row.regions[0], levels=row.regions[2], **crs)}


def where(row):
    """What must be counted by place: of points by column and row of the lattice."""
    return row.places if row.use != "points" else {(int(x), int(y)): number for (x, y), number in row.places.items()}


def counted(row):
    """Counts by place, as Python's readers count them."""
    said = {**row.said, **row.proposed}
    written = dv.reading.TextFormat(**{name: said.pop(name) for name in ("separator", "decimal", "thousands", "encoding") if name in said})
    arguments = {**said, "text_format": written, **frame_of(row), "bad_rows": "drop", "unit": "trip" if row.use == "trips" else "record"}
    if "origin" in row.said or row.use != "trips":
        arguments |= {} if row.file in STATED or "region" in row.said else {"crs": row.crs or DEGREES}
    read = {"points": dv.read_points, "areas": dv.read_areas, "trips": dv.read_trips}[row.use](row.file, **arguments)
    if row.use == "points":
        return {(int(column), int(line)): int(n) for column, line, n in zip(read.column, read.row, read.count, strict=True)}
    ids = arguments["regions"].ids_of(arguments["regions"].depth)
    if row.use == "areas":
        return {ids[leaf]: int(n) for leaf, n in zip(read.leaf, read.count, strict=True) if n}
    return {(ids[start], ids[end]): int(n) for start, end, n in zip(read.origin, read.destination, read.count, strict=True)}


def released(release, use):
    """Counts by place, as the reader of a release finds them."""
    if use == "points":
        boxes = [(x, y, x + 1, y + 1) for x in range(16) for y in range(16)]
        return {box[:2]: int(n) for box, n in zip(boxes, np.rint(release.answer(boxes)), strict=True) if n}
    if use == "areas":
        ids = release.regions.ids_of(release.regions.depth)
        return {ids[leaf]: int(n) for leaf, n in enumerate(np.rint(release.count[release.nodes()])) if n}
    table = release.to_frame(release.depth)
    return {(start, end): int(n) for start, end, n in zip(table["origin"], table["destination"], np.rint(table["count"]), strict=True) if n}


def make(layout, run, path):
    """Write the configuration of a release of a layout, as `init` does."""
    frame = ["--bounds", *AREA] if layout.use == "points" else ["--regions", layout.regions[0], "--levels", *layout.regions[2]]
    crs = ["--crs", layout.crs or DEGREES] if layout.use == "points" or layout.crs else []
    most = ["--each-row", "--epsilon", 1000, "--cap", 1000, "--curator", "A town", "--kind", layout.use]
    code, _, err = run("init", layout.file, *options(layout.said), *frame, *crs, *most, "--output", path)
    assert code == 0, err
    path.write_text(path.read_text("utf-8").replace("order = 10", f"order = {ORDER}"), "utf-8")


def test_a_layout_is_checked_written_as_a_configuration_and_read_with_the_right_counts_in_the_right_places(layout, run, tmp_path):
    code, out, err = run("check", layout.file, *options(layout.said))
    said_as = "points" if layout.use == "areas" and "region" not in layout.said else layout.use
    assert (code, f"As {said_as}: " in out) == (0, True), out + err
    assert counted(layout) == where(layout)
    make(layout, run, tmp_path / "release.toml")


@pytest.mark.slow
def test_a_layout_is_released_with_the_right_counts_in_the_right_places(layout, run, tmp_path):
    make(layout, run, tmp_path / "release.toml")
    code, _, err = run("release", "release.toml", "--output", "out")
    assert code == 0, err
    assert released(dv.read_release("out"), layout.use) == where(layout)
