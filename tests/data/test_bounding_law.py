"""The bound against its slow definition, and the law of what is kept; wrong rules are rejected by the same tests."""

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz.data.bounding
from dpviz.data.bounding import (
    Bound,
    Holdings,
    bound_of,
    bound_records,
    canonical_text,
    choose_records,
    find_people,
    person_hashes,
    priorities,
    priorities_of_hashes,
    refuse_unenforced,
)
from dpviz.errors import InputError

few = settings(max_examples=30, deadline=None, derandomize=True)
CHI2 = {1: 15.1, 3: 21.1, 9: 33.7}  # passed once in 10,000 keys, by degrees of freedom


def slow(rows, bound):
    """(person, place) -> records kept, by the definition, of rows (person, place, weight)."""
    had, kept = Counter(), Counter()
    for person, place, weight in rows:
        if person is not None and place >= 0 and weight > 0:
            had[canonical_text(person), place] = 1 if bound.distinct else had[canonical_text(person), place] + min(weight, bound.most)
    for text in {person for person, _ in had}:
        own = [(place, number) for (person, place), size in had.items() if person == text for number in range(size)]
        if bound.fewer == "drop" and len(own) < bound.most:
            continue
        order = priorities([text] * len(own), *np.array(own).T, bound.key)
        ranked = sorted((int(priority), *each) for priority, each in zip(order, own, strict=True))
        kept.update((text, place) for _, place, _ in ranked[: bound.most])
    return dict(kept)


def fast(rows, bound):
    person, place, weight = ([row[part] for row in rows] for part in range(3))
    held = bound_records(find_people(person), np.array(place, np.int64), np.array(weight, np.int64), bound)
    found = {(held.texts[code], int(spot)): int(n) for code, spot, n in zip(held.codes, held.cells, held.records, strict=True)}
    assert len(found) == len(held.records)
    return found


ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", 7, "7", 7.0, None]), st.integers(-2, 4), st.integers(0, 5)), min_size=1, max_size=25)
BOUNDS = st.builds(
    Bound, most=st.integers(1, 6), distinct=st.booleans(), fewer=st.sampled_from(["keep", "drop"]), key=st.binary(min_size=1)
)


@few
@given(ROWS, BOUNDS)
def test_the_fast_bound_is_the_slow_definition(rows, bound):
    assert fast(rows, bound) == slow(rows, bound)


@few
@given(ROWS, BOUNDS, st.randoms(use_true_random=False))
def test_neighbours_differ_by_at_most_the_bound_in_one_persons_records(rows, bound, random):
    rows = list(rows)
    random.shuffle(rows)
    whole = fast(rows, bound)
    for text in {canonical_text(person) for person, _, _ in rows if person is not None}:
        without = fast([row for row in rows if row[0] is None or canonical_text(row[0]) != text] or [(None, 0, 1)], bound)
        own = {pair: number for pair, number in whole.items() if pair[0] == text}
        assert without == {pair: number for pair, number in whole.items() if pair[0] != text}
        assert sum(own.values()) <= bound.most
        assert not bound.distinct or all(number == 1 for number in own.values())


@pytest.mark.parametrize("distinct", [False, True])
def test_every_small_neighbour_differs_by_at_most_the_bound(distinct):
    """Brute force: every table of up to four rows of two people in three places, every person taken out."""
    kinds = list(itertools.product("ab", range(3), (1, 2)))
    for size in range(1, 4):
        for rows in itertools.combinations_with_replacement(kinds, size):
            bound = bound_of(2, b"key", distinct=distinct)
            whole = fast(rows, bound)
            for who in "ab":
                rest = fast([row for row in rows if row[0] != who] or [(None, 0, 1)], bound)
                lost = {pair: whole[pair] - rest.get(pair, 0) for pair in whole}
                assert set(rest) <= set(whole)
                assert sum(lost.values()) <= 2
                assert all(gone == 0 for pair, gone in lost.items() if pair[0] != who.encode())


def chi2(seen, expected):
    return float(((np.asarray(seen) - expected) ** 2 / expected).sum())


def kept_places(rule, rows, most, runs=4000):
    """How often each set of kept places came, over keys; `rule` gives priorities."""
    seen = Counter()
    for run in range(runs):
        key = run.to_bytes(3, "big")
        order = rule(rows, key)
        seen[tuple(sorted(place for _, (place, _) in sorted(zip(order, rows, strict=True))[:most]))] += 1
    return seen


def ours(rows, key):
    return priorities([b"a"] * len(rows), *np.array(rows).T, key).tolist()


def by_place_alone(rows, key):
    """A wrong rule: one priority per place, so that a place of three records is as likely as one of a single."""
    return priorities([b"a"] * len(rows), np.array(rows).T[0], np.zeros(len(rows), np.int64), key).tolist()


def half_keyed(rows, key):
    """A wrong rule: the key does not reach the places of half of the people."""
    return priorities([b"a"] * len(rows), *np.array(rows).T, bytes([key[2] % 2])).tolist()


PAIRS = [(place, 0) for place in range(5)]
HEAVY = [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_the_choice_is_even_over_keys():
    seen = kept_places(ours, PAIRS, 2)
    assert len(seen) == 10
    assert chi2(list(seen.values()), 400) < CHI2[9]
    seen = kept_places(ours, HEAVY, 1)
    assert chi2([seen[0,], seen[1,]], np.array([3000, 1000])) < CHI2[1]


def test_wrong_rules_are_not_even():
    seen = kept_places(by_place_alone, HEAVY, 1)
    assert chi2([seen[0,], seen[1,]], np.array([3000, 1000])) > CHI2[1]
    seen = kept_places(half_keyed, PAIRS, 2)
    assert chi2([*seen.values(), *[0] * (10 - len(seen))], 400) > CHI2[9]


def test_the_whole_bound_is_even_over_keys():
    """As `test_the_choice_is_even_over_keys`, through the sort and not by the priorities alone."""
    owners, runs, seen = find_people(["b", *"aaaaa"]), 4000, Counter()
    for run in range(runs):
        held = bound_records(owners, np.array([9, 0, 1, 2, 3, 4]), np.ones(6, np.int64), bound_of(2, run.to_bytes(3, "big")))
        assert held.cells.tolist().count(9) == 1
        seen[tuple(sorted(held.cells[held.cells < 9]))] += 1
    assert chi2(list(seen.values()), runs / 10) < CHI2[9]


def test_the_choices_of_two_people_do_not_hang_together():
    owners, runs, seen = find_people(list("aabb")), 4000, np.zeros((2, 2))
    for run in range(runs):
        held = bound_records(owners, np.array([0, 1, 0, 1]), np.ones(4, np.int64), bound_of(1, run.to_bytes(3, "big")))
        seen[tuple(held.cells[np.argsort(held.codes)])] += 1
    assert chi2(seen.ravel(), runs / 4) < CHI2[3]


def test_people_whose_hashes_collide_keep_bounds_of_their_own(monkeypatch):
    monkeypatch.setattr(dpviz.data.bounding, "person_hashes", lambda texts, key: np.zeros(len(texts), np.uint64))
    rows = [(person, place, 1) for person in "abc" for place in range(4)]
    assert Counter(person for person, _ in fast(rows, bound_of(2, b"k"))) == {b"a": 2, b"b": 2, b"c": 2}


def test_equal_priorities_are_told_apart_by_place_and_number(monkeypatch):
    monkeypatch.setattr(dpviz.data.bounding, "priorities_of_hashes", lambda hashes, places, numbers, key: np.zeros(len(places), np.uint64))
    rows = [("a", place, weight) for place, weight in ((3, 1), (1, 2), (2, 1))] + [("b", 5, 1)]
    assert fast(rows, bound_of(3, b"k")) == {(b"a", 1): 2, (b"a", 2): 1, (b"b", 5): 1}


def test_holdings_may_come_in_any_order():
    rng = np.random.default_rng(3)
    codes, places = (side.ravel() for side in np.meshgrid(np.arange(30), np.arange(9)))
    held = Holdings(codes=codes, texts=[f"p{code}" for code in range(30)], cells=places, records=rng.integers(1, 5, len(codes)))
    order = rng.permutation(len(codes))
    mixed = Holdings(codes=codes[order], texts=held.texts, cells=places[order], records=held.records[order])
    np.testing.assert_array_equal(choose_records(mixed, bound_of(6, b"k")), choose_records(held, bound_of(6, b"k"))[order])


def test_places_too_many_for_one_word_are_counted_all_the_same():
    far = 2**62
    assert fast([("a", far, 1), ("b", far, 1), ("b", far - 1, 1), ("b", far, 1)], bound_of(9, b"k")) == {
        (b"a", far): 1,
        (b"b", far): 2,
        (b"b", far - 1): 1,
    }


def test_one_person_of_several_spellings_has_one_bound():
    assert sum(fast([(7, 0, 1), ("7", 1, 1), (7.0, 2, 1), (True, 3, 1), ("1", 4, 1)], bound_of(1, b"k")).values()) == 2


def test_priorities_are_those_of_every_chunk_and_container():
    texts, places, numbers = ["a", "b", "a", "ü"], np.array([1, 2, 3, 2**47]), np.array([0, 5, 1, 2])
    whole = priorities(texts, places, numbers, b"key")
    for held in (pa.array(texts), pa.chunked_array([texts[:2], texts[2:]]), np.array(texts, object), [text.encode() for text in texts]):
        np.testing.assert_array_equal(priorities(held, places, numbers, b"key"), whole)
    for row in range(4):
        part = slice(row, row + 1)
        np.testing.assert_array_equal(priorities(texts[part], places[part], numbers[part], b"key"), whole[part])
    hashes = person_hashes(pa.array(texts), b"key")
    np.testing.assert_array_equal(priorities_of_hashes(hashes, places, numbers, b"key"), whole)


def test_priorities_do_not_change_from_version_to_version():
    found = priorities(["a", "b"], np.array([0, 5]), np.array([0, 1]), b"key")
    assert found.tolist() == [17561578116153189018, 9278503541487085859]


def test_bounds_that_make_no_sense_are_refused():
    for most in (0, True, 1.5, "2"):
        with pytest.raises(InputError, match="contributions"):
            bound_of(most, b"k")
    with pytest.raises(InputError, match="distinct"):
        bound_of(1, b"k", distinct="yes")
    with pytest.raises(InputError, match="fewer"):
        bound_of(1, b"k", fewer="none")
    with pytest.raises(InputError, match="person"):
        refuse_unenforced(None, 2, distinct=False)
    with pytest.raises(InputError, match="person"):
        refuse_unenforced(None, 1, distinct=True)


def test_keys_come_from_the_systems_entropy():
    assert len({bound_of(1, None).key for _ in range(50)} | {bound_of(1, b"").key}) == 51
    assert len(bound_of(1, None).key) == 16


def test_people_with_fewer_are_refused_where_that_was_declared():
    with pytest.raises(InputError, match="fewer"):
        fast([("a", 1, 1), ("b", 1, 2)], bound_of(2, b"k", fewer="refuse"))
    assert sum(fast([("a", 1, 2), ("b", 1, 3)], bound_of(2, b"k", fewer="refuse")).values()) == 4
