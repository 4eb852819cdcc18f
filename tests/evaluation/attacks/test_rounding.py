import itertools

import numpy as np
import pytest

from dpviz.errors import InputError
from dpviz.evaluation.attacks.differencing import count_by
from dpviz.evaluation.attacks.rounding import bound_counts, can_exceed, rounded_range, share_pinned
from dpviz.mechanisms.contrasts import NEAREST, RANDOM, round_counts
from dpviz.privacy.entropy import Entropy

TABLES = [np.arange(4), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.zeros(4, np.int64)]


def enumerate_counts(ranges, most):
    """All whole counts up to `most` of four blocks that fit."""
    every = np.array(list(itertools.product(range(most + 1), repeat=4)))
    fits = np.ones(len(every), np.bool_)
    for table, (low, high) in zip(TABLES, ranges, strict=True):
        sums = np.stack([every[:, table == region].sum(axis=1) for region in range(table.max() + 1)], axis=1)
        fits &= ((sums >= low) & (sums <= high)).all(axis=1)
    return every[fits]


@pytest.mark.parametrize(("base", "rounding"), [(3, NEAREST), (5, NEAREST), (3, RANDOM)])
def test_bounds_are_those_of_all_counts_that_fit(base, rounding):
    for seed in range(3):
        counts, entropy = np.random.default_rng(seed).poisson(2.5, 4), Entropy.seeded(seed)
        ranges = [rounded_range(round_counts(count_by(table, counts), base, rounding, entropy), base, rounding) for table in TABLES]
        every = enumerate_counts(ranges, 14)
        least, most = bound_counts(TABLES, ranges)
        assert (least.tolist(), most.tolist()) == (every.min(axis=0).tolist(), every.max(axis=0).tolist())
        assert share_pinned(least, most) == ((every == every[0]).all(axis=0)).mean()
        assert [can_exceed(TABLES, ranges, block, 2) for block in range(4)] == (every.max(axis=0) > 2).tolist()


def test_ranges_hold_every_count_and_no_other():
    counts = np.repeat(np.arange(12), 200)
    for base, rounding in itertools.product((3, 5), (NEAREST, RANDOM)):
        published = round_counts(counts, base, rounding, Entropy.seeded(1))
        low, high = rounded_range(published, base, rounding)
        assert ((low <= counts) & (counts <= high)).all()
        reached = {multiple: set(counts[published == multiple].tolist()) for multiple in (base,)}
        assert reached[base] == set(range(int(rounded_range(np.array([base]), base, rounding)[0][0]), int(high[published == base][0]) + 1))


def test_tables_of_different_records_are_refused():
    ranges = [
        (np.full(4, 5), np.full(4, 7)),
        (np.zeros(2, np.int64), np.ones(2, np.int64)),
        (np.zeros(2), np.full(2, 99)),
        (np.zeros(1), np.full(1, 99)),
    ]
    with pytest.raises(InputError, match="No whole counts fit"):
        bound_counts(TABLES, ranges)
