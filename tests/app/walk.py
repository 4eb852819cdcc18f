"""A walk through the pages without a browser: go to one, choose, type and press."""

from pathlib import Path

from dpviz.privacy.ledger import Ledger
from tests.app.parts import changed_page
from tests.app.seen import good, keys, labelled

ASK_TABS = ("Range query", "Regions to ask", "Region", "Pair of regions")
ROOT = Path(__file__).parents[2]


def go(app, page):
    app.session_state["at"] = page
    return good(app.run())


def open_tab(app, name):
    """Open a tab; in Teach, where questions have no tab beside the others, the drawer that it is in."""
    if _page_of(app).draft.mode == "Teach":
        open_drawer(app, "Ask" if name in ASK_TABS else "Numbers")
    app.session_state[{"points": "tab"}.get(app.session_state["at"], f"{app.session_state['at']} tab")] = name
    return good(app.run())


def open_drawer(app, name):
    """Open a drawer of Teach, such as "Data", unless it is open; "" closes the open one."""
    page = _page_of(app)
    if page.view.drawer != name:
        app.session_state[_key_of(app)] = changed_page(page, drawer=name)
        app.run()
    return good(app)


def _key_of(app):
    return {"points": "config"}.get(app.session_state["at"], f"{app.session_state['at']} config")


def _page_of(app):
    return app.session_state[_key_of(app)]


def choose(app, content, name="homes.csv"):
    """Upload another file on the Points page; in Curate the private one."""
    if any(each.label == "Files" for each in app.file_uploader):
        return drop(app, content, name, "Private: points")
    return good(app.file_uploader(key="file").set_value((name, content, "text/csv")).run())


def drop(app, content, name, role):
    """Drop a file in Curate and say what it is; the file that was that before is removed."""
    (zone,) = [each for each in app.file_uploader if each.label == "Files"]
    good(zone.set_value([(name, content, "text/plain")]).run())
    for each in _undecided(app):
        good(each.set_value(role).run())
    for each in _undecided(app):
        good(app.button(key=str(each.key).replace("what", "remove")).click().run())
    return app


def _undecided(app):
    return [each for each in app.segmented_control if each.label == "What is it?" and each.value is None]


def to_mode(app, mode):
    return good(app.segmented_control(key="mode").set_value(mode).run())


def public(app):
    """The box that declares a file's data to be public."""
    return labelled(app.checkbox, "These data are already public")


def truth_switch(app):
    return labelled(app.toggle, "Show curator-only truth")


def protect(app, person=None, most=1):
    """Choose whom a file's release protects: each record (or trip) as a person of its own, or the persons of a column."""
    good(labelled(app.radio, "Whom to protect").set_value("each" if person is None else "person").run())
    if person is not None:
        labelled(app.selectbox, "Person").set_value(person)
        (bound,) = [number for number in app.number_input if number.label.endswith("per person, at most")]
        bound.set_value(most)
        good(app.run())
    return app


def by_record(app):
    """Choose that each record is its own person, where nothing is chosen yet."""
    return protect(app) if any(radio.label == "Whom to protect" and radio.value is None for radio in app.radio) else app


def name_dataset(app, name=None, cap=10.0):
    """Type name and cap of data that are new to the ledger; each record is its own person unless something else was chosen."""
    by_record(app)
    typed = [each for each in app.text_input if each.label == "Name of the dataset"]
    total = next((each for each in app.number_input if each.label in ("Cap, ε", "Cap, ρ")), None)
    known = {account.name for account in Ledger().accounts()}
    if typed and typed[0].value not in known and total is not None and total.value is None:
        typed[0].set_value(name or f"Homes {len(Ledger().accounts()) + 1}")
        total.set_value(cap)
        good(app.run())
    return app


def say_how_many(app, records=1000):
    """Guess how many records there are, where that is not said yet."""
    for number in app.number_input:
        if str(number.key).startswith("good records") and number.value is None:
            good(number.set_value(records).run())
    return app


def press_draw(app):
    """Press the button that releases; where the page follows its controls, there is none. A second payment is chosen once more."""
    if "draw" not in keys(app.button):
        return app
    return good(ready_to_pay(app).button(key="draw").click().run())


def ready_to_pay(app):
    """Answer what the button waits for: the account, about how many records there are, and what is ticked."""
    name_dataset(app)
    say_how_many(app)
    for kind in ("pay again", "noise known"):  # what a second payment buys is said once it is wanted
        for tick in app.checkbox:
            if str(tick.key).startswith(kind):
                good(tick.check().run())
    return app
