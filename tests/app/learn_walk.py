"""A walk through the stops of the Learn page without a browser."""

import json

from streamlit.testing.v1 import AppTest

from dpviz.lessons import LESSONS
from tests.app.walk import good

KEYS = [stop.key for stop in LESSONS]
BY_KEY = {stop.key: stop for stop in LESSONS}


def learn():
    from dpviz.app.learn_page import learn_page  # noqa: PLC0415 - only this function's text runs

    learn_page()


def learn_app(**link):
    app = AppTest.from_function(learn, default_timeout=60)
    app.query_params.update(link)
    return good(app.run())


def at(app):
    return app.session_state["learn at"]


def settings(app):
    return app.session_state["learn knobs"][at(app)]


def address(app):
    return {name: values[0] if isinstance(values, list) else values for name, values in app.query_params.items()}


def charts(app):
    return [each.proto.spec for each in app.get("vega_lite_chart")]


def sizes(app):
    """Bytes of everything that goes to the browser for charts."""
    return sum(each.proto.ByteSize() for each in app.get("vega_lite_chart"))


def described(app):
    return [json.loads(spec).get("description", "") for spec in charts(app)]


def moved(app, name):
    """Move the widget of one setting somewhere else; returns what it was before."""
    stop = BY_KEY[at(app)]
    rule = next(rule for rule in stop.rules() if rule.name == name)
    before = getattr(settings(app), name)
    key = f"learn {stop.key} {name}"
    if isinstance(rule.default, bool):
        app.toggle(key=key).set_value(not before)
    elif rule.choices:
        other = rule.choices[(rule.choices.index(before) + 1) % len(rule.choices)]
        widgets = [*app.get("button_group"), *app.selectbox, *app.select_slider]
        next(widget for widget in widgets if widget.key == key).set_value(other)
    else:
        app.slider(key=key).set_value(type(before)(rule.low if before != rule.low else rule.high))
    good(app.run())
    return before
