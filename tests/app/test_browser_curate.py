"""Curate in a browser: the bar covers nothing in any window, drawers open by themselves and take the focus, what is missing leads there."""

import pytest

from tests.app.browse import open_good, until, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WINDOWS = {"usual": (1400, 900), "low": (1280, 720), "200 %": (700, 450), "phone": (390, 844)}
HOMES = "lon,lat\n4.8,45.7\n4.9,45.8\n"


@pytest.fixture
def curate(chromium, address, tmp_path):
    with visit(chromium, address, "points?mode=Curate&sample=gaussian_cluster&size=2000", scheme="light", tmp_path=tmp_path) as (page, _):
        page.locator(".st-key-bar").get_by_role("button", name="Run and pay").wait_for()
        yield page


def edges(page, selector):
    found = page.locator(selector).first.bounding_box()
    return found["y"], found["y"] + found["height"]


def boxes(page, selector):
    return [found.bounding_box() for found in page.locator(selector).all()]


@pytest.mark.parametrize("size", WINDOWS.values(), ids=WINDOWS)
def test_the_bar_is_always_seen_and_covers_nothing(curate, size):
    curate.set_viewport_size({"width": size[0], "height": size[1]})
    curate.wait_for_timeout(1000)
    top, bottom = edges(curate, ".st-key-bar")
    assert bottom <= size[1] + 1
    assert edges(curate, ".st-key-page")[1] <= top + 1
    if size != WINDOWS["phone"]:  # there drawers stand below the map
        assert max(icon["y"] + icon["height"] for icon in boxes(curate, ".st-key-drawer [role=radio]")) <= top, "no icon of a drawer is cut"
    open_good(curate)
    last = curate.get_by_text("Earlier releases")
    last.scroll_into_view_if_needed()
    below = last.bounding_box()
    assert below["y"] + below["height"] <= edges(curate, ".st-key-bar")[0] + 1, "the last control of the drawer stands above the bar"
    assert curate.evaluate("document.documentElement.scrollWidth <= innerWidth")


def opened(page):
    return page.locator(".st-key-drawer [aria-checked=true]").inner_text().split("\n")[-1]


def test_drawers_open_in_order_and_the_focus_goes_with_them(curate, tmp_path):
    page = curate
    assert opened(page) == "Files"
    page.get_by_text("Upload", exact=True).click()
    (tmp_path / "homes.csv").write_text(HOMES)
    page.locator("[class*=dropped] input[type=file]").set_input_files(tmp_path / "homes.csv")
    until(lambda: opened(page) == "Whom", "the next drawer")
    page.get_by_text("Each record is its own person").click()
    until(lambda: opened(page) == "Where", "the next drawer")
    until(lambda: page.evaluate("document.activeElement.innerText") == "Where", "the focus on its title")
    page.keyboard.press("Escape")
    page.locator("[class*=st-key-card-]").first.wait_for(state="hidden")
    page.locator(".st-key-missing").get_by_role("button", name="Say which CRS").click()
    page.get_by_role("heading", name="Where").wait_for()
