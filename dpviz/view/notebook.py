"""Objects as HTML for notebooks: facts, a map as SVG, and tables. It runs no script and loads nothing; every text is escaped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import pandas as pd

from dpviz.amounts import MISSING, format_count, format_decimal, format_percent
from dpviz.cards import HtmlCard
from dpviz.evaluation.area_metrics import AreaEvaluation
from dpviz.evaluation.metrics import Evaluation
from dpviz.evaluation.study import Study
from dpviz.evaluation.trip_metrics import TripEvaluation
from dpviz.privacy.receipt import PRIVATE, Receipt
from dpviz.release.area_release import AreaRelease
from dpviz.release.base import NoisyRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import NOISE, verdict
from dpviz.space.categories import Categories
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from dpviz.view.report import load_template
from dpviz.view.report_maps import Picture, can_draw, draw_areas, draw_domain, draw_points, draw_regions, draw_trips
from dpviz.view.report_numbers import name_step

Pairs = list[tuple[str, str]]
CURATOR_ONLY = "For the curator only: these errors were computed from the true counts. Do not publish this notebook with them."
_MOST_ROWS = 60  # of a table
_READ_AS = {
    "ids": "ids of slots",
    "bins": "numbers, which lie in bins without their upper edges",
    "hour": "times, of which the hour counts in the time zone {zone}",
    "weekday": "times, of which the day of the week counts in the time zone {zone}",
    "month": "times, of which year and month count in the time zone {zone}",
    "value": "numbers, which are cut to public bounds and added up; each record is split between the two slots",
}
_UNITS = {"record": "each record", "trip": "each trip", "person": "each person"}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of texts.

    Attributes:
        title: of the table.
        columns: names of the columns.
        rows: texts, one per column.
        texts: indices of the columns that are no numbers.
        exact: index of the column of fractions, which may be very long; None for none.
        note: what must be said of it; "" for nothing.
        open: whether it is unfolded at first.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: Sequence[int] = ()
    exact: int | None = None
    note: str = ""
    open: bool = False


@dataclass(frozen=True, kw_only=True)
class Card:
    """What a notebook shows of an object; nothing is escaped yet.

    Attributes:
        title: what it is.
        warning: what must be seen before everything else; "" for nothing.
        headline: a sentence or two; "" for none.
        facts: names and values.
        picture: a map; None for none.
        caption: what the map shows.
        tables: tables under the map.
    """

    title: str
    warning: str = ""
    headline: str = ""
    facts: Pairs
    picture: Picture | None = None
    caption: str = ""
    tables: Sequence[Table] = ()


def write_html(shown: object) -> str:
    """Write an object as HTML.

    Args:
        shown: a domain, regions, release, receipt, evaluation or study.
    """
    return _render(make_card(shown))


def write_declared(name: str, declared: Mapping[str, Any]) -> str:
    """Write what was declared of private counts as HTML.

    Args:
        name: of their class.
        declared: `frame`, `unit` and `contributions`.
    """
    first = declared["frame"][0] if isinstance(declared["frame"], tuple) else declared["frame"]
    frame = make_card(first) if isinstance(first, HtmlCard) else Card(title="Frame", facts=[("Frame", str(first))])
    facts = [("Protected", _describe_unit(declared["unit"], declared["contributions"])), *frame.facts]
    headline = "Private counts. Only what was declared of them is shown here; a mechanism makes a release of them."
    return _render(Card(title=name, headline=headline, facts=facts, picture=frame.picture, caption=frame.caption))


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _describe_unit(unit: str, contributions: int) -> str:
    return f"{_UNITS.get(unit, unit)}{f', with at most {contributions:,} records' if contributions > 1 else ''}"


def _render(card: Card) -> str:
    """Render a card. Names in it that a notebook must not have twice end in a digest of the card."""
    key = hashlib.sha256(repr(card).encode(errors="replace")).hexdigest()[:10]
    return str(load_template("notebook.html.jinja").render(card=card, key=key))


@singledispatch
def make_card(shown: object) -> Card:
    """Choose what is shown of an object."""
    raise TypeError(f"There is no view of {type(shown).__name__}.")


@make_card.register
def _(domain: Domain) -> Card:
    width, height = domain.cell_size
    unit = "degrees" if domain.is_geographic else "units of the plane"
    facts = [
        ("Bounds", "west {}, south {}, east {}, north {}".format(*(f"{side:.10g}" for side in domain.bounds))),
        ("CRS", domain.crs or "none: a plain plane"),
        ("Lattice", f"{domain.side:,} × {domain.side:,} cells of {width:.4g} × {height:.4g} {unit}"),
    ]
    if domain.mask is not None:
        share = format_percent(domain.share_open)
        facts.append(("Mask", f"records can be in {share} of the cells; grey: nobody can be there, as declared"))
    return Card(title="Domain", facts=facts, picture=draw_domain(domain), caption="The public rectangle in which records are counted.")


@make_card.register
def _(regions: Regions) -> Card:
    levels = [f"{format_count(regions.size(level))} {name}" for level, name in enumerate(regions.levels, start=1)]
    level = max((level for level in range(1, regions.depth + 1) if can_draw(regions, level)), default=0)
    polygons = [name for level, name in enumerate(regions.levels, start=1) if regions.outlines(level) is not None]
    facts = [("Levels", ", ".join(levels)), ("Shapes", f"polygons of {', '.join(polygons)}" if polygons else "none")]
    return Card(
        title="Regions",
        facts=facts,
        picture=draw_regions(regions, level) if level else None,
        caption=f"Level {level}, {regions.levels[level - 1]}." if level else "",
    )


@make_card.register
def _(categories: Categories) -> Card:
    levels = [f"{format_count(categories.size(level))} {name}" for level, name in enumerate(categories.levels, start=1)]
    read = _READ_AS[categories.read_as].format(zone=categories.zone)
    others = "in a slot of their own" if categories.other else "left out"
    return Card(title="Categories", facts=[("Levels", ", ".join(levels)), ("Entries are", read), ("Records in no slot", others)])


@make_card.register
def _(release: PointRelease) -> Card:
    picture = draw_points(release)
    what = f"{_capitalise(picture.title)}, as released, in {picture.shapes:,} partitions (level {picture.level})."
    what += f" {picture.note}" if picture.note else ""
    what += f" Intervals of boxes that cut partitions hold in {release.says_of_cut_boxes}." if release.states_noise else ""
    sizes = f"{format_count(len(release.tree.leaves))} partitions at the finest level, {release.height + 1} levels"
    return _make_release_card(release, "Release of points", sizes, picture, what)


@make_card.register
def _(release: TripRelease) -> Card:
    picture = draw_trips(release)
    sizes = f"{format_count(len(release.stages[-1].count))} pairs of regions at the finest level, {release.depth} levels"
    what = ""
    if picture is not None:
        shown = f"The {picture.shapes:,} largest of {picture.total:,} released pairs of different regions"
        what = f"{shown}, {release.tree.title(2 * picture.level)}: faint at the origin, strong at the destination."
    return _make_release_card(release, "Release of trips", sizes, picture, what)


@make_card.register
def _(release: AreaRelease) -> Card:
    grades = {level.level: level.grade for level in verdict(release).levels}
    pictures = draw_areas(release)
    readable = [picture for picture in pictures if grades.get(picture.level) != NOISE]
    chosen = readable or pictures[:1]
    picture = chosen[-1] if chosen else None
    sizes = f"{format_count(release.regions.size(release.regions.depth))} regions at the finest level, {release.regions.depth} levels"
    what = "" if picture is None else f"{_capitalise(picture.title)}, by {release.regions.levels[picture.level - 1]}."
    return _make_release_card(release, "Release of areas", sizes, picture, what)


@make_card.register
def _(release: NoisyRelease) -> Card:
    sizes = f"{format_count(release.finest_numbers)} numbers at the finest level, {release.level_number(None) + 1} levels"
    return _make_release_card(release, f"Release of {release.family}", sizes, None, "")


def _make_release_card(release: NoisyRelease, title: str, sizes: str, picture: Picture | None, what: str) -> Card:
    receipt, found = release.receipt, verdict(release)
    facts = [
        ("Mechanism", f"{release.mechanism}"),
        ("Numbers", sizes),
        ("Protected", _describe_unit(receipt.unit, receipt.contributions)),
        ("Privacy loss", _describe_spent(receipt)),
    ]
    if release.interval_note:
        facts.append(("Intervals", release.interval_note))
    warning = "" if release.status == PRIVATE else f"{release.status}. Not for publication."
    rows = [
        (level.name, format_count(level.parts), format_decimal(level.mean, 3), format_decimal(level.stddev, 3), level.grade)
        for level in found.levels
    ]
    columns = ("Level", "Numbers", f"Average, in {found.counted}", "Std. deviation", "Verdict")
    levels = Table(title="Levels and their noise", columns=columns, rows=rows, texts=(0, 4), note=found.rule)
    tables = (levels, _tabulate_steps(receipt, [name_step(release, step.level) for step in receipt.steps], "Receipt"))
    return Card(title=title, warning=warning, headline=found.headline, facts=facts, picture=picture, caption=what, tables=tables)


def _describe_spent(receipt: Receipt) -> str:
    if not receipt.private:
        return "not bounded"
    return f"{receipt.spent}, of {receipt.total}" if receipt.spent != receipt.total else str(receipt.spent)


@make_card.register
def _(receipt: Receipt) -> Card:
    facts = [
        ("Protected", _describe_unit(receipt.unit, receipt.contributions)),
        ("Neighbours", receipt.neighbours),
        ("Privacy loss", _describe_spent(receipt)),
        ("Taken as public", "; ".join(receipt.unprotected)),
    ]
    facts += [("Note", note) for note in receipt.notes]
    levels = [MISSING if step.level is None else str(step.level) for step in receipt.steps]
    warning = "" if receipt.private else "NOT PRIVATE. Not for publication."
    return Card(title="Receipt", warning=warning, facts=facts, tables=[_tabulate_steps(receipt, levels, "Steps", unfolded=True)])


def _tabulate_steps(receipt: Receipt, levels: list[str], title: str, *, unfolded: bool = False) -> Table:
    """Make the table of what each step spent, exactly."""
    rows = [
        (
            f"{step.purpose}{' †' if step.replaces_later else ''}",
            level,
            str(step.amount),
            step.noise,
            format_decimal(step.scale, 6),
            format_decimal(step.sensitivity, 6),
            MISSING if step.counts is None else format_count(step.counts),
        )
        for step, level in zip(receipt.steps, levels, strict=True)
    ]
    rows.append(("together", "", str(receipt.used), "", "", "", ""))
    columns = ("For", "Level", f"{receipt.currency}, exactly", "Noise", "Scale", "Sensitivity", "Numbers")
    note = "† In place of later steps, so not added up." if any(step.replaces_later for step in receipt.steps) else ""
    return Table(title=title, columns=columns, rows=rows, texts=(0, 1, 3), exact=2, note=note, open=unfolded)


@make_card.register
def _(evaluation: Evaluation) -> Card:
    return _make_evaluation_card("Evaluation", evaluation.by_zoom, "Errors in equal blocks, by zoom level")


@make_card.register
def _(evaluation: TripEvaluation) -> Card:
    return _make_evaluation_card("Evaluation of trips", evaluation.by_stage, "Errors by stage")


@make_card.register
def _(evaluation: AreaEvaluation) -> Card:
    return _make_evaluation_card("Evaluation of areas", evaluation.by_level, "Errors by level")


def _make_evaluation_card(title: str, errors: pd.DataFrame, what: str) -> Card:
    texts = [index for index, name in enumerate(errors.columns) if not pd.api.types.is_numeric_dtype(errors[name])]
    rows = [[_format_value(value) for value in row] for row in errors.head(_MOST_ROWS).itertuples(index=False)]
    note = f"The first {_MOST_ROWS} of {len(errors):,} rows." if len(errors) > _MOST_ROWS else ""
    table = Table(title=what, columns=list(errors.columns), rows=rows, texts=texts, note=note, open=True)
    return Card(title=title, warning=CURATOR_ONLY, facts=[], tables=[table])


def _format_value(value: Any) -> str:
    if value is pd.NA or value is None:
        return MISSING
    return str(value) if isinstance(value, str | int | np.integer) else format_decimal(value)


@make_card.register
def _(study: Study) -> Card:
    facts = [
        ("Mechanisms", ", ".join(study.mechanisms)),
        ("Epsilons", ", ".join(format_decimal(epsilon) for epsilon in study.epsilons)),
        ("Questions", ", ".join(study.questions.names())),
        ("Runs", f"{len(study):,}: {len(study.mechanisms)} mechanisms, {len(study.epsilons)} epsilons, {study.repeats:,} times"),
    ]
    rows = [(label, mechanism.key, repr(mechanism)) for label, mechanism in study.mechanisms.items()]
    table = Table(title="Mechanisms", columns=("Label", "Key", "Settings"), rows=rows, texts=(0, 1, 2), open=True)
    return Card(title="Study", headline="compare(study) makes the runs; tidy and summary make tables of them.", facts=facts, tables=[table])
