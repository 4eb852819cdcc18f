"""One feature of a GeoJSON file decides nothing but its own row."""

import json

import pytest

from dpviz.data.counting.files import read_points
from dpviz.data.reading.geojson import flatten_json
from tests.data.reading.files import PLANE, text

POINT = '"geometry": {"type": "Point", "coordinates": [1.5, 2.5]}'
DEEP = {"lists": "[" * 5000 + "]" * 5000, "records": '{"a":' * 5000 + "[]" + "}" * 5000}


def features(*properties):
    made = [f'{{"type": "Feature", "properties": {each}, {POINT}}}' for each in ('{"who": "a"}', *properties)]
    return text(f'{{"type": "FeatureCollection", "features": [{", ".join(made)}]}}', "p.geojson")


@pytest.mark.parametrize(
    "properties",
    [
        *(f'{{"who": "b", "note": {deep}}}' for deep in DEEP.values()),
        *(f'{{"who": "b", "note": "zq{sign}"}}' for sign in "\x00\x01\n"),
        json.dumps({"who": "b"} | {f"n{place}": 0 for place in range(1500)}),
    ],
    ids=[*DEEP, "nul", "control", "line end", "many names"],
)
@pytest.mark.parametrize("bad_rows", ["refuse", "drop"])
def test_properties_that_nobody_reads_do_no_harm(properties, bad_rows):
    points = read_points(features(properties), domain=PLANE, crs=None, person="who", bad_rows=bad_rows)
    assert (points.count.tolist(), points.dropped) == ([2], 0)


def nested(depth, value):
    return f'{{"a": {"[" * depth}{value}{"]" * depth}, "b": [1]}}'.encode()


@pytest.mark.parametrize("value", ['"]"', r'"\\"', r'"\""', r'"\\\"[{"', '"["', "{}", "1, [2], 3"])
def test_what_is_nested_deeper_than_a_hundred_is_zero(value):
    assert flatten_json(nested(98, value)) == nested(98, value)
    found = json.loads(flatten_json(nested(120, value)))
    assert found["b"] == [1]
    assert found == json.loads(nested(99, 0))
