"""A search for an epsilon in the background: answers come in order, and stopping keeps what is there."""

import math
from threading import Event

import pytest

from dpviz.app.jobs import search as search_module
from dpviz.app.jobs.search import Search, make_search_job, searched_label
from dpviz.errors import SettingError
from dpviz.mechanisms import Identity, Quadtree
from dpviz.publishing.dry_run import FoundEpsilon, WantedError

PATIENCE = 60


@pytest.fixture
def gate(monkeypatch):
    """A search that ends at once for the tree, and for the cells looks until the gate is opened."""
    opened = Event()

    def find(mechanism, data, wanted, *, before_attempt):
        before_attempt()
        while isinstance(mechanism, Identity) and not opened.wait(0.01):
            before_attempt()
        if wanted.error < 1:
            raise SettingError("no good")
        return FoundEpsilon(epsilon=0.5, error=1.0, note="found")

    monkeypatch.setattr(search_module, "find_epsilon", find)
    yield opened
    opened.set()


def search(error=2.0):
    mechanisms = {"tree": Quadtree(height=2), "cells": Identity()}
    return make_search_job("question", Search(data=None, mechanisms=mechanisms, wanted=WantedError(error=error, level=1)))


def test_answers_come_in_order_and_stopping_keeps_what_is_there(gate):
    job = search()
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
    job = search(error)
    job.start(PATIENCE)
    assert [(row["ε"], row["note"]) for row in job.results] == [(epsilon, note)] * 2
    assert math.isnan(job.results[0]["error"]) == (epsilon is None)
    assert (job.is_running, job.share, searched_label(job)) == (False, 1.0, "")
