"""What Curate costs a person: the actions from the first file to a downloaded bundle: pytest -m benchmark -s prints them.

The second test walks the same ways, and loads the page anew after each action: the person goes on where they were.
"""

import itertools
import re
import shutil
from functools import partial
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import dpviz as dv
from tests.app.browse import until, visit

pytestmark = pytest.mark.benchmark
MOST_ACTIONS = 10
POINTS, REGIONS, TRIPS, POLYGONS = "Points file", "Regions file", "Trips file", "A file of polygons"
CAP = "Cap, ε"
SEEDS = itertools.count()  # each walk has data and names of its own: the ledger would recognise the same ones


class Actions:
    """The actions of a person, counted and named; after each one the page may be loaded anew."""

    def __init__(self, page, *, reloads):
        self.page, self.reloads = page, reloads
        self.names, self.files, self.typed = [], {}, {}

    def choose(self, label, path):
        self.files[label] = Path(path)
        self.put(label)
        if label == POLYGONS:
            self.expect_bounds()
        self.note(f"{label.lower()} {Path(path).name}")

    def put(self, label):
        uploader = self.page.get_by_test_id("stFileUploader").filter(has_text=label)
        uploader.locator("input[type=file]").set_input_files(self.files[label])
        self.rest()

    def press(self, what, name):
        what.click()
        self.note(name)

    def type(self, label, text):
        box = self.box(label)
        box.fill(text)
        box.press("Tab")
        self.typed[label] = text
        self.note(label)

    def box(self, label):
        return self.page.locator(f'[aria-label="{label}"]').first

    def drag_box(self):
        page = self.page
        page.locator(".canvas[data-shown]").wait_for()
        page.locator(".canvas").scroll_into_view_if_needed()
        page.wait_for_timeout(1500)  # the camera settles
        box = page.locator(".canvas .map").bounding_box()
        x, y = box["x"] + 0.485 * box["width"], box["y"] + 0.22 * box["height"]
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 60, y + 60, steps=5)
        page.mouse.up()
        self.expect_bounds()
        self.note("a box on the map")

    def expect_bounds(self):
        """Wait for the bounds of the domain, which a reload must not lose."""
        for side in ("West", "South", "East", "North"):
            self.typed[side] = until(self.box(side).input_value, side)

    def note(self, name):
        self.names.append(name)
        self.rest()
        if self.reloads:
            self.reload()

    def rest(self):
        """Wait until the page has answered."""
        self.page.get_by_test_id("stStatusWidget").wait_for(state="hidden")
        self.page.wait_for_timeout(800)

    def reload(self):
        """Load the page anew: it asks for the files by their names, and all else is as it was."""
        self.page.reload()
        self.page.get_by_text("1 Whom to protect?").wait_for()
        self.rest()
        for label, path in self.files.items():
            if label == POLYGONS:
                self.page.get_by_text(f"The bounds are those around {path.name}").wait_for()
            else:
                self.page.get_by_text(f"Choose {path.name} again").wait_for()
                self.put(label)
        for label, text in self.typed.items():
            self.box(label).wait_for()
            assert self.box(label).input_value() == text, (label, self.names)


def stops(seed):
    """Stops of 300 vehicles in Lyon."""
    draw = np.random.default_rng(seed)
    vehicle = draw.integers(0, 300, 3000)
    return pd.DataFrame({"Fahrzeug": vehicle, "lon": draw.normal(4.85, 0.03, 3000), "lat": draw.normal(45.75, 0.02, 3000)})


def write_csv(folder):
    seed = next(SEEDS)
    stops(seed).to_csv(folder / f"stops{seed}.csv", index=False)
    return folder / f"stops{seed}.csv"


def write_zip(folder):
    """Write a Shapefile, which says its CRS, in a zip."""
    seed = next(SEEDS)
    table = stops(seed)
    places = gpd.GeoDataFrame(table[["Fahrzeug"]], geometry=gpd.points_from_xy(table["lon"], table["lat"]), crs="EPSG:4326")
    (folder / "halts").mkdir()
    places.to_file(folder / "halts" / "halts.shp")
    return shutil.make_archive(str(folder / f"halts{seed}"), "zip", folder / "halts")


def write_city(folder):
    """Write the outline of a city, in metres."""
    outline = gpd.GeoSeries([shapely.Point(4.85, 45.75).buffer(0.08)], crs="EPSG:4326").to_crs("EPSG:2154")
    outline.to_file(folder / "city.gpkg")
    return folder / "city.gpkg"


def blocks():
    """16 squares in 4 districts, by their ids: the first letter is that of the district."""
    return {
        f"{'NESW'[2 * (row // 2) + column // 2]}{row}{column}": shapely.box(
            4.8 + column / 50, 45.7 + row / 50, 4.82 + column / 50, 45.72 + row / 50
        )
        for row in range(4)
        for column in range(4)
    }


def write_nested(folder):
    """Write the squares and their districts, one row per region of either level."""
    squares = blocks()
    districts = {name: shapely.union_all([shape for block, shape in squares.items() if block[0] == name]) for name in "NESW"}
    rows = [{"region_id": name, "parent_id": None, "level": "district", "geometry": shape} for name, shape in districts.items()]
    rows += [{"region_id": name, "parent_id": name[0], "level": "block", "geometry": shape} for name, shape in squares.items()]
    gpd.GeoDataFrame(rows, crs="EPSG:4326").to_file(folder / "blocks.geojson")
    return folder / "blocks.geojson"


def write_columns(folder):
    """Write the squares with a column of ids for each level."""
    rows = [{"district": name[0], "block": name, "geometry": shape} for name, shape in blocks().items()]
    gpd.GeoDataFrame(rows, crs="EPSG:4326").to_file(folder / "columns.geojson")
    return folder / "columns.geojson"


def write_rides(folder):
    """Write rides of 400 people between the squares."""
    seed, names = next(SEEDS), np.array(list(blocks()))
    draw = np.random.default_rng(seed)
    origin, destination = names[draw.integers(0, 16, (2, 3000))]
    table = pd.DataFrame({"origin": origin, "destination": destination, "rider": draw.integers(0, 400, 3000)})
    table.to_csv(folder / f"rides{seed}.csv", index=False)
    return folder / f"rides{seed}.csv"


def points_with_a_box(actions, folder, write):
    page = actions.page
    actions.choose(POINTS, write(folder))
    assert page.get_by_role("button", name="Run and pay").is_disabled()
    actions.press(page.get_by_text("Each person: a column says whose record a row is"), "whom to protect")
    actions.type("Records per person, at most", "10")
    actions.drag_box()
    if write is write_csv:
        actions.press(page.get_by_role("button", name="EPSG:4326: "), "the CRS, by where it would lie")
    actions.type("How many records, about?", MANY)
    page.get_by_text("records in a square of level").first.wait_for()


def points_in_a_city(actions, folder):
    page = actions.page
    actions.choose(POINTS, write_csv(folder))
    actions.press(page.get_by_text("Each person: a column says whose record a row is"), "whom to protect")
    actions.type("Records per person, at most", "10")
    actions.choose(POLYGONS, write_city(folder))
    actions.press(page.get_by_role("button", name="EPSG:4326: "), "the CRS of the file of points")
    actions.type("How many records, about?", MANY)
    page.get_by_text("records in a square of level").first.wait_for()


def trips_between_polygons(actions, folder, write):
    page = actions.page
    actions.choose(REGIONS, write(folder))
    page.get_by_text("The declared regions, district to district").wait_for()
    actions.choose(TRIPS, write_rides(folder))
    assert page.get_by_role("button", name="Run and pay").is_disabled()
    actions.press(page.get_by_text("Each person: a column says whose trip a row is"), "whom to protect")
    actions.type("Trips per person, at most", "10")
    actions.press(page.get_by_role("button", name="Protect that a person is added or removed"), "which neighbours")
    actions.type("How many trips, about?", MANY)
    page.get_by_text(re.compile("Expected error: ± .* trips in each pair of block to block")).wait_for()


MANY = "1000000"  # records that a curator guesses
POINTS_LINK, TRIPS_LINK = "points?mode=Curate&mechanism=path_tree", "trips?mode=Curate"
FLOWS = {
    "points in a CSV, in a box": (POINTS_LINK, partial(points_with_a_box, write=write_csv)),
    "points in a Shapefile, in a box": (POINTS_LINK, partial(points_with_a_box, write=write_zip)),
    "points in a CSV, in a city": (POINTS_LINK, points_in_a_city),
    "trips between nested polygons": (TRIPS_LINK, partial(trips_between_polygons, write=write_nested)),
    "trips between polygons with a column per level": (TRIPS_LINK, partial(trips_between_polygons, write=write_columns)),
}


def walk(chromium, address, tmp_path, flow, *, reloads):
    """Go from the first file to the downloaded bundle, and return the actions."""
    link, declare = FLOWS[flow]
    with visit(chromium, address, link, scheme="light", tmp_path=tmp_path) as (page, _):
        page.set_viewport_size({"width": 1400, "height": 1000})
        actions = Actions(page, reloads=reloads)
        page.get_by_role("button", name="Run and pay").wait_for()
        actions.rest()
        page.get_by_text("Upload", exact=True).click()
        page.get_by_test_id("stFileUploader").first.wait_for()
        actions.rest()
        declare(actions, tmp_path)
        assert page.get_by_role("button", name="Run and pay").is_disabled()
        actions.type(CAP, "2")
        del actions.typed[CAP]  # once it is paid from, the account says it
        actions.press(page.get_by_role("button", name="Run and pay ε"), "run and pay")
        page.get_by_text("Publish it", exact=True).wait_for()
        actions.type("Curator", "City office")
        actions.type("Description", "Who was where, and when.")
        with page.expect_download() as found:
            page.get_by_role("button", name="Make and download the bundle").click()
        found.value.save_as(tmp_path / "bundle.zip")
        actions.names.append("the bundle")
        assert not dv.read_release(tmp_path / "bundle.zip").simulation
        page.get_by_text("The bundle was downloaded, and the ledger says so.").wait_for()
    return actions.names


@pytest.mark.parametrize("flow", FLOWS)
def test_actions_from_the_first_file_to_the_bundle(chromium, address, tmp_path, flow):
    names = walk(chromium, address, tmp_path, flow, reloads=False)
    print(f"\n{flow}, {len(names)} actions: {', '.join(names)}")
    assert len(names) <= MOST_ACTIONS


@pytest.mark.parametrize("flow", FLOWS)
def test_every_reload_continues(chromium, address, tmp_path, flow):
    walk(chromium, address, tmp_path, flow, reloads=True)
