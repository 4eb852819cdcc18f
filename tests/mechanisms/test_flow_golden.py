"""Small seeded releases of trips stay what they are: a change here is a change of what people reproduce.

`python tests/mechanisms/test_flow_golden.py` writes the files anew, after a change that was meant.
"""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpviz as dv

GOLDEN = Path(__file__).parents[1] / "golden"
MECHANISMS = {
    "top_down": dv.TopDown(),
    "top_down_add_remove_dial": dv.TopDown(neighbours="add_remove", tree="origin", split="levels", dial=1.5),
    "top_down_euclidean": dv.TopDown(optimiser="euclidean", lowered="largest", false_discovery=0.2, conversion="simple"),
    "flat_gaussian": dv.FlatGaussian(least=4),
    "stability_histogram": dv.StabilityHistogram(),
}


def released(mechanism):
    """Everything that a seeded release says, on six towns in two counties, some pairs crowded, most empty."""
    towns = [f"{county}{town}" for county in "AB" for town in range(3)]
    regions = dv.Regions.from_table(pd.DataFrame({"county": [town[0] for town in towns], "town": towns}), levels=["county", "town"])
    rows = [(o, d, 7 * (k % 5) ** 3) for k, (o, d) in enumerate(product(towns, repeat=2)) if k % 4 == 1]
    flows = dv.Flows.from_table(pd.DataFrame(rows, columns=["origin", "destination", "count"]), regions=regions)
    release = mechanism.release(flows, dv.ApproxBudget("0.8", "1e-5"), dv.Entropy.seeded(20211102))
    tables = [release.stage(stage, spread=True) for stage in range(5)]
    return {
        "stages": [table[["origin", "destination", "count", "count_noisy"]].to_numpy().tolist() for table in tables],
        "stddev": [table["stddev"].round(6).tolist() for table in tables],
        "measured": [at.measured for at in release.stages],
        "spent": [[step.purpose, step.level, str(step.amount), str(step.scale)] for step in release.receipt.steps],
        "steps": list(release.steps),
    }


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_a_seeded_release_of_trips_is_what_it_was(name):
    wanted, found = json.loads((GOLDEN / f"{name}.json").read_text("utf-8")), released(MECHANISMS[name])
    for exact in ("stages", "measured", "steps"):
        assert found[exact] == wanted[exact]
    assert [part[:2] for part in found["spent"]] == [part[:2] for part in wanted["spent"]]
    for one, other in zip(found["stddev"], wanted["stddev"], strict=True):
        assert np.allclose(one, other, atol=1e-4)


if __name__ == "__main__":
    for each, mechanism in MECHANISMS.items():
        (GOLDEN / f"{each}.json").write_text(json.dumps(released(mechanism)) + "\n", "utf-8")
