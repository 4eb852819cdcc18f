"""What browser tests do on a page: visit it under watch, wait for what is seen, look at the map's pixels."""

import io
import re
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

LARGEST_MESSAGE = 5_000_000
HOW_MANY = re.compile("^How many .*, about\\?")  # the one answer of Curate that no file gives
# Streamlit's own frontend looks for its server below the page that was opened first, then at the root.
KNOWN_404 = re.compile(r"/(start|points|trips|areas|compare|learn|papers|release|help)/_stcore/(health|host-config)$")


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
        go_to(page, f"{address}/{path}")
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


def go_to(page, address):
    """Open an address; with mode=Curate, which no link carries, choose it then."""
    page.goto(address.replace("?mode=Curate&", "?").removesuffix("?mode=Curate"))
    if "mode=Curate" in address:
        page.get_by_text("Not protected:").wait_for()  # the end of Teach
        page.get_by_role("radio", name="Curate").click()


def until(condition, what, patience=40.0):
    """The first true value of `condition`; a page is read again and again, without waiting a fixed time."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.1)
    pytest.fail(f"not seen within {patience:g} s: {what}")


def live_map(page):
    """The two maps that follow the controls, once they show something."""
    page.locator(".canvas[data-shown]").wait_for()
    return page.locator(".canvas .map")


def map_colours(page, selector):
    """Number of colours in a map of the page."""
    found = page.locator(selector).first
    found.wait_for()
    return len(np.unique(np.asarray(Image.open(io.BytesIO(found.screenshot())).convert("RGB")).reshape(-1, 3), axis=0))


def pane_colours(page):
    """Numbers of colours in the left and in the right map."""
    image = np.asarray(Image.open(io.BytesIO(live_map(page).screenshot())).convert("RGB"))
    return [len(np.unique(half.reshape(-1, 3), axis=0)) for half in np.array_split(image, 2, axis=1)]


def click_pane(page, pane, right, up):
    """Click beside the middle of the left (0) or right (1) map, in pixels; a tab that was opened below may have moved it away."""
    live_map(page).evaluate("map => map.scrollIntoView({ block: 'center' })")
    box = live_map(page).bounding_box()
    page.mouse.click(box["x"] + box["width"] * (1 + 2 * pane) / 4 + right, box["y"] + box["height"] / 2 - up)


def open_drawer(page, name):
    """Open a drawer of Teach; what it holds is there once its heading is."""
    page.locator(".st-key-drawer").get_by_role("radio", name=name).click()
    page.get_by_role("heading", name=name, exact=True).wait_for()


def open_good(page):
    """Open the drawer *How good* of Curate, which opens with *Files*."""
    icon = page.locator(".st-key-drawer").get_by_role("radio", name="How good")
    if icon.get_attribute("aria-checked") != "true":
        icon.click()
    page.get_by_role("heading", name="How good").wait_for()


def draw(page, records="1000000", presses=1):
    """Say how many records there are, about, and pay, with one press or more."""
    open_good(page)
    number = page.get_by_role("spinbutton", name=HOW_MANY)
    if number.input_value() == "":
        number.fill(records)
        number.press("Enter")
        page.get_by_text(re.compile("^About [\\d,]+ useful")).wait_for()
    if (tick := page.get_by_text("I know that most of this is noise")).count():
        tick.click()
    page.get_by_role("button", name="Run and pay").click(click_count=presses)


def choose(page, key, text):
    page.locator(f".st-key-{key}").get_by_text(text, exact=True).click()


def background(page):
    color = page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
    return sum(map(int, re.findall(r"\d+", color)[:3]))
