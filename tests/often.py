"""Cases of a test of which a part runs in the ordinary run; the others run with `-m slow`."""

import pytest


def often(cases, kept):
    """All cases, marked slow but for the first `kept`, or for those among `kept`; a tuple is a case of several arguments."""
    cases = list(cases)
    kept = cases[:kept] if isinstance(kept, int) else kept
    return [case if case in kept else rarely(case) for case in cases]


def rarely(case):
    """A case of the slow run."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)


def named(cases, kept):
    """The same for a dict of cases by name, their ids: `kept` are names, or how many of the first."""
    kept = list(cases)[:kept] if isinstance(kept, int) else kept
    return [pytest.param(case, id=name, marks=() if name in kept else pytest.mark.slow) for name, case in cases.items()]


def each_often(cases, kept):
    """The same for a dict of cases by name, each a tuple of several arguments: the first `kept` run in the ordinary run."""
    marks = [()] * kept + [pytest.mark.slow] * len(cases)
    return [pytest.param(*case, id=name, marks=mark) for (name, case), mark in zip(cases.items(), marks, strict=False)]
