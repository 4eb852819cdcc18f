"""Lists of pairs by several mechanisms of trips: how many true pairs each finds, and how many of its pairs are false. CURATOR ONLY."""

from __future__ import annotations

import pandas as pd

from dpviz.data.trips import TripCounts
from dpviz.errors import InputError
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.mechanisms import FittedTree, StabilityHistogram, TopDown, TripMechanism
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy, require_entropy

RATES = (0.01, 0.02, 0.05, 0.1, 0.2)  # values of the fitted tree's `false_discovery`
DIALS = (4.0, 3.0, 2.0, 1.0, 0.0)  # values of TopDown's `dial`


def compare_lists(trips: TripCounts, budget: ApproxBudget, entropy: Entropy, *, neighbours: str = "bounded") -> pd.DataFrame:
    """Release trips with several settings that decide which pairs of the finest level are listed, and compare the lists with the truth.

    Each setting of each mechanism is one release, which spends the whole budget: only for public data. A mechanism that refuses the
    trips is left out, such as the stability histogram with several trips per person.

    Args:
        trips: trips; the table depends on their true counts.
        budget: of each release.
        entropy: a seeded stream; every release has its own part of it.
        neighbours: "bounded" or "add_remove".

    Returns:
        DataFrame with method and setting (texts), false_discovery (percent of listed pairs without true trips), recall (percent of
        pairs with true trips that are listed), listed (pairs) and max_error (of the finest level, in trips).

    Raises:
        DpvizError: trips or a budget that every mechanism refuses.

    >>> import dpviz as dv
    >>> trips = dv.load_sample("us_flights")
    >>> table = compare_lists(trips, dv.ApproxBudget(1, 1e-8), dv.Entropy.seeded(1))
    >>> table.loc[table["method"] == "Stability histogram (SH)", "false_discovery"].tolist()
    [0.0]
    """
    variants: dict[str, TripMechanism] = {f"at most {100 * rate:g} % false": FittedTree(false_discovery=rate) for rate in RATES}
    variants["every pair above 0"] = FittedTree()
    variants |= {f"dial {dial:g}": TopDown(dial=dial, accounting="exact") for dial in DIALS}
    variants["threshold"] = StabilityHistogram()
    rows = []
    for (setting, defaults), stream in zip(variants.items(), require_entropy(entropy).spawn(len(variants)), strict=True):
        mechanism = defaults.from_settings({**defaults.chosen(), "neighbours": neighbours})
        try:
            mechanism.check_data(trips)
        except InputError:  # it takes no such trips, for instance several trips per person
            continue
        leaves = evaluate_trips(mechanism.release(trips, budget, stream), trips).by_stage.iloc[-1]
        rows.append(
            {
                "method": mechanism.title,
                "setting": setting,
                "false_discovery": float(leaves["false_discovery"]),
                "recall": 100.0 - float(leaves["false_negative"]),
                "listed": int(leaves["released_pairs"]),
                "max_error": int(leaves["max_error"]),
            }
        )
    return pd.DataFrame(rows)
