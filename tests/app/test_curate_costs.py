"""What Curate costs a person: the actions from a file of points to a downloaded bundle: pytest -m benchmark -s prints them."""

import shutil

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import dpviz as dv
from tests.app.browse import visit

pytestmark = pytest.mark.benchmark
MOST_ACTIONS = 10


class Actions:
    """The actions of a person, counted and named; after each one the page may be loaded anew."""

    def __init__(self, page):
        self.page, self.names = page, []

    def press(self, what, name):
        what.click()
        self.note(name)

    def type(self, label, text):
        box = self.page.locator(f'[aria-label="{label}"]').first
        box.fill(text)
        box.press("Tab")
        self.note(label)

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
        self.note("a box on the map")

    def note(self, name):
        self.names.append(name)
        self.page.get_by_test_id("stStatusWidget").wait_for(state="hidden")
        self.page.wait_for_timeout(800)


def stops(seed):
    """Stops of 300 vehicles in Lyon."""
    draw = np.random.default_rng(seed)
    vehicle = draw.integers(0, 300, 3000)
    return pd.DataFrame({"Fahrzeug": vehicle, "lon": draw.normal(4.85, 0.03, 3000), "lat": draw.normal(45.75, 0.02, 3000)})


def write_csv(folder):
    stops(1).to_csv(folder / "stops.csv", index=False)
    return folder / "stops.csv"


def write_zip(folder):
    """Write a Shapefile, which says its CRS, in a zip."""
    table = stops(2)
    places = gpd.GeoDataFrame(table[["Fahrzeug"]], geometry=gpd.points_from_xy(table["lon"], table["lat"]), crs="EPSG:4326")
    (folder / "halts").mkdir()
    places.to_file(folder / "halts" / "halts.shp")
    return shutil.make_archive(str(folder / "halts"), "zip", folder / "halts")


@pytest.mark.parametrize("write", [write_csv, write_zip])
def test_actions_from_a_file_of_points_to_the_bundle(chromium, address, tmp_path, write):
    with visit(chromium, address, "points?mode=Curate&mechanism=path_tree", scheme="light", tmp_path=tmp_path) as (page, _):
        page.set_viewport_size({"width": 1400, "height": 1000})
        actions = Actions(page)
        page.get_by_text("Upload", exact=True).click()
        page.get_by_test_id("stFileUploader").filter(has_text="Points file").locator("input[type=file]").set_input_files(write(tmp_path))
        actions.note("the file")
        assert page.get_by_role("button", name="Run and pay").is_disabled()
        actions.press(page.get_by_text("Each person: a column says whose record a row is"), "whom to protect")
        actions.type("Records per person, at most", "10")
        actions.drag_box()
        if write is write_csv:
            actions.press(page.get_by_role("button", name="EPSG:4326: "), "the CRS, by where it would lie")
        page.get_by_text("records in a square of level").first.wait_for()
        assert page.get_by_role("button", name="Run and pay").is_disabled()
        actions.type("Cap, ε", "2")
        actions.press(page.get_by_role("button", name="Run and pay ε"), "run and pay")
        page.get_by_text("Publish it").wait_for()
        actions.type("Curator", "City office")
        actions.type("Description", "Stops of vehicles.")
        with page.expect_download() as found:
            actions.press(page.get_by_role("button", name="Make and download the bundle"), "the bundle")
        found.value.save_as(tmp_path / "bundle.zip")
        assert not dv.read_release(tmp_path / "bundle.zip").simulation
    print(f"\n{write.__name__}, {len(actions.names)} actions: {', '.join(actions.names)}")
    assert len(actions.names) <= MOST_ACTIONS
