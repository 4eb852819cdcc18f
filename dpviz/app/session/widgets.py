"""Session state of the pages: results that must not be lost, presses that count once, and settings as parameters of a link.

A click while a release is made ends the run that makes it, at that run's next call into Streamlit; reading the session state is such a
call. So a run takes its result slot out of the session state first, and once something is spent it only appends to the slot.

The second click of a double click starts a new run while the first click is still served. So after a press no other press is accepted
until the page was drawn to its end.

A link is text that a stranger may have written. Here unknown, malformed and out-of-range values fall back to the
default; `dpviz.app.state.links` reads the links of Points, Trips and Areas.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpviz.app.session.advice import advise_in_app
from dpviz.app.state.linked import readers_of, write_text
from dpviz.app.state.readers import LONGEST_TEXT
from dpviz.errors import DpvizError
from dpviz.view.escape import markdown

_SHOWN, _KNOWN = "widgets shown", "widgets known"  # keys of the widgets of this run, and of the last one that came to its end
SECONDS_OF_OLDER_VALUES = 4.0  # for which a browser may still send a value that the page has replaced


def name_content(digest: str) -> str:
    """Return a name for private content in the keys of widgets, which are in the markup of the page: a number of this session."""
    known: dict[str, str] = st.session_state.setdefault("contents", {})
    return known.setdefault(digest, f"content {len(known) + 1}")


def result_slot(key: str) -> deque[Any]:
    """Return the slot of one result by its key in this session: a plain deque, so appending to it does not touch the session state."""
    return st.session_state.setdefault(key, deque(maxlen=1))  # type: ignore[no-any-return]


def newest_result(key: str) -> Any:
    """Return the last result in a slot; None if there is none."""
    results = tuple(st.session_state.get(key, ()))
    return results[-1] if results else None


@dataclass
class Press:
    """The last press of a page's button. It is a plain object, so writing to it does not touch the session state.

    Attributes:
        taken: True from the press until the page was drawn to its end; no other press is accepted meanwhile.
        busy: True while the action of the press runs.
        refused: why the action was refused; empty if it was not.
    """

    taken: bool = False
    busy: bool = False
    refused: str = ""

    def serve(self, action: Callable[[], object]) -> None:
        """Run the action unless a press is being served already; keep the text of a refusal."""
        if self.taken:
            return
        self.taken = self.busy = True
        try:
            action()
        except DpvizError as error:
            self.refused = str(error)
        finally:
            self.busy = False


def serve_press(page: str, action: Callable[[], object], waiting: str) -> None:
    """Run the action of a press once, and run the page again; `show_refusal` then shows a refusal.

    Args:
        page: key of the page that has the button.
        action: does the work and keeps its result in a slot; it makes no call into Streamlit once something is spent.
        waiting: text that is shown while the action runs.
    """
    press: Press = st.session_state.setdefault(f"press {page}", Press())
    if press.taken:
        return
    with st.spinner(waiting):
        press.serve(action)
    st.rerun()


def show_refusal(page: str) -> None:
    """Show the reason why the last press was refused, as plain text, since it may quote a dataset's name."""
    press: Press | None = st.session_state.get(f"press {page}")
    if press is None:
        return
    if press.busy:
        st.info("The last press is still being served. Its result is kept, and shown after the next click.")
    if press.refused:
        show_error(press.refused)


def accept_presses(page: str) -> None:
    """Accept the next press, since the page has been drawn to its end. While an action still runs, nothing changes."""
    press: Press | None = st.session_state.get(f"press {page}")
    if press is not None and not press.busy:
        st.session_state.pop(f"press {page}", None)


def begin_run() -> None:
    """Begin a run of the app, which may be stopped by a newer event before it has shown all widgets."""
    st.session_state.setdefault(_KNOWN, set())
    st.session_state[_SHOWN] = set()


def end_run() -> None:
    """Note that a run has come to its end: the browser has its widgets, with their values."""
    st.session_state[_KNOWN] = st.session_state[_SHOWN]


def show_value(key: str, value: Any, *, without: Any = None) -> None:
    """Let a widget show a value, unless it does already: a value that is set again would overwrite what was chosen in the meantime.

    When a page is opened, the value is always set: its widget is another one than that of the same key on the page before. It is set again
    until a run that shows the widget has come to its end: the browser may not have drawn it before, and would take it for empty.

    Args:
        key: key of the widget.
        value: the value.
        without: what the widget would show without a value, such as the first choice of a slider. Where a second run of a new page follows
            at once, a browser may miss the value of the first one, and sends this instead with the next event: it is no choice, once.
    """
    last, visit = f"last shown {key}", st.session_state.get("visit", 0)
    visit_of_last, last_value = st.session_state.get(last, (None, None))
    known = st.session_state.get(_KNOWN)
    is_first = visit_of_last != visit or (known is not None and key not in known)
    st.session_state.setdefault(_SHOWN, set()).add(key)
    if is_first or key not in st.session_state or st.session_state[key] != value:
        if key in st.session_state and not is_first:  # the browser may still send what it holds, and what was sent to it before
            _replaced_values(key).extend((older, time.monotonic()) for older in (st.session_state[key], last_value) if older != value)
        if is_first and without is not None:
            st.session_state[f"without {key}"] = without
        st.session_state[key], st.session_state[last] = value, (visit, value)


def when_chosen(key: str, use: Callable[[Any], object]) -> Callable[[], None]:
    """Return a callback for a widget that calls `use` with the chosen value, unless the browser has only sent back an older value.

    A browser sends the values of all widgets with each event. If the page has just changed a value itself, the browser may still send
    the one before, which Streamlit takes for a choice.

    Args:
        key: key of the widget; its value is shown by `show_value`.
        use: called with the value.
    """

    def receive() -> None:
        if not is_older_value(key):
            use(st.session_state[key])

    return carry_out(receive)


def widget_for(key: str, value: Any, use: Callable[[Any], object], *, without: Any = None) -> dict[str, Any]:
    """Let a widget show a value and call `use` with another one; return its arguments `key` and `on_change`.

    Args:
        key: key of the widget.
        value: the value, as of `show_value`.
        use: as of `when_chosen`.
        without: as of `show_value`.
    """
    show_value(key, value, without=without)
    return {"key": key, "on_change": when_chosen(key, use)}


def carry_out(callback: Callable[[], object]) -> Callable[[], None]:
    """Return a callback of a widget that is carried out to its end, even if a newer event arrives meanwhile.

    At each call into the session state, Streamlit looks for newer events. One that it finds within a callback ends this callback, which
    is never called again: what was chosen would be lost. The event itself is put back after all callbacks, behind even newer ones, so
    that it would also undo these. So nothing looks for events while a callback runs; the next call of the page does.

    Args:
        callback: changes the session state.
    """

    def receive() -> None:
        context = get_script_run_ctx(suppress_warning=True)
        state = None if context is None else context.session_state
        look = getattr(state, "_yield_callback", None)
        if look is None:
            callback()
            return
        object.__setattr__(state, "_yield_callback", lambda: None)  # as its own constructor sets it
        try:
            callback()
        finally:
            object.__setattr__(state, "_yield_callback", look)

    return receive


def is_older_value(key: str, times: float = 1.0) -> bool:
    """Return whether a widget's value is one that the page itself replaced a moment ago; a moment may last several `times` as long."""
    now, value = time.monotonic(), st.session_state[key]
    without = st.session_state.pop(f"without {key}", None)
    if without is not None and without == value:
        return True
    return any(value == older and now - when < times * SECONDS_OF_OLDER_VALUES for older, when in _replaced_values(key))


def _replaced_values(key: str) -> deque[tuple[Any, float]]:
    """Return the values of a widget that the page replaced last, with the times when it did."""
    return st.session_state.setdefault(f"replaced {key}", deque(maxlen=20))  # type: ignore[no-any-return]


def is_dark() -> bool:
    """Return whether the page is dark."""
    return st.context.theme.type == "dark"


def show_error(text: str) -> None:
    """Show an error, with its advice in the words of the app; its text is not read as Markdown."""
    st.error(markdown(advise_in_app(text)))


def to_query(config: Any) -> dict[str, str]:
    """Return the parameters of a link to a configuration: what has a value, and differs from its default or is in `always_in_link`."""
    defaults = type(config)()
    values = {item.name: getattr(config, item.name) for item in fields(config)}
    changed = {name: value for name, value in values.items() if value is not None and value != getattr(defaults, name)}
    changed |= {name: getattr(config, name) for name in getattr(config, "always_in_link", ())}
    return {name: write_text(value) for name, value in changed.items()}


def read_link(kind: type[Any], query: Mapping[str, str]) -> Any:
    """Read a configuration from a link, without saying what was not understood; see `check_link`."""
    return check_link(kind, query)[0]


def check_link(kind: type[Any], query: Mapping[str, str]) -> tuple[Any, list[str]]:
    """Read a configuration from a link.

    Args:
        kind: the configuration's class: its `readers()`, or those of its fields (`in_link`), read single parameters, its `misfits()`, if
            it has any, names those that do not fit the others, and its `build()` refuses settings that do not fit.
        query: the parameters.

    Returns:
        The configuration, and the names of parameters that it has but that could not be read or do not fit. They have their defaults.
    """
    config, refused = kind(), []
    for name, read in (kind.readers() if hasattr(kind, "readers") else readers_of(kind)).items():
        if name not in query:
            continue
        if len(query[name]) > LONGEST_TEXT:
            refused.append(name)
            continue
        try:
            config = replace(config, **{name: read(query[name])})
        except (ValueError, TypeError, OverflowError, RecursionError):
            refused.append(name)
    if hasattr(config, "misfits") and (misfits := config.misfits()):
        config = replace(config, **{name: getattr(kind(), name) for name in misfits})
        refused += [name for name in misfits if name in query and name not in refused]
    try:
        config.build()
    except (DpvizError, TypeError, OverflowError):
        config = replace(config, settings={})
        if "settings" in query and "settings" not in refused:
            refused.append("settings")
    return config, refused


def show_refused_link(text: str) -> None:
    """Say which parameters of the link were not understood. The place is always there, so that nothing below it moves in the browser.

    Args:
        text: as of `describe_refused`; it is not read as Markdown.
    """
    with st.container():
        if text:
            st.warning(markdown(text))
