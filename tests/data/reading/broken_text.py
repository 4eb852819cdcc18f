"""Named faults of text tables and GeoJSON: fault -> bytes. Each is broken for certain."""

import json

from tests.data.reading.whole import LAT, LON, REGIONS

BIG = "9" * 5000


def encodings(text):
    """The text in other encodings than UTF-8."""
    return {"utf-16": text.encode("utf-16"), "latin-1": text.replace("Kowalsk", "Kowalsk\u00e4").encode("latin-1")}


def points_text(sep, whole):
    """Faults of a table of points."""
    text = whole.decode()

    def table(*rows, header="lon,lat,who"):
        return "\n".join([header, "10.5,50.0,zqB", *rows, ""]).replace(",", sep).encode()

    cells = {"not a number": "nan", "infinite": "inf", "minus infinity": "-inf", "beyond floats": "1e999"}
    cells |= {"beyond any number": BIG + "e" + BIG, "a name in place of a number": "zq Kowalska", "blank": "", "a degree sign": LAT + "°"}
    cells |= {"hexadecimal": "0x1p3", "two signs": "--1", "a nul": "1\0", "a letter o": "5O.5"}
    found = {f"a latitude that is {name}": table(f"{LON},{cell},zq Kowalska") for name, cell in cells.items()}
    found |= {f"a longitude that is {name}": table(f"{cell},{LAT},zq") for name, cell in cells.items() if name[0] in "anb"}
    found |= {coding: text.encode(coding) for coding in ("utf-16-le", "utf-32")}
    found = found | encodings(text)
    return found | {
        "all longitudes are names": table(header="who,lat,lon").replace(b"10.5", b"zq Kowalska"),
        "half a letter": whole + b"10.5" + sep.encode() + b"50.0" + sep.encode() + b"zq\xc3",
        "cells between semicolons": text.replace(sep, ";").encode(),
        "no header": whole.split(b"\n", 1)[1],
        "a header of other names": text.replace("lon", "eins").replace("lat", "zwei").encode(),
        "one latitude too few": text.replace("lat", "height").encode(),
        "two longitudes": table(f"{LON},{LON},{LAT}", header="lon,lon,lat"),
        "a cell too many": table(f"{LON},{LAT},zq,zq"),
        "a cell too few": table(f"{LON},{LAT}"),
        "decimal commas": table("13,577215,52,416907,zq", header="lon,lat,who"),
        "a quote that never ends": table(f'"{LON},{LAT},zq'),
        "a cell of a megabyte that is no number": table(f"{'zq' * 500_000},{LAT},zq"),
        "only ends of lines": b"\n" * 50,
        "only a mark of utf-8": b"\xef\xbb\xbf",
        "too many columns": table(header="lon,lat," + ",".join(f"zq{place}" for place in range(1100))),
        "too many rows": b"lon" + sep.encode() + b"lat" + b"\n" * 20_000_010,
    }


def trips_text(sep, whole):
    """Faults of a table of trips."""

    def table(*rows, header="origin,destination,count,note"):
        return "\n".join([header, "zq1,zq2,3,zq", *rows, ""]).replace(",", sep).encode()

    cells = {"negative": "-4711", "a fraction": "4711.5", "a name": "zq Kowalska", "blank": "", "not a number": "nan", "infinite": "inf"}
    cells |= {"hexadecimal": "0x4711", "with thousands": "4_711"}
    found = {f"a count that is {name}": table(f"zq1,zq2,{cell},zq") for name, cell in cells.items()} | encodings(whole.decode())
    return found | {
        "a blank origin": table(",zq2,4711,zq"),
        "a blank destination": table("zq1,  ,4711,zq").replace(b"  ", b""),
        "a cell too many": table("zq1,zq2,4711,zq,zq"),
        "a cell too few": table("zq1,zq2,4711"),
        "a decimal comma": table("zq1,zq2,4711,5,zq"),
        "a quote that never ends": table('zq1,"zq2,4711,zq' + ",zq" * (sep != ",")),  # in TSV files a mark is a letter
        "cells between semicolons": whole.replace(sep.encode(), b";"),
        "a header of other names": whole.replace(b"origin", b"eins").replace(b"destination", b"zwei"),
        "a nul in a count": table("zq1,zq2,47\0,zq"),
    }


def regions_text(sep, whole):
    """Faults of a table of regions."""
    text = whole.decode()
    last = text.strip().splitlines()[-1]

    def more(row):
        return (text + row.replace(",", sep) + "\n").encode()

    rows = {"an unknown parent": "zq9,zqNowhere,town,zq", "a parent of its own level": "zq9,zq1,town,zq"}
    rows |= {"its own parent": "zq9,zq9,town,zq", "a blank id": ",zqA,town,zq", "a blank level": "zq9,zqA,,zq"}
    rows |= {"a cell too many": "zq9,zqA,town,zq,zq", "a cell too few": "zq9,zqA"}
    found = {fault: more(row) for fault, row in rows.items()} | encodings(text)
    return found | {
        "an id twice": more(last.replace(sep, ",")),
        "no rows": text.split("\n", 1)[0].encode(),
        "a name twice": text.replace("name", "region_id").encode(),
    }


def points_geojson(whole):
    """Faults of a GeoJSON file of points."""
    text, top = whole.decode(), json.loads(whole)

    def one(geometry, properties="{}"):
        feature = f'{{"type": "Feature", "properties": {properties}, "geometry": {geometry}}}'
        return text.replace('"features": [', f'"features": [{feature},').encode()

    def point(coordinates):
        return one(f'{{"type": "Point", "coordinates": {coordinates}}}')

    def collection(kind="FeatureCollection", **members):
        return json.dumps({"type": kind, **members}).encode()

    def crs(member):
        return json.dumps({**top, "crs": member}).encode()

    coordinates = {"not a number": f"[{LON}, NaN]", "infinite": f"[Infinity, {LAT}]", "beyond floats": f"[1e999, {LAT}]"}
    coordinates |= {"beyond any number": f"[{BIG}, {LAT}]", "texts": f'["{LON}", "{LAT}"]', "names": '["zq Kowalska", "zq"]'}
    coordinates |= {"missing": "null", "empty": "[]", "one": f"[{LON}]", "truths": "[true, false]", "nested": f"[[{LON}, {LAT}]]"}
    coordinates |= {"deep": "[" * 3000 + "]" * 3000, "an object": '{"zq": 1}'}
    named = {f"the crs {name}": crs({"type": "name", "properties": {"name": name}}) for name in ("NOWHERE:1", "EPSG:4978", "EPSG:5703")}
    found = {f"coordinates that are {name}": point(value) for name, value in coordinates.items()} | encodings(text) | named
    return found | {
        "deep arrays": b"[" * 200_000,
        "deep objects": b'{"zq":' * 200_000,
        "a deep property": one("null", '{"zq": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        "two lists of features": text.replace('"features": [', '"features": [], "features": [').encode(),
        "two types": text.replace("{", '{"type": "Topology", ', 1).encode(),
        "two places of a point": one(f'{{"type": "Point", "coordinates": [{LON}, {LAT}], "coordinates": [1, 2]}}'),
        "two geometries": text.replace('"geometry":', '"geometry": null, "geometry":', 1).encode(),
        "a property twice": one(f'{{"type": "Point", "coordinates": [{LON}, {LAT}]}}', '{"zq": 1, "zq": 2}'),
        "no geometry": one("null"),
        "a line among points": one(f'{{"type": "LineString", "coordinates": [[{LON}, {LAT}], [1, 2]]}}'),
        "latitude and longitude swapped": whole.replace(LON.encode(), b"1.5").replace(LAT.encode(), b"123.45"),
        "no features": collection(),
        "features that are no list": collection(features={"zq": 1}),
        "features that are none": collection(features=["zq", 4711, None]),
        "a collection of geometries": collection("GeometryCollection", geometries=[]),
        "a topology": collection("Topology", objects={"zq": {}}, arcs=[]),
        "a command for GDAL": collection("gdal_streamed_alg", command_line="gdal vector zq"),
        "a text": b'"zq Kowalska"',
        "a linked crs": crs({"type": "link", "properties": {"href": "http://127.0.0.1:9/zq"}}),
        "a crs that is a number": crs(4711),
        "a crs without a name": crs({"type": "name"}),
        "two documents": whole + whole,
        "single quotes": text.replace('"', "'").encode(),
    }


def regions_geojson(whole):
    """Faults of a GeoJSON file of regions."""
    text, top = whole.decode(), json.loads(whole)
    first, *rest = top["features"]

    def changed(**parts):
        return json.dumps({**top, "features": [{**first, **parts}, *rest]}).encode()

    return encodings(text) | {
        "an id twice": json.dumps({**top, "features": [*top["features"], rest[-1]]}).encode(),
        "an unknown parent": changed(properties={**REGIONS.iloc[2], "region_id": "zq9", "parent_id": "zqNowhere"}),
        "a blank id": changed(properties={**REGIONS.iloc[0], "region_id": None}),
        "a ring that does not close": changed(geometry={"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1]]]}),
        "a place that is no number": changed(geometry={"type": "Point", "coordinates": ["zq", LAT]}),
        "an unknown shape": changed(geometry={"type": "zqCurve", "coordinates": []}),
        "a shape that is a text": changed(geometry="zq Kowalska"),
        "properties that are a list": changed(properties=["zq"]),
        "a property twice": text.replace('"region_id":', '"region_id": "zq7", "region_id":', 1).encode(),
        "an unknown crs": json.dumps({**top, "crs": {"type": "name", "properties": {"name": "NOWHERE:1"}}}).encode(),
        "no features at all": json.dumps({**top, "features": []}).encode(),
        "deep arrays": b"[" * 200_000,
    }
