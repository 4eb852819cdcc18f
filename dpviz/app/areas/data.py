"""The data part of the Areas page: a sample of points counted in nested regions."""

from __future__ import annotations

import streamlit as st

from dpviz.app import cached
from dpviz.app.areas.state import AREAS, AreasData, config
from dpviz.app.ledger import Source
from dpviz.app.session import show_value, when_chosen
from dpviz.app.trips.data import describe_regions
from dpviz.publishing.config import DataPart
from dpviz.publishing.private_data import content_fingerprint
from dpviz.samples.areas import AREA_SAMPLES


def areas_controls() -> AreasData:
    """Show the choice of a sample, and return its data."""
    st.markdown("##### 1 Data")
    how = config()
    show_value("areas sample", how.sample)
    st.selectbox(
        "Sample",
        list(AREA_SAMPLES),
        key="areas sample",
        format_func=lambda key: AREA_SAMPLES[key].title,
        on_change=when_chosen("areas sample", lambda value: AREAS.change(sample=value, level=None, asked=())),
    )
    about, sample = AREA_SAMPLES[how.sample], cached.area_sample(how.sample)
    st.caption(about.description, help=f"{describe_regions(sample.areas.regions)} Source: {about.source} Licence: {about.licence}.")
    key = f"areas {how.sample}"
    return AreasData(
        areas=sample.areas,
        on_map=sample.on_map,
        denominators=sample.denominators,
        digest=key,
        fingerprints=(content_fingerprint(f"sample {key}".encode()),),
        title=about.title,
        unit=about.unit,
        source=Source(data_part=DataPart(sample=how.sample)),
    )
