"""What a change costs beside an empty rerun of the same minute, in bytes and in time until the maps show it: pytest -m benchmark -s.

Streamlit keeps a message of 10 kB or more in the browser for two runs of the page: one that is the same again is sent as its digest alone.
A scene goes out in parts, so that a change sends those parts that changed, and small ones.
"""

import statistics
import time

import pytest

from dpviz.app.pages.points.page import PAGE
from tests.app.browse import live_map, until, visit

pytestmark = pytest.mark.benchmark
LARGEST_SCENE = 1_500_000  # bytes of a message with 65,536 partitions
PAUSE = 1300  # milliseconds: between two changes, so that runs need not wait for each other
TIMES = 5
WATCH = """canvas => {
  const app = document.querySelector("[data-testid=stApp]"), now = () => performance.now();
  window.costs = { pressed: 0, shown: 0, ended: 0 };
  const press = () => { window.costs = { pressed: now(), shown: 0, ended: 0 }; };
  for (const name of ["keydown", "pointerdown"]) window.addEventListener(name, press, true);
  new MutationObserver(() => { window.costs.shown = now(); }).observe(canvas, { attributeFilter: ["data-runs"] });
  new MutationObserver(() => { if (app.dataset.testScriptState === "notRunning") window.costs.ended = now(); })
    .observe(app, { attributeFilter: ["data-test-script-state"] });
}"""


def press_r(page):
    page.locator("body").press("r")


def move_epsilon(page):
    page.get_by_role("slider", name="Budget ε", exact=True).press("ArrowRight")


def choose_level(page):
    page.locator(".chip[aria-checked=false]").first.click()


def move_camera(page):
    live_map(page).press("ArrowRight")


CHANGES = {"ε": (move_epsilon, "shown"), "level": (choose_level, "shown"), "camera": (move_camera, "ended")}


@pytest.fixture(params=["points", "trips", "areas"])
def opened(request, chromium, address, tmp_path):
    """A page whose errors over ε are there, so that nothing else runs, and what it received."""
    with visit(chromium, address, request.param, scheme="light", tmp_path=tmp_path) as (page, seen):
        live_map(page)
        until(lambda: page.locator(".slider polyline").get_attribute("points"), "the errors over ε", 120)
        page.wait_for_timeout(2 * PAUSE)
        page.locator(".canvas").evaluate(WATCH)
        yield request.param, page, seen


def measure(page, seen, change, end):
    """Seconds from a press until its end, and the bytes that came."""
    page.wait_for_timeout(PAUSE)
    seen.sizes.clear()
    change(page)
    found = until(lambda: (costs := page.evaluate("costs"))[end] > costs["pressed"] and costs, f"{change.__name__} {end}")
    page.wait_for_timeout(PAUSE)
    return (found[end] - found["pressed"]) / 1000, sum(seen.sizes)


def mechanism_seconds(family):
    """Seconds that one run of Points and its comparison with the truth take in this process, where nothing else is done.

    Of other pages, whose runs take less than 0.1 s on the samples, it is 0: their time is left in what is printed.
    """
    if family != "points":
        return 0.0
    PAGE.prepare()
    start = time.perf_counter()
    PAGE.prepare()
    return time.perf_counter() - start


def test_a_change_beside_an_empty_rerun(opened):
    family, page, seen = opened
    own = mechanism_seconds(family)
    print(f"\n{family}: {own:.2f} s of the mechanism's own time are left out")
    for name, (change, end) in CHANGES.items():
        pairs = [(measure(page, seen, press_r, "ended"), measure(page, seen, change, end)) for _ in range(TIMES)]
        empty, seconds = (statistics.median(each[part][0] for each in pairs) for part in (0, 1))
        size = max(bytes_ for _, (_, bytes_) in pairs)
        spent = seconds - own if name == "ε" else seconds
        print(f"{name:8} {seconds:5.2f} s, {size:9,} bytes, {spent / empty:4.1f} empty reruns of {empty:.2f} s")
        assert size < LARGEST_SCENE


def test_the_message_of_many_partitions(chromium, address, tmp_path):
    with visit(chromium, address, "points?mechanism=quadtree&zoom=8", scheme="light", tmp_path=tmp_path) as (page, seen):
        live_map(page)
        page.wait_for_timeout(3000)
        seen.sizes.clear()
        page.locator(".canvas").evaluate(WATCH)
        page.get_by_role("button", name="Again").click()
        until(lambda: page.evaluate("costs.shown"), "another run")
        assert max(seen.sizes) < LARGEST_SCENE
