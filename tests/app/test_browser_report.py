"""The report in Chromium, opened as a file: nothing is requested, nothing is cut off, both themes and print."""

import io

import numpy as np
import pytest
from PIL import Image

from dpviz.mechanisms import TopDown
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.manifest import describe
from dpviz.view.report import report_html
from tests.release_cases import WORDS, point_release
from tests.view.trips_cases import grid, random_trips

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def placed_trips():
    return TopDown().release(random_trips(grid()), ApproxBudget(2, "1e-6"), Entropy.system())


@pytest.fixture(params=[point_release, placed_trips], ids=["points", "trips"])
def report(request, tmp_path):
    release = request.param()
    file = tmp_path / "report.html"
    file.write_bytes(report_html(release, describe(release, WORDS)))
    return file.as_uri()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 1100), ("light", 360)])
def test_a_report_is_read_from_the_file_alone(chromium, report, scheme, width):
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page, requests, said = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(report)
    assert requests == [report]
    assert page.locator("h1").inner_text() == WORDS.name
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = page.locator("svg.map").bounding_box()
    assert box["width"] > 0.6 * min(width, 700)
    picture = np.asarray(Image.open(io.BytesIO(page.locator("svg.map").screenshot())).convert("RGB"))
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20
    shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shown == ("rgb(20, 25, 29)" if scheme == "dark" else "rgb(255, 255, 255)")
    for name in ("Worked examples", "Exact amounts", "Accuracy by level"):
        assert page.get_by_role("region", name=name).count() == 1
    assert said == []
    context.close()


def test_a_dark_report_is_printed_on_white(chromium, report):
    context = chromium.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(report)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    context.close()


def test_no_script_could_run(chromium, report, tmp_path):
    """Should escaping ever fail, the page's own policy still stops scripts and requests."""
    file = tmp_path / "planted.html"
    html = (tmp_path / "report.html").read_bytes()
    planted = b"<script>document.title='run'</script><img src='http://127.0.0.1:9/x' onerror=\"document.title='run'\"></main>"
    file.write_bytes(html.replace(b"</main>", planted))
    page = chromium.new_page()
    sent = []
    page.on("requestfinished", lambda request: sent.append(request.url))
    page.goto(file.as_uri())
    assert "run" not in page.title()
    assert sent == [file.as_uri()]
    page.close()
