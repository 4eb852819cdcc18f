"""Rebuild the pictures of README, help and start page: `python assets/make_picture.py`, with the dev extra and Chromium.

With names of files, such as preset_class.webp, preset_class_dark.webp or curate.webp, only those pictures are made.
"""

from __future__ import annotations

import io
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from PIL import Image, ImageOps
from playwright.sync_api import Page, sync_playwright

from dpviz.app.pages.start import PRESETS, Preset

ROOT = Path(__file__).parents[1]
FLAGS = "--no-sandbox --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader --ignore-gpu-blocklist"
WIDTH, HEIGHT, TALL = 1360, 900, 1400
PATIENCE, MOMENT = 180, 2.0
Scheme = Literal["light", "dark"]
QUALITY: dict[Scheme, int] = {"light": 76, "dark": 60}  # all pictures of the start page together stay below 300 kB
OVER_MAPS = ".canvas .heads, .canvas .tools, [class*=st-key-pane-]"  # what lies over the maps, and is too small on a picture
THUMBNAIL, GAP = (720, 300), 2


def _curate(page: Page) -> None:
    """Go on to Curate, and say how many records there are."""
    page.get_by_role("radio", name="Curate").click()
    page.locator(".st-key-drawer").get_by_role("radio", name="How good").click()
    number = page.get_by_role("spinbutton", name="How many records, about?")
    number.fill("200000")
    number.press("Enter")
    page.get_by_text("useful squares of").first.wait_for()
    page.get_by_text("Ledger: ").first.evaluate("caption => { caption.style.visibility = 'hidden'; }")  # where it lies on this computer


SCREENS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "points": ("points", lambda page: page.locator(".canvas[data-shown]").wait_for()),
    "trips": ("trips", lambda page: page.locator(".canvas[data-shown]").wait_for()),
    "areas": ("areas", lambda page: page.locator(".canvas[data-shown]").wait_for()),
    "learn": ("learn?stop=sums&draw=3", lambda page: page.get_by_test_id("stVegaLiteChart").first.wait_for()),
    "curate": ("points?mechanism=path_tree", _curate),
}
PICKED = 'picked=[["Path-budget tree",0.45],["Quadtree",0.45]]'


def main() -> None:
    """Start the app and take every picture."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    server = subprocess.Popen(command, cwd=ROOT)
    try:
        _wait(f"http://127.0.0.1:{port}/_stcore/health")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
            for scheme in QUALITY:
                page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
                page.set_default_timeout(1000 * PATIENCE)
                for preset in PRESETS:
                    if not sys.argv[1:] or preset.picture_in(scheme) in sys.argv[1:]:
                        _take_preset(page, f"http://127.0.0.1:{port}", preset, scheme)
                if scheme == "light":
                    _take(page, f"http://127.0.0.1:{port}")
                page.close()
            browser.close()
    finally:
        server.terminate()


def _take(page: Page, address: str) -> None:
    for name, (link, wait) in SCREENS.items():
        if not sys.argv[1:] or f"{name}.webp" in sys.argv[1:]:
            page.goto(f"{address}/{link}")
            wait(page)
            _save(_steady(page), name)
    if not sys.argv[1:] or "compare.webp" in sys.argv[1:]:
        page.set_viewport_size({"width": WIDTH, "height": TALL})
        _pressed(page, f"{address}/compare?{PICKED}", "Start the study", "Done:", "compare")


def _take_preset(page: Page, address: str, preset: Preset, scheme: Scheme) -> None:
    """The picture of the start page that stands for a preset, in a light or a dark theme."""
    page.goto(f"{address}/{preset.page}?{urlencode(preset.link)}")
    if preset.page == "learn":
        shown = page.get_by_test_id("stVegaLiteChart").first
    else:
        if preset.page == "compare":
            page.get_by_role("button", name="Start the study").click()
            page.get_by_text("Done:").first.wait_for()
        page.locator(".canvas[data-shown]").wait_for()
        shown = page.locator(".canvas .map")
    shown.wait_for()
    _steady(page)
    page.mouse.move(WIDTH - 2, HEIGHT - 2)
    page.locator(OVER_MAPS).evaluate_all("all => all.forEach((each) => { each.style.visibility = 'hidden'; })")
    picture = Image.open(io.BytesIO(shown.screenshot())).convert("RGB")
    panes = {"learn": 1, "compare": 4}.get(preset.page, len(json.loads(preset.link["panes"])) if "panes" in preset.link else 2)
    picture = _in_a_row(picture, panes, "white" if scheme == "light" else "black")
    picture.save(ROOT / "assets" / preset.picture_in(scheme), quality=QUALITY[scheme], method=6)


def _in_a_row(picture: Image.Image, panes: int, gap: str) -> Image.Image:
    """Show the middle of each of some maps, which lie in a row, with a gap of a colour between them."""
    width, size = picture.width // panes, ((THUMBNAIL[0] + GAP) // panes - GAP, THUMBNAIL[1])
    row = Image.new("RGB", THUMBNAIL, gap)
    for place in range(panes):
        pane = picture.crop((place * width, 0, (place + 1) * width, picture.height))
        row.paste(ImageOps.fit(pane, size), (place * (size[0] + GAP), 0))
    return row


def _wait(address: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(address)
        except urllib.error.URLError:
            time.sleep(0.3)
        else:
            return
    raise TimeoutError("the app did not start")


def _pressed(page: Page, address: str, button: str, then: str, name: str) -> None:
    """A page after its button was pressed."""
    page.goto(address)
    page.get_by_role("button", name=button).click()
    page.get_by_text(then).first.wait_for()
    page.mouse.move(WIDTH - 2, HEIGHT - 2)
    _save(_steady(page), name)


def _steady(page: Page) -> bytes:
    """The page, as soon as nothing on it moves any more."""
    before, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(MOMENT)
        now = page.screenshot()
        if now == before and not page.get_by_test_id("stStatusWidget").count():
            return now
        before = now
    raise TimeoutError("the page did not come to rest")


def _save(picture: bytes, name: str) -> None:
    Image.open(io.BytesIO(picture)).convert("RGB").save(ROOT / "assets" / f"{name}.webp", quality=QUALITY["light"], method=6)


if __name__ == "__main__":
    main()
