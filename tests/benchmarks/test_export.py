"""Writing and reading releases, against one GeoJSON of the same partitions by GDAL in the same run: pytest -m benchmark."""

import itertools

import pytest

from dpviz.mechanisms import Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import read_release, write_release
from dpviz.release.manifest import describe
from dpviz.samples.trips import load_trip_sample
from tests.benchmarks.measures import best
from tests.release_cases import WORDS, points_of

pytestmark = pytest.mark.benchmark


def test_a_release_is_written_in_little_more_than_its_geojson_and_read_in_much_less(line, tmp_path):
    points = Quadtree(height=8).release(points_of(200_000, order=10), PureBudget(1), Entropy.system())
    trips = TopDown().release(load_trip_sample("us_commuters"), ApproxBudget(1, "1e-8"), Entropy.system())
    number = itertools.count()
    gdal = best(lambda: points.to_frame().to_file(tmp_path / f"{next(number)}.geojson", driver="GeoJSON"), 3)
    for name, release in (("87,381 partitions", points), ("county trips", trips)):
        written = best(lambda release=release: write_release(release, tmp_path / str(next(number)), describe(release, WORDS)), 3)
        read = best(lambda: read_release(tmp_path / str(next(number) - 1)), 1)
        line(f"{name}, written in all formats", written, gdal, "GDAL's GeoJSON of 65,536 leaves", 4)
        line(f"{name}, read", read, gdal, "GDAL's GeoJSON of 65,536 leaves", 1)
