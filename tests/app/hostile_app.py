"""Every hostile name in everything that reads Markdown, as `dpviz.view.escape.markdown` hands it over: one line per name."""

import streamlit as st

from dpviz.view.escape import markdown
from tests.hostile import NAMES

for place, name in enumerate(NAMES):
    text = markdown(name)
    with st.container(key=f"name-{place}"):
        st.markdown(text)
        st.markdown(f"**{text}**")
        st.markdown(f"- {text}")
        st.caption(f":orange[{text}]")
        st.error(text)
        st.metric(text, text, help=text)
        st.segmented_control(text, ["a"], format_func=lambda _, text=text: text, key=f"control {place}")
        st.checkbox(text, key=f"box {place}")
        st.progress(0.5, text)
        with st.expander(text), st.tabs([text])[0]:
            st.text("inside")
st.markdown("all is drawn")
