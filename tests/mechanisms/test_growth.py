"""Trees that grow where records are end where memory does: no error tells of the records, no path goes uncounted."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import Htf, PathTree, PrivTree
from dpviz.mechanisms import run as measure
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy

GROWING = {
    "htf": Htf(height=12, stop_noise=0, shrink_small=False),
    "privtree": PrivTree(),
    "privtree of 16": PrivTree(fan_out=16),
    "path_tree": PathTree(shrink_small=False, tau=0.5),
    "path_tree that skips": PathTree(shrink_small=False, big=1),
}
CROWDED = PointCounts.from_matrix(np.full((64, 64), 1000))


@pytest.mark.parametrize("most", [1, 20, 400])
@pytest.mark.parametrize("name", GROWING)
def test_a_tree_that_outgrows_memory_ends_there_and_all_its_leaves_are_counted(monkeypatch, name, most):
    whole = GROWING[name].release(CROWDED, PureBudget(50), Entropy.seeded(1))
    monkeypatch.setattr(measure, "MOST_GROWN", most)
    cut = GROWING[name].release(CROWDED, PureBudget(50), Entropy.seeded(1))
    assert len(cut.tree) <= max(most, 5) * 5 < len(whole.tree)
    assert np.isfinite(cut.node_stddev[cut.tree.leaves]).all()
    assert cut.receipt.spent == cut.receipt.total
    assert any(note.startswith(f"The tree ends where it would have passed {most:,} nodes") for note in cut.receipt.notes)
    assert not any("would have passed" in note for note in whole.receipt.notes)
    size = np.prod(cut.tree.rectangles(cut.tree.leaves)[:, 2:] - cut.tree.rectangles(cut.tree.leaves)[:, :2], axis=1)
    assert np.abs(cut.count[cut.tree.leaves] - 1000 * size).max() < 40
