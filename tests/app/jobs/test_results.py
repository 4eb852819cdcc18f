"""Results by their questions: the first one counts, and those used longest ago go when there are too many."""

from unittest.mock import Mock

import pytest

from dpviz.app.jobs.results import Results


def test_the_oldest_go_and_of_two_results_for_one_question_the_first_counts():
    rows = Results(3)
    for number in range(5):
        assert rows.keep(number, f"row {number}") == f"row {number}"
    assert rows.values() == ["row 2", "row 3", "row 4"]
    assert rows.keep(2, "another") == "row 2"
    assert rows.get(3) == "row 3"
    rows.keep(5, "row 5")
    assert [number in rows for number in range(6)] == [False, False, True, True, False, True]
    rows.drop(3)
    rows.drop(3)
    rows.keep(6, "row 6")
    assert rows.values() == ["row 2", "row 5", "row 6"]


def test_results_weigh_what_they_are_said_to_and_the_newest_few_stay():
    heavy = Results(10, weigh=float, fewest=2)
    for number in (3, 4, 5):
        heavy.keep(number, number)
    assert heavy.values() == [4, 5]
    heavy.keep(20, 20)
    assert heavy.values() == [5, 20]
    heavy.clear()
    heavy.keep(10, 10)
    assert heavy.keep(1, 1) == 1
    assert heavy.values() == [10, 1]


@pytest.mark.parametrize("result", ["made", None])
def test_a_result_is_made_once(result):
    make, results = Mock(return_value=result), Results(2)
    assert [results.answer("question", make) for _ in range(3)] == [result] * 3
    assert make.call_count == 1
