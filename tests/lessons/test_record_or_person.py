import numpy as np
import pytest

from dpviz.lessons import record_or_person as lesson
from dpviz.lessons.record_or_person import MOST, MOVES, RecordOrPerson


@pytest.mark.parametrize("most", [None, 10])
def test_the_attacker_knows_what_the_release_counts(most):
    crowd = lesson.count_fixes(2, most, crowd=True)
    assert np.array_equal(crowd.blocks(lesson.ORDER).ravel(), lesson.known_counts() + lesson.traces(most)[2])
    assert crowd.contributions == (most or 1)


def test_every_address_has_all_positions_and_the_bound_keeps_as_many_as_it_says():
    assert lesson.traces(None).sum(axis=1).tolist() == [lesson.FIXES] * len(MOVES)
    assert [set(lesson.traces(most).sum(axis=1).tolist()) for most in MOST] == [{most} for most in MOST]
    assert len({int(cell) for cell in lesson.traces(None).argmax(axis=1)}) == len(MOVES)


def test_the_noise_of_a_release_has_the_scale_of_its_unit():
    for most in (None, 10):
        noise = lesson.left_over(0, most, 1.0, 1) - lesson.traces(most)[0]
        assert np.abs(noise).mean() == pytest.approx(1 / np.sinh(1 / (most or 1)), rel=0.05)


def test_the_attack_finds_the_home_in_the_release_of_records_at_every_address():
    assert [lesson.guess(RecordOrPerson(home=home), None) for home in range(1, len(MOVES) + 1)] == list(range(len(MOVES)))


def test_a_slide_has_the_two_maps_only():
    shown = RecordOrPerson().show()
    assert shown.slide == shown.rows[:1]
    assert [len(row) for row in shown.rows] == [2, 1]
