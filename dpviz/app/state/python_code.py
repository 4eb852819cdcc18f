"""A page as Python: the code that reads the same data and makes the same releases."""

from __future__ import annotations

from dpviz.app.state.page import Page
from dpviz.app.state.run import Run
from dpviz.app.state.values import CURATE
from dpviz.publishing.code import CodeRun, write_python

_TITLES = ("Right map", "Left map")


def write_code(page: Page) -> str:
    """Write the Python of what a page shows: seeded runs in Teach, in Curate the release with new noise, which has no seed.

    Raises:
        DpvizError: something is missing, or does not fit together; the text says what, as the page does.

    >>> from dpviz.app.state.kinds import AREAS
    >>> from dpviz.app.state.page import usual_page
    >>> print(write_code(usual_page(AREAS)), end="")
    import dpviz as dv
    <BLANKLINE>
    areas = dv.load_sample("made_up_city")
    <BLANKLINE>
    # Seeded noise: a simulation, not private.
    mechanism = dv.RegionTree()
    budget = dv.PureBudget("0.5")
    release = mechanism.release(areas, budget, dv.Entropy.seeded(1))
    """
    inputs, curates = page.draft.to_inputs(), page.draft.mode == CURATE
    runs = page.shown_runs
    titles = _TITLES if len(runs) == len(_TITLES) else [f"Run {number}" if len(runs) > 1 else "" for number in range(1, len(runs) + 1)]
    return write_python(
        inputs,
        [_code_of(page, run, title) for run, title in zip(runs, titles, strict=True)],
        unit=inputs.data.unit if curates else None,
    )


def _code_of(page: Page, run: Run, title: str) -> CodeRun:
    family, mode = page.draft.kind.family, page.draft.mode
    mechanism = run.build(family)
    budget = run.budget_for(mechanism, mode=mode)
    return CodeRun(mechanism=mechanism, budget=budget, seed=None if mode == CURATE else run.seed, title=title)
