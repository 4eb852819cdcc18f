"""Families: what belongs to one kind of private data, such as points, from its counts to its report, in one place each.

A family is told by its name, which mechanisms, private counts and releases have as their class attribute `family`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name
from typing import Any

from dpviz.errors import SettingError
from dpviz.registry import Registry


class Part:
    """A part of a family: an object, or where it is, as "module:name", which is imported when the part is first used.

    So this module, on which every room builds, names what stands in them and imports none of it.
    """

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    def __get__(self, family: Any, owner: type[Any] | None = None) -> Any:
        if family is None:
            raise AttributeError(self._name)  # so that a dataclass finds no default
        part = vars(family)[self._name]
        if isinstance(part, str):
            part = vars(family)[self._name] = resolve_name(part)
        return part

    def __set__(self, family: Any, part: Any) -> None:
        vars(family)[self._name] = part


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """One kind of private data, and all that the rooms must know of it.

    Pages, studies, audits, configurations, files and reports find here what differs from family to family. What is a question of a single
    release or of private counts is a method of their classes instead.

    Attributes:
        name: of the kind of data, such as "points".
        noun: one of what is counted: "record" or "trip".
        counts: class of the private counts.
        base: class that every mechanism of the family inherits from.
        kinds: this package's mechanisms of the family, in the order of menus; references, which are NOT PRIVATE, are among them.
        group: name of the group of entry points by which other packages add mechanisms.
        usual: keys of the mechanisms that are compared by default; the first one is a page's default.
        release: class of the releases.
        layout: how releases are written to files and read back, a `Layout` (`dpviz.release.tables`).
        judge: judges the levels of a release: returns a `Verdict` (`dpviz.release.verdict`).
        questions: what a study asks of releases, a class on top of `Questions` (`dpviz.evaluation.study`).
        evaluate: compares a release with the private counts: `evaluate(release, private)`.
        report: what the report of a release says, a `ReportKind` (`dpviz.view.report_kinds`).
        scene: makes the map of a level of a release: `scene(release, level, dark=..., height=...)` returns a `Scene` (`dpviz.view.canvas`)
            and the note under it; None for a family without maps.
        guess: makes up records by a public guess: `guess(counts without records, guess, generator)`.
        outlook: how errors are expected before a release, an `OutlookKind` (`dpviz.publishing.simulated_errors`).
        page_kind: what its page may hold, a `PageKind` (`dpviz.app.state.kinds`), which needs no Streamlit.
        page: its page in the app, a `FamilyPage` (`dpviz.app.modes.family_page`).
        compared: what the Compare page knows of the data, a `Compared` (`dpviz.app.pages.compare.kinds`).
    """

    name: str
    noun: str
    group: str
    usual: tuple[str, ...]
    counts: Part = Part()
    base: Part = Part()
    kinds: Part = Part()
    release: Part = Part()
    layout: Part = Part()
    judge: Part = Part()
    questions: Part = Part()
    evaluate: Part = Part()
    report: Part = Part()
    scene: Part = Part()
    guess: Part = Part()
    outlook: Part = Part()
    page_kind: Part = Part()
    page: Part = Part()
    compared: Part = Part()

    @property
    def title(self) -> str:
        """Its name on screen, such as "Points"."""
        return self.name.capitalize()

    @property
    def counted(self) -> str:
        """What is counted, in the plural: "records" or "trips", never "people".

        With a person column, each person contributes up to m records, or with `distinct` one record per cell. So a sum over cells may
        count one person several times. `Receipt.unit` states separately what is protected.
        """
        return f"{self.noun}s"

    @property
    def own(self) -> tuple[type[Any], ...]:
        """The private mechanisms of this package."""
        return tuple(kind for kind in self.kinds if kind.private)

    @property
    def references(self) -> tuple[type[Any], ...]:
        """Mechanisms that are NOT PRIVATE, for teaching."""
        return tuple(kind for kind in self.kinds if not kind.private)

    @cached_property
    def mechanisms(self) -> Registry:
        """Private mechanisms by key, including those of other packages."""
        return Registry(self.base, self.own, self.group)

    @property
    def choices(self) -> dict[str, type[Any]]:
        """All mechanisms by key: private ones first, then references."""
        return {**self.mechanisms, **{reference.key: reference for reference in self.references}}

    @property
    def offered(self) -> dict[str, type[Any]]:
        """Those of `choices` that pages offer for places alone."""
        return {key: kind for key, kind in self.choices.items() if not kind.by_category}


POINT_FAMILY = Family(
    name="points",
    noun="record",
    group="dpviz.mechanisms",
    usual=("path_tree", "quadtree", "uniform_grid"),
    counts="dpviz.data.points:PointCounts",
    base="dpviz.mechanisms:PointMechanism",
    kinds="dpviz.mechanisms:POINT_KINDS",
    release="dpviz.release.point_release:PointRelease",
    layout="dpviz.release.count_tables:POINT_LAYOUT",
    judge="dpviz.release.verdict:judge_points",
    questions="dpviz.evaluation.study:PointQuestions",
    evaluate="dpviz.evaluation.metrics:evaluate_points",
    report="dpviz.view.report_kinds:POINT_REPORT",
    scene="dpviz.view.points_canvas:scene_of",
    guess="dpviz.publishing.guessed_records:guess_in_cells",
    outlook="dpviz.publishing.simulated_errors:POINT_OUTLOOK",
    page_kind="dpviz.app.state.kinds:POINTS",
    page="dpviz.app.pages.points.page:PAGE",
    compared="dpviz.app.pages.compare.points:COMPARED",
)
TRIP_FAMILY = Family(
    name="trips",
    noun="trip",
    group="dpviz.trip_mechanisms",
    usual=("fitted_tree", "top_down", "flat_gaussian", "stability_histogram"),
    counts="dpviz.data.trips:TripCounts",
    base="dpviz.mechanisms:TripMechanism",
    kinds="dpviz.mechanisms:TRIP_KINDS",
    release="dpviz.release.trip_release:TripRelease",
    layout="dpviz.release.tables:TRIP_LAYOUT",
    judge="dpviz.release.verdict:judge_trips",
    questions="dpviz.evaluation.study:TripQuestions",
    evaluate="dpviz.evaluation.trip_metrics:evaluate_trips",
    report="dpviz.view.report_kinds:TRIP_REPORT",
    scene="dpviz.view.trips_canvas:scene_of",
    guess="dpviz.publishing.guessed_records:guess_between_regions",
    outlook="dpviz.publishing.simulated_errors:TRIP_OUTLOOK",
    page_kind="dpviz.app.state.kinds:TRIPS",
    page="dpviz.app.pages.trips.page:PAGE",
    compared="dpviz.app.pages.compare.trips:COMPARED",
)
AREA_FAMILY = Family(
    name="areas",
    noun="record",
    group="dpviz.area_mechanisms",
    usual=("region_tree", "flat"),
    counts="dpviz.data.areas:AreaCounts",
    base="dpviz.mechanisms:AreaMechanism",
    kinds="dpviz.mechanisms:AREA_KINDS",
    release="dpviz.release.area_release:AreaRelease",
    layout="dpviz.release.count_tables:AREA_LAYOUT",
    judge="dpviz.release.verdict:judge_levels",
    questions="dpviz.evaluation.study:AreaQuestions",
    evaluate="dpviz.evaluation.area_metrics:evaluate_areas",
    report="dpviz.view.report_kinds:AREA_REPORT",
    scene="dpviz.view.areas_canvas:scene_of",
    guess="dpviz.publishing.guessed_records:guess_in_regions",
    outlook="dpviz.publishing.simulated_errors:AREA_OUTLOOK",
    page_kind="dpviz.app.state.kinds:AREAS",
    page="dpviz.app.pages.areas.page:PAGE",
    compared="dpviz.app.pages.compare.areas:COMPARED",
)

FAMILIES: dict[str, Family] = {family.name: family for family in (POINT_FAMILY, TRIP_FAMILY, AREA_FAMILY)}
"""Every family by name. Another kind of private data needs another family, which `register_family` adds."""


def register_family(family: Family) -> None:
    """Add a family to `FAMILIES`.

    The module of its mechanisms calls this when it is imported. So the family is known wherever they are, in worker processes, too.

    Args:
        family: a further one; one that is there already stays.

    Raises:
        SettingError: its name is taken by another family.

    >>> register_family(POINT_FAMILY)
    >>> list(FAMILIES)
    ['points', 'trips', 'areas']
    """
    if FAMILIES.setdefault(family.name, family) is not family:
        raise SettingError(f"There is another family of the name {family.name}.")


def family_of(thing: object) -> Family | None:
    """Return the family of private counts, of a release or of a mechanism; None for other objects.

    >>> import dpviz as dv
    >>> family_of(dv.PointCounts.from_matrix([[1, 0], [0, 2]])).name
    'points'
    >>> family_of(dv.TopDown).counted
    'trips'
    """
    name = getattr(thing if isinstance(thing, type) else type(thing), "family", None)
    return FAMILIES.get(name) if isinstance(name, str) else None


def family_of_counts(data: object) -> Family | None:
    """Return the family of private counts; None for other objects, releases and mechanisms included.

    >>> import dpviz as dv
    >>> family_of_counts(dv.TopDown())
    """
    family = family_of(data)
    return family if family is not None and isinstance(data, family.counts) else None
