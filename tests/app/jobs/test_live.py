"""Runs that follow the controls: each question is answered once, the newest one soon, and a run that is not wanted any more ends."""

import time
from threading import Event
from unittest.mock import Mock

import pytest

from dpviz.app.jobs import live as live_module
from dpviz.app.jobs.job import StoppedError
from dpviz.app.jobs.keeper import Keeper
from dpviz.app.jobs.live import LiveRuns
from dpviz.app.jobs.results import Results
from dpviz.errors import SettingError
from dpviz.mechanisms import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from tests.app.browse import until
from tests.release_cases import points_of

PATIENCE = 60


class Gate:
    """Work that begins, waits until the gate is opened, checks, and only then has a result."""

    def __init__(self, result="made"):
        self.result, self.began, self.opened, self.ended = result, Event(), Event(), Event()

    def __call__(self, check):
        self.began.set()
        assert self.opened.wait(PATIENCE)
        try:
            check()
        except StoppedError:
            self.ended.set()
            raise
        return self.result


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.opened.set()


@pytest.fixture
def live():
    runs = LiveRuns()
    yield runs
    runs.stop()


def answer(live, **works):
    live.ask(works)
    live.wait(PATIENCE)
    return [live.result(question) for question in works]


def giving(result):
    return Mock(return_value=result)


class TestAnswers:
    def test_a_run_answers_all_of_its_questions(self, live):
        assert answer(live, one=giving(1), two=giving(2)) == [1, 2]
        assert (live.running, live.started) == (None, 1)

    def test_what_is_answered_is_not_made_again(self, live):
        first, second = giving(1), giving(2)
        answer(live, one=first)
        assert answer(live, one=first, two=second) == answer(live, two=second, one=first)[::-1] == [1, 2]
        assert (first.call_count, second.call_count, live.started) == (1, 1, 2)

    def test_asking_the_same_again_leaves_the_run_alone(self, live, gate):
        live.ask({"one": gate})
        run = live.running
        live.ask({"one": gate})
        assert live.running is run
        gate.opened.set()
        live.wait(PATIENCE)
        assert (live.result("one"), live.started) == ("made", 1)

    def test_asking_the_same_again_when_a_part_is_answered_leaves_the_run_alone(self, live, gate):
        works = {"quick": giving("quick"), "slow": gate}
        live.ask(works)
        until(lambda: live.result("quick"), "the first answer")
        run = live.running
        live.ask(works)
        assert live.running is run
        gate.opened.set()
        assert answer(live, **works) == ["quick", "made"]
        assert live.started == 1

    def test_results_beyond_the_room_are_dropped_but_never_the_newest_few(self):
        live = LiveRuns(weigh=lambda size: size, room=10)
        for size in range(1, 8):
            answer(live, **{f"of {size}": giving(size)})
        assert [live.result(f"of {size}") for size in range(1, 8)] == [None, None, None, 4, 5, 6, 7]
        small = LiveRuns(weigh=lambda size: size, room=10)
        for size in range(1, 8):
            answer(small, **{f"of {size}": giving(1)})
        assert all(small.result(f"of {size}") == 1 for size in range(1, 8))

    def test_a_result_that_is_still_asked_for_outlives_those_that_are_not(self):
        live = LiveRuns(weigh=lambda _: 100, room=10)
        kept = giving("kept")
        for number in range(9):
            assert answer(live, kept=kept, **{f"other {number}": giving(number)}) == ["kept", number]
        assert kept.call_count == 1


class TestNewerQuestions:
    def test_a_newer_question_ends_the_run_under_way_at_its_next_check(self, live, gate):
        never = giving("never")
        live.ask({"old": gate, "later": never})
        assert gate.began.wait(PATIENCE)
        assert answer(live, new=giving("new")) == ["new"]
        gate.opened.set()
        assert gate.ended.wait(PATIENCE)
        assert (live.result("old"), live.refusal("old"), live.is_given_up("old")) == (None, None, False)
        assert not never.called

    def test_a_run_that_never_checks_has_no_result_once_it_is_replaced(self, live):
        began, go_on, over = Event(), Event(), Event()

        def deaf(check):
            began.set()
            go_on.wait(PATIENCE)
            over.set()
            return "old"

        live.ask({"old": deaf})
        assert began.wait(PATIENCE)
        answer(live, new=giving("new"))
        go_on.set()
        assert over.wait(PATIENCE)
        assert answer(live, newer=giving("newer")) == ["newer"]
        assert live.result("old") is None

    def test_a_question_without_work_ends_the_run_under_way(self, live, gate):
        live.ask({"old": gate})
        live.ask({})
        gate.opened.set()
        assert live.running is None

    def test_of_questions_that_come_all_at_once_only_the_last_is_worked_on(self, live):
        works = [giving(number) for number in range(20)]
        with live._lock:  # no run can begin before the last question
            for number, work in enumerate(works):
                live.ask({number: work})
        live.wait(PATIENCE)
        assert live.result(19) == 19
        assert [work.call_count for work in works] == [0] * 19 + [1]
        assert live.started == 1

    def test_soon_after_a_run_no_other_begins(self, live, monkeypatch):
        monkeypatch.setattr(live_module, "SECONDS_BETWEEN", 600.0)
        answer(live, first=giving("first"))
        for number in range(20):
            live.ask({number: giving(number)})
        assert live.started == 1
        assert list(live.running.of.works) == [19]

    def test_twenty_quick_questions_start_few_runs_and_the_last_one_is_answered(self, live, monkeypatch):
        monkeypatch.setattr(live_module, "SECONDS_BETWEEN", 0.25)
        start = time.monotonic()
        for number in range(20):
            live.ask({number: giving(number)})
            live.wait(0.025)
        live.wait(PATIENCE)
        assert live.result(19) == 19
        assert 2 <= live.started <= 1 + (time.monotonic() - start) / 0.25, "three, or more only if a busy computer asks slowly"


class TestStopping:
    def test_what_is_stopped_by_hand_is_given_up_until_it_is_resumed(self, live, gate):
        live.ask({"one": gate})
        assert gate.began.wait(PATIENCE)
        live.stop()
        gate.opened.set()
        assert gate.ended.wait(PATIENCE)
        assert live.is_given_up("one")
        assert answer(live, one=gate) == [None]
        assert live.started == 1
        live.resume()
        assert answer(live, one=gate) == ["made"]
        assert not live.is_given_up("one")

    def test_stopping_ends_the_wait_for_the_next_run(self, live, monkeypatch):
        monkeypatch.setattr(live_module, "SECONDS_BETWEEN", 600.0)
        answer(live, first=giving("first"))
        live.ask({"second": giving("second")})
        live.stop()
        live.wait(PATIENCE)
        assert (live.running, live.started, live.result("second")) == (None, 1, None)

    def test_a_run_that_ends_with_its_session_is_made_when_the_page_is_back(self, live, gate):
        keeper = Keeper()
        live.ask({"one": gate})
        assert gate.began.wait(PATIENCE)
        assert keeper.take(live.running)
        keeper.stop_all()
        assert answer(live, one=giving("made")) == ["made"]
        assert not live.is_given_up("one")

    def test_stopping_nothing_changes_nothing(self, live):
        live.stop()
        assert answer(live, one=giving(1)) == [1]


class TestFailures:
    @pytest.mark.parametrize(
        ("failure", "text"),
        [
            (SettingError("The height is too large."), "The height is too large."),
            (ValueError("Rosa"), "The run failed unexpectedly (ValueError)."),
            (MemoryError("Rosa"), "The run failed unexpectedly (MemoryError)."),
        ],
    )
    def test_a_refusal_is_kept_as_it_is_worded_and_of_another_failure_only_its_type(self, live, failure, text):
        failing = Mock(side_effect=failure)
        assert answer(live, bad=failing, good=giving("good")) == [None, "good"]
        assert (live.refusal("bad"), live.refusal("good")) == (text, None)
        answer(live, bad=failing)
        assert failing.call_count == 1, "it would fail again"


class TestInterruptedEntropy:
    def test_the_bits_are_the_same_and_each_batch_is_checked(self):
        check = Mock()
        plain, checked = Entropy.seeded(7), Entropy.seeded(7).interrupted_by(check)
        for take in (
            lambda bits: bits.words(5),
            lambda bits: bits.bits(100),
            lambda bits: bits.below(1000, 50),
            lambda bits: bits.words(3),
        ):
            before = check.call_count
            assert take(plain).tolist() == take(checked).tolist()
            assert check.call_count > before
        assert checked.simulation
        assert not Entropy.system().interrupted_by(check).simulation

    def test_a_release_is_the_same_and_ends_by_the_exception_of_the_check(self):
        points, mechanism, calls = points_of(400), Quadtree(height=4), Mock()
        plain = mechanism.release(points, PureBudget(1), Entropy.seeded(3))
        checked = mechanism.release(points, PureBudget(1), Entropy.seeded(3).interrupted_by(calls))
        assert (plain.noisy == checked.noisy).all()
        assert calls.call_count > 4
        stopping = Mock(side_effect=[None] * 3 + [StoppedError])
        with pytest.raises(StoppedError):
            mechanism.release(points, PureBudget(1), Entropy.seeded(3).interrupted_by(stopping))
        assert stopping.call_count == 4

    def test_a_replaced_run_ends_in_the_middle_of_its_release(self, live):
        points, began, ended = points_of(400), Event(), Event()

        def work(check):
            def slow_check():
                began.set()
                until(lambda: live.result("new"), "the answer to the newer question")
                check()

            try:
                return Quadtree(height=4).release(points, PureBudget(1), Entropy.seeded(3).interrupted_by(slow_check))
            finally:
                ended.set()

        live.ask({"old": work})
        assert began.wait(PATIENCE)
        assert answer(live, new=giving("new")) == ["new"]
        assert ended.wait(PATIENCE)
        assert (live.result("old"), live.refusal("old")) == (None, None)


def test_sessions_share_results_where_the_page_says_so():
    shared, made = Results(10), []
    works = {"question": lambda check: made.append(1) or len(made)}
    first, second, own = LiveRuns(), LiveRuns(), LiveRuns()
    for runs, where in ((first, shared), (second, shared), (own, None)):
        runs.ask(works, where)
        runs.wait(10)
    assert [runs.result("question") for runs in (first, second, own)] == [1, 1, 2]
    assert (second.started, own.started) == (0, 1)
