"""TopDown on the sets of its paper: no worse than the curves its authors published, and at the size of their real data."""

import numpy as np
import pandas as pd
import pytest

from dpviz.evaluation.flow_metrics import error_bounds, evaluate_flows
from dpviz.mechanisms import FLOW_MECHANISMS, TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.flows import DENSITIES, PARTITIONS, made_up_country, synthetic_flows

pytestmark = pytest.mark.slow

RUNS, DELTA = 5, "1e-8"
EPSILONS = ("0.1", "1", "10")
# InfTDA on pairs of leaves, delta 1e-8, mean of 10 runs: largest error, and false discovery rate in percent. Published by its
# authors with the code of Boninsegna and Silvestri, 2025 (aidaLabDEI/TDA_hierarchical); their noise had the variance 2 T / rho.
PUBLISHED = {
    ("binary", "complete"): ((873.9, 0.0), (138.8, 0.0), (19.3, 0.0)),
    ("binary", "dense"): ((825.6, 46.1286), (142.4, 35.7085), (19.0, 26.0447)),
    ("binary", "sparse"): ((847.2, 97.8727), (132.2, 89.7301), (16.8, 75.7904)),
    ("random", "complete"): ((990.9, 0.0), (130.0, 0.0), (17.1, 0.0)),
    ("random", "dense"): ((898.3, 46.9439), (121.8, 36.218), (16.3, 20.9591)),
    ("random", "sparse"): ((690.4, 97.7498), (117.1, 83.8392), (15.2, 63.8452)),
}


def finest(mechanism, flows, budget, entropy):
    """Largest error, false discovery and false negative rate on pairs of leaves; and the rest of the last row."""
    return evaluate_flows(mechanism.release(flows, budget, entropy), flows).by_stage.iloc[-1]


def measured(mechanism, flows, epsilon):
    rows = [finest(mechanism, flows, ApproxBudget(epsilon, DELTA), entropy) for entropy in Entropy.seeded(2025).spawn(RUNS)]
    return pd.DataFrame(rows)[["max_error", "false_discovery", "false_negative"]].astype(float).mean()


@pytest.fixture(scope="module")
def table():
    """One row per mechanism or optimiser, set and epsilon: means of five runs."""
    rows = []
    for partition in PARTITIONS:
        for density in DENSITIES:
            flows = synthetic_flows(partition, density)
            ways = {key: mechanism() for key, mechanism in FLOW_MECHANISMS.items()} | {
                "top_down, euclidean": TopDown(optimiser="euclidean")
            }
            if partition == "binary" and density == "sparse":
                ways["top_down, solver"] = TopDown(optimiser="solver")
            for place, epsilon in enumerate(EPSILONS):
                published = dict(zip(("published_error", "published_fdr"), PUBLISHED[partition, density][place], strict=True))
                for way, mechanism in ways.items():
                    found = measured(mechanism, flows, epsilon)
                    rows.append({"set": f"{partition} {density}", "epsilon": epsilon, "mechanism": way, **found, **published})
    return pd.DataFrame(rows)


def test_the_table_of_all_sets_keeps_the_published_bars(table):
    """Run with -s to print the table."""
    with pd.option_context("display.max_rows", None, "display.width", 200, "display.float_format", "{:.2f}".format):
        print("\n", table.drop(columns=["published_error", "published_fdr"]).to_string(index=False))
    ours = table[table["mechanism"] == "top_down"]
    ratio = np.exp(np.log(ours["max_error"] / ours["published_error"]).mean())
    print(f"leaf largest error against the published InfTDA: geometric mean {ratio:.3f}")
    assert len(ours) == 18
    assert ratio <= 0.70
    assert (ours["false_discovery"] <= ours["published_fdr"] + 1e-9).all(), ours


def test_half_the_budget_would_break_the_bar():
    """The bar can fail: with the variance doubled, as published curves have it, errors come near theirs."""
    ratios = []
    for (partition, density), rows in PUBLISHED.items():
        flows = synthetic_flows(partition, density)
        for epsilon, (error, _) in zip(EPSILONS, rows, strict=True):
            half = ZcdpBudget(ApproxBudget(epsilon, DELTA).to_zcdp().rho / 2)
            runs = [finest(TopDown(), flows, half, entropy)["max_error"] for entropy in Entropy.seeded(7).spawn(3)]
            ratios.append(np.mean(runs) / error)
    assert np.exp(np.log(ratios).mean()) > 0.80


def test_the_largest_error_of_a_whole_country_stays_under_118():
    flows = made_up_country()
    assert int(flows.count.sum()) == 28_800_000
    assert 500_000 <= len(flows.count) <= 600_000
    for entropy in (Entropy.system(), Entropy.seeded(1), Entropy.seeded(2)):
        release = TopDown().release(flows, ApproxBudget(1, DELTA), entropy)
        stages = evaluate_flows(release, flows).by_stage
        assert stages["max_error"].iloc[-1] < 118
        assert (stages["max_error"] <= error_bounds(release)).all()
        assert release.inconsistencies()["mismatches"].sum() == 0
    doubled = TopDown().release(flows, ZcdpBudget(ApproxBudget(1, DELTA).to_zcdp().rho / 2), Entropy.seeded(1))
    assert evaluate_flows(doubled, flows).by_stage["max_error"].iloc[-1] > 118
