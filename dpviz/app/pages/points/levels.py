"""The levels of the rail of points: sizes of squares, what they are worth in a run, and what another split would give."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpviz.amounts import format_decimal
from dpviz.app.components.rail import RailLevel
from dpviz.app.modes.rail import RailParts
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.pages.points.state import POINTS, Drawn
from dpviz.evaluation.expected_split import expected_of_split
from dpviz.evaluation.level_worth import weigh_squares
from dpviz.families import POINT_FAMILY
from dpviz.release.point_release import PointRelease
from dpviz.release.squares import FINEST_ZOOM, is_quartered, level_like, zoom_like
from dpviz.samples.points import POINT_SAMPLES
from dpviz.space.domain import Domain, area_of_bounds

EASY_ZOOM = 6  # zoom level whose squares can be told apart on a map


def make_rail(shown: ShownRuns, level: int) -> RailParts:
    """Return the rail of the first run at a level that the maps show."""
    what: Drawn = shown.first
    zooms = zooms_of(what.release.domain)
    return RailParts(
        frame=what.data.counts.domain,
        levels=make_levels(what),
        levels_of=make_levels,
        numbers=zooms,
        shown=shown_zoom(what.release, level),
        place_shares=lambda shares: [share.level if share.level in zooms else None for share in shares],
        expect=lambda mechanism, budget: expected_of_split(what.release, mechanism, budget, zooms, what.data.counts),
        choose=lambda zoom: POINTS.change(view={"level": level_like(what.release, zoom)}),
    )


def zooms_of(domain: Domain) -> range:
    """Return the zoom levels of the rail, which depend on the domain alone."""
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


def make_levels(what: Drawn) -> list[RailLevel]:
    """Make the levels of the rail, from a run on public data."""
    domain, finest = what.release.domain, finest_zoom(what.release)
    width = float(np.ptp(np.array(domain.bounds).reshape(2, 2), axis=0).max())
    levels = []
    for zoom, worth in zip(zooms_of(domain), weigh_squares(what.compared), strict=True):
        size = size_of_squares(domain, zoom) or format_decimal(width / 2**zoom, 2)
        squares = f"{domain.count_open_blocks(zoom):,} squares of {size}" if zoom else f"The whole domain, {size} wide"
        subject = f"{_article(size)} {size} square" if zoom else "The whole domain"
        levels.append(RailLevel(name=size, subject=subject, about=squares, worth=worth, finer=zoom > finest))
    return levels


def _article(size: str) -> str:
    """Return the article before a size as it is spoken: "an" before 8, 11, 18 and 80.

    >>> _article("8.8 km"), _article("18 km"), _article("1.1 km")
    ('An', 'An', 'A')
    """
    whole = size.split(maxsplit=1)[0].split(".", maxsplit=1)[0]
    return "An" if whole.startswith("8") or whole in ("11", "18") else "A"


def size_of_squares(domain: Domain, zoom: int) -> str:
    """Write how large the squares of a zoom level are, such as "1.2 km"; "" on a plane without a CRS.

    >>> size_of_squares(Domain(bounds=(4.6, 45.5, 5.1, 45.9), crs="EPSG:4326", order=6), 2)
    '10 km'
    """
    if domain.crs is None:
        return ""
    return f"{format_decimal(math.sqrt(area_of_bounds(domain.bounds, domain.crs) / 4**zoom), 2)} km"
