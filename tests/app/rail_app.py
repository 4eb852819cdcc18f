"""A page with a rail, for tests: it says what it was called with, and can be slow or change while a share is dragged."""

import time
from fractions import Fraction

import numpy as np
import streamlit as st

from dpviz.app.components.rail import RailCalls, RailEpsilon, RailLevel, RailPart, rail
from dpviz.evaluation.level_worth import LevelWorth
from dpviz.publishing.errors_over_epsilon import ErrorsOverEpsilon

state, options = st.session_state, st.query_params
defaults = {"shown": 1, "false": False, "epsilon": Fraction("0.1"), "shares": [0.2, 0.1, 0.3, 0.4], "calls": [], "drags": 0, "data": 0}
for name, value in defaults.items():
    state.setdefault(name, value)


def note(**changed):
    time.sleep(float(options.get("slow", 0)))
    state.update(changed)
    state.calls.append(next(iter(changed)))


def tried(shares):
    state.drags += 1
    time.sleep(float(options.get("wait", 0)))
    return None if "unknown" in options else [1000.0 * shares[index + 1] for index in range(3)]


def level_of(number):
    average, error = 10_000 / 4**number, (25.0 - 5 * number) * 0.1 / float(state.epsilon)
    base, wrong, there, missed = ((0, 0, 1, 0), (8, 1, 8, 4), (1000, 250, 3000, 300))[number]
    at = np.array([0.01, 0.1, 1.0, 10.0])
    curve = ErrorsOverEpsilon(epsilon=at, error=(2.5 - 0.5 * number) / at / average, false_share=np.full(4, 0.5))
    return RailLevel(
        name=f"{8 / 2**number:g} km",
        subject=f"A {8 / 2**number:g} km square",
        about="the <i>whole</i>" if number == 0 else f"{4**number} squares",
        worth=LevelWorth(average=average, error=error / average, base=base, wrong=wrong, there=there, missed=missed),
        curve=None if "late" in options else curve.joined_to(float(state.epsilon), error / average, wrong / base if base else np.nan),
        finer="fine" in options and number == 2,
    )


@st.fragment(run_every=0.3 if "restless" in options else None)
def show():
    state.data += 1
    labels = ["medians", "zoom 0", "zoom 1", "zoom 2"]
    parts = [
        RailPart(label=label, share=share, level=index - 1 if index else None, structure=not index, locked="lock" in options and index == 1)
        for index, (label, share) in enumerate(zip(labels, state.shares, strict=True))
    ]
    rail(
        [level_of(number) for number in range(3)],
        parts if "whole" not in options else parts[:1],
        RailEpsilon(chosen=float(state.epsilon), of_run=float(state.epsilon), steps=[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 10]),
        RailCalls(
            on_epsilon=lambda epsilon: note(epsilon=epsilon),
            on_level=lambda level: note(shown=level),
            on_false=lambda shows: note(false=shows),
            on_shares=lambda shares: note(shares=shares),
            on_drag=tried,
        ),
        shown=state.shown,
        key="rail",
        shows_false=state.false,
        whole="One set of counts takes all of ε.",
    )
    shares = " ".join(f"{share:.3f}" for share in state.shares)
    st.text(f"ε {state.epsilon}, level {state.shown}, false {state.false}, shares {shares}, calls {' '.join(state.calls)}.")
    st.text(f"drags {state.drags}; runs {state.data};")


with st.container(key="map"):
    st.text("the map")
show()
