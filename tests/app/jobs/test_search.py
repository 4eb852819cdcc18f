"""A search for an epsilon in the background: answers come in order, and stopping keeps what is there."""

import math
from threading import Event

import pytest

from dpviz.app.jobs.search import make_search_job, searched_label
from dpviz.errors import SettingError
from dpviz.publishing.dry_run import FoundEpsilon

PATIENCE = 60


@pytest.fixture
def gate():
    made = Event()
    yield made
    made.set()


def search(gate, error=2.0):
    """A search that ends at once for the tree, and for the cells looks until the gate is opened."""

    def find(label, before_attempt):
        before_attempt()
        while label == "cells" and not gate.wait(0.01):
            before_attempt()
        if error < 1:
            raise SettingError("no good")
        return FoundEpsilon(epsilon=0.5, error=1.0, note="found")

    return make_search_job("question", ["tree", "cells"], find)


def test_answers_come_in_order_and_stopping_keeps_what_is_there(gate):
    job = search(gate)
    job.start(0.2)
    assert job.is_running
    assert [row["Configuration"] for row in job.results] == ["tree"]
    assert searched_label(job) == "cells"
    assert 0.5 <= job.share <= 1
    job.stop(wait=True)
    assert (job.is_running, searched_label(job), len(job.results)) == (False, "cells", 1)


@pytest.mark.parametrize(("error", "epsilon", "note"), [(2.0, 0.5, "found"), (0.5, None, "no good")])
def test_a_finished_search_has_every_answer_and_a_refusal_is_one(gate, error, epsilon, note):
    gate.set()
    job = search(gate, error)
    job.start(PATIENCE)
    assert [(row["ε"], row["note"]) for row in job.results] == [(epsilon, note)] * 2
    assert math.isnan(job.results[0]["error"]) == (epsilon is None)
    assert (job.is_running, job.share, searched_label(job)) == (False, 1.0, "")
