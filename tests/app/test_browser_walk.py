"""A walk through all pages: nothing leaves the app's address, one session sees nothing of another, an error reveals nothing."""

import pytest

from tests.app.browse import draw, go_to, until, visit
from tests.app.test_browser_release import typed
from tests.app.walk import ROOT

pytestmark = pytest.mark.browser
MARK = "zqKowalska"
LONG = MARK * 50_000  # a line may have a megabyte, and uploads above one are spooled
HOMES = f"lon,lat,{MARK}Column\n-99.876543,38.987654,{LONG}\n-80.25,25.5,{LONG}\n-100.125,40.5,{LONG}\n".encode()
SHOWN = {
    "Start": "What would you publish?",
    "Points": "Not protected:",
    "Areas": "Not protected:",
    "Trips": "Not protected:",
    "Compare": "has the least error",
}
BROKEN = '''"""The app, with an error that carries a private value."""
from dpviz.app import main
from dpviz.families import FAMILIES

def fails(cards):
    raise ZeroDivisionError("zqKowalska lives at 38.987654")

object.__setattr__(FAMILIES["points"].page, "controls", fails)
main()
'''


@pytest.fixture
def spool(tmp_path):
    """Where the server would put temporary files."""
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


@pytest.fixture
def address(serve, spool):
    """A server that has seen nothing yet."""
    return serve(ROOT / "app.py", env=dict.fromkeys(("TMPDIR", "TEMP", "TMP", "CPL_TMPDIR"), str(spool)))


def settled(page):
    page.get_by_test_id("stStatusWidget").wait_for(state="hidden")


def upload(page, tmp_path):
    (tmp_path / f"{MARK}File.csv").write_bytes(HOMES)
    page.get_by_text("Upload", exact=True).first.click()
    page.locator("[class*=dropped] input[type=file]").set_input_files(tmp_path / f"{MARK}File.csv")
    page.get_by_text("Each record is its own person").click()
    page.get_by_test_id("stSelectbox").filter(has_text="does a row stand for?").locator("input").fill("Each row")
    page.keyboard.press("Enter")
    typed(page, "CRS of the coordinates", "EPSG:4326")
    page.locator(".st-key-frame input").fill("Contiguous")
    page.keyboard.press("Enter")
    typed(page, "Name of the dataset", f"{MARK}Dataset")
    typed(page, "Cap, ε", "5")


def walk(page):
    """Every page that the navigation offers; what they show, as HTML."""
    seen = []
    for name in page.get_by_test_id("stSidebarNavLink").or_(page.get_by_test_id("stTopNavLink")).all_inner_texts():
        page.get_by_role("link", name=name.strip(), exact=True).first.click()
        page.get_by_text(SHOWN.get(name.strip(), name.strip())).first.wait_for()
        settled(page)
        pictures_are_there(page)
        seen.append(page.content())
    return seen


def pictures_are_there(page):
    """Wait for the pictures of a page: the server forgets them as soon as it is left, and those still on their way are not found."""
    until(lambda: page.evaluate("[...document.images].every(picture => picture.complete)"), "the pictures of the page")


@pytest.mark.slow
def test_a_walk_in_both_modes_leaves_nothing_for_other_addresses_or_sessions_or_on_the_disk(chromium, address, spool, tmp_path):
    with visit(chromium, address, "", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("button", name="Open the map").wait_for()
        assert len(walk(page)) >= 4  # Teach
    with visit(chromium, address, "points?mode=Curate", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("radio", name="Upload").wait_for()
        upload(page, tmp_path)
        page.get_by_text("ε 0. The next draw makes it ε 0.1, of ε 5").wait_for()
        draw(page)
        page.get_by_text("ε 0.1. The next draw makes it ε 0.2, of ε 5").wait_for()
        assert MARK in page.content()
        assert MARK not in page.url
        other_session(chromium, address, tmp_path)
        assert MARK in "".join(walk(page))
        assert [*spool.rglob("*")] == []  # uploads above a megabyte are spooled, into files without a name
    assert [*spool.rglob("*")] == []


def other_session(chromium, address, tmp_path):
    """Walk in a second browser while the first has private data open."""
    with visit(chromium, address, "", scheme="dark", tmp_path=tmp_path) as (page, _):
        frames = []
        page.on("websocket", lambda line: line.on("framereceived", lambda frame: frames.append(frame)))
        page.get_by_role("button", name="Open the map").wait_for()
        settled(page)
        pictures_are_there(page)
        page.reload()
        page.get_by_role("button", name="Open the map").wait_for()
        shown = walk(page)
        go_to(page, f"{address}/points?mode=Curate")
        page.locator(".st-key-bar").wait_for()
        shown += [page.content(), *walk(page)]
        assert "every draw is counted in the ledger" in "".join(shown)
    assert len(frames) > 5
    for text in (MARK, "38.98765", "99.87654"):
        assert not [html for html in shown if text in html]
        assert not [frame for frame in frames if text in str(frame)]


@pytest.mark.slow
def test_an_error_inside_the_app_reveals_nothing(chromium, serve, tmp_path):
    script = tmp_path / "broken.py"
    script.write_text(BROKEN, "utf-8")
    page = chromium.new_page()
    frames = []
    page.on("websocket", lambda line: line.on("framereceived", lambda frame: frames.append(frame)))
    page.goto(f"{serve(script)}/points")
    page.get_by_text("This app has encountered an error").wait_for()
    html = page.content()
    page.close()
    assert frames
    for text in (MARK, "38.98765", "Traceback", "points/page.py", "ZeroDivisionError", 'File "'):
        assert text not in html
        assert text not in str(frames)
