"""Releases that may be published, and what it means for two of them to be the same, bit for bit."""

from dataclasses import fields, is_dataclass
from functools import cache

import geopandas
import numpy as np
import pandas as pd
import shapely

from dpviz.data.areas import AreaCounts
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.mechanisms import FlatAreas, Quadtree, RegionTree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.area_release import AreaRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.publication import Publication
from dpviz.release.trip_release import TripRelease
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from tests.trip_cases import trip_counts_of, trips_of

BOUNDS = (-10.0, 40.0, 6.0, 56.0)
WORDS = Publication(
    name="Journeys to work",
    curator="A statistical office",
    description="A sample.",
    region="Nowhere",
    intended_use="Tests",
    draws=3,
    truth_seen=True,
    dataset_spent="epsilon 3/2",
    dataset_cap="epsilon 2",
)


def points_of(records: int, order: int = 6, crs: str | None = "EPSG:4326") -> PointCounts:
    """Records around one place."""
    x, y = np.clip(np.random.default_rng(records).normal([[-4.0], [47.0]], 2.0, (2, records)), [[-10], [40]], [[6], [56]])
    return PointCounts.from_xy(x, y, domain=Domain(bounds=BOUNDS, crs=crs, order=order))


@cache
def point_release(height: int = 3, crs: str | None = "EPSG:4326") -> PointRelease:
    """A quadtree's release from entropy of the operating system."""
    return Quadtree(height=height).release(points_of(400, crs=crs), PureBudget(1), Entropy.system())


def regions_with_shapes(names: list[str] | None = None, crs: str = "EPSG:4326", levels: tuple[str, ...] = ("state", "town")) -> Regions:
    """Two states of two towns each; towns are squares of a degree."""
    squares = geopandas.GeoSeries([shapely.box(x, 50 + y, x + 1, 51 + y) for x in (0, 1) for y in (0, 1)], crs="EPSG:4326").to_crs(crs)
    table = geopandas.GeoDataFrame(
        {levels[0]: ["01", "01", "02", "02"], levels[1]: ["a", "b", "c", "d"], "name": names or list("ABCD")}, geometry=squares
    )
    return Regions.from_table(table, levels=list(levels), names={levels[1]: "name"})


def trip_counts_on(regions: Regions) -> TripCounts:
    """Many trips between all leaves."""
    size = regions.size(regions.depth)
    return trip_counts_of(regions, {(i, j): 100 * (i + 1) + j for i in range(size) for j in range(size)})


@cache
def trip_release(depth: int = 2) -> TripRelease:
    """TopDown's release from entropy of the operating system, on regions without shapes."""
    return TopDown().release(trips_of(500, depth), ApproxBudget(2, "1e-6"), Entropy.system())


def areas_on(regions: Regions) -> AreaCounts:
    """Many records in every leaf but the first."""
    return AreaCounts.from_counts(np.arange(regions.size(regions.depth)) * 100, regions=regions)


@cache
def area_release() -> AreaRelease:
    """The region tree's release from entropy of the operating system, on regions with shapes."""
    return RegionTree().release(areas_on(regions_with_shapes()), PureBudget(1), Entropy.system())


@cache
def hidden_release() -> AreaRelease:
    """A release of areas of which one number is not shown."""
    return FlatAreas(threshold=50).release(areas_on(regions_with_shapes()), PureBudget(1), Entropy.system())


def assert_same(one, other, where: str = "release") -> None:  # noqa: C901  (one branch per type)
    """Both are equal in every field, down to types and bits."""
    assert type(one) is type(other), where
    if is_dataclass(one):
        for declared in fields(one):
            assert_same(getattr(one, declared.name), getattr(other, declared.name), f"{where}.{declared.name}")
    elif isinstance(one, geopandas.GeoSeries):
        assert one.crs == other.crs, where
        assert [shapely.to_wkb(shape) for shape in one] == [shapely.to_wkb(shape) for shape in other], where
        pd.testing.assert_index_equal(one.index, other.index)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        np.testing.assert_array_equal(one, other, err_msg=where)
        if one.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(one[one == 0]), np.signbit(other[other == 0]), err_msg=where)
    elif isinstance(one, tuple | list):
        assert len(one) == len(other), where
        for place, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}[{place}]")
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for name in one:
            assert_same(one[name], other[name], f"{where}[{name!r}]")
    elif isinstance(one, pd.Series):
        pd.testing.assert_series_equal(one, other, check_exact=True)
    else:
        assert one == other, where
