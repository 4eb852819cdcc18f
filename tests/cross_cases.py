"""Counts by place and slot for tests: small builders, and the slow definitions with which fast code is compared."""

import numpy as np
import pandas as pd

from dpviz.data.areas import AreaCounts
from dpviz.space.categories import Categories
from dpviz.space.regions import Regions
from dpviz.space.summed import Summed
from tests.area_cases import membership
from tests.trip_cases import random_regions


def categories_like(regions: Regions) -> Categories:
    """Categories with the levels and ids of regions."""
    return Categories(levels=regions.levels, ids=regions.ids, parent=regions.parent, names=regions.names)


def cross_of(regions: Regions, categories: Categories, cells, **options) -> AreaCounts:
    """Counts from a (leaves, slots) table."""
    cells = np.asarray(cells, np.int64)
    leaf, slot = np.nonzero(cells)
    places = {"leaf": leaf.astype(np.int32), "slot": slot.astype(np.int32)}
    return AreaCounts(regions=regions, categories=categories, **places, count=cells[leaf, slot], **options)


def cross_records(seed: int = 1, mean: float = 4, **options) -> AreaCounts:
    """Records over uneven regions of two levels and uneven categories of two levels."""
    rng = np.random.default_rng(seed)
    regions, categories = random_regions(rng, 2, 4), categories_like(random_regions(rng, 2, 3, prefix="slot "))
    return cross_of(regions, categories, rng.poisson(mean, (regions.size(2), categories.slots)), **options)


def true_cross(areas: AreaCounts) -> np.ndarray:
    """(n, s) true counts of every region by every category, by dense sums."""
    cells = np.zeros((areas.regions.size(areas.regions.depth), areas.entries))
    cells[areas.leaf, areas.slot] = areas.count
    return membership(areas.regions) @ cells @ membership(areas.categories).T


def table_of(areas: AreaCounts) -> pd.DataFrame:
    """One row per record: region, slot."""
    regions, slots = areas.regions.ids_of(areas.regions.depth), areas.categories.ids_of(areas.categories.depth)
    return pd.DataFrame({"region": np.repeat(regions[areas.leaf], areas.count), "slot": np.repeat(slots[areas.slot], areas.count)})


def values_of_people(seed: int = 1) -> AreaCounts:
    """Values from 0 to 20, of which a few lie beyond these bounds, over uneven regions of two levels."""
    rng = np.random.default_rng(seed)
    regions = random_regions(rng, 2, 4)
    people = pd.DataFrame({"region": rng.choice(regions.ids_of(2), 400), "value": rng.normal(8, 5, 400)})
    return AreaCounts.from_table(people, regions=regions, categories=Summed(low=0, high=20), slot="value", count="none")
