"""What the two maps cost in a browser: presses and seconds until they show something: pytest -m benchmark -s prints the table."""

import time

import pytest

from tests.app.browse import live_map, until, visit

pytestmark = pytest.mark.benchmark
LARGEST_SCENE = 1_500_000  # bytes of a message with 65,536 partitions
FINE = "points?mechanism=quadtree&zoom=8"


def seconds_until(condition, what):
    start = time.perf_counter()
    until(condition, what)
    return time.perf_counter() - start


def scene_key(page):
    return page.locator(".canvas").get_attribute("data-shown")


def drag(page, pixels):
    """Press on the handle of the finest level, move it, and keep it pressed."""
    page.locator(".split").click()
    handle = page.locator(".knob").last
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + pixels, steps=4)


def test_presses_and_seconds(chromium, address, tmp_path):
    rows = []
    for scheme in ("light", "dark"):
        with visit(chromium, address, "points", scheme=scheme, tmp_path=tmp_path) as (page, _):
            start = time.perf_counter()
            live_map(page)
            page.locator(".rail").get_by_text("%", exact=False).first.wait_for()
            rows.append((f"truth, release and relative error, {scheme}, 0 presses", time.perf_counter() - start))
    with visit(chromium, address, FINE, scheme="light", tmp_path=tmp_path) as (page, seen):
        live_map(page)
        page.wait_for_timeout(3000)
        seen.sizes.clear()
        before = scene_key(page)
        page.get_by_role("button", name="Again").click()
        rows.append(("another run, 65,536 partitions", seconds_until(lambda: scene_key(page) != before, "another run")))
        largest = max(seen.sizes)
        rows.append((f"its largest message, {largest:,} bytes", 0.0))
        assert largest < LARGEST_SCENE
        drag(page, 25)
        rows.append(
            ("expected errors of a dragged share", seconds_until(lambda: "~" in page.locator(".said").inner_text(), "expected errors"))
        )
        page.mouse.up()
    print()
    for name, seconds in rows:
        print(f"{name:60} {seconds:6.2f} s")
