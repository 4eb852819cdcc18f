"""The app as a person sees it, in Chromium: maps that show something, clicks, both themes, and nothing that leaves the address."""

import io
import re
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from dpviz.data.samples import SAMPLES

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
LARGEST_MESSAGE = 5_000_000
DOMAIN = SAMPLES["la_residents"].domain
# Streamlit's own frontend looks for its server below the page that was opened first, then at the root.
KNOWN_404 = re.compile(r"/points/_stcore/(health|host-config)$")


@pytest.fixture(scope="module")
def address(serve):
    return serve(ROOT / "app.py")


@contextmanager
def visit(chromium, address, path, *, scheme, tmp_path):
    """A page that keeps a record of requests, errors and message sizes, and checks it at the end."""
    context = chromium.new_context(viewport={"width": 1100, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(40_000)
    seen = SimpleNamespace(addresses=[], errors=[], failed=[], sizes=[])
    page.on("request", lambda request: seen.addresses.append(request.url))
    page.on("response", lambda response: seen.failed.append(response.url) if response.status >= 400 else None)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
    page.on(
        "websocket",
        lambda socket: (seen.addresses.append(socket.url), socket.on("framereceived", lambda data: seen.sizes.append(len(data)))),
    )
    try:
        page.goto(f"{address}/{path}")
        yield page, seen
    except BaseException:
        page.screenshot(path=tmp_path / "failure.png")
        print(f"a picture of the page is at {tmp_path / 'failure.png'}")
        raise
    finally:
        context.close()
    host = address.removeprefix("http://")
    assert all(re.match(rf"(https?|wss?|blob:https?)://{re.escape(host)}/|data:", each) for each in seen.addresses), seen.addresses
    assert any(each.startswith("ws") for each in seen.addresses)
    assert all(KNOWN_404.search(each) for each in seen.failed), seen.failed
    assert [error for error in seen.errors if "404" not in error] == []
    assert max(seen.sizes) < LARGEST_MESSAGE


def until(condition, what, patience=40.0):
    """The first true value of `condition`; a page is asked again and again, no fixed time is waited for."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.1)
    pytest.fail(f"not seen within {patience:g} s: {what}")


def canvas(page):
    found = page.get_by_test_id("stDeckGlJsonChart").locator("canvas").first
    found.wait_for()
    return found


def pixels(page):
    """(h, w, 3) of the middle of a map, where the domain is."""
    image = np.asarray(Image.open(io.BytesIO(canvas(page).screenshot())).convert("RGB"))
    height, width = image.shape[:2]
    return image[height // 4 : -height // 4, width // 2 - height // 4 : width // 2 + height // 4]


def colours(page):
    return len(np.unique(pixels(page).reshape(-1, 3), axis=0))


def draw(page):
    page.get_by_role("button", name="Draw a release").click()


def partitions(page, number):
    page.get_by_test_id("stMetric").filter(has_text="Partitions shown").filter(has_text=re.compile(rf"\D{number}$")).wait_for()


def choose(page, key, text):
    page.locator(f".st-key-{key}").get_by_text(text, exact=True).click()


def background(page):
    color = page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
    return sum(map(int, re.findall(r"\d+", color)[:3]))


def click_map(page, right, up):
    """Click beside the middle of the map, in pixels, until the box of the query follows: a slow computer may take a click for a drag."""
    box, before = canvas(page).bounding_box(), typed_box(page)
    for _ in range(12):
        page.mouse.move(box["x"] + box["width"] / 2 + right, box["y"] + box["height"] / 2 - up)
        page.mouse.click(box["x"] + box["width"] / 2 + right, box["y"] + box["height"] / 2 - up, delay=50)
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            if typed_box(page) != before:
                return
            time.sleep(0.1)
    pytest.fail("clicking a partition does not set the box")


def typed_box(page):
    return [float(page.get_by_label(side, exact=True).input_value()) for side in ("West", "South", "East", "North")]


def test_teach_from_the_start_page_to_a_clicked_range_query(chromium, address, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, seen):
        page.get_by_role("button", name="Open the map").click()
        until(lambda: colours(page) > 20, "the truth on the map before the first draw")
        assert background(page) > 600
        before = len(seen.sizes)
        draw(page)
        partitions(page, "16,384")
        until(lambda: colours(page) > 100, "released partitions on the map")
        print(f"\nlargest message on draw: {max(seen.sizes[before:]) / 2**20:.2f} MiB")
        released = pixels(page)

        slider = page.locator(".st-key-zoom").get_by_role("slider")
        slider.focus()
        for _ in range(4):
            page.keyboard.press("ArrowLeft")
        partitions(page, "64")
        until(lambda: (pixels(page) != released).any(), "larger partitions")

        page.get_by_role("tab", name="Range query").click()
        page.get_by_text("Released answer").wait_for()
        click_map(page, -30, 30)
        west, south, east, north = DOMAIN.bounds
        x, y, width, height = (west + east) / 2, (south + north) / 2, (east - west) / 8, (north - south) / 8
        until(lambda: typed_box(page) == pytest.approx([x - width, y, x, y + height], abs=1e-3), "the box of the clicked partition")
        click_map(page, 30, -30)
        both = pytest.approx([x - width, y - height, x + width, y + height], abs=1e-3)
        until(lambda: typed_box(page) == both, "the box that spans both partitions")
        page.get_by_text("True answer").wait_for()

        squares = pixels(page)
        choose(page, "shown", "False positives")
        page.get_by_text("wrong about presence").wait_for()
        until(lambda: (pixels(page) != squares).any(), "another map")
        page.get_by_role("link", name="Start").click()
        page.get_by_role("button", name="Open the map").click()
        partitions(page, "64")
        page.get_by_text("wrong about presence").wait_for()


def test_curate_in_the_dark_adds_up_and_hides_the_truth(chromium, address, tmp_path):
    link = 'points?mode=Curate&settings={"height":5}&epsilon=0.1'
    with visit(chromium, address, link, scheme="dark", tmp_path=tmp_path) as (page, _):
        page.get_by_text("Nothing has been spent yet").wait_for()
        assert background(page) < 200
        assert page.locator("canvas").count() == 0
        draw(page)
        page.get_by_text("ε 0.1. The next draw makes it 0.2").wait_for()
        partitions(page, "1,024")
        until(lambda: colours(page) > 50, "released partitions on the map")
        first = pixels(page)
        draw(page)
        page.get_by_text("ε 0.2. The next draw makes it 0.3").wait_for()
        until(lambda: (pixels(page) != first).any(), "another draw on the map")
        assert page.get_by_text("False positives").count() == 0
        page.get_by_text("Show curator-only truth").click()
        page.get_by_text("CURATOR ONLY.").wait_for()
        choose(page, "shown", "True")
        partitions(page, "1,024")
        until(lambda: colours(page) > 20, "the truth on the map")
        assert "path" not in page.url
