"""The figures that a study can be judged by: titles with units, definitions, kinds of data and kinds of axes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpviz.view.error_axis import COUNT, LOG, PERCENT, Scale

__all__ = ["FIGURES", "Figure"]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the rows of a study.

    Attributes:
        title: with its unit; {unit} stands for what is counted, {places} for the places that are compared: blocks, boxes, pairs or regions.
        column: the title over a column of a table, shorter; empty where the title is short.
        about: its definition, with the same words in braces; empty where the title says all.
        scale: of its axis.
        families: kinds of data that have it: "points", "trips", "areas"; empty for all of them.
        by_level: whether a level is shown first, instead of random boxes.
    """

    title: str
    column: str = ""
    about: str = ""
    scale: Scale = LOG
    families: tuple[str, ...] = ()
    by_level: bool = False

    def filled(self, unit: str, places: str) -> Figure:
        """Return the figure with its texts for data in this unit, for such places; its column, too, has a title, with a capital letter."""
        title, column, about = (text.format(unit=unit, places=places) for text in (self.title, self.column or self.title, self.about))
        return replace(self, title=title, column=column[:1].upper() + column[1:], about=about)


FIGURES = {
    "n3": Figure(title="mean relative error, smoothing N/1000 (%)"),
    "mae": Figure(title="mean absolute error ({unit})"),
    "mean20": Figure(title="mean relative error, smoothing 20 (%)"),
    "median20": Figure(title="median relative error, smoothing 20 (%)"),
    "max_error": Figure(
        title="maximum error of a pair ({unit})",
        column="maximum error ({unit})",
        about="Maximum error: the largest difference between released and true {unit} of one pair.",
        families=("trips",),
    ),
    "false_discovery": Figure(
        title="false discovery rate (% of released pairs)",
        column="false discovery rate (%)",
        about="False discovery rate: released pairs that have no {unit} in truth, in percent of all released pairs.",
        scale=PERCENT,
        families=("trips",),
    ),
    "false_negative": Figure(
        title="false negative rate (% of true pairs)",
        column="false negative rate (%)",
        about="False negative rate: pairs that have {unit} in truth but are not released, in percent of all pairs with {unit} in truth.",
        scale=PERCENT,
        families=("trips",),
    ),
    "false_positives": Figure(
        title="false positives (number of {places})",
        column="false positives ({places})",
        about="False positives: {places} without {unit} that are released as 0.5 or more.",
        scale=COUNT,
        families=("points", "areas"),
        by_level=True,
    ),
    "false_negatives": Figure(
        title="false negatives (number of {places})",
        column="false negatives ({places})",
        about="False negatives: {places} with {unit} that are released as less than 0.5.",
        scale=COUNT,
        families=("points", "areas"),
        by_level=True,
    ),
}
