"""Rebuild points.png, trips.png (README) and map.png (start): `python assets/make_picture.py`, with the dev extra and Chromium."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
FLAGS = "--no-sandbox --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader --ignore-gpu-blocklist"
SIZE = {"width": 1360, "height": 900}
PATIENCE = 60


def main() -> None:
    """Start the app, draw once, take the picture."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    server = subprocess.Popen(command, cwd=ROOT)
    try:
        _wait(f"http://127.0.0.1:{port}/_stcore/health")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
            _take(browser.new_page(viewport=SIZE, color_scheme="light"), f"http://127.0.0.1:{port}/points")
            _draw(browser.new_page(viewport=SIZE, color_scheme="light"), f"http://127.0.0.1:{port}/trips", "Pairs released", "trips.png")
            browser.close()
    finally:
        server.terminate()


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


def _draw(page: Page, address: str, figure: str, name: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Draw a release").click(timeout=1000 * PATIENCE)
    page.get_by_text(figure).first.wait_for(timeout=1000 * PATIENCE)
    page.wait_for_timeout(9000)
    page.screenshot(path=ROOT / "assets" / name)


def _take(page: Page, address: str) -> None:
    _draw(page, address, "Partitions shown", "points.png")
    box = page.get_by_test_id("stDeckGlJsonChart").bounding_box()
    if box is None:
        raise RuntimeError("there is no map")
    side = box["height"] * 0.95
    middle = {"x": box["x"] + (box["width"] - side) / 2, "y": box["y"] + (box["height"] - side) / 2, "width": side, "height": side}
    page.screenshot(path=ROOT / "assets" / "map.png", clip=middle)


if __name__ == "__main__":
    main()
