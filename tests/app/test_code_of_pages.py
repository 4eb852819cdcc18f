"""The code of Points, Trips and Areas in many states: what it makes is what the page shows, bit for bit."""

from dataclasses import dataclass, field, replace

import geopandas
import pytest
import shapely

from dpviz.app.session.cached import digest_of
from dpviz.app.state.kinds import kind_of
from dpviz.app.state.page import Page
from dpviz.app.state.parts import Box, ChosenCategories, ChosenRegions
from dpviz.app.state.values import ORDINALS
from dpviz.app.state.view import Pane
from tests.app.parts import files_with, page_with, run_with
from tests.app.seen import fine, newest
from tests.app.start import AREA_REGIONS, JOURNEYS, REGIONS, VISITS, pages_app
from tests.app.walk import open_drawer, public
from tests.often import named
from tests.publishing.test_code import made_by
from tests.release_cases import assert_same

DEGREES = Box(west=7.0, south=49.0, east=11.0, north=53.0, crs="EPSG:4326")
HOMES = b"lon,lat,who,n\n" + b"".join(f"{7.5 + k % 7 / 2},{49.5 + k % 5 / 2},p{k % 20},{1 + k % 3}\n".encode() for k in range(60))
GERMAN = "Länge;Breite\n9,25;50,5\n8,5;49,5\n".encode("windows-1252")
METRES = b"e,n,h\n500000,5500000,4\n510000.5,5510000.25,900\n"
SQUARES = geopandas.GeoDataFrame({"id": list("ab")}, geometry=[shapely.box(7, 49, 9, 53), shapely.box(9, 49, 11, 53)], crs="EPSG:4326")
BAD_ROW = b"7.5,,p1,1\n"
HOURS = [f"2026-11-{1 + k % 28:02d} {k % 24:02d}:30" for k in range(200)]
BY_HOUR = b"tract,at,mode,visitor\n" + b"".join(
    f"{('A1', 'A2', 'B1', 'B2')[k % 4]},{at},{('car', 'bus', 'train')[k % 3]},v{k % 30}\n".encode() for k, at in enumerate(HOURS)
)
MODES = b"kind,mode\nroad,car\nroad,bus\nrail,train\n"
REGIONS_OF_TRIPS = {"regions": ChosenRegions(file="towns.csv", levels=("id",), prefixes=(1,), digest=digest_of(REGIONS))}
REGIONS_OF_AREAS = {"regions": ChosenRegions(file="regions.csv", levels=("district", "tract"), digest=digest_of(AREA_REGIONS))}
POLYGONS, HALF = SQUARES.to_json().encode(), SQUARES.iloc[:1].to_json().encode()


@dataclass(frozen=True, kw_only=True)
class State:
    """A page in some state.

    Attributes:
        family: whose page it is.
        records: name and bytes of the file of records; None for a sample.
        said: what is said of that file, as for `files_with`.
        drop: whether its bad rows are left out.
        files: the other files, by the slots of the session.
        parts: of the page.
        further: runs after the first one, each in a map.
    """

    family: str
    records: tuple[str, bytes] | None = None
    said: dict = field(default_factory=dict)
    drop: bool = False
    files: dict = field(default_factory=dict)
    parts: dict = field(default_factory=dict)
    further: tuple = ()

    def page(self, mode) -> Page:
        parts = dict(self.parts)
        if self.records is not None:
            files = replace(files_with(*self.records, mode=mode, **self.said), drop_bad_rows=self.drop, confirmed=True)
            parts |= {"source": "upload", "uploaded": files}
        page = page_with(self.family, mode=mode, **parts)
        if not self.further:
            return page
        panes = tuple(Pane(run=number) for number in range(len(self.further) + 1))
        draft = replace(page.draft, runs=(page.draft.run, *self.further))
        return replace(page, draft=draft, view=replace(page.view, panes=panes))

    def opened(self, mode):
        """The page with its code on the screen; public data are said to be so."""
        slot = "uploaded" if self.family == "points" else f"{self.family} uploaded"
        state = dict(self.files) if self.records is None else {slot: self.records, **self.files}
        state |= {f"public {key.removesuffix(' uploaded')} file {digest_of(content)}": True for key, (_, content) in self.files.items()}
        app = pages_app(self.family, {}, {kind_of(self.family).key: self.page(mode)} | state)
        if mode == "Curate":
            return fine(app)
        if self.records is not None:
            public(app).check().run()
        return fine(open_drawer(app, "Numbers"))


def homes(records=HOMES, *, drop=False, domain=DEGREES, order=6, files=(), more=(), **said):
    said = {"crs": "EPSG:4326", "whom": "each", **said}
    parts = {"domain": domain, "order": order, "mechanism": "quadtree", "settings": {"height": 3}, **dict(more)}
    return State(family="points", records=("homes.csv", records), said=said, drop=drop, files=dict(files), parts=parts)


def trips(records=JOURNEYS, *, drop=False, files=(), more=(), **said):
    said = {"whom": "each", "origin": "origin", "destination": "dest", "count": "count", **said}
    parts = {**REGIONS_OF_TRIPS, "mechanism": "flat_gaussian", "settings": {}, **dict(more)}
    given = {"regions uploaded": ("towns.csv", REGIONS), **dict(files)}
    return State(family="trips", records=("trips.csv", records), said=said, drop=drop, files=given, parts=parts)


def areas(records=VISITS, *, drop=False, files=(), more=(), **said):
    said = {"whom": "each", "count": "none", **said}
    parts = {**REGIONS_OF_AREAS, "mechanism": "region_tree", "settings": {}, **dict(more)}
    given = {"areas regions uploaded": ("regions.csv", AREA_REGIONS), **dict(files)}
    return State(family="areas", records=("visits.csv", records), said=said, drop=drop, files=given, parts=parts)


def counted_by(kind, **said):
    """The parts of a page of areas that are counted by category."""
    return {"counted_by": kind, "categories": ChosenCategories(**said), "mechanism": "cross_tree"}


SAMPLES = {
    "points on land, another order and size": State(
        family="points",
        parts={
            "sample": "la_residents",
            "size": 2000,
            "order": 6,
            "study_area": "land",
            "mechanism": "quadtree",
            "settings": {"height": 4},
        },
    ),
    "points with Gaussian noise": State(
        family="points",
        parts={"sample": "us_places", "order": 6, "mechanism": "quadtree", "settings": {"height": 4}, "noise": "Gaussian", "delta": "1e-7"},
    ),
    "points, three runs": State(
        family="points",
        parts={"sample": "us_places", "order": 6, "mechanism": "identity", "settings": {}},
        further=(
            run_with("points", mechanism="uniform_grid", settings={}, epsilon="1/7", seed=4),
            run_with("points", mechanism="quadtree", settings={"height": 3}, noise="Gaussian"),
        ),
    ),
    "trips": State(family="trips", parts={"sample": "us_flights", "mechanism": "flat_gaussian", "settings": {}, "epsilon": "1/3"}),
    "areas": State(family="areas", parts={"sample": "made_up_city", "seed": 7}),
    "areas by hour": State(family="areas", parts={"sample": "city_by_hour", "mechanism": "cross_tree", "epsilon": "1"}),
}
FILES = {
    "points, counts": homes(count="n"),
    "points, bad rows refused": homes(count="none"),
    "points, bad rows left out": homes(HOMES + BAD_ROW, drop=True, count="none"),
    "points, persons": homes(whom="person", person="who", contributions=9, count="none"),
    "points, names and numbers of elsewhere": homes(GERMAN, x="Länge", y="Breite", encoding="windows-1252"),
    "points in another CRS": homes(METRES, x="e", y="n", crs="EPSG:32632", count="h"),
    "points in polygons": homes(
        count="none",
        files={"study area uploaded": ("city.geojson", HALF), "outline uploaded": ("city.geojson", HALF)},  # of Teach, and of Curate
        more={"study_area": "file", "outline": "city.geojson"},
    ),
    "trips, counts": trips(),
    "trips, bad rows left out": trips(JOURNEYS + b"A1,,3,r1\n", drop=True),
    "trips, persons": trips(whom="person", person="rider", contributions=1500, more={"settings": {"neighbours": "add_remove"}}),
    "trips, destinations of their own": trips(
        files={"ends uploaded": ("works.csv", REGIONS)},
        more={"destinations": replace(REGIONS_OF_TRIPS["regions"], file="works.csv")},
    ),
    "areas, ids": areas(region="tract"),
    "areas, bad rows left out": areas(VISITS + b"Z9,v999\n", drop=True, region="tract"),
    "areas, persons": areas(whom="person", person="visitor", contributions=2, region="tract"),
    "areas by hour, persons": areas(
        BY_HOUR,
        whom="person",
        person="visitor",
        contributions=7,
        per_slot=2,
        region="tract",
        slot="at",
        more=counted_by("Hour", zone="UTC"),
    ),
    "areas by listed values": areas(
        BY_HOUR, region="tract", slot="mode", more=counted_by("Listed values", values=("car", "bus"), other="x")
    ),
    "areas by a file of values": areas(
        BY_HOUR,
        region="tract",
        slot="mode",
        files={"areas categories uploaded": ("modes.csv", MODES)},
        more=counted_by("Listed values", file="modes.csv", levels=("kind", "mode"), digest=digest_of(MODES)),
    ),
    "areas, polygons of one's own": areas(
        HOMES,
        crs="EPSG:4326",
        files={"areas regions uploaded": ("cells.geojson", POLYGONS)},
        more={"regions": ChosenRegions(file="cells.geojson", levels=("id",), digest=digest_of(POLYGONS))},
    ),
    "areas, hexagons": areas(
        HOMES, crs="EPSG:4326", more={"regions_from": "Hexagons", "regions": ChosenRegions(h3=(3, 4)), "grid": replace(DEGREES, crs="")}
    ),
    "areas, hexagons over polygons": areas(
        HOMES,
        crs="EPSG:4326",
        files={"areas outline uploaded": ("city.geojson", POLYGONS)},
        more={"regions_from": "Hexagons", "regions": ChosenRegions(h3=(3, 4)), "outline": "city.geojson"},
    ),
    "areas, squares": areas(
        HOMES, crs="EPSG:4326", more={"regions_from": "Squares", "regions": ChosenRegions(squares=(2, 4)), "grid": DEGREES}
    ),
}
USUAL = ["points, bad rows refused", "trips, persons", "areas, hexagons"]


def code_of(app):
    return next(block.value for block in app.code if block.language == "python")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_files(folder, state):
    for name, content in [state.records, *state.files.values()]:
        (folder / name).write_bytes(content)


def check_runs(app, state):
    """Each run that a map shows is made by the code."""
    made, key = made_by(code_of(app)), kind_of(state.family).key
    for index, prefix in zip(app.session_state[key].shown_runs, ("", "second_", "release_3_"), strict=False):
        shown = newest(app, f"{key} {ORDINALS[index]} run").release
        assert_same(made[f"{prefix}release"], shown)
    return made


@pytest.mark.parametrize("state", SAMPLES.values(), ids=list(SAMPLES))
def test_the_code_of_a_sample_makes_what_the_page_shows(state):
    check_runs(state.opened("Teach"), state)


@pytest.mark.parametrize("state", named(FILES, USUAL))
def test_the_code_of_files_makes_what_the_page_shows_and_reads_the_same_in_curate(here, state):
    write_files(here, state)
    app = state.opened("Teach")
    made = check_runs(app, state)
    assert ('bad_rows="drop"' in code_of(app)) == state.drop
    in_curate = made_by(code_of(state.opened("Curate")))
    counts, others = made[state.family], in_curate[state.family]
    assert_same(replace(others, unit_declared=counts.unit_declared, fingerprints=counts.fingerprints), counts)
    assert (in_curate["mechanism"], in_curate["budget"]) == (made["mechanism"], made["budget"])
    assert not in_curate["release"].simulation


def test_where_a_bound_leaves_records_out_the_code_says_that_they_are_chosen_at_random(here):
    state = homes(whom="person", person="who", contributions=1, count="none")
    write_files(here, state)
    assert "are left out is random" in code_of(state.opened("Teach"))
