"""The experiments of the papers whose methods are implemented: each figure as a table, as charts, and with a verdict on its claims.

What does not belong here: mechanisms and metrics. An experiment calls those of the package, so that its figure shows what users get.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpviz.papers.figures import Run


def run(
    paper: str,
    figure: str,
    *,
    size: str = "small",
    seeds: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Run:
    """Run a figure of a paper: measure it for several seeds, and judge its claims.

    Args:
        paper: key of the paper, such as "psd"; `dpviz paper list` lists all.
        figure: its number, such as "3" or "4a".
        size: "small" takes seconds, "medium" longer, "paper" is the paper's size; not every figure has all of them.
        seeds: how many; the usual number of the size if None. Equal settings and seeds give equal tables, measured seconds apart.
        progress: called after each seed with the number that is done, and with the number of all; what it raises ends the run.

    Returns:
        The run: `table` has the rows of all seeds, `verdicts` a verdict per claim, and `chart()` draws the figure.

    Raises:
        SettingError: there is no such paper, figure or size, or the number of seeds is out of range.

    >>> from dpviz import papers
    >>> run = papers.run("psd", "2")
    >>> print(run.verdicts[0].answer, run.table.shape)
    holds (12, 4)
    """
    from dpviz.papers.catalogue import find_figure  # noqa: PLC0415  (the figures import all that they measure)
    from dpviz.papers.figures import run_figure  # noqa: PLC0415

    return run_figure(*find_figure(paper, figure), size=size, seeds=seeds, progress=progress)
