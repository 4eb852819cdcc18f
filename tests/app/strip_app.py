"""A page with a strip, for tests: it says what it was called with, and can be slow or change while a share is dragged."""

import time

import streamlit as st

from dpviz.app.components.strip import StripLevel, StripPart, strip

state, options = st.session_state, st.query_params
for name, value in {"shown": 1, "relative": True, "shares": [0.2, 0.1, 0.3, 0.4], "calls": [], "drags": 0, "data": 0}.items():
    state.setdefault(name, value)
truth = "curate" not in options


def note(**changed):
    time.sleep(float(options.get("slow", 0)))
    state.update(changed)
    state.calls.append(next(iter(changed)))


def tried(shares):
    state.drags += 1
    time.sleep(float(options.get("wait", 0)))
    return None if "unknown" in options else [1000.0 * shares[index + 1] for index in range(3)]


@st.fragment(run_every=0.3 if "restless" in options else None)
def show():
    state.data += 1
    levels = [
        StripLevel(
            name=f"state to county {level}" if "named" in options else str(level),
            about="the <i>whole</i>" if level == 0 else f"{4**level} squares",
            mean=(10 if "noise" in options else 10_000) / 4**level,
            expected=20.0 - 5 * level,
            measured=25.0 - 5 * level + state.data / 1e6 if truth else None,
            before=40.0,
            base=(0, 8, 1000)[level] if truth else None,
            wrong=(0, 1, 250)[level] if truth else None,
            there=(1, 8, 3000)[level] if truth else None,
            missed=(0, 4, 300)[level] if truth else None,
        )
        for level in range(3)
    ]
    labels = ["medians", "zoom 0", "zoom 1", "zoom 2"]
    parts = [
        StripPart(
            label=label, share=share, level=index - 1 if index else None, structure=not index, locked="lock" in options and index == 1
        )
        for index, (label, share) in enumerate(zip(labels, state.shares, strict=True))
    ]
    strip(
        levels,
        parts if "whole" not in options else parts[:1],
        shown=state.shown,
        unit="people",
        relative=state.relative,
        key="strip",
        on_level=lambda level: note(shown=level),
        on_unit=lambda relative: note(relative=relative),
        on_shares=lambda shares: note(shares=shares),
        on_drag=tried,
        whole="One set of counts takes all of ε.",
    )
    shares = " ".join(f"{share:.3f}" for share in state.shares)
    st.text(f"level {state.shown}, percent {state.relative}, shares {shares}, calls {' '.join(state.calls)}.")
    st.text(f"drags {state.drags}; runs {state.data};")


show()
