"""Where a person is on the Learn page: the path, the lesson and its settings, which the address carries, and the ways to another lesson."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dpviz.app.session.widgets import check_link
from dpviz.app.state.readers import describe_refused
from dpviz.lessons import GROUPS, LESSONS, SHORT_PATH
from dpviz.lessons.lesson import Lesson

BY_KEY = {lesson.key: lesson for lesson in LESSONS}
SHORT, ALL = "short", "all"
PATHS: dict[str, tuple[str, ...]] = {SHORT: tuple(key for key in SHORT_PATH if key in BY_KEY), ALL: tuple(BY_KEY)}
_PATH_NAMES = {SHORT: "Short path", ALL: "All stops"}
_ABOUT_PATH = {SHORT: f"{len(PATHS[SHORT])} stops, 45 minutes.", ALL: f"{len(PATHS[ALL])} stops, in groups."}
_LESSON_KEY, _PATH, _SETTINGS = "learn at", "learn path", "learn knobs"
_PATH_WIDGET, _CONTENTS, _CHANGED, _ADDRESS = "learn which path", "learn contents", "learn moved", "learn address"
_REFUSED = "learn refused"


def current_lesson() -> Lesson:
    """Return the lesson of this session with its settings; the address decides on the first visit, and after the browser's back button."""
    query, changed = st.query_params.to_dict(), st.session_state.pop(_CHANGED, False)
    gone_back = page_was_shown() and not changed and query != st.session_state[_ADDRESS]
    if changed:
        st.session_state.pop(_REFUSED, None)
    if _LESSON_KEY not in st.session_state or gone_back or (not page_was_shown() and "stop" in query):
        kind = BY_KEY.get(query.get("stop", ""), LESSONS[0])
        path = ALL if query.get("path") == ALL else path_of(kind.key)
        settings, names = check_link(kind, query)
        walked = {"stop": kind.key, "path": path}
        used = {name: value for name, value in walked.items() if query.get(name, value) != value}
        used |= {name: getattr(settings, name) for name in names}
        st.session_state[_LESSON_KEY], st.session_state[_PATH], st.session_state[_REFUSED] = kind.key, path, describe_refused(used)
        st.session_state.setdefault(_SETTINGS, {})[kind.key] = settings
    kind = BY_KEY[st.session_state[_LESSON_KEY]]
    if kind.key not in PATHS[current_path()]:
        st.session_state[_PATH] = ALL
    lesson: Lesson = st.session_state[_SETTINGS].setdefault(kind.key, kind())
    return lesson


def refused() -> str:
    """Return what of the last link was not understood, until the next change; "" if all was."""
    return str(st.session_state.get(_REFUSED, ""))


def page_was_shown() -> bool:
    """Return whether the run before showed this page too. Streamlit forgets the widgets of a page that the user leaves."""
    return _PATH_WIDGET in st.session_state and _ADDRESS in st.session_state


def is_at_the_beginning(lesson: Lesson) -> bool:
    """Return whether an empty address means this lesson with these settings, on this path."""
    return lesson == LESSONS[0]() and current_path() == path_of(lesson.key)


def path_of(key: str) -> str:
    """Return the path that a link to a lesson means if it names none: the short one if the lesson is on it."""
    return SHORT if key in PATHS[SHORT] else ALL


def current_path() -> str:
    """Return the path that the user walks."""
    return str(st.session_state.get(_PATH, ALL))


def change_settings(**settings: Any) -> None:
    """Show the lesson with other settings."""
    key = st.session_state[_LESSON_KEY]
    st.session_state[_CHANGED] = True
    st.session_state[_SETTINGS][key] = replace(st.session_state[_SETTINGS][key], **settings)


def reset_settings() -> None:
    """Show the lesson with its default settings."""
    st.session_state[_CHANGED] = True
    st.session_state[_SETTINGS].pop(st.session_state[_LESSON_KEY], None)


def _go_to(key: str) -> None:
    st.session_state[_LESSON_KEY], st.session_state[_CHANGED] = key, True


def _take_path(path: str) -> None:
    """Walk another path, from this lesson on if it is on it, else from its beginning."""
    st.session_state[_PATH], st.session_state[_CHANGED] = path, True
    if st.session_state[_LESSON_KEY] not in PATHS[path]:
        st.session_state[_LESSON_KEY] = PATHS[path][0]


def write_address(lesson: Lesson, *, plain: bool) -> None:
    """Write the lesson, its settings and, if the lesson alone does not say it, the path into the address.

    Args:
        lesson: the lesson that is shown.
        plain: leave an empty address empty. The back button led to it; a new address there would keep the user from going back further.
    """
    path = {} if current_path() == path_of(lesson.key) else {"path": current_path()}
    query = {"stop": lesson.key, **path, **lesson.to_query()}
    if st.query_params.to_dict() != query and not plain:
        st.query_params.from_dict(query)
    st.session_state[_ADDRESS] = st.query_params.to_dict()


def show_walk(lesson: Lesson) -> None:
    """Show the choice of the path and the lessons on it, those of the long path in groups."""
    st.session_state[_PATH_WIDGET] = current_path()
    st.segmented_control(
        "The walk",
        list(PATHS),
        key=_PATH_WIDGET,
        format_func=lambda path: _PATH_NAMES[path],
        required=True,
        on_change=lambda: _take_path(st.session_state[_PATH_WIDGET]),
    )
    st.caption(_ABOUT_PATH[current_path()])
    if current_path() == SHORT:
        _list_stops("Stops", PATHS[SHORT], lesson)
    else:
        for name, group in GROUPS.items():
            _list_stops(name, [member.key for member in group], lesson)
    st.caption("All data here are made up and all noise is seeded: nothing is private, and nothing is spent.")


def _list_stops(name: str, stops: Sequence[str], lesson: Lesson) -> None:
    """Show some stops of the path under their heading."""
    key, on_path = f"{_CONTENTS} {name}", PATHS[current_path()]
    st.session_state[key] = lesson.key if lesson.key in stops else None
    st.radio(
        name,
        list(stops),
        key=key,
        index=None,
        format_func=lambda stop: f"{on_path.index(stop) + 1}. {BY_KEY[stop].title}",
        on_change=lambda: _go_to(st.session_state[key]),
    )


def step_buttons(lesson: Lesson, position: str) -> None:
    """Show buttons to the previous and the next lesson; at the top, the title is between them."""
    stops = PATHS[current_path()]
    index, last = stops.index(lesson.key), len(stops) - 1
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key=f"learn-steps-{position}"):
        _step_button("Previous", stops[max(index - 1, 0)], position, disabled=index == 0, icon=":material/arrow_back:")
        if position == "top":
            st.header(f"{index + 1}. {lesson.title}", anchor=False, width="content")
        following = stops[min(index + 1, last)]
        _step_button("Next", following, position, disabled=index == last, icon=":material/arrow_forward:", icon_position="right")


def _step_button(label: str, stop: str, position: str, **options: Any) -> None:
    st.button(label, key=f"learn {label.lower()} {position}", on_click=_go_to, args=(stop,), help=BY_KEY[stop].title, **options)
