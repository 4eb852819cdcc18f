"""A walk through the pages without a browser: start them, press, and read what is shown."""

import json
from dataclasses import replace
from pathlib import Path

from streamlit.testing.v1 import AppTest

from dpviz.app.cached import digest_of
from dpviz.app.points_state import Config
from dpviz.app.session import read_link
from dpviz.app.trips_state import TripsConfig
from dpviz.privacy.ledger import Ledger

ROOT = Path(__file__).parents[2]
SMALL = {"sample": "gaussian_cluster", "size": "1000", "order": "6", "settings": '{"height":4}'}
CURATE = SMALL | {"mode": "Curate"}
FLIGHTS = {"sample": "us_flights", "level": "1"}
CURATE_TRIPS = FLIGHTS | {"mode": "Curate"}
PLACES = b"lon,lat,note\n-118.2,34.1,secret\n-80.25,25.5,hidden\n-100.125,40.5,quiet\n"
BARE = b"lon,lat\n-118.2,34.1\n-80.25,25.5\n-100.125,40.5\n"  # without a column whose content could look like ids
SWAPPED = b"lon,lat\n34.1,-118.2\n25.5,-80.25\n"
REGIONS = b"id,lat,lon,name\nA1,50,8,Aberg\nA2,51,9,Bdorf\nB1,52,9,Cburg\n"
JOURNEYS = b"origin,dest,count,rider\nA1,A2,500,r1\nA2,B1,40,r1\nB1,B1,900,r2\n"
STATES = "Contiguous United States"
TABS = {"tab": "Table", "trips tab": "Consistency"}  # those that are quickest to draw


def pages():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.compare.page import compare_page  # noqa: PLC0415
    from dpviz.app.points_page import points_page  # noqa: PLC0415
    from dpviz.app.release_page import release_page  # noqa: PLC0415
    from dpviz.app.trips_page import trips_page  # noqa: PLC0415

    {"points": points_page, "trips": trips_page, "release": release_page, "compare": compare_page}[st.session_state.get("at", "points")]()


def pages_app(at="points", link=CURATE, state=()):
    """All pages in one session, with what it knows from before; `go` is the navigation between them."""
    app = AppTest.from_function(pages, default_timeout=60)
    app.query_params.update(link)
    for key, value in {**TABS, "at": at, **dict(state)}.items():
        app.session_state[key] = value
    return good(app.run())


def points_app(link=SMALL):
    return pages_app("points", link)


def trips_app(link=FLIGHTS):
    return pages_app("trips", link)


def uploaded(content=PLACES, name="homes.csv", *, link=CURATE, frame=STATES, crs="EPSG:4326", unit="each"):
    """The Points page after an upload, with what is asked of it: where the records lie, and whom to protect."""
    config = replace(read_link(Config, link), source="upload")
    state = {"config": config, "uploaded": (name, content), "frame": frame, "crs": crs}
    return pages_app("points", {}, state | {f"unit {config.mode} {digest_of(content)}": unit})


def trips_uploaded(mode="Curate", *, unit="each", **files):
    """The Trips page after an upload of regions in two levels, and of trips between them."""
    state = {"trips config": TripsConfig(mode=mode, source="upload"), f"regions prefixes {digest_of(REGIONS)}": "1"}
    for role, file in ({"regions": ("homes.csv", REGIONS), "trips": ("trips.csv", JOURNEYS)} | files).items():
        state |= {f"{role} uploaded": file, f"unit {role} {mode} {digest_of(file[1])}": unit}
    return pages_app("trips", {}, state)


def good(app):
    assert not app.exception, [each.value for each in app.exception]
    return app


def fine(app):
    assert not good(app).error, [each.value for each in app.error]
    return app


def go(app, page):
    app.session_state["at"] = page
    return good(app.run())


def open_tab(app, name):
    app.session_state["trips tab" if app.session_state["at"] == "trips" else "tab"] = name
    return good(app.run())


def entries():
    """Every draw that the test's ledger counts, oldest first."""
    return [entry for account in Ledger().accounts() for entry in Ledger().entries(account.name)]


def account():
    (found,) = Ledger().accounts()
    return found


def as_read(element):
    """A text as a person reads it: what keeps names apart from Markdown is not seen."""
    return element.value.replace("\\", "").replace("\u2060", "")


def errors(app):
    """What is refused in place, as a person reads it."""
    return " ".join(as_read(error) for error in app.error)


def warnings(app):
    return " ".join(as_read(warning) for warning in app.warning)


def captions(app):
    return " ".join(as_read(caption) for caption in app.caption)


def texts(app):
    return " ".join(as_read(each) for each in app.markdown)


def infos(app):
    return " ".join(as_read(info) for info in app.info)


def keys(elements):
    return {element.key for element in elements}


def figures(app):
    """The key figures by their labels."""
    return {metric.label: metric.value for metric in app.metric}


def labelled(widgets, label):
    """The one widget with this label."""
    (found,) = [widget for widget in widgets if widget.label == label]
    return found


def shares_of(app):
    return [number.value for number in app.number_input if (number.key or "").startswith("share ")]


def query_of(app):
    """The parameters in the address."""
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def choose(app, content, name="homes.csv"):
    """Upload another file on the Points page."""
    return good(app.file_uploader(key="file").set_value((name, content, "text/csv")).run())


def to_mode(app, mode):
    return good(app.segmented_control(key="mode").set_value(mode).run())


def public(app):
    """The box that declares a file's data to be public."""
    return labelled(app.checkbox, "These data are already public")


def truth_switch(app):
    return labelled(app.toggle, "Show curator-only truth")


def protect(app, person=None, most=1):
    """Say whom a file's release protects: each record (or trip) as a person of its own, or the persons of a column."""
    good(labelled(app.radio, "Whom to protect").set_value("each" if person is None else "person").run())
    if person is not None:
        labelled(app.selectbox, "Person").set_value(person)
        (bound,) = [number for number in app.number_input if number.label.endswith("per person, at most")]
        bound.set_value(most)
        good(app.run())
    return app


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


def newest(app, shelf):
    """What a session laid on a shelf last, None before the first."""
    return [None, *(app.session_state[shelf] if shelf in app.session_state else ())][-1]  # noqa: SIM401 - a session has no get()


def drawn(app):
    return newest(app, f"drawn {app.session_state['config'].mode}")


def trips_drawn(app):
    return newest(app, f"trips drawn {app.session_state['trips config'].mode}")


def layers_of(app, place=0):
    return {layer["id"]: layer for layer in json.loads(app.get("deck_gl_json_chart")[place].proto.json)["layers"]}


def drawn_layer(app):
    return next(layer for name, layer in layers_of(app).items() if name not in ("land", "countries", "states", "domain"))
