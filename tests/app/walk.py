"""A walk through the pages without a browser: start them, press, and read what is shown."""

import json
from pathlib import Path

from streamlit.testing.v1 import AppTest

from dpviz.privacy.ledger import Ledger

ROOT = Path(__file__).parents[2]


SMALL = {"sample": "gaussian_cluster", "size": "1000", "order": "6", "settings": '{"height":4}'}


CURATE = SMALL | {"mode": "Curate"}


PUBLIC_FIGURES = {"Partitions shown", "Typical noise", "Released total", "Budget of this draw", "Released answer"}


PUBLIC_FIGURES |= {"95 % interval, noise only"}


PUBLIC_COLUMNS = [
    "partition",
    "West",
    "South",
    "East",
    "North",
    "count",
    "stddev",
    "all at once, 95 % from",
    "to",
    "first measured",
    "status",
]


PLACES = b"lon,lat,note\n-118.2,34.1,secret\n-80.25,25.5,hidden\n-100.125,40.5,quiet\n"


SWAPPED = b"lon,lat\n34.1,-118.2\n25.5,-80.25\n"


def points():
    from dpviz.app.points_page import points_page  # noqa: PLC0415 - only this function's text runs

    points_page()


def points_app(link=SMALL):
    app = AppTest.from_function(points, default_timeout=30)
    app.query_params.update(link)
    app.session_state["tab"] = "Table"  # the tab that is quickest to draw
    return good(app.run())


def good(app):
    assert not app.exception, [each.value for each in app.exception]
    return app


def fine(app):
    assert not good(app).error, [each.value for each in app.error]
    return app


def entries():
    """Every draw that the test's ledger counts, oldest first."""
    return [entry for account in Ledger().accounts() for entry in Ledger().entries(account.name)]


def as_read(element):
    """A text as a person reads it: what keeps names apart from Markdown is not seen."""
    return element.value.replace("\\", "").replace("\u2060", "")


def errors(app):
    """What is refused in place, as a person reads it."""
    return " ".join(as_read(error) for error in app.error)


def warnings(app):
    return " ".join(as_read(warning) for warning in app.warning)


def account():
    (found,) = Ledger().accounts()
    return found


def protect(app, person=None, most=1):
    """Say whom a file's release protects: each record (or trip) as a person of its own, or the persons of a column."""
    (choice,) = [radio for radio in app.radio if radio.label == "Whom to protect"]
    good(choice.set_value("each" if person is None else "person").run())
    if person is not None:
        labelled(app.selectbox, "Person").set_value(person)
        (bound,) = [number for number in app.number_input if number.label.endswith("per person, at most")]
        bound.set_value(most)
    return good(app.run())


def by_record(app):
    """Say that each record is its own person, where nothing is said yet."""
    return protect(app) if any(radio.label == "Whom to protect" and radio.value is None for radio in app.radio) else app


def name_dataset(app, name=None, cap=10.0):
    """Type name and cap where the ledger does not know the data and the page proposes none; each record is protected unless it is said."""
    by_record(app)
    typed = [each for each in app.text_input if each.label == "Name of the dataset"]
    if typed and not typed[0].value:
        typed[0].set_value(name or f"Homes {len(Ledger().accounts()) + 1}")
        labelled(app.number_input, "Cap, ε").set_value(cap)
        good(app.run())
    return app


def press_draw(app):
    name_dataset(app)
    return good(app.button(key="draw").click().run())


def pages():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.points_page import points_page  # noqa: PLC0415
    from dpviz.app.release_page import release_page  # noqa: PLC0415
    from dpviz.app.trips_page import trips_page  # noqa: PLC0415

    {"points": points_page, "trips": trips_page, "release": release_page}[st.session_state.get("at", "points")]()


def pages_app(at="points", link=CURATE):
    """All pages in one session; `go` is the navigation between them."""
    app = AppTest.from_function(pages, default_timeout=60)
    app.query_params.update(link)
    app.session_state["at"], app.session_state["tab"], app.session_state["trips tab"] = at, "Table", "Consistency"
    return good(app.run())


def go(app, page):
    app.session_state["at"] = page
    return good(app.run())


def deck_of(app):
    return json.loads(app.get("deck_gl_json_chart")[0].proto.json)


def drawn_layer(app):
    return next(layer for layer in deck_of(app)["layers"] if layer["id"] not in ("land", "countries", "states", "domain"))


def drawn(app):
    return newest(app, f"drawn {app.session_state['config'].mode}")


def newest(app, shelf):
    """What a session laid on a shelf last, None before the first."""
    return [None, *(app.session_state[shelf] if shelf in app.session_state else ())][-1]  # noqa: SIM401 - a session has no get()


def keys(elements):
    return {element.key for element in elements}


def captions(app):
    return " ".join(as_read(caption) for caption in app.caption)


def texts(app):
    return " ".join(as_read(each) for each in app.markdown)


def labelled(widgets, label):
    """The one widget with this label."""
    (found,) = [widget for widget in widgets if widget.label == label]
    return found


def infos(app):
    return " ".join(as_read(info) for info in app.info)


def shares_of(app):
    return [number.value for number in app.number_input if (number.key or "").startswith("share ")]


def open_tab(app, name):
    app.session_state["tab"] = name
    return good(app.run())


FLIGHTS = {"sample": "us_flights", "level": "1"}


def trips():
    from dpviz.app.trips_page import trips_page  # noqa: PLC0415 - only this function's text runs

    trips_page()


def trips_app(link=FLIGHTS):
    app = AppTest.from_function(trips, default_timeout=60)
    app.query_params.update(link)
    app.session_state["trips tab"] = "Consistency"
    return good(app.run())


def trips_drawn(app):
    return newest(app, f"trips drawn {app.session_state['trips config'].mode}")


def open_trips_tab(app, name):
    app.session_state["trips tab"] = name
    return good(app.run())


def layers_of(app, place=0):
    return {layer["id"]: layer for layer in json.loads(app.get("deck_gl_json_chart")[place].proto.json)["layers"]}
