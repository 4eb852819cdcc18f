"""What Curate costs a person: the actions from the first file to a payment or a bundle: pytest -m benchmark -s prints them.

An action is a dropped file, a press, a choice, a typed field or a dragged box. The second test walks the same ways, and loads the page anew
after each action: the person goes on where they were, and only files are dropped again.
"""

import itertools
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
MOST_TO_BUNDLE, MOST_TO_PAYMENT = 10, 13  # from a clean file, and from messy ones
MOST_BY_HOUR = 14  # to the payment of counts by hour
CAP = "Cap, ε"
SEEDS = itertools.count()  # each walk has data and names of its own: the ledger would recognise the same ones


class Actions:
    """The actions of a person, counted and named; after each one the page may be loaded anew."""

    def __init__(self, page, *, reloads):
        self.page, self.reloads = page, reloads
        self.names, self.files, self.typed = [], [], {}

    def drop(self, path):
        self.files.append(Path(path))
        self.put(path)
        self.note(f"a file {Path(path).name}")

    def put(self, path):
        zone = self.page.locator("[class*=dropped] input[type=file]")
        until(lambda: zone.count() == 1, "one drop zone: the one before has gone")
        zone.set_input_files(path)
        self.page.locator("[class*=st-key-card-files]").get_by_text(Path(path).name, exact=True).wait_for(state="attached")
        self.rest()

    def say(self, name, role):
        """Say what a file is, which is not known yet."""
        card = self.page.get_by_role("radiogroup", name="What is it?").last
        self.press(card.get_by_role("radio", name=role), f"{name}: {role}")

    def press(self, what, name):
        what.click()
        self.note(name)

    def type(self, label, text):
        box = self.box(label)
        box.fill(text)
        box.press("Tab")
        self.typed[label] = text
        self.note(label)

    def choose(self, label, option):
        box = self.page.get_by_role("combobox", name=label)
        box.click()
        box.fill(option)
        self.page.get_by_role("option", name=option, exact=True).click()
        self.note(label)

    def box(self, label):
        return self.page.locator(f'[aria-label="{label}"]').first

    def drag_box(self):
        page = self.page
        page.locator(".canvas[data-shown]").wait_for()
        page.wait_for_timeout(1500)  # the camera settles
        box = page.locator(".canvas .map").bounding_box()
        x, y = box["x"] + 0.48 * box["width"], box["y"] + 0.358 * box["height"]
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
        self.page.locator(".st-key-bar").wait_for()
        self.rest()
        for path in self.files:
            self.put(path)
        for label, text in self.typed.items():
            self.box(label).wait_for(state="attached")
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


def write_rides(folder):
    """Write rides of 400 people between the squares."""
    seed, names = next(SEEDS), np.array(list(blocks()))
    draw = np.random.default_rng(seed)
    origin, destination = names[draw.integers(0, 16, (2, 3000))]
    table = pd.DataFrame({"origin": origin, "destination": destination, "rider": draw.integers(0, 400, 3000)})
    table.to_csv(folder / f"rides{seed}.csv", index=False)
    return folder / f"rides{seed}.csv"


def write_messy(folder):
    """Write stops as a German spreadsheet does: semicolons, decimal commas, swapped coordinates in a few rows, and none in one."""
    seed = next(SEEDS)
    table = stops(seed).rename(columns={"lon": "Länge", "lat": "Breite"})
    table.loc[:4, ["Länge", "Breite"]] = table.loc[:4, ["Breite", "Länge"]].to_numpy()
    table.loc[9, "Breite"] = np.nan
    table.to_csv(folder / f"halte{seed}.csv", index=False, sep=";", decimal=",", na_rep="k. A.")
    return folder / f"halte{seed}.csv"


def write_visits(folder):
    """Write stops with local times as a German spreadsheet does: rows outside of all regions, and one whose time cannot be read."""
    seed = next(SEEDS)
    table = stops(seed).rename(columns={"lon": "Länge", "lat": "Breite"})
    minutes = np.random.default_rng(seed).integers(0, 28 * 24 * 60, len(table))
    table["Zeit"] = (pd.Timestamp("2026-11-01") + pd.to_timedelta(minutes, unit="min")).strftime("%Y-%m-%d %H:%M")
    table.loc[9, "Zeit"] = "k. A."
    table.to_csv(folder / f"besuche{seed}.csv", index=False, sep=";", decimal=",")
    return folder / f"besuche{seed}.csv"


def write_geojson(folder):
    seed = next(SEEDS)
    table = stops(seed)
    gpd.GeoDataFrame(table[["Fahrzeug"]], geometry=gpd.points_from_xy(table["lon"], table["lat"]), crs="EPSG:4326").to_file(
        folder / f"stops{seed}.geojson"
    )
    return folder / f"stops{seed}.geojson"


def write_shapefile(folder):
    """Write the squares with a column of ids for each level, in metres, as a Shapefile in a zip."""
    rows = [{"district": name[0], "block": name, "geometry": shape} for name, shape in blocks().items()]
    (folder / "shp").mkdir()
    gpd.GeoDataFrame(rows, crs="EPSG:4326").to_crs("EPSG:2154").to_file(folder / "shp" / "blocks.shp")
    return shutil.make_archive(str(folder / f"blocks{next(SEEDS)}"), "zip", folder / "shp")


def say_whom(actions, noun):
    page = actions.page
    actions.press(page.get_by_text(f"Each person: a column says whose {noun} a row is"), "whom to protect")
    actions.type(f"{noun.capitalize()}s per person, at most", "10")


def clean_points(actions, folder, write=write_zip):
    actions.drop(write(folder))
    say_whom(actions, "record")
    actions.drag_box()
    actions.type("How many records, about?", MANY)


def points_without_crs(actions, folder):
    actions.drop(write_csv(folder))
    say_whom(actions, "record")
    actions.drag_box()
    actions.press(actions.page.get_by_role("button", name="EPSG:4326: "), "the CRS, by where it would lie")
    actions.type("How many records, about?", MANY)


def points_in_a_city(actions, folder):
    actions.drop(write_csv(folder))
    actions.drop(write_city(folder))
    actions.say("city.gpkg", "Public: where to count")
    say_whom(actions, "record")
    actions.press(actions.page.get_by_role("button", name="EPSG:4326: "), "the CRS of the file of points")
    actions.type("How many records, about?", MANY)


def messy_points(actions, folder):
    page = actions.page
    actions.drop(write_messy(folder))
    actions.press(page.get_by_text("Read it so:"), "how the file is written")
    say_whom(actions, "record")
    actions.drag_box()
    actions.press(page.get_by_role("button", name="EPSG:4326: "), "the CRS, by where it would lie")
    actions.press(page.get_by_text("Leave out bad rows", exact=True), "rows that are the wrong way round are left out")
    actions.type("How many records, about?", MANY)


def geojson_in_hexagons(actions, folder):
    page = actions.page
    actions.drop(write_geojson(folder))
    actions.press(page.get_by_role("radio", name="Hexagons"), "hexagons")
    say_whom(actions, "record")
    actions.type("A place", "Lyon")
    actions.press(page.get_by_role("button", name="Lyon ("), "the place")
    actions.type("How many records, about?", "30000")
    page.get_by_role("button", name="Suggest a size", exact=True).click()
    page.locator(".st-key-bar").get_by_text("at resolution 5").wait_for()
    actions.note("a useful size")


def trips_between_polygons(actions, folder, write=write_nested):
    page = actions.page
    actions.drop(write_rides(folder))
    regions = write(folder)
    actions.drop(regions)
    actions.say(Path(regions).name, "Public: regions")
    say_whom(actions, "trip")
    actions.press(page.get_by_role("button", name="Protect that a person is added or removed"), "which neighbours")
    actions.type("How many trips, about?", MANY)


def messy_visits_by_hour(actions, folder):
    page = actions.page
    actions.drop(write_visits(folder))
    actions.drop(write_nested(folder))
    actions.say("blocks.geojson", "Public: regions")
    actions.press(page.get_by_role("radio", name="Hour"), "counted by hour")
    actions.press(page.get_by_text("Read it so:"), "how the file is written")
    actions.press(page.get_by_text("Leave out bad rows", exact=True), "rows that cannot be read are left out")
    actions.type("CRS of the coordinates", "EPSG:4326")
    say_whom(actions, "record")
    actions.type("Records per person in each hour, at most", "1")
    actions.choose("Time zone", "Europe/Paris")
    actions.type("How many records, about?", MANY)
    page.locator(".st-key-bar").get_by_text("with a readable profile by hour").wait_for()
    promise = "Protects all that one person did, at most 10 records and 1 in each hour. Hours and regions are public."
    page.locator("[class*=st-key-card-whom]").get_by_text(promise).wait_for(state="attached")


MANY = "10000000"  # records that a curator guesses
POINTS_LINK, TRIPS_LINK, AREAS_LINK = "points?mode=Curate&mechanism=path_tree", "trips?mode=Curate", "areas?mode=Curate"
CLEAN = {
    "points in a Shapefile, in a box": (POINTS_LINK, clean_points),
    "points in GeoJSON, in a box": (POINTS_LINK, partial(clean_points, write=write_geojson)),
}
OTHERS = {
    "points in a CSV without a CRS, in a box": (POINTS_LINK, points_without_crs),
    "points in a CSV, in a city": (POINTS_LINK, points_in_a_city),
    "messy points": (POINTS_LINK, messy_points),
    "GeoJSON in hexagons": (AREAS_LINK, geojson_in_hexagons),
    "messy visits by hour": (AREAS_LINK, messy_visits_by_hour),
    "trips between nested polygons": (TRIPS_LINK, trips_between_polygons),
    "trips and a zipped Shapefile": (TRIPS_LINK, partial(trips_between_polygons, write=write_shapefile)),
}
FLOWS = CLEAN | OTHERS


def walk(chromium, address, tmp_path, flow, *, reloads):
    """Go from the first file to the downloaded bundle, and return the actions to the payment, and after it."""
    link, declare = FLOWS[flow]
    with visit(chromium, address, link, scheme="light", tmp_path=tmp_path) as (page, _):
        page.set_viewport_size({"width": 1400, "height": 1000})
        actions = Actions(page, reloads=reloads)
        page.get_by_role("button", name="Run and pay").wait_for()
        actions.rest()
        page.get_by_text("Upload", exact=True).click()
        page.locator("[class*=dropped] input[type=file]").wait_for(state="attached")
        actions.rest()
        declare(actions, tmp_path)
        assert page.get_by_role("button", name="Run and pay").is_disabled()
        actions.type(CAP, "2")
        del actions.typed[CAP]  # once it is paid from, the account says it
        page.locator(".st-key-bar").get_by_text("if records lie").wait_for()
        if (noise := page.get_by_text("I know that most of this is noise")).count():
            actions.press(noise, "noise is known")
        actions.press(page.get_by_role("button", name="Run and pay ε"), "run and pay")
        page.get_by_text("Publish it", exact=True).wait_for()
        paid = len(actions.names)
        actions.type("Curator", "City office")
        actions.type("Description", "Who was where, and when.")
        with page.expect_download() as found:
            page.get_by_role("button", name="Make and download the bundle").click()
        found.value.save_as(tmp_path / "bundle.zip")
        actions.names.append("the bundle")
        assert not dv.read_release(tmp_path / "bundle.zip").simulation
        page.get_by_text("The bundle was downloaded, and the ledger says so.").wait_for()
    return actions.names[:paid], actions.names[paid:]


@pytest.mark.parametrize("flow", FLOWS)
def test_actions_from_the_first_file_to_the_payment_and_the_bundle(chromium, address, tmp_path, flow):
    to_payment, then = walk(chromium, address, tmp_path, flow, reloads=False)
    print(f"\n{flow}, {len(to_payment)} actions to the payment, {len(then)} to the bundle: {', '.join([*to_payment, *then])}")
    assert len(to_payment) <= (MOST_BY_HOUR if "by hour" in flow else MOST_TO_PAYMENT)
    assert flow in OTHERS or len(to_payment + then) <= MOST_TO_BUNDLE


@pytest.mark.parametrize("flow", FLOWS)
def test_every_reload_continues(chromium, address, tmp_path, flow):
    walk(chromium, address, tmp_path, flow, reloads=True)
