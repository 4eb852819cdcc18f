"""Regions without outlines: each stands under the one that contains it."""

import numpy as np
import pandas as pd

import dpviz as dv
from dpviz.view.areas_outline import list_regions

TABLE = pd.DataFrame({"district": ["A", "A", "B"], "tract": ["A1", "A2", "B1"]})


def test_each_region_stands_under_the_one_that_contains_it_with_what_is_true_and_released():
    regions = dv.Regions.from_table(TABLE, levels=["district", "tract"])
    counts = dv.AreaCounts(regions=regions, leaf=np.arange(3), count=np.array([60, 25, 5]))
    release = dv.RegionTree().release(counts, dv.PureBudget(100), dv.Entropy.seeded(1))
    table = list_regions(release, counts.level_counts(), 2)
    names = table["region"].str.replace("\u2003", ">").tolist()
    assert names == ["all", ">A", ">>A1", ">>A2", ">B", ">>B1"]
    assert table["true"].tolist() == [90, 85, 60, 25, 5, 5]
    assert (abs(table["released"] - table["true"]) < 2).all()
    assert list_regions(release, counts.level_counts(), 1)["true"].tolist() == [90, 85, 5]
