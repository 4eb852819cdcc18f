"""From a payment to a bundle, without a browser: the words on the page, and the bundle that its button makes."""

import dpviz as dv
from dpviz.app.payment.release_files import Maker
from tests.app.seen import drawn, fine, good
from tests.app.start import CURATE, pages_app
from tests.app.walk import press_draw

TEXTS = {"name": "Homes by square", "curator": "City office", "description": "Who sleeps where, one record each."}
TYPED = {**TEXTS, "region": "", "intended_use": "", "formats": ["csv"]}


def write_texts(app, **other):
    for name, text in {**TEXTS, **other}.items():
        where = app.text_area if name in ("description", "intended_use") else app.text_input
        where(key=f"publication {name}").set_value(text)
    return good(app.run())


def at_payment(link=CURATE, *, page="points"):
    """A page of Curate that has paid for a release."""
    return fine(press_draw(pages_app(page, link)))


def made(paid, **other):
    """The bundle of a payment with these words."""
    return Maker(paid, TYPED | other).make()


def read_back(bundle, tmp_path):
    path = tmp_path / "release.zip"
    path.write_bytes(bundle.archive)
    return dv.read_release(path)


def payment(app):
    """What the page of points paid for last."""
    return drawn(app).paid
