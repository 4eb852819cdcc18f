"""The start page: in a minute, what this is."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.bundled import folder

_CAPTION = "What could be published about 200,000 made-up residents of Los Angeles"
_PICTURE = "Map of Los Angeles cut into squares: dark where many records were released, pink where noise made a count negative."


def start_page(points: StreamlitPage, trips: StreamlitPage, compare: StreamlitPage, learn: StreamlitPage) -> None:
    """Draw the page; its buttons lead to the others."""
    left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
    with left:
        st.title("What would you publish?", anchor=False)
        st.markdown(
            "Counts of people by place, or of trips between places, are useful and dangerous: exact small numbers tell on individuals."
            " **Differential privacy** adds noise of a known size, so that whether any one person is in the data changes the odds of any"
            " published result by at most a factor e^ε. **dpviz** shows what such a release looks like *before* it exists."
        )
        with st.container(horizontal=True):
            if st.button("Open the map", type="primary"):
                st.switch_page(points)
            if st.button("Open the trips"):
                st.switch_page(trips)
            if st.button("Compare mechanisms"):
                st.switch_page(compare)
            if st.button("Learn in ten stops"):
                st.switch_page(learn)
    with right, st.container(width=380):
        st.image(folder("assets") / "map.png", width="stretch", caption=_CAPTION, alt=_PICTURE)
    st.divider()
    columns = st.columns(3, gap="large")
    texts = (
        ("1 Load", "Locations on a rectangle that you declare, or trips between public regions. The frame is never taken from the data."),
        ("2 Choose", "A mechanism, the privacy budget, and how it is split between levels. Everything spent is on the receipt."),
        (
            "3 Draw and judge",
            "One press draws the noise. The map shows released counts, and with public data the truth, the error and false positives.",
        ),
    )
    for column, (title, text) in zip(columns, texts, strict=True):
        column.markdown(f"##### {title}\n{text}")
    st.divider()
    left, right = st.columns(2, gap="large")
    left.markdown(
        "##### Teach\nPublic or made-up data and seeded noise: draw as often as you like, see the truth beside the release. What comes"
        " out is a simulation."
    )
    right.markdown(
        "##### Curate\nPrivate data and noise from the operating system: every draw counts, the sum is shown, and the truth stays behind"
        " a switch."
    )
    st.caption(
        "Not protected: the domain, the mechanism and its settings, totals that you declare. Not hardened: timing. The app answers on"
        " this computer only: to every user of it if it was started without a token."
    )
