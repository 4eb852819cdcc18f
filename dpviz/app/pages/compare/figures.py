"""Which figure of which queries the Compare page shows, and how both are named on screen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dpviz.app.pages.compare.kinds import compared_of
from dpviz.app.pages.compare.state import COMPARE, CompareData
from dpviz.app.session.widgets import widget_for
from dpviz.evaluation.study import accounting_of
from dpviz.mechanisms.base import AnyMechanism
from dpviz.view.study_figures import FIGURES, Figure

USUAL_FIGURE = "n3"


def figures_of(data: CompareData) -> list[str]:
    """Return the keys of the figures that this kind of data has."""
    return [name for name, figure in FIGURES.items() if not figure.families or data.family.name in figure.families]


def shown_figure(data: CompareData) -> str:
    """Return the key of the chosen figure, or of the usual one if the chosen one belongs to the other kind of data."""
    chosen: str = COMPARE.config().figure
    return chosen if chosen in figures_of(data) else USUAL_FIGURE


def shown_workload(names: list[str], figure: str) -> str:
    """Return the chosen workload, or the usual one of this figure if there is none of that name."""
    chosen: str = COMPARE.config().workload
    return chosen if chosen in names else usual_workload(names, FIGURES[figure])


def usual_workload(names: list[str], figure: Figure) -> str:
    """Return the workload that is shown first: random boxes, or the finest level for trips and for figures by level."""
    by_area = [name for name in names if not name.startswith("size ")]
    return "random" if "random" in names and not figure.by_level else (by_area or names)[-1]


def figure_controls(names: list[str], data: CompareData, columns: Sequence[Any]) -> tuple[str, str]:
    """Ask which figure of which workload is shown; return the names of both.

    Args:
        names: of the study's workloads.
        data: the data of the study.
        columns: where the two questions are asked.
    """
    figure = shown_figure(data)
    workload = shown_workload(names, figure)
    left, right = columns
    left.selectbox(
        "Error",
        figures_of(data),
        format_func=lambda name: figure_title(name, data, workload),
        help="On sparse data judge by an error without smoothing 20: with it, releasing zero everywhere does well.",
        **widget_for("compare figure", figure, lambda name: COMPARE.change(figure=name, target=None)),
    )
    shown = widget_for("compare workload", workload, lambda name: COMPARE.change(workload=name))
    right.selectbox("Queries", names, format_func=lambda name: workload_words(name, data), **shown)
    return figure, workload


def figure_title(name: str, data: CompareData, workload: str = "") -> str:
    """Return a figure's title with its unit, as it is written on screen; without a workload, for blocks or pairs."""
    return FIGURES[name].filled(data.unit, compared_of(data).name_places(workload)).title


def figure_unit(name: str, data: CompareData, workload: str) -> str:
    """Return the unit of a figure: what its title has in brackets."""
    return figure_title(name, data, workload).rpartition("(")[2].rstrip(")").removeprefix("number of ").split(" of ")[0]


def figure_column(name: str, data: CompareData, workload: str) -> str:
    """Return the title over a figure's column of a table."""
    return FIGURES[name].filled(data.unit, compared_of(data).name_places(workload)).column


def figure_about(name: str, data: CompareData, workload: str = "") -> str:
    """Return a figure's definition, one sentence; empty for errors whose title says all. Without a workload, for blocks or pairs."""
    return FIGURES[name].filled(data.unit, compared_of(data).name_places(workload)).about


def workload_words(name: str, data: CompareData) -> str:
    """Return the name of a workload as it is written on screen."""
    if name.startswith("size "):
        return f"{compared_of(data).name_places(name)} with {size_words(name)} {data.unit} in truth"
    return compared_of(data).name_workload(name)


def describe_accounting(mechanisms: Mapping[str, AnyMechanism], gaussian: Collection[str], data: CompareData) -> str:
    """Say how each configuration finds its noise for ε and δ, and whether that differs; "" if none of them has the choice.

    Args:
        mechanisms: by their name on screen.
        gaussian: names of those with Gaussian noise, where the kind of the budget decides.
        data: the public data.
    """
    labels: dict[str, list[str]] = {}
    for label, mechanism in mechanisms.items():
        if accounting := accounting_of(mechanism, data.data, gaussian=label in gaussian):
            labels.setdefault(accounting, []).append(label)
    if len(labels) < 2:
        return "".join(f"Accounting of ε and δ: {accounting}." for accounting in labels)
    listed = "; ".join(f"{accounting} for {', '.join(named)}" for accounting, named in labels.items())
    return (
        f"Accounting of ε and δ: {listed}. Part of the difference is this, not the method: exact needs 4 to 6 % less noise than tight, and"
        " tight less than paper. Vary the setting Accounting on the left to compare alike."
    )


def size_words(name: str) -> str:
    """Return a group of true counts as it is written on screen.

    >>> size_words("size 1000-9999")
    '1,000–9,999'
    """
    return "–".join(f"{int(end):,}" for end in name.removeprefix("size ").split("-"))
