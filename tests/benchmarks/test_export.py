"""Writing and reading releases, against one GeoJSON of the same partitions by GDAL in the same run: pytest -m benchmark."""

import itertools
import time

import pytest

from dpviz.mechanisms import Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import read_release, write_release
from dpviz.release.manifest import describe
from dpviz.samples.flows import load_flow_sample
from tests.release_cases import WORDS, points_of

pytestmark = pytest.mark.benchmark


def seconds(run, times: int = 3) -> float:
    """Of the fastest of several runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def test_a_release_is_written_in_little_more_than_its_geojson_and_read_in_much_less(line, tmp_path):
    points = Quadtree(height=8).release(points_of(200_000, order=10), PureBudget(1), Entropy.system())
    trips = TopDown().release(load_flow_sample("us_commuters"), ApproxBudget(1, "1e-8"), Entropy.system())
    number = itertools.count()
    gdal = seconds(lambda: points.to_frame().to_file(tmp_path / f"{next(number)}.geojson", driver="GeoJSON"))
    for name, release, bar in (("87,381 partitions", points, 4), ("county trips", trips, 4)):
        written = seconds(lambda release=release: write_release(release, tmp_path / str(next(number)), describe(release, WORDS)))
        read = seconds(lambda: read_release(tmp_path / str(next(number) - 1)), 1)
        line(f"{name}, written in all formats", written, gdal, "GDAL's GeoJSON of 65,536 leaves", bar)
        line(f"{name}, read", read, gdal, "GDAL's GeoJSON of 65,536 leaves", 1)
        assert written <= bar * gdal
        assert read <= gdal
