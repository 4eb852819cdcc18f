"""Lists of pairs compared: each row is what the release with that setting lists, and the fitted tree's lists nest by their rate."""

import numpy as np

from dpviz.evaluation.pair_lists import DIALS, RATES, compare_lists
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.mechanisms import FittedTree
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from tests.trip_cases import random_trips, regular

BUDGET = ApproxBudget(2, "1e-5")


def test_each_row_is_one_release_and_a_looser_rate_lists_more():
    trips = random_trips(np.random.default_rng(3), regular(3, 4), pairs=60)
    table = compare_lists(trips, BUDGET, Entropy.seeded(1), neighbours="add_remove")
    assert table["method"].value_counts().to_dict() == {
        "Fitted tree": len(RATES) + 1,
        "TopDown (InfTDA)": len(DIALS),
        "Stability histogram (SH)": 1,
    }
    stream = Entropy.seeded(1).spawn(len(table))[2]
    release = FittedTree(false_discovery=RATES[2], neighbours="add_remove").release(trips, BUDGET, stream)
    leaves = evaluate_trips(release, trips).by_stage.iloc[-1]
    row = table.iloc[2]
    assert row["setting"] == "at most 5 % false"
    assert (row["false_discovery"], 100 - row["recall"]) == (leaves["false_discovery"], leaves["false_negative"])
    assert (row["listed"], row["max_error"]) == (len(release.stages[-1].count), leaves["max_error"])
    assert table["listed"][len(RATES)] > table["listed"][0]
    assert table["false_discovery"].iloc[-1] == 0
