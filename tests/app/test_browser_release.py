"""From Curate to a bundle in a browser: pay, download, read back; a double click spends once; forgotten is forgotten."""

import pytest

import dpviz as dv
from dpviz.privacy.ledger import Ledger
from tests.app.browse import draw, visit
from tests.app.walk import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LINK = 'points?mode=Curate&sample=gaussian_cluster&size=2000&order=7&epsilon=1&mechanism=quadtree&settings={"height":5}'


@pytest.fixture
def own(serve, tmp_path):
    """A server whose ledger the test can read."""
    path = Ledger.new(tmp_path / "own.sqlite").path
    return serve(ROOT / "app.py", env={"DPVIZ_LEDGER": str(path)}), Ledger(path)


def draws(ledger):
    return [entry for account in ledger.accounts() for entry in ledger.entries(account.name)]


def typed(page, label, text):
    """Type into the input with a label, and wait until the page has taken it."""
    box = page.locator(f'input[aria-label="{label}"]')
    box.fill(text)
    box.press("Tab")
    page.get_by_test_id("stStatusWidget").wait_for(state="hidden")


def write_texts(page):
    for label, text in (("Name of the publication", "Homes <b>by</b> square"), ("Curator", "City office"), ("Description", "Made up.")):
        page.get_by_label(label, exact=True).fill(text)
        page.get_by_label(label, exact=True).press("Tab")


def test_a_release_is_paid_once_downloaded_and_read_back(chromium, own, tmp_path):
    address, ledger = own
    with visit(chromium, address, LINK, scheme="light", tmp_path=tmp_path) as (page, _):
        draw(page, presses=2)
        page.get_by_text("ε 1. The next draw makes it ε 2").wait_for()
        page.get_by_text("You expected about").wait_for()
        assert page.get_by_label("Name of the publication", exact=True).input_value().startswith("Sample gaussian_cluster")
        write_texts(page)
        with page.expect_download() as found:
            page.get_by_role("button", name="Make and download the bundle").click()
        found.value.save_as(tmp_path / "release.zip")
        page.get_by_text("The bundle was downloaded, and the ledger says so.").wait_for()
        with page.expect_download() as found:
            page.get_by_role("button", name="Download the report").click()
        found.value.save_as(tmp_path / "report.html")
        assert page.locator("iframe").count() == 0
        assert page.locator("b", has_text="by").count() == 0

        release = dv.read_release(tmp_path / "release.zip")
        assert len(release.tree.leaves) == 1024
        assert not release.simulation
        assert "Homes &lt;b&gt;by&lt;/b&gt; square" in (tmp_path / "report.html").read_text("utf-8")
        assert [bool(entry.published) for entry in draws(ledger)] == [True]

        page.locator(".st-key-drawer").get_by_role("radio", name="Files").click()
        page.get_by_role("button", name="Forget my data").click()
        page.get_by_text("Forgotten:").wait_for()
        page.get_by_role("button", name="Start again").click()
        page.get_by_text("Not protected:").wait_for()
        assert len(draws(ledger)) == 1


def test_its_old_address_opens_the_drawer_that_publishes(chromium, own, tmp_path):
    with visit(chromium, own[0], "release", scheme="light", tmp_path=tmp_path) as (page, _):
        page.get_by_role("heading", name="How good").wait_for()
        assert page.url.endswith("/points") or "/points?" in page.url
