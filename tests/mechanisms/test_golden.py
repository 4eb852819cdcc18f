"""Small seeded releases stay what they are: a change here is a change of what people reproduce.

`python tests/mechanisms/test_golden.py` writes the files anew, after a change that was meant.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import dpviz as dv

GOLDEN = Path(__file__).parents[1] / "golden"
MECHANISMS = {
    "quadtree": dv.Quadtree(height=3),
    "quadtree_16_pruned": dv.Quadtree(height=2, fan_out=16, split="uniform", prune=4.0),
    "uniform_grid": dv.UniformGrid(c=1.0),
    "identity_threshold": dv.Identity(order=3, threshold=True),
    "kdtree": dv.Kdtree(height=2),
    "adaptive_grid": dv.AdaptiveGrid(),
    "hilbert_tree": dv.HilbertTree(height=2),
    "htf": dv.Htf(),
    "htf_paper": dv.Htf(search="rounds", reuse_splits=False, combine=False, zero=False, inside="uniform", stop="count", height=4),
    "path_tree": dv.PathTree(),
    "privelet": dv.Privelet(order=3),
    "privtree": dv.PrivTree(),
    "tuned": dv.Tuned(),
    "tuned_grid": dv.TunedGrid(sides=(2, 4, 8)),
    "kdtree_hybrid_pruned": dv.Kdtree(height=3, variant="hybrid", switch=1, fan_out=2, prune=8.0),
}


def released(mechanism):
    """Everything that a seeded release says, on an 8 x 8 matrix with a few crowded cells."""
    matrix = np.add.outer(np.arange(8), np.arange(8)) % 5 * (np.eye(8, dtype=np.int64)[::-1] * 20 + 1)
    release = mechanism.release(dv.PointCounts.from_matrix(matrix), dv.PureBudget("0.8"), dv.Entropy.seeded(20211102))
    return {
        "rectangles": release.tree.rectangles().tolist(),
        "noisy": [None if np.isnan(value) else int(value) for value in release.noisy],
        "count": release.count.round(9).tolist(),
        "stddev": release.stddev.round(9).tolist(),
        "spent": [[step.purpose, step.level, str(step.amount)] for step in release.receipt.steps],
        "steps": list(release.steps),
    }


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_a_seeded_release_is_what_it_was(name):
    wanted, found = json.loads((GOLDEN / f"{name}.json").read_text("utf-8")), released(MECHANISMS[name])
    for exact in ("rectangles", "noisy", "spent", "steps"):
        assert found[exact] == wanted[exact]
    assert np.allclose(found["count"], wanted["count"], atol=1e-6)
    assert np.allclose(found["stddev"], wanted["stddev"], atol=1e-6)


if __name__ == "__main__":
    for each, mechanism in MECHANISMS.items():
        (GOLDEN / f"{each}.json").write_text(json.dumps(released(mechanism)) + "\n", "utf-8")
