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
from dpviz.view.charts import picture

BY_KEY = {stop.key: stop for stop in STOPS}
_AT, _KNOBS, _SHOWN = "learn at", "learn knobs", "learn shown"
_CONTENTS, _MOVED, _ADDRESS = "learn contents", "learn moved", "learn address"

_TO_THE_TOP = """<script>
(() => {
  const stop = "STOP", before = window.dpvizStop;
  window.dpvizStop = stop;
  if (before === undefined || before === stop) return;
  document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
  const heading = document.querySelector(".st-key-learn-steps-top h2");
  const focused = document.activeElement;
  if (!heading || (focused !== document.body && !focused.closest('[class*="st-key-learn-steps"]'))) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
})();
</script>"""


def learn_page() -> None:
    """Draw the page."""
    plain = _was_here() and not st.query_params.to_dict()
    stop = _stop()
    with st.sidebar:
        _contents(stop)
    _write_address(stop, plain=plain and stop is STOPS[0] and not knobs_of(stop).to_query())
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
    st.html(_TO_THE_TOP.replace("STOP", stop.key), unsafe_allow_javascript=True)


def _stop() -> Stop:
    """The stop of this session; read from the address on the first visit, and when the browser's back button has changed it."""
    query, moved = st.query_params.to_dict(), st.session_state.pop(_MOVED, False)
    gone_back = _was_here() and not moved and query != st.session_state[_ADDRESS]
    if _AT not in st.session_state or gone_back or (not _was_here() and "stop" in query):
        stop = BY_KEY.get(query.get("stop", ""), STOPS[0])
        st.session_state[_AT] = stop.key
        st.session_state.setdefault(_KNOBS, {})[stop.key] = from_query(stop.knobs, query)
    return BY_KEY[st.session_state[_AT]]


def _was_here() -> bool:
    """Whether the run before showed this page too: Streamlit forgets the widgets of a page that is left."""
    return _CONTENTS in st.session_state and _ADDRESS in st.session_state


def knobs_of(stop: Stop) -> Any:
    """The settings of a stop in this session."""
    return st.session_state[_KNOBS].setdefault(stop.key, stop.knobs())


def _change(stop: Stop, **updates: Any) -> None:
    st.session_state[_MOVED] = True
    st.session_state[_KNOBS][stop.key] = replace(knobs_of(stop), **updates)


def _reset(stop: Stop) -> None:
    st.session_state[_MOVED] = True
    st.session_state[_KNOBS].pop(stop.key, None)


def _go(key: str) -> None:
    st.session_state[_AT], st.session_state[_MOVED] = key, True


def _write_address(stop: Stop, *, plain: bool) -> None:
    """Name the stop and its settings in the address; `plain`: an empty one, gone back to, stays, or one could not go back past it."""
    query = {"stop": stop.key, **knobs_of(stop).to_query()}
    if st.query_params.to_dict() != query and not plain:
        st.query_params.from_dict(query)
    st.session_state[_ADDRESS] = st.query_params.to_dict()


def _contents(stop: Stop) -> None:
    """The list of stops."""
    st.session_state[_CONTENTS] = stop.key
    st.radio(
        "The walk",
        list(BY_KEY),
        key=_CONTENTS,
        format_func=lambda key: f"{list(BY_KEY).index(key) + 1}. {BY_KEY[key].title}",
        on_change=lambda: _go(st.session_state[_CONTENTS]),
    )
    st.caption("All data here are made up and all noise is seeded: nothing is private, and nothing is spent.")


def _steps(stop: Stop, where: str) -> None:
    """To the stop before and the stop after."""
    place = STOPS.index(stop)
    before, after = STOPS[max(place - 1, 0)], STOPS[min(place + 1, len(STOPS) - 1)]
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key=f"learn-steps-{where}"):
        _step("Previous", before, where, disabled=place == 0, icon=":material/arrow_back:")
        if where == "top":
            st.header(f"{place + 1}. {stop.title}", anchor=False, width="content")
        _step("Next", after, where, disabled=stop is after, icon=":material/arrow_forward:", icon_position="right")


def _step(label: str, to: Stop, where: str, **looks: Any) -> None:
    st.button(label, key=f"learn {label.lower()} {where}", on_click=_go, args=(to.key,), help=to.title, **looks)


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
    about, dark = _about(stop, knobs_of(stop)), st.context.theme.type == "dark"
    with st.container(horizontal=True, key="learn-take"):
        for kind, mime in (("svg", "image/svg+xml"), ("png", "image/png")):
            st.download_button(
                f"Picture ({kind.upper()})",
                partial(picture, shown.charts, stop.title, about, kind, dark=dark),
                file_name=f"dpviz-learn-{stop.key}.{kind}",
                mime=mime,
                on_click="ignore",
                key=f"learn picture {kind}",
                help="This figure with its settings, as a file in the colours of this theme. Made on this computer.",
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
