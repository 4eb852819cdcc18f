"""The Learn page: a walk of ten stops on made-up data, each with a figure to play with."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.link import from_query
from dpviz.app.stops import STOPS
from dpviz.app.stops.parts import Shown, Stop
from dpviz.app.stops.widgets import draw_button, widgets
from dpviz.view.pictures import picture

BY_KEY = {stop.key: stop for stop in STOPS}
_AT, _KNOBS, _SHOWN = "learn at", "learn knobs", "learn shown"


def learn_page() -> None:
    """Draw the page."""
    stop = _stop()
    with st.sidebar:
        _contents(stop)
    _write_address(stop)
    _steps(stop, "top")
    st.markdown(stop.says)
    st.info(f"**Try:** {stop.task}", icon=":material/touch_app:")
    left, right = st.columns([1, 3], gap="medium")
    with left, st.container(key="learn-controls"):
        widgets(stop, knobs_of(stop), lambda **updates: _change(stop, **updates))
        with st.container(horizontal=True):
            draw_button(knobs_of(stop), lambda **updates: _change(stop, **updates))
            st.button("Reset", key="learn reset", help="Back to how this stop began.", on_click=_reset, args=(stop,))
    with right, st.container(key="learn-figure"):
        shown = _shown(stop)
        _draw(stop, shown)
        _take_away(stop, shown)
    _steps(stop, "bottom")


def _stop() -> Stop:
    """The stop of this session; read from the address on the first visit."""
    if _AT not in st.session_state:
        query = st.query_params.to_dict()
        stop = BY_KEY.get(query.get("stop", ""), STOPS[0])
        st.session_state[_AT], st.session_state[_KNOBS] = stop.key, {stop.key: from_query(stop.knobs, query)}
    return BY_KEY[st.session_state[_AT]]


def knobs_of(stop: Stop) -> Any:
    """The settings of a stop in this session."""
    return st.session_state[_KNOBS].setdefault(stop.key, stop.knobs())


def _change(stop: Stop, **updates: Any) -> None:
    st.session_state[_KNOBS][stop.key] = replace(knobs_of(stop), **updates)


def _reset(stop: Stop) -> None:
    st.session_state[_KNOBS].pop(stop.key, None)


def _go(key: str) -> None:
    st.session_state[_AT] = key


def _write_address(stop: Stop) -> None:
    query = {"stop": stop.key, **knobs_of(stop).to_query()}
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)


def _contents(stop: Stop) -> None:
    """The list of stops."""
    st.session_state["learn contents"] = stop.key
    st.radio(
        "The walk",
        list(BY_KEY),
        key="learn contents",
        format_func=lambda key: f"{list(BY_KEY).index(key) + 1}. {BY_KEY[key].title}",
        on_change=lambda: _go(st.session_state["learn contents"]),
    )
    st.caption("All data here are made up and all noise is seeded: nothing is private, and nothing is spent.")


def _steps(stop: Stop, where: str) -> None:
    """To the stop before and the stop after."""
    place = STOPS.index(stop)
    before, after = STOPS[max(place - 1, 0)], STOPS[min(place + 1, len(STOPS) - 1)]
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key=f"learn-steps-{where}"):
        st.button("← Previous", key=f"learn previous {where}", disabled=place == 0, on_click=_go, args=(before.key,), help=before.title)
        if where == "top":
            st.header(f"{place + 1}. {stop.title}", anchor=False, width="content")
        st.button("Next →", key=f"learn next {where}", disabled=stop is after, on_click=_go, args=(after.key,), help=after.title)


def _shown(stop: Stop) -> Shown:
    """What the stop shows; made once per settings, so that going back and forth draws nothing."""
    made: dict[str, tuple[Any, Shown]] = st.session_state.setdefault(_SHOWN, {})
    knobs = knobs_of(stop)
    if stop.key not in made or made[stop.key][0] != knobs:
        made[stop.key] = knobs, stop.show(knobs)
    return made[stop.key][1]


def _draw(stop: Stop, shown: Shown) -> None:
    for above, row in enumerate(shown.rows):
        for place, (column, chart) in enumerate(zip(st.columns(len(row)), row, strict=True)):
            column.altair_chart(chart, width="stretch", key=f"learn {stop.key} chart {above} {place}")
    if shown.figures:
        with st.container(horizontal=True, key="learn-figures"):
            for figure in shown.figures:
                st.metric(figure.label, figure.value, help=figure.help)
    if shown.note:
        st.caption(shown.note)
    if shown.source:
        st.caption(f"Source: {shown.source}")


def _take_away(stop: Stop, shown: Shown) -> None:
    """The figure as a file, made when asked for."""
    about = _about(stop, knobs_of(stop))
    with st.container(horizontal=True, key="learn-take"):
        for kind, mime in (("svg", "image/svg+xml"), ("png", "image/png")):
            st.download_button(
                f"Picture ({kind.upper()})",
                partial(picture, shown.charts, stop.title, about, kind),
                file_name=f"dpviz-learn-{stop.key}.{kind}",
                mime=mime,
                on_click="ignore",
                key=f"learn picture {kind}",
                help="This figure with its settings, as a file. Made on this computer.",
            )


def _about(stop: Stop, knobs: Any) -> str:
    """What stands under the picture: the settings, and that it is no release."""
    values = knobs.chosen()
    parts = [f"{rule.label}: {_short(values[rule.name])}" for rule in stop.knobs.rules() if rule.matters(values)]
    return "; ".join(parts)


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{part:.2g}" for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
