"""The drawers of Curate: the first in which something is missing is seen, and one that was opened stays until it is answered."""

import re

from tests.app.seen import good, missing
from tests.app.start import CURATE, points_app, uploaded
from tests.app.walk import protect


def seen(app):
    """The drawer that is not hidden; None if all are."""
    styles = [
        re.search(r"not\(\.st-key-card-([a-z-]+)\)|st-key-opened-curate\) \{ display", str(each.proto.body)) for each in app.get("html")
    ]
    (found,) = [each for each in styles if each]
    return found.group(1)


def test_the_first_drawer_in_which_something_is_missing_is_seen():
    app = uploaded(unit=None, frame="Type the bounds", crs="")
    assert seen(app) == "whom"
    assert seen(protect(app)) == "where"
    app.text_input(key="crs").set_value("EPSG:4326")
    app.selectbox(key="frame").set_value("World")
    assert seen(good(app.run())) == "how-good"
    assert len(missing(app)) == 2


def test_one_that_was_opened_stays_until_what_was_missing_in_it_is_there():
    app = uploaded(unit=None, frame="Type the bounds", crs="")
    good(app.segmented_control(key="drawer").set_value("Where").run())
    app.text_input(key="crs").set_value("EPSG:4326")
    assert seen(good(app.run())) == "where"
    app.selectbox(key="frame").set_value("World")
    assert seen(good(app.run())) == "whom", "the next in which something is missing"
    good(app.segmented_control(key="drawer").set_value("Method").run())
    assert seen(good(app.run())) == "method", "nothing was missing in it"


def test_all_can_be_closed_and_what_is_missing_opens_them_again():
    app = points_app(CURATE)
    good(app.segmented_control(key="drawer").set_value(None).run())
    assert seen(app) is None
    good(app.button(key="missing 0").click().run())
    assert seen(app) == "how-good"
