import math
from dataclasses import replace

import pytest

from dpviz.lessons import structure
from dpviz.lessons.town import TIGHT, TWO_CROWDS, town
from dpviz.privacy.entropy import Entropy


def test_the_error_of_a_release_is_taken_apart_as_defined():
    release = structure.release_town(TWO_CROWDS, 0.3, 0.5, Entropy.seeded(1))
    boxes, truth = structure._make_queries(TWO_CROWDS)
    points = town(structure.ORDER, structure.PEOPLE, TWO_CROWDS)
    slow = [points.blocks(structure.ORDER)[int(s) : int(n), int(w) : int(e)].sum() for w, s, e, n in boxes]
    assert (truth == slow).all()
    found = structure.errors(release, TWO_CROWDS)
    assert found[structure.TOTAL] == pytest.approx(math.sqrt(((release.answer(boxes) - truth) ** 2).mean()))
    exact = replace(release, count=release.tree.sums(points.column, points.row, points.count).astype(float))
    assert structure.errors(exact, TWO_CROWDS)[structure.NOISE] == 0
    assert structure.errors(exact, TWO_CROWDS)[structure.UNIFORMITY] == pytest.approx(found[structure.UNIFORMITY])


def test_too_little_and_too_much_for_the_splits_are_both_worse():
    table = structure.errors_by_share(TIGHT, 0.5, 1)
    total = table[table["series"] == structure.TOTAL].set_index("share")["error"]
    assert total.iloc[0] > 1.5 * total.min()
    assert total.iloc[-1] > 3 * total.min()
    noise = table[table["series"] == structure.NOISE].set_index("share")["error"]
    assert noise.iloc[-1] > 5 * noise.iloc[0]
    even = table[table["series"] == structure.UNIFORMITY].set_index("share")["error"]
    assert even.iloc[-1] < even.iloc[0]
    assert total.index.tolist() == pytest.approx([100 * share for share in structure.SHARES])
