"""Clicks in a browser while a draw is being made: nothing that is paid for is lost, and nothing is paid for twice."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from dpviz.privacy.ledger import Ledger
from tests.app.browse import draw, until, visit
from tests.app.test_browser_release import LINK, draws

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SLOW = Path(__file__).with_name("slow_app.py")


@pytest.fixture(params=[False, True], ids=["as configured", "with fast reruns"])
def fast(request):
    """Whether Streamlit starts another run beside the one that draws, as it does by default."""
    return request.param


@pytest.fixture
def slow(fast, chromium, serve, tmp_path):
    """A visit to the app with slow draws, and its ledger."""
    path = Ledger.new(tmp_path / "own.sqlite").path
    address = serve(SLOW, *["--runner.fastReruns=true"] * fast, env={"DPVIZ_LEDGER": str(path)})

    @contextmanager
    def at_points():
        with visit(chromium, address, LINK, scheme="light", tmp_path=tmp_path) as (page, _):
            page.get_by_role("button", name="Run and pay ε").wait_for()
            yield page, Ledger(path)

    return at_points


def test_another_press_on_draw(slow, fast):
    with slow() as (page, ledger):
        draw(page)
        until(lambda: len(draws(ledger)) == 1, "a draw that is paid for")
        draw(page)
        quiet(page)
        if fast:
            there_and_back(page, "Trips", "Points")
        page.get_by_text("ε 1. The next draw makes it ε 2").wait_for()
        page.get_by_text("Partitions shown").wait_for()
        assert len(draws(ledger)) == 1


def quiet(page):
    """Wait until the draw must be there, whichever run makes it."""
    page.wait_for_timeout(6000)
    page.get_by_test_id("stStatusWidget").wait_for(state="hidden")


def there_and_back(page, *links):
    """The click after which fast reruns show what came of a draw."""
    for name in links:
        page.get_by_role("link", name=name).click()
        page.wait_for_timeout(1000)
