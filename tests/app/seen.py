"""What a page shows, as a person reads it, and what its session and the ledger hold."""

from dpviz.privacy.entropy import Entropy
from dpviz.privacy.ledger import Ledger
from tests.scenes import unpack


def good(app):
    assert not app.exception, [each.value for each in app.exception]
    return app


def fine(app):
    assert not good(app).error, [each.value for each in app.error]
    return app


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


def missing(app):
    """What the button of Curate waits for, in order."""
    return [each.label.replace("\\", "").replace("\u2060", "") for each in app.button if str(each.key).startswith("missing ")]


def noised(calls):
    """The calls of a mock of noise that put it on records: a dry run puts it on zeros, and a rehearsal with made-up records is seeded."""
    streams = [(call, next(arg for arg in call.args if isinstance(arg, Entropy))) for call in calls.call_args_list]
    return [call for call, stream in streams if call.args[0].any() and not stream.simulation]


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


def newest(app, shelf):
    """What a session laid on a shelf last, None before the first."""
    return [None, *(app.session_state[shelf] if shelf in app.session_state else ())][-1]  # noqa: SIM401 - a session has no get()


def drawn(app):
    return newest(app, "config first run" if app.session_state["config"].draft.mode == "Teach" else "drawn Curate")


def trips_drawn(app):
    teaches = app.session_state["trips config"].draft.mode == "Teach"
    return newest(app, "trips config first run" if teaches else "trips drawn Curate")


def released_map(app):
    """Header and arrays of the scene of Curate's map of a release, the last canvas on the page."""
    return unpack(scenes(app)[-1])


def scene(app):
    """Header and arrays of the scene of the canvas of maps."""
    (messages,) = scenes(app)
    return unpack(messages)


def scenes(app):
    """The messages of each scene on the page: its parts, and last its header."""
    found = [[]]
    for each in _elements(app._tree):
        if each.proto.component_name == "dpviz_part":
            found[-1].append(each.proto.bytes)
        elif each.proto.component_name == "dpviz_panes":
            found.append([])
    return found[:-1]


def _elements(part):
    for child in getattr(part, "children", {}).values():
        if getattr(child, "type", "") == "bidi_component":
            yield child
        yield from _elements(child)
