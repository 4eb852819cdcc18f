"""The Release page in a browser: publish, download, read back; a double click spends once; forgotten is forgotten."""

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


def test_a_release_is_published_downloaded_and_read_back(chromium, own, tmp_path):
    address, ledger = own
    with visit(chromium, address, LINK, scheme="light", tmp_path=tmp_path) as (page, _):
        draw(page)
        page.get_by_text("ε 1. The next draw makes it ε 2").wait_for()
        page.get_by_role("link", name="Release").click()
        page.get_by_text("computed without a single record").wait_for()
        assert page.locator("canvas[data-testid=deckgl]").count() == 0
        formats = page.get_by_test_id("stMultiSelect").filter(has_text="Formats")
        assert formats.inner_text().split() == ["Formats", "geoparquet", "geojson", "csv"]
        assert page.get_by_label("Name of the publication", exact=True).input_value().startswith("Sample gaussian_cluster")
        write_texts(page)
        page.get_by_role("button", name="Publish").dblclick()
        page.get_by_text("is made and paid for").wait_for()
        with page.expect_download() as found:
            page.get_by_role("button", name="Download the release").click()
        found.value.save_as(tmp_path / "release.zip")
        with page.expect_download() as found:
            page.get_by_role("button", name="Download the report").click()
        found.value.save_as(tmp_path / "report.html")
        assert page.locator("iframe").count() == 0
        assert page.locator("b", has_text="by").count() == 0

        release = dv.read_release(tmp_path / "release.zip")
        assert len(release.tree.leaves) == 1024
        assert not release.simulation
        assert "Homes &lt;b&gt;by&lt;/b&gt; square" in (tmp_path / "report.html").read_text("utf-8")
        assert [entry.purpose for entry in draws(ledger)] == ["draw"], "what is paid for comes first"
        assert draws(ledger)[0].published

        page.get_by_role("button", name="Forget my data").click()
        page.get_by_text("Forgotten:").wait_for()
        page.get_by_role("button", name="Start again").click()
        page.get_by_text("Nothing can be released yet").wait_for()
        assert len(draws(ledger)) == 1
