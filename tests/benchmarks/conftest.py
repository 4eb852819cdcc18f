"""One table of all speed ratios, printed at the end of the run."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

LINES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LINES] = []


@pytest.fixture
def line(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Add a line to the table: what, our seconds, the other's seconds and name, the bar on ours / theirs (None: no bar).

    A test that broke a bar fails at its end, when all of its lines are there.
    """
    broken = []

    def add(what: str, ours: float, theirs: float, unit: str, bar: float | None = None) -> None:
        against = f"{ours / theirs:8.3f} x {unit:<34} {theirs:9.4f} s"
        request.config.stash[LINES].append(f"{what:<58} {ours:9.4f} s {against}  {'' if bar is None else f'bar {bar:.3f}'}")

        if bar is not None and ours > bar * theirs:
            broken.append(what)

    yield add
    assert broken == []


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.stash[LINES]:
        terminalreporter.section("speed: ours, ratio, theirs")
        for text in config.stash[LINES]:
            terminalreporter.write_line(text.rstrip())
