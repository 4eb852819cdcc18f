"""The inverse question in the background of a page: answers come one by one, it can be stopped, and nothing is lost."""

import math
from threading import Event

import pytest

from dpviz.app import jobs
from dpviz.app.jobs import InverseJob, Keeper
from dpviz.errors import SettingError
from dpviz.mechanisms import Identity, Quadtree
from dpviz.publishing.dry_run import FoundEpsilon, WantedError

PATIENCE = 60
BOTH = {"tree": Quadtree(height=2), "cells": Identity()}


@pytest.fixture
def gate(monkeypatch):
    """A search that ends at once for the tree, and for the cells looks until the gate is opened."""
    opened = Event()

    def search(mechanism, data, wanted, *, before_attempt):
        before_attempt()
        while isinstance(mechanism, Identity) and not opened.wait(0.01):
            before_attempt()
        if wanted.error < 1:
            raise SettingError("no good")
        return FoundEpsilon(epsilon=0.5, error=1.0, note="found")

    monkeypatch.setattr(jobs, "wanted_epsilon", search)
    yield opened
    opened.set()


def job(error=2.0):
    return InverseJob("asked", None, BOTH, WantedError(error=error, level=1))


def test_answers_come_in_order_and_the_search_says_where_it_is(gate):
    made = job()
    made.start(0.5)
    assert made.running
    assert [row["Configuration"] for row in made.rows] == ["tree"]
    assert made.at == "cells"
    assert 0.5 <= made.share <= 1
    gate.set()
    made.stop(wait=True)
    assert not made.running


def test_a_finished_search_has_every_answer(gate):
    gate.set()
    made = job()
    made.start(PATIENCE)
    assert [row["ε"] for row in made.rows] == [0.5, 0.5]
    assert (made.running, made.share, made.at) == (False, 1.0, "")


def test_stopping_keeps_what_is_there(gate):
    made = job()
    made.start(0.2)
    made.stop(wait=True)
    assert len(made.rows) == 1
    assert (made.running, made.at) == (False, "cells")


def test_a_refusal_is_an_answer(gate):
    gate.set()
    made = job(error=0.5)
    made.start(PATIENCE)
    assert [row["note"] for row in made.rows] == ["no good", "no good"]
    assert math.isnan(made.rows[0]["error"])


def test_its_keeper_ends_it_and_another_search_but_no_study(gate):
    keeper, (first, second) = Keeper(), (job(), job())
    for each in (first, second):
        keeper.take(each)
        each.start()
    assert (first.running, second.running) == (False, True)
    keeper.stop_all()
    assert not second.running
