"""Two pages: one with the canvas of maps, one with a map that Streamlit draws itself, with a deck.gl of its own."""

import streamlit as st

from dpviz.app.points.page import points_page
from dpviz.mechanisms import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import load_sample
from dpviz.view.points_map import points_map


def map_page():
    points = load_sample("la_residents")
    release = Quadtree(height=4).release(points, PureBudget(1), Entropy.seeded(1))
    st.pydeck_chart(points_map(release, 4, "Released", unit="people", dark=False).deck, height=500)


if __name__ == "__main__":  # as Streamlit runs it
    canvas = st.Page(points_page, title="Points", url_path="points", default=True)
    st.navigation([canvas, st.Page(map_page, title="Map", url_path="help")], position="top").run()
