"""A walk through the Release page without a browser."""

import dpviz as dv
from tests.app.seen import fine, good, labelled, newest
from tests.app.start import CURATE, pages_app
from tests.app.walk import go, press_draw

PAID = "A draw that is already paid for"
TEXTS = {"name": "Homes by square", "curator": "City office", "description": "Who sleeps where, one record each."}


def write_texts(app, **other):
    for name, text in {**TEXTS, **other}.items():
        where = app.text_area if name in ("description", "intended_use") else app.text_input
        where(key=f"publication {name}").set_value(text)
    return good(app.run())


def at_release(link=CURATE, *, draws=0, page="points"):
    """The Release page after so many draws in Curate."""
    app = pages_app(page, link)
    for _ in range(draws):
        fine(press_draw(app))
    return fine(go(app, "release"))


def choose_paid(app):
    return fine(labelled(app.segmented_control, "What").set_value(PAID).run())


def publish(app):
    return good(app.button(key="publish").click().run())


def published(app):
    return newest(app, "outcome")


def read_back(app, tmp_path):
    path = tmp_path / "release.zip"
    path.write_bytes(published(app).archive)
    return dv.read_release(path)


def kept(app):
    return app.session_state["kept draws"]
