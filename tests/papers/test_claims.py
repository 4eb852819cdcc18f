"""Verdicts on claims: the interval, one case and many, claims about every case and about one, and a planted reversal."""

import statistics

import numpy as np
import pandas as pd
import pytest

from dpviz.errors import SettingError
from dpviz.papers import run
from dpviz.papers.catalogue import PAPERS, find_figure
from dpviz.papers.claims import FAILS, HOLDS, UNDECIDED, Claim, Verdict, interval

T_OF_FOUR = 2.7764451  # 97.5 % of Student's t with 4 degrees of freedom, from a table


def claim(**how):
    """A claim whose cases are the columns of a table."""
    given = {"text": "A is less than B.", "reading": "A is {value} times B for {case}"} | how
    return Claim(cases=lambda rows: rows.drop(columns="seed").iloc[0].to_dict(), **given)


def judged(cases, **how):
    """The verdict on numbers per seed, by case."""
    table = pd.DataFrame(cases)
    return claim(**how).judge(table.assign(seed=np.arange(len(table))))


def test_the_interval_is_student_s():
    values = [3.0, 1.0, 4.0, 1.5, 9.0]
    half = T_OF_FOUR * statistics.stdev(values) / len(values) ** 0.5
    assert interval(np.array(values)) == pytest.approx(
        (statistics.mean(values), statistics.mean(values) - half, statistics.mean(values) + half)
    )
    assert interval(np.array([1.0]))[1:] == interval(np.array([1.0, np.inf]))[1:] == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("numbers", "answer"), [([0.5, 0.6, 0.55], HOLDS), ([2.0, 1.9, 2.1], FAILS), ([0.5, 1.5, 1.0], UNDECIDED), ([0.5], UNDECIDED)]
)
def test_one_case_is_judged_by_its_interval_and_reversed_with_it(numbers, answer):
    opposite = {HOLDS: FAILS, FAILS: HOLDS, UNDECIDED: UNDECIDED}[answer]
    assert judged({"a": numbers}).answer == answer
    assert judged({"a": 1 / np.array(numbers)}).answer == opposite  # the methods are exchanged
    assert judged({"a": numbers}, below=False).answer == opposite
    assert judged({"a": np.log(numbers)}, ratio=False, line=0.0).answer == answer
    assert judged({"a": numbers}).cases["value"].item() == pytest.approx(statistics.geometric_mean(numbers))


def test_a_claim_about_every_case_needs_all_and_fails_by_one():
    good, doubtful, bad = [0.5, 0.6, 0.55], [0.5, 1.5, 1.0], [2.0, 1.9, 2.1]
    assert judged({"a": good, "b": good}).answer == HOLDS
    assert judged({"a": good, "b": doubtful}).answer == UNDECIDED
    assert judged({"a": good, "b": bad}).decisive[0] == "b"
    assert judged({"a": good, "b": bad}).answer == FAILS
    assert judged({"a": good, "b": bad}).counts == (1, 1)
    assert judged({"a": doubtful, "b": bad}, every=False).answer == UNDECIDED
    assert judged({"a": good, "b": bad}, every=False).answer == HOLDS
    assert judged({"a": bad, "b": bad}, every=False).answer == FAILS


def test_the_more_cases_the_stricter_is_a_single_one_but_not_all_of_them():
    """A case that is barely beyond the line refutes a claim by itself, not as one of many; all of many need no correction."""
    barely = np.exp([0.1, 0.2, 0.16])
    many = {f"case {number}": barely for number in range(20)}
    assert judged({"a": barely}).answer == FAILS
    assert judged({"a": barely, **dict.fromkeys(many, 1 / barely)}).answer == UNDECIDED
    assert judged(dict.fromkeys(many, 1 / barely)).answer == HOLDS
    assert judged({"a": 1 / barely, **many}, every=False).answer == UNDECIDED


def test_a_verdict_says_number_interval_seeds_and_the_reason_that_is_its_own():
    verdict = judged({"a": [0.5, 0.5, 0.5], "b": [0.6, 0.6, 0.6]}, reasons={HOLDS: "Because.", FAILS: "Never."})
    assert str(verdict) == (
        "Holds: in the least favourable of 2 cases, A is 0.6 times B for b (95 % interval 0.6 to 0.6, 3 seeds). Cases for the claim: 2;"
        " against it: 0."
    )
    assert verdict.reason == "Because."
    assert judged({"a": [0.5, 1.5]}, reasons={HOLDS: "Because."}).reason == ""
    assert "no interval from 1 seed" in str(judged({"a": [0.5]}))


def test_what_is_not_random_is_its_own_interval():
    table = pd.DataFrame({"seed": [1], "a": [0.5]})
    assert isinstance(claim().judge(table, exact=True), Verdict)
    assert claim().judge(table, exact=True).answer == HOLDS


@pytest.mark.slow
def test_chance_seldom_decides():
    """Ten cases exactly at the line: by chance at most 2.5 % of claims fail, and fewer hold."""
    rng = np.random.default_rng(7)
    answers = [judged(dict(enumerate(np.exp(rng.normal(size=(10, 6)))))).answer for _ in range(400)]
    assert answers.count(FAILS) <= 0.025 * 400 + 3 * (400 * 0.025 * 0.975) ** 0.5
    assert answers.count(HOLDS) <= 2


def test_every_figure_can_be_found_and_says_what_it_runs_on():
    assert list(PAPERS["psd"].figures) == ["2", "3", "4a", "4b", "5", "6", "7a", "7b"]
    for paper in PAPERS.values():
        for key, figure in paper.figures.items():
            assert find_figure(paper.key, key) == (paper, figure)
            assert figure.claims
            assert figure.differs.endswith(".")
            assert next(iter(figure.sizes)) == "small"
            texts = [size.about for size in figure.sizes.values()] + [claim.text for claim in figure.claims]
            assert [text for text in texts if not text.endswith(".")] == []
            assert [claim.reading for claim in figure.claims if "{value}" not in claim.reading] == []


def test_equal_seeds_give_equal_tables_and_wrong_settings_are_refused():
    pd.testing.assert_frame_equal(run("psd", "2").table, run("psd", "2").table)
    with pytest.raises(SettingError, match="Did you mean 'psd'"):
        run("psdd", "2")
    with pytest.raises(SettingError, match="no size 'papr'; it has small"):
        run("psd", "3", size="papr")
    with pytest.raises(SettingError, match="from 1 to 100"):
        run("psd", "3", seeds=0)
