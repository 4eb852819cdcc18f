"""Charts of areas: errors in percent or in records, shares only where there is something to share, the largest errors first."""

import numpy as np
import pandas as pd
import pytest

from dpviz.view.areas_charts import errors_by_level, list_worst, shares_by_level, worst_regions

LEVELS = pd.DataFrame(
    {
        "name": ["the whole", "district", "block"],
        "level": [0, 1, 2],
        "regions": [1, 4, 100],
        "empty": [0, 0, 20],
        "false_positives": [0, 0, 9],
        "false_negatives": [0, 0, 8],
        "narrow": [100.0, 75.0, 10.0],
        "rmse": [2.0, 2.0, 4.0],
        "expected": [1.0, 2.0, 4.0],
        "mean": [1000.0, 250.0, 10.0],
    }
)


def rows_of(chart):
    """The rows of all data of a chart."""
    return pd.concat([pd.DataFrame(rows) for rows in chart.to_dict()["datasets"].values()], ignore_index=True)


def test_errors_are_in_percent_of_an_average_region():
    chart = errors_by_level(LEVELS)
    rows = rows_of(chart)
    assert rows.loc[rows["line"] == "measured", "value"].tolist() == pytest.approx([0.2, 0.8, 40.0])
    assert "block: 4" in chart.to_dict()["description"]


def test_a_level_without_empty_regions_has_no_share_of_false_positives():
    rows = rows_of(shares_by_level(LEVELS))
    false = rows[rows["line"].str.startswith("false positives")]
    assert (false["name"].tolist(), false["value"].tolist()) == (["block"], [45.0])
    assert rows.loc[rows["line"].str.startswith("missed"), "value"].tolist() == [0.0, 0.0, 10.0]


def test_the_largest_errors_stand_first_and_regions_of_one_name_have_rows_of_their_own():
    numbers = {"true": np.array([5.0, 5.0, 5.0]), "released": np.array([6.0, -4.0, np.nan])}
    numbers |= {"low": np.zeros(3), "high": np.full(3, 9.0)}
    table = list_worst(np.array(["a", "b", "c"], object), np.array(["Lee", "Lee", "Lee"], object), numbers, 2)
    assert (table["region"].tolist(), table["error"].tolist()) == (["b", "a"], [-9.0, 1.0])
    rows = rows_of(worst_regions(table, "visits"))
    assert rows["region"].unique().tolist() == ["Lee", "Lee (2)"]
