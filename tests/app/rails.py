"""The rail of a page without a browser: what the page gives it, and events as a browser would send them."""

from types import SimpleNamespace

from dpviz.app.components.rail import KINDS, new_memory, receive
from tests.app.seen import fine


def rail_of(monkeypatch):
    """What the page gives its rail, after each run; `send(app, kind, value)` sends an event, and lets the page run."""
    seen = SimpleNamespace(events=[], options={})

    def rail(levels, parts, epsilon, calls, **options):
        vars(seen).update(levels=levels, parts=parts, epsilon=epsilon, calls=calls, options=options)
        while seen.events:
            receive(seen.events.pop(), new_memory(), levels, parts, calls)

    def send(app, kind, value):
        assert kind in KINDS
        seen.events.append({kind: {"value": value, "serial": 1}})
        fine(app.run())
        return fine(app.run())

    seen.send = send
    seen.shown = lambda: seen.levels[seen.options["shown"]]
    monkeypatch.setattr("dpviz.app.modes.rail.rail", rail)
    return seen
