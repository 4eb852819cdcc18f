"""The strip under the maps of points: level, budget and error of each zoom level, with what another split would give."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpviz.amounts import format_decimal
from dpviz.app.components.strip import StripLevel
from dpviz.app.modes.second_run import ShownRun
from dpviz.app.modes.strip import StripParts
from dpviz.app.pages.points.state import POINTS, Drawn
from dpviz.evaluation.expected_split import expected_of_split
from dpviz.evaluation.metrics import Evaluation
from dpviz.families import POINT_FAMILY
from dpviz.release.point_release import PointRelease
from dpviz.release.squares import FINEST_ZOOM, is_quartered, level_like, zoom_like
from dpviz.release.verdict import Verdict, square_verdict, with_false_positives
from dpviz.samples.points import POINT_SAMPLES
from dpviz.space.domain import Domain, area_of_bounds

FEW_SQUARES = 16
EASY_ZOOM = 6  # zoom level whose squares can be told apart on a map


def make_strip(shown: ShownRun, level: int) -> StripParts:
    """Return the strip of the run of the right map at a level that the maps show."""
    what: Drawn = shown.first
    zooms = zooms_of(what.release.domain)
    return StripParts(
        about="Levels are equal squares of the domain; the map shows the mechanism's own partitions.",
        frame=what.data.counts.domain,
        levels=make_levels(what, None if shown.before is None else shown.before.evaluation),
        shown=shown_zoom(what.release, level),
        place_shares=lambda shares: [share.level if share.level in zooms else None for share in shares],
        expect=lambda mechanism, budget: expected_of_split(what.release, mechanism, budget, zooms, what.data.counts),
        choose=lambda zoom: POINTS.change(view={"level": level_like(what.release, zoom)}),
    )


def zooms_of(domain: Domain) -> range:
    """Return the zoom levels of the strip. They depend on the domain alone, so that no column comes or goes with the budget."""
    return range(min(domain.order, FINEST_ZOOM) + 1)


def shown_zoom(release: PointRelease, level: int) -> int:
    """Return the zoom level that is shown: the chosen one, or one that is easy to see, the same whatever the budget.

    Where partitions depend on the data, a small budget may have none so small; elsewhere the finest partitions are the limit.

    Args:
        release: public.
        level: the level of its tree that the maps show.
    """
    chosen, finest = POINTS.view.level, zooms_of(release.domain)[-1]
    if chosen is not None:
        return zoom_like(release, level) if level == chosen else min(chosen, finest)
    mechanism = POINT_FAMILY.choices[release.mechanism].from_settings(release.settings)
    return min(EASY_ZOOM, finest if mechanism.depends_on_data(release) else finest_zoom(release))


def finest_zoom(release: PointRelease) -> int:
    """Return the finest zoom level that has at most about as many squares as the release has partitions."""
    finest = release.height if is_quartered(release) else math.ceil(math.log(max(len(release.tree.leaves), 1), 4))
    return min(finest, zooms_of(release.domain)[-1])


def verdict_of(what: Drawn) -> Verdict | None:
    """Return the verdict on the zoom levels of the strip, from measured errors of public data; None for a reference, which has no noise.

    Levels of few squares may have small errors by luck: there the larger one of measured error and noise counts.
    """
    if not what.release.receipt.private or what.evaluation is None:
        return None
    table = what.evaluation.by_zoom
    errors = table["rmse"].where(table["blocks"] > FEW_SQUARES, np.fmax(table["rmse"], table["expected"]))
    found = square_verdict(what.release, errors.tolist(), what.data.unit, table["expected"].tolist())
    return with_false_positives(found, *(what.evaluation.by_zoom[name].tolist() for name in ("empty", "false_positives")))


def describe_person(what: Drawn) -> str:
    """Write what is protected where all records of a sample are one person's; "" elsewhere."""
    sample = POINT_SAMPLES.get(what.data.source.data_part.sample or "")
    if sample is None or not sample.one_person:
        return ""
    unit, epsilon, records = what.data.unit, what.draft.run.epsilon or Fraction(0), int(what.data.counts.count.sum())
    if sample.most is None:
        together = format_decimal(float(epsilon * records), 3)
        return f"All {records:,} {unit} are one person's, each protected by itself: for this person, ε {float(epsilon):g} is ε {together}."
    return f"Only {records:,} {unit} of this person count, and ε {float(epsilon):g} protects all of them together: the routes stay hidden."


def make_levels(what: Drawn, before: Evaluation | None) -> list[StripLevel]:
    """Make the columns of the strip.

    Args:
        what: the run that is shown.
        before: the evaluation of the run before, for comparison; None if there was none.
    """
    total = max(float(what.release.count[0]), 0.0)
    rows = [] if what.evaluation is None else what.evaluation.by_zoom.to_dict("records")
    earlier = {} if before is None else dict(zip(before.by_zoom["zoom"], before.by_zoom["rmse"], strict=True))
    domain, finest = what.release.domain, finest_zoom(what.release)
    width = float(np.ptp(np.array(domain.bounds).reshape(2, 2), axis=0).max())
    levels = []
    for zoom in zooms_of(domain):
        row = rows[zoom]
        levels.append(
            StripLevel(
                name=str(zoom),
                about=f"{domain.count_open_blocks(zoom):,} squares of {size_of_squares(domain, zoom) or f'{width / 2**zoom:.3g}'}"
                if zoom
                else "the whole domain",
                mean=total / row["blocks"] or None,
                expected=row["expected"] if math.isfinite(row["expected"]) else None,
                measured=row["rmse"],
                before=earlier.get(zoom),
                base=row["empty"],
                wrong=row["false_positives"],
                there=row["blocks"] - row["empty"],
                missed=row["false_negatives"],
                finer=zoom > finest,
            )
        )
    return levels


def size_of_squares(domain: Domain, zoom: int) -> str:
    """Write how large the squares of a zoom level are, such as "1.2 km"; "" on a plane without a CRS.

    >>> size_of_squares(Domain(bounds=(4.6, 45.5, 5.1, 45.9), crs="EPSG:4326", order=6), 2)
    '10.4 km'
    """
    if domain.crs is None:
        return ""
    return f"{math.sqrt(area_of_bounds(domain.bounds, domain.crs) / 4**zoom):.3g} km"
