"""What the reports of each family say: their nouns, their examples, and code that reads the files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpviz.amounts import format_percent
from dpviz.release.area_release import AreaRelease
from dpviz.release.intervals import OF_RELEASED_PAIRS
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.space.denominators import describe_rate
from dpviz.space.interpolate import UNIFORM
from dpviz.space.region_builders import H3Cells
from dpviz.view.report_areas import list_area_examples, list_fitness, list_largest_regions, list_means, list_pairs, write_areas_snippet
from dpviz.view.report_maps import draw_areas, draw_points, draw_trips
from dpviz.view.report_numbers import (
    find_rest_side,
    list_largest_pairs,
    list_point_examples,
    list_trip_examples,
    write_points_snippet,
    write_trips_snippet,
)

Facts = dict[str, Any]
"""Values of the template by name."""

_LARGEST = 10  # pairs that the report lists


@dataclass(frozen=True, kw_only=True)
class ReportKind:
    """What the reports of a family say.

    Attributes:
        what: what a release is of, as in "a release of trips".
        part: one of the places with a number.
        parts: several of them.
        released_parts: those that are released, where that need not be all; "" for `parts`.
        larger: what places are part of, in the plural.
        frame: what was declared, such as "domain".
        on_average: whether intervals hold on average over what is released, and not for each number.
        has_ids: whether places have ids, which a spreadsheet may take for formulas.
        template: name of the template: `report.html.jinja`, or one that extends it.
        values: makes further values of the template from a release: `examples` (a list of `Example`), `example_level`, `finest` (how many
            places the finest level has), `negatives` and `recentred` are needed.
        snippet: writes code that reads the release's files in some formats, and adds up a few numbers; None if there is none.
    """

    what: str
    part: str
    parts: str
    released_parts: str = ""
    larger: str
    frame: str = "regions"
    on_average: bool = False
    has_ids: bool = True
    template: str = "report.html.jinja"
    values: Callable[[Any], Facts]
    snippet: Callable[[Any, Sequence[str]], str | None] = lambda release, formats: None  # noqa: ARG005

    def words(self) -> Facts:
        """Return the values of the template that are the same for all releases."""
        nouns = {name: getattr(self, name) for name in ("what", "part", "parts", "larger", "frame", "on_average", "has_ids")}
        return {**nouns, "released_parts": self.released_parts or self.parts}


def _make_point_values(release: PointRelease) -> Facts:
    """Make the template values that only reports of points have."""
    picture = draw_points(release)
    return {
        "picture": picture,
        "looks": picture.looks,
        "where": "Where",
        "examples": list_point_examples(release, picture.level),
        "example_level": picture.level,
        "finest": len(release.tree.leaves),
        "negatives": bool((release.count[release.tree.leaves] < -0.5).any()),
        "recentred": release.unbiased is not None,
        "area_unit": "unit of area" if release.domain.crs is None else "km²",
        "interpolated": release.fill != UNIFORM,
        "cut_boxes": release.says_of_cut_boxes,
        "nonnegative": release.nonnegative,
    }


def _make_trip_values(release: TripRelease) -> Facts:
    """Make the template values that only reports of trips have."""
    picture = draw_trips(release)
    return {
        "picture": picture,
        "looks": None if picture is None else picture.looks,
        "simultaneous": release.numbers,
        "step_word": "Between",
        "examples": list_trip_examples(release),
        "largest": list_largest_pairs(release, _LARGEST),
        "example_level": min(1, release.depth),
        "finest": len(release.stages[-1].count),
        "negatives": bool((release.stages[-1].count < 0).any()),
        "recentred": bool((release.stages[-1].noisy != release.stages[-1].count).any()),
        "pair_kind": release.tree.title(release.tree.height),
        "map_kind": None if picture is None else release.tree.title(2 * picture.level),
        "every_pair": release.every_pair,
        "of_released": OF_RELEASED_PAIRS if release.for_released else "",
        "listed": release.half_step_sums is not None,
        "most_false": None if release.most_false is None else format_percent(release.most_false),
        "rest_verb": "begin" if find_rest_side(release) == "origin" else "end",
        "rest_kind": release.tree.title(release.tree.height - 1),
    }


def _make_area_values(release: AreaRelease) -> Facts:
    """Make the template values that only reports of areas have."""
    pictures, finest = draw_areas(release), release.regions.depth
    leaves = release.hierarchy.leaves if release.hidden is None else release.hierarchy.leaves[~release.hidden]
    return {
        "pictures": pictures,
        "looks": pictures[0].looks if pictures else None,
        "fitness": list_fitness(release),
        "pairs": list_pairs(release),
        "means": list_means(release),
        "zone": getattr(getattr(release, "categories", None), "zone", None),
        "simultaneous": release.numbers,
        "examples": list_area_examples(release),
        "largest": list_largest_regions(release),
        "example_level": 1,
        "finest": release.regions.size(finest),
        "negatives": bool((release.count[leaves] < -0.5).any()),
        "recentred": bool((release.count != release.centre).any()),
        "pair_kind": release.regions.levels[-1],
        "level_names": release.regions.levels,
        "hidden": release.hidden is not None,
        "rate_words": None if (numbers := release.regions.denominator) is None else describe_rate(numbers),
        "denominator": None if numbers is None else numbers.name,
        "approximate_shapes": isinstance(release.regions.grid, H3Cells),
    }


POINT_REPORT = ReportKind(
    what="locations",
    part="partition",
    parts="partitions",
    larger="partitions",
    frame="domain",
    has_ids=False,
    template="report_points.html.jinja",
    values=_make_point_values,
    snippet=write_points_snippet,
)
TRIP_REPORT = ReportKind(
    what="trips",
    part="pair",
    parts="pairs",
    released_parts="released pairs",
    larger="regions",
    on_average=True,
    template="report_trips.html.jinja",
    values=_make_trip_values,
    snippet=write_trips_snippet,
)
AREA_REPORT = ReportKind(
    what="counts of areas",
    part="region",
    parts="regions",
    larger="regions",
    template="report_areas.html.jinja",
    values=_make_area_values,
    snippet=write_areas_snippet,
)
