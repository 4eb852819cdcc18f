"""Whatever bytes a file has: every opener of files gives a result or one refusal, without a traceback or a value."""

import random
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.cli.check import check
from dpviz.data.counting.files import read_points, read_trips
from dpviz.data.reading.points import inspect_points
from dpviz.data.reading.regions import inspect_regions, read_regions
from dpviz.data.reading.trips import inspect_trips
from dpviz.errors import DpvizError
from dpviz.release.files import read_manifest, read_release
from tests.data.reading.files import PLANE, WORLD, stored, upload, zipped
from tests.data.reading.whole import ENDINGS, MARKS, SEPARATORS, bomb, parquet, public_regions, regions_frame, whole_files
from tests.often import often

few = settings(max_examples=15, deadline=None, derandomize=True, database=None)
OPENERS = (
    inspect_points,
    inspect_trips,
    inspect_regions,
    lambda source: inspect_points(source, through=True),
    lambda source: inspect_trips(source, through=True),
    lambda source: inspect_regions(source, through=True),
    lambda source: read_points(source, domain=PLANE, bad_rows="drop"),
    lambda source: read_points(source, domain=WORLD, crs="EPSG:4326", count="who", person="who"),
    lambda source: read_trips(source, regions=public_regions()),
    lambda source: read_trips(source, regions=public_regions(), bad_rows="drop"),
    read_regions,
    lambda source: read_regions(source, levels=["parent_id", "region_id"]).centres(0),
    read_release,
    read_manifest,
)
# Content that once hung, filled the memory, or was read in part without a word, and other content that is nothing.
PAST = {
    "a text that a dictionary packs": ("points.parquet", parquet(lon=bomb(3000), lat=[1.0] * 3000, store_schema=False)),
    "a table beside shapes that is none": ("points.zip", zipped({"a.shp": b"", "a.shx": b"", "a.dbf": b"zq"})),
    "a list of features twice": ("points.geojson", b'{"type": "FeatureCollection", "features": [{}], "features": []}'),
    "a list": ("points.geojson", b"[]"),
    "objects that never end": ("points.geojson", b"{" * 100_000),
    "an archive of nothing": ("points.zip", b"PK\x05\x06" + bytes(18)),
    "a footer that is too long": ("points.parquet", b"PAR1\xff\xff\xff\xffPAR1"),
    "a line of data as a header": ("regions.csv", b"zq Kowalska <13.577>\n"),
    "a manifest in another encoding": ("release.zip", zipped({"manifest.json": '{"zq": 1}'.encode("utf-16")})),
}


def opened_by_all(name, content, marks=MARKS):
    """How many openers refuse the same bytes."""
    errors = []
    for opener in OPENERS:
        try:
            opener(upload(content, name))
        except DpvizError as error:
            errors.append(error)
    for error in errors:
        assert (error.__cause__, error.__context__) == (None, None)
        assert not [mark for mark in marks if mark in str(error)], str(error)
    return len(errors)


@pytest.mark.parametrize("name", [*PAST])
def test_what_once_went_wrong_is_refused(name, tmp_path):
    assert opened_by_all(*PAST[name]) >= len(OPENERS) // 2
    (tmp_path / PAST[name][0]).write_bytes(PAST[name][1])
    with pytest.raises(DpvizError):
        check(tmp_path / PAST[name][0])


@cache
def whole():
    with tempfile.TemporaryDirectory() as folder:
        native = stored(regions_frame(), "geoarrow").getvalue()
        return whole_files(Path(folder)) | {("regions", "geoparquet of geoarrow"): native}


NUMBERS = [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4)]
SIGNS = [b'"', b"\n", b"\t", b",", b"\0", b"{", b"]", b"NaN", b"1e999", b"-", b"\xc3"]


def mutated(content, dice):
    """The file after a few changes: other bytes, extreme numbers, signs, and pieces that are missing, doubled or moved."""
    found = bytearray(content)
    for _ in range(dice.randrange(1, 6)):
        at, other = (dice.randrange(len(found) + 1) for _ in range(2))
        end, piece = at + dice.randrange(1, 40), found[other : other + dice.randrange(1, 40)]
        changes = [(at + 1, dice.randbytes(1)), (at + 4, dice.choice(NUMBERS)), (at, dice.choice(SIGNS))]
        changes += [(end, b""), (at, piece), (end, piece)]
        stop, new = dice.choice(changes)
        found[at:stop] = new
    return bytes(found)


def check_mutated(place, seed):
    (kind, form), content = sorted(whole().items())[place]
    kept = content.index(b"\n") + 1 if form in SEPARATORS else 0  # names of columns are shown: no cell may get among them
    damaged = content[:kept] + mutated(content[kept:], random.Random(seed))
    opened_by_all(f"{kind}.{ENDINGS.get(form.split()[0], form)}", damaged, marks=("13.577", "52.416"))


@pytest.mark.parametrize("examples", often([90, 500], 1))
def test_files_after_a_few_changes(examples):
    settings(few, max_examples=examples)(given(place=st.integers(0, 17), seed=st.integers(0, 2**32))(check_mutated))()
