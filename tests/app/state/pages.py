"""Pages to try: any that a link can carry, and pages filled in with files, texts and an account."""

from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st

from dpviz.app.state.draft import Draft
from dpviz.app.state.kinds import AREAS, KINDS, POINTS, TRIPS
from dpviz.app.state.page import Page, usual_page
from dpviz.app.state.parts import Account, Box, ChosenCategories, ChosenRegions, Files, Guess
from dpviz.app.state.run import Run
from dpviz.app.state.values import (
    ALONE,
    BINS,
    CURATE,
    EVERY_ROW,
    HEXAGONS,
    HOURS,
    IN_A_FILE,
    MEASURES,
    MONTHS,
    NO_ZONE,
    PATH,
    PERSON,
    STUDY_AREAS,
    UPLOAD,
    VALUES,
    VOUCHED,
)
from dpviz.app.state.view import Pane, View
from dpviz.errors import SettingError
from dpviz.mechanisms.base import NOISES
from dpviz.publishing.config import DataKeys, OutputPart, PublicationPart
from dpviz.view.trips_drawing import MARKS, PAIR_FILTERS

kinds = st.sampled_from(list(KINDS.values()))
EPSILONS = st.fractions(Fraction(1, 1000), Fraction(100), max_denominator=10**6)
DELTAS = st.sampled_from([Fraction(1, 30_000), Fraction(1, 10**6), Fraction(3, 10**9)])


def settings_of(mechanism):
    """Settings at their defaults, at any choice or at an end of their range; weights are any numbers."""
    found = {}
    for rule in mechanism.rules():
        values = [rule.default, *rule.choices, *(() if isinstance(rule.default, tuple) else (rule.low, rule.high))]
        found[rule.name] = st.sampled_from([value for value in values if value is not None or rule.optional])
    if "weights" in found:
        found["weights"] = st.lists(st.floats(0.5, 10), min_size=2, max_size=9).map(tuple)

    def fit(values):
        try:
            mechanism.from_settings(values)
        except SettingError:
            return False
        return True

    return st.fixed_dictionaries({}, optional=found).filter(fit)


@st.composite
def runs(draw, kind, *, further=False):
    mechanism = draw(st.sampled_from(sorted(kind.family.offered)))
    return Run(
        mechanism=mechanism,
        settings=draw(settings_of(kind.family.offered[mechanism])),
        epsilon=draw(EPSILONS),
        delta=draw(DELTAS),
        rho=None if further else draw(st.none() | st.fractions(Fraction(1, 10**6), Fraction(10**4), max_denominator=10**6)),
        noise=draw(st.sampled_from(NOISES)),
        seed=draw(st.integers(1, 2**31)),
    )


@st.composite
def drafts(draw, kind):
    own = {}
    if kind is POINTS:
        own = {"size": draw(st.none() | st.integers(1, 10**7)), "order": draw(st.integers(1, 16))}
        own["study_area"] = draw(st.sampled_from(STUDY_AREAS))
    if kind is TRIPS:
        own = {"beside": draw(st.sampled_from([ALONE, *sorted(kind.family.mechanisms)]))}
    sample = draw(st.sampled_from(sorted(kind.samples)))
    several = (draw(runs(kind)), *draw(st.lists(runs(kind, further=True), max_size=3)))
    return Draft(family=kind.name, sample=sample, runs=several, **own)


@st.composite
def views(draw, kind, number):
    own = {}
    if kind is POINTS:
        own = {"box": draw(st.none() | st.just((-118.5, 33.25, 1e9, 34.0))), "level": draw(st.none() | st.integers(0, 24))}
    if kind is TRIPS:
        own = {"marks": draw(st.sampled_from(MARKS)), "top": draw(st.integers(1, 5000)), "least": draw(st.integers(1, 2**53 - 1))}
        own |= {"pairs": draw(st.sampled_from(PAIR_FILTERS)), "region": draw(st.none() | st.integers(0, 99))}
    if kind is AREAS:
        own = {"measure": draw(st.sampled_from(MEASURES)), "asked": tuple(draw(st.lists(st.integers(0, 99), max_size=4, unique=True)))}
    if kind is not POINTS:
        own["level"] = draw(st.none() | st.integers(1, 16))
    panes = st.builds(Pane, run=st.integers(0, number - 1), shows=st.sampled_from(kind.shown))
    return View(
        panes=tuple(draw(st.lists(panes, min_size=1, max_size=4))),
        edited=draw(st.integers(0, number - 1)),
        camera=draw(st.none() | st.just((-118.2, 34.0, 9.5))),
        swipe=draw(st.none() | st.floats(0.03, 0.97)),
        scales=draw(st.dictionaries(st.text(max_size=4), st.floats(0.001, 1e9), max_size=2)),
        raw=draw(st.booleans()),
        present=draw(st.booleans()),
        **own,
    )


@st.composite
def pages(draw):
    """A page with nothing in it that a link may not carry."""
    draft = draw(drafts(kind := draw(kinds)))
    return Page(draft=draft, view=draw(views(kind, len(draft.runs))))


TEXTS = PublicationPart(name="Homes", curator="City office", description="All homes", contact="s3cret@example.org")
ACCOUNT = Account(name="Homes 2024", epsilon=Fraction(5), delta=Fraction(1, 300))
PEOPLE = {"person": "rider", "contributions": 3, "distinct": True}


def filled(kind, **parts):
    """A page in Curate in which everything is filled in."""
    usual, is_trips = usual_page(kind), kind is TRIPS
    data = DataKeys(**({"trips": "folder/trips.csv"} if is_trips else {"points": "folder/homes.csv", "x": "lon", "y": "lat"}), **PEOPLE)
    files = Files(data=replace(data, crs=None if is_trips else "EPSG:4326"), whom=PERSON, digest="ab12")
    box = Box(west=7.5, south=49.5, east=9.5, north=52.5, crs="EPSG:4326")
    regions = ChosenRegions(file="regions.csv", levels=("id",), prefixes=(1,))
    draft = replace(usual.draft, mode=CURATE, source=UPLOAD, uploaded=files, domain=box, regions=regions, account=ACCOUNT, texts=TEXTS)
    return Page(draft=replace(draft, **parts), view=usual.view)


def by_category(counted_by, **said):
    """A page of areas in Curate that are counted by category beside the place."""
    data = DataKeys(points="visits.csv", region="tract", slot="at", person="rider", contributions=4, per_slot=1)
    categories, run = ChosenCategories(**said), replace(usual_page(AREAS).draft.run, mechanism="cross_tree")
    files = Files(data=data, whom=PERSON, digest="ab12")
    return filled(AREAS, uploaded=files, counted_by=counted_by, categories=categories, runs=(run,))


FILLED = {
    "points": filled(POINTS),
    "points in polygons": filled(POINTS, study_area=IN_A_FILE, outline="land.geojson", order=6),
    "points by path": filled(POINTS, source=PATH, by_path=Files(data=DataKeys(points="/data/*.csv", engine="duckdb"), whom=EVERY_ROW)),
    "trips": filled(TRIPS),
    "trips that are vouched for": filled(
        TRIPS, uploaded=Files(data=DataKeys(trips="trips.csv", contributions=3, exactly=True), whom=VOUCHED), account=Account(name="x")
    ),
    "trips between two hierarchies": filled(TRIPS, destinations=ChosenRegions(file="works.csv", levels=("id",))),
    "areas": filled(AREAS, output=OutputPart(folder="elsewhere", formats=("geoparquet",))),
    "areas in hexagons": filled(
        AREAS, regions_from=HEXAGONS, regions=ChosenRegions(h3=(5, 7)), grid=Box(west=1.0, south=2.0, east=3.0, north=4.0)
    ),
    "areas in polygons": filled(AREAS, regions_from=HEXAGONS, regions=ChosenRegions(h3=(5, 7)), outline="city.geojson"),
    "areas in squares": filled(
        AREAS, regions_from="Squares", regions=ChosenRegions(squares=(2, 4)), grid=Box(west=1.0, south=2.0, east=3.0, north=4.0, crs="none")
    ),
    "areas by hour": by_category(HOURS, zone="Europe/Berlin"),
    "areas by hours as numbers": by_category(HOURS, zone=NO_ZONE, other="unknown"),
    "areas by month": by_category(MONTHS, zone="UTC", first="2026-01", last="2026-12"),
    "areas by bins": by_category(BINS, bins=(0.0, 6.5, 18.0, 65.0), coarser={"group": (0.0, 18.0, 65.0)}),
    "areas by listed values": by_category(VALUES, values=("car", "bus")),
    "areas by a file of values": by_category(VALUES, file="modes.csv", levels=("kind", "mode"), names={"mode": "name"}),
    "an account in rho": filled(AREAS, account=Account(name="x", counts_rho=True, rho=Fraction(1))),
    "a sample": filled(POINTS, source="sample"),
    "a guess": filled(AREAS, guess=Guess(records=1000, level=1, wanted=0.2)),
}
"""Pages that a configuration can be made of."""
