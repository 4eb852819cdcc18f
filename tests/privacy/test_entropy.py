"""Streams of random bits: nothing repeats, nothing can be copied, every number below a bound is equally likely."""

import copy
import math
import pickle

import numpy as np
import pytest

from dpviz.errors import SettingError
from dpviz.privacy.entropy import Entropy
from tests.laws import SEEDED, SYSTEM, p_of_counts

KINDS = pytest.mark.parametrize("make", [Entropy.system, lambda: Entropy.seeded(1)], ids=["system", "seeded"])


@KINDS
def test_neither_one_stream_nor_spawned_ones_and_their_parent_ever_repeat(make):
    entropy = make()
    streams = [*entropy.spawn(3), *entropy.spawn(3), *[entropy] * 20]
    words = np.concatenate([stream.words(1000) for stream in streams])
    assert len(np.unique(words)) == len(words)
    assert {stream.simulation for stream in streams} == {entropy.simulation}
    assert entropy.bytes(16) != entropy.bytes(16)
    assert (entropy.bits(200) != entropy.bits(200)).any()
    assert (entropy.below(2**60, 5) != entropy.below(2**60, 5)).all()
    assert (Entropy.system().words(4) != make().words(4)).any()


def test_equal_seeds_give_equal_streams_and_equal_spawned_streams_which_are_uncorrelated():
    one, same, other = Entropy.seeded(3), Entropy.seeded(3), Entropy.seeded(4)
    np.testing.assert_array_equal(one.words(10), same.words(10))
    assert (one.words(10) != other.words(10)).any()
    for child, twin in zip(one.spawn(2), same.spawn(2), strict=True):
        np.testing.assert_array_equal(child.words(10), twin.words(10))
    bits = np.array([stream.bits(20_000) for stream in Entropy.seeded(2).spawn(8)]).astype(float)
    assert np.abs(np.corrcoef(bits) - np.eye(8)).max() < 5 / math.sqrt(20_000)


@KINDS
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_cannot_be_copied_or_pickled(make, duplicate):
    with pytest.raises(TypeError, match=r"use spawn\(n\)"):
        duplicate(make())
    with pytest.raises(TypeError, match=r"use spawn\(n\)"):
        duplicate({"inside": make()}) if duplicate is not copy.copy else duplicate(make())


def test_only_seeded_streams_are_simulations_and_neither_shows_its_seed():
    assert (Entropy.seeded(987).simulation, Entropy.system().simulation) == (True, False)
    assert "not private" in repr(Entropy.seeded(987))
    assert "987" not in repr(Entropy.seeded(987))
    assert "system" in repr(Entropy.system())


@KINDS
@pytest.mark.parametrize("bound", [2, 3, 7, 10, 64, 100, 255, 2**32 + 1, 3 * 2**40, 2**62 + 2**61, 2**63 - 1, 2**63])
def test_numbers_below_a_bound_are_equally_likely(make, bound):
    entropy = make()
    values = entropy.below(bound, 60_000)
    assert values.dtype == np.int64
    assert_even(values, bound, SEEDED if entropy.simulation else SYSTEM)
    assert entropy.below(1, 1000).tolist() == [0] * 1000


MIXED = [1, 2, 3, 7, 100, *(2**power + more for power, more in [(20, 0), (32, 1), (53, -1), (53, 1)]), 3 * 2**40 + 5]
MIXED += [2**60 - 1, 2**60, 2**60 + 1, 2**61 + 2**60, 2**62 - 1, 2**62]


@KINDS
def test_numbers_below_bounds_of_their_own_are_equally_likely_in_one_call(make):
    entropy, copies = make(), 20_000
    values = entropy.below_each(np.tile(MIXED, copies)).reshape(copies, len(MIXED))
    least = SEEDED if entropy.simulation else SYSTEM
    assert values.dtype == np.int64
    assert values.min() >= 0
    for own, bound in zip(values.T, MIXED, strict=True):
        assert_even(own, bound, least)


def assert_even(values: np.ndarray, bound: int, least: float) -> None:
    """All numbers below the bound are equally likely: in 30 parts, and in their lowest bits."""
    assert values.min() >= 0
    assert int(values.max()) < bound
    parts, low = min(bound, 30), min(16, bound)
    cuts = [-(-part * bound // parts) for part in range(1, parts)]
    share = np.diff([0, *cuts, bound]) / bound
    assert p_of_counts(np.bincount(np.searchsorted(cuts, values, side="right"), minlength=parts), share) > least
    if bound >= 2**20:
        assert p_of_counts(np.bincount(values % low, minlength=low), np.full(low, 1 / low)) > least


def test_numbers_below_bounds_of_their_own_are_independent():
    values = Entropy.seeded(9).below_each(np.tile([3, 5], 40_000))
    joint = np.bincount(values[:-1:2] * 5 + values[1::2], minlength=15)
    assert p_of_counts(joint, np.full(15, 1 / 15)) > SEEDED
    lagged = np.bincount(values[:-2:2] * 3 + values[2::2], minlength=9)
    assert p_of_counts(lagged, np.full(9, 1 / 9)) > SEEDED


def test_every_word_that_is_not_refused_serves_one_number_whatever_its_bound():
    """All words of a few leading bits: each number below the bound is hit by equally many, the others are drawn again."""
    for bound in (3, 5, 7, 12):
        bits = (bound - 1).bit_length()
        words = [lead << (64 - bits) | 2**40 + 1 for lead in range(2**bits)]
        again = [0] * (2**bits - bound)
        stream = iter([*words, *again])
        entropy = Entropy._make(lambda n: np.array([next(stream) for _ in range(n)], np.uint64), None)  # noqa: B023
        values = entropy.below_each(np.full(2**bits, bound))
        assert values.tolist() == [*range(bound), *again]
        assert next(stream, None) is None


@pytest.mark.parametrize("bound", [0, -1, 2**62 + 1, 2**63 - 1, 2**63 + 1])
def test_a_bound_that_cannot_be_served_is_refused(bound):
    for others in ([], [1], [5, 2**62]) if bound < 2**63 else ():
        with pytest.raises(ValueError, match="bounds must be from 1 to"):
            Entropy.seeded(7).below_each(np.array([*others, bound]))
    if not 0 < bound <= 2**63:
        with pytest.raises(ValueError, match="bound"):
            Entropy.seeded(7).below(bound, 1)


@KINDS
def test_bits_are_fair_independent_and_of_any_number(make):
    entropy = make()
    n = 400_000
    bits = entropy.bits(n)
    assert bits.dtype == np.bool_
    assert abs(bits.mean() - 0.5) < 7 / (2 * math.sqrt(n))
    for step in (1, 7, 8):
        assert abs((bits[step:] == bits[:-step]).mean() - 0.5) < 7 / (2 * math.sqrt(n - step))
    assert [len(entropy.bits(count)) for count in (0, 1, 7, 8, 9)] == [0, 1, 7, 8, 9]
    assert entropy.words(0).shape == entropy.below(5, 0).shape == entropy.below_each(np.zeros(0, np.int64)).shape == (0,)
    assert entropy.bytes(0) == b""


def test_a_stream_cannot_be_passed_off_as_the_operating_systems_and_a_seed_is_a_whole_number():
    with pytest.raises(TypeError, match=r"Entropy\.system"):
        Entropy(np.random.SFC64(1).random_raw, None)
    for seed in (-1, 1.5, True, "7", None):
        with pytest.raises(SettingError):
            Entropy.seeded(seed)
