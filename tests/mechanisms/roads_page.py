"""The page of roads: a sample, and tables in place of maps. No file of the app knows of it."""

from types import SimpleNamespace

import streamlit as st

from dpviz.app.cards.expected_errors import Levels
from dpviz.app.cards.source import choose_sample, data_of_sample
from dpviz.app.modes.family_page import FamilyPage, TeachParts
from dpviz.app.modes.teach import stamp_maps
from dpviz.app.session.ledger import Source
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import Releases
from dpviz.app.state.kinds import PageKind
from dpviz.app.state.readers import number_reader
from dpviz.publishing.config import DataPart
from tests.mechanisms.roads import ROADS, SAMPLE, SAMPLES

KIND = PageKind(
    family=ROADS, key="roads config", button="Open the roads", samples=SAMPLES, shown=("Released",), read_level=number_reader(0, 3, int)
)
STATE = FamilyState(key=KIND.key, kind=KIND, families=(ROADS,))


def controls(cards):
    choose_sample(STATE, SAMPLES)
    (key, about), *_ = SAMPLES.items()
    return SimpleNamespace(data=data_of_sample(cards, about, SAMPLE, Source(data_part=DataPart(sample=key)), f"roads {key}"))


def show_counts(release):
    st.table(release.to_frame())


def list_levels(counts):
    names = {level: f"{2**level} parts" for level in counts.level_range}
    return Levels(names=names, usual=max(names), part="part", parts_at=lambda level: 2**level)


PAGE = FamilyPage(
    releases=Releases(page=STATE, evaluate=ROADS.evaluate),
    controls=controls,
    nothing=SimpleNamespace(data=None),
    frame_of=lambda declared: SAMPLE.road,
    protected=dict.fromkeys(("", "record", "person"), "**Protected:** adding or removing one accident."),
    not_protected="**Not protected:** the road.",
    weigh=lambda what: len(what.release.count),
    room=1_000,
    idle=lambda shown: (stamp_maps(shown), None),
    teach=lambda shown: TeachParts(
        kinds=KIND.shown,
        without_map=lambda: show_counts(shown.first.release),
        figures=lambda: None,
    ),
    raw=", before least squares.",
    streets="",
    counts_of=lambda declared: SAMPLE.empty_in(SAMPLE.road),
    levels_of=list_levels,
    unit_of=lambda data: ROADS.counted,
    show_declared=lambda declared, expected, unit: None,
    show_release=lambda what, truths: show_counts(what.release),
    count_useful=lambda release, level: None,
)
